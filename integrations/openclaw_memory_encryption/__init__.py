"""Encrypt the index of a memory by a connection hook, and its files in the format age."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
