"""Keep an access log: which lines of a memory are read and written, by whom, in a chain that shows changes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
