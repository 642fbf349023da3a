"""Let a forked child go on with the memories of its parent: free locks, fresh objects, no work cut in two."""

from __future__ import annotations

import functools
import os
import pkgutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import get_ident
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from openclaw_memory.errors import StoreError

# A fork waits so long for work on an index in other threads: most of it takes milliseconds.
FORK_SECONDS = 5.0
# A child would wait for ever for an import that a thread of its parent had begun: packages that calls import late.
LATE = ("apsw", "numpy", "filelock", "Stemmer", "httpx", "httpcore")
APART = ("openclaw_memory.__main__", "openclaw_memory.cli", "openclaw_memory.testing")

T = TypeVar("T")


class Forked(Protocol):
    """An object with state that a child must not take over."""

    def reset_after_fork(self) -> None:
        """Forget the threads of the parent: they do not exist here, and their locks are free."""
        ...


class _Process:
    """The state of this process that a child would inherit."""

    def __init__(self) -> None:
        self.locks: WeakSet[Any] = WeakSet()
        self.objects: WeakSet[Any] = WeakSet()
        # Reentrant: a signal, or the end of an object, may begin such work in the midst of the bookkeeping.
        self.changed = threading.Condition(threading.RLock())
        self.blocks: Counter[int] = Counter()  # how many `guard_fork` blocks each thread is in
        self.is_forking = self.is_cut = False

    def prepare(self) -> None:
        """Wait until no other thread is in a block, and keep them out until the fork is over."""
        if self.objects:
            _import_late()
        self.changed.acquire()
        self.is_forking = True
        self.changed.wait_for(lambda: not self.blocks.keys() - {get_ident()}, FORK_SECONDS)

    def end_in_parent(self) -> None:
        """Let the other threads go on."""
        self.is_forking = False
        self.changed.notify_all()
        self.changed.release()

    def end_in_child(self) -> None:
        """Free the locks of threads that do not exist here, and reset the objects."""
        self.is_forking, self.is_cut = False, self.is_cut or bool(self.blocks)
        self.blocks = Counter({thread: count for thread, count in self.blocks.items() if thread == get_ident()})
        locks: list[Any] = [self.changed, *self.locks]
        for item in locks:
            item._at_fork_reinit()  # as the standard library does with its own locks
        for item in list(self.objects):
            item.reset_after_fork()


@functools.cache
def _import_late() -> None:
    """Import all modules that calls import at their first use."""
    modules = [module.name for module in pkgutil.walk_packages([os.path.dirname(__file__)], "openclaw_memory.")]
    for name in (*LATE, *(name for name in modules if not name.startswith(APART))):
        with suppress(Exception):  # a package that is not installed is reported by its use
            import_module(name)


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_process.prepare, after_in_parent=_process.end_in_parent, after_in_child=_process.end_in_child
    )


def lock() -> threading.Lock:
    """Return a lock that is free in a child."""
    return _register(threading.Lock())


def make_rlock() -> threading.RLock:
    """Return a reentrant lock that is free in a child."""
    return _register(threading.RLock())


def make_condition() -> threading.Condition:
    """Return a condition with a lock that is free in a child."""
    return _register(threading.Condition())


def _register(lock: T) -> T:
    _process.locks.add(lock)
    return lock


def reset_in_child(item: Forked) -> None:
    """Call `item.reset_after_fork()` in every child that is forked while the object lives."""
    # It has hooks of its own, as has `logging`, which it imports: if a fork imported it, half of them would be called.
    import concurrent.futures.thread  # noqa: F401

    _process.objects.add(item)


class cached_property(functools.cached_property[T]):  # noqa: N801 - named after the original
    """A `functools.cached_property` with a lock, if Python has one, that is free in a child."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if (lock := getattr(self, "lock", None)) is not None:  # in Python 3.11
            _register(lock)


@contextmanager
def guard_fork() -> Iterator[None]:
    """Have a fork wait until the block has ended: SQLite keeps locks of its own, which a child would find taken.

    Raises:
        StoreError: This is a child that was forked in the midst of such a block.
    """
    thread = get_ident()
    with _process.changed:
        if _process.is_cut:
            raise StoreError(
                "this process was forked in the midst of work on an index, whose locks it cannot know: open no memory "
                "in it; fork while nothing is under way, or start processes by spawning them"
            )
        if thread not in _process.blocks:
            _process.changed.wait_for(lambda: not _process.is_forking)
        _process.blocks[thread] += 1
    try:
        yield
    finally:
        with _process.changed:
            _process.blocks[thread] -= 1
            if not _process.blocks[thread]:
                del _process.blocks[thread]
            _process.changed.notify_all()
