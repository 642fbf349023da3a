"""Look after a memory, within a budget of time."""
