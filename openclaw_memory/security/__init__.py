"""Keep the keys of this user, and sign with them."""

from openclaw_memory.security.keys import Key

__all__ = ["Key"]
