"""Text as data: terms, stop words, secrets, fences and front matter. Pure functions, no I/O."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
