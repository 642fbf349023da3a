"""Detect the intent of a message: to remember, to look something up, to forget, or nothing.

`worth_asking` decides cheaply whether a model need be asked, `detect_intent` asks it, and `suggestion` says what may be
done about the answer. Nothing here writes or deletes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
