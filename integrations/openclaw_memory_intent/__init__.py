"""Detect the intent of a message: to remember, to look something up, to forget, or nothing.

`is_worth_asking` decides cheaply if a model need be asked, `detect_intent` asks it, and `suggest` proposes an action.
Nothing here writes or deletes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
