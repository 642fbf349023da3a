"""Bring in the data of another memory: a pure plan of the new places, then its application."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
