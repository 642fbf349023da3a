"""Read messages, tell when a conversation is full, compact and prune it, and keep its end."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
