"""An index is built again beside the one that answers, which is untouched until the new one takes its place whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openclaw_memory.types import Store


@contextmanager
def beside(store: Store) -> Iterator[Store]:
    """A store to build the next index in, published in place of the old one where the block ends well.

    Whatever ends the block otherwise (an error, a progress callback that raises) leaves the old index as it was. So
    does a process that is killed; what it leaves behind is swept at the beginning of the next sync.
    """
    built = store.beside()
    try:
        yield built
    except BaseException:
        store.discard(built)
        raise
    store.publish(built)
