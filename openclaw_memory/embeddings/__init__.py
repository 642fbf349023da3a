"""Embedders: those that ship, those of services and frameworks, and what a provider of your own is made of."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
