"""Show a memory as a page in a browser, on this machine alone."""
