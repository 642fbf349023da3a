"""Embedders: shipped ones, services, frameworks' models, functions, and the parts of a provider of your own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
