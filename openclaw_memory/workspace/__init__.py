"""The files of a memory: which of them count, how they are read safely, and how they are written."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
