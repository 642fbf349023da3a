"""The vocabulary: frozen value objects that pass between the stages, and the protocols of an embedder and a store.

files -> index (chunks, rows) -> results (and reports) -> status; `documents` are what agents and frameworks
exchange with a memory; `protocols` are the parts that can be replaced.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
