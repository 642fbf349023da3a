"""List the content of a memory, and forget parts."""
