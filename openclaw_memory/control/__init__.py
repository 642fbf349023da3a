"""Inspect a memory as a whole, and forget parts of it for good."""
