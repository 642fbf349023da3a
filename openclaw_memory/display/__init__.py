"""Show results in a notebook."""
