"""The flush: save what a conversation must not lose, just before it is compacted."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
