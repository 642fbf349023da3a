"""Keep the keys of this user, and sign with them."""

from openclaw_memory.security.keys import Key, load_user_key, read_environment_keys

__all__ = ["Key", "load_user_key", "read_environment_keys"]
