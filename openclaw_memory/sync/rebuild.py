"""An index is built again beside the one that answers, which is untouched until the new one takes its place whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openclaw_memory.errors import CorruptIndexError
from openclaw_memory.types import Store


@contextmanager
def beside(store: Store) -> Iterator[Store]:
    """A store to build the next index in, published in place of the old one where the block ends well.

    Whatever ends the block otherwise (an error, a progress callback that raises) leaves the old index as it was. So
    does a process that is killed; what it leaves behind is swept at the beginning of the next sync.

    Raises:
        CorruptIndexError: the index is damaged, also where no search would meet it: the next one begins as its copy.
    """
    if problems := store.problems():
        raise CorruptIndexError(f"the index is damaged ({'; '.join(problems)}); delete it and sync again")
    built = store.beside()
    try:
        yield built
    except BaseException:
        store.discard(built)
        raise
    store.publish(built)
