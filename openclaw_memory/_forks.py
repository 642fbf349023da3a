"""What a fork could break in the child: locks that threads of the parent hold, and work that it would cut in two."""

from __future__ import annotations

import functools
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import get_ident
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from openclaw_memory.errors import StoreError

# A fork waits so long for what other threads have under way in an index: most of it takes milliseconds.
FORK_SECONDS = 5.0
# What calls of this library import at their first use: a child would wait for ever for an import that a thread of its
# parent had begun.
LATE = {"openclaw_memory", "apsw", "numpy", "filelock", "Stemmer", "tenacity", "httpx", "httpcore"}
# Modules of this library that no call of a memory imports.
APART = ("openclaw_memory.__main__", "openclaw_memory.cli", "openclaw_memory.testing")
CUT = (
    "this process was forked in the midst of work on an index, whose locks it cannot know: open no memory in it; fork "
    "while nothing is under way, or start processes by spawning them"
)

T = TypeVar("T")


class Forked(Protocol):
    """An object with state that a child must not take over."""

    def after_fork(self) -> None:
        """Reset what threads of the parent were doing: they are not there, and their locks are free."""
        ...


class _Process:
    """What this process would leave to a child."""

    def __init__(self) -> None:
        self.is_cut = False
        self._locks: WeakSet[Any] = WeakSet()
        self._objects: WeakSet[Any] = WeakSet()
        # Reentrant: a signal, or the end of an object, may begin such work in the midst of the bookkeeping.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, int] = {}  # how many such blocks each thread is in
        self._forks = 0  # under way
        self._is_calm = False

    def kept(self, lock: T) -> T:
        """Return the lock, which will be free in a child."""
        self._locks.add(lock)
        return lock

    def add(self, one: Forked) -> None:
        """Call `after_fork` of an object in a child."""
        self._objects.add(one)

    def enter(self) -> None:
        """Begin a block; wait for a fork under way, unless this thread is in a block already."""
        me = get_ident()
        with self._lock:
            if self.is_cut:
                raise StoreError(CUT)
            if self._forks and me not in self._inside:
                self._changed.wait_for(lambda: not self._forks)
            self._inside[me] = self._inside.get(me, 0) + 1

    def leave(self) -> None:
        """End a block."""
        me = get_ident()
        with self._lock:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            if self._forks:
                self._changed.notify_all()

    def before(self) -> None:
        """Wait for other threads, and keep them out until the fork is done."""
        _wait_for_imports()
        if self._objects:
            _import_all()
        self._changed.acquire()
        self._forks += 1
        self._is_calm = False
        self._is_calm = self._changed.wait_for(
            lambda: not self._inside, 0 if get_ident() in self._inside else FORK_SECONDS
        )

    def in_parent(self) -> None:
        """Let the other threads go on."""
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()

    def in_child(self) -> None:
        """Free the locks of threads that are not there, and reset the objects."""
        self.is_cut = self.is_cut or not self._is_calm
        self._forks = 0
        self._inside = {thread: depth for thread, depth in self._inside.items() if thread == get_ident()}
        locks: list[Any] = [self._changed, *self._locks]
        for lock in locks:
            lock._at_fork_reinit()  # as the standard library does with its own locks
        for one in list(self._objects):
            one.after_fork()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_process.before, after_in_parent=_process.in_parent, after_in_child=_process.in_child)


def lock() -> threading.Lock:
    """Return a lock that is free in a child."""
    return _process.kept(threading.Lock())


def rlock() -> threading.RLock:
    """Return a reentrant lock that is free in a child."""
    return _process.kept(threading.RLock())


def condition() -> threading.Condition:
    """Return a condition whose lock is free in a child."""
    return _process.kept(threading.Condition())


def in_child(one: Forked) -> None:
    """Call `one.after_fork()` in every child that is forked while the object lives."""
    # It has hooks of its own, as has `logging`, which it imports: if a fork imported it, half of them would be called.
    import concurrent.futures.thread  # noqa: F401

    _process.add(one)


class cached_property(functools.cached_property[T]):  # noqa: N801 - named as what it is
    """A `functools.cached_property` whose lock, which Python 3.11 has, is free in a child."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if (lock := getattr(self, "lock", None)) is not None:
            _process.kept(lock)


@contextmanager
def no_fork() -> Iterator[None]:
    """Have a fork wait until the block has ended: SQLite keeps locks of its own, which a child would find taken.

    Raises:
        StoreError: This is a child that did not wait.
    """
    _process.enter()
    try:
        yield
    finally:
        _process.leave()


def is_cut() -> bool:
    """Return whether this is a child that was forked in the midst of a `no_fork` block."""
    return _process.is_cut


def _wait_for_imports() -> None:
    """Wait until no other thread imports anything that calls of this library use."""
    seen: set[str] = set()
    while (under_way := set(_imports_under_way())) - seen:
        for name in under_way:
            with suppress(Exception):  # it is told where it was begun
                import_module(name)  # returns at once for an import of this very thread
        seen = under_way


@functools.cache
def _import_all() -> None:
    """Import what calls import at their first use: else a thread may begin to, between the wait and the fork."""
    for module in pkgutil.walk_packages([os.path.dirname(__file__)], "openclaw_memory."):
        if not module.name.startswith(APART):
            with suppress(Exception):  # a package that is not installed is told where it is used
                import_module(module.name)


def _imports_under_way() -> Iterator[str]:
    for name, module in sys.modules.copy().items():
        if name.partition(".")[0] in LATE and getattr(getattr(module, "__spec__", None), "_initializing", False):
            yield name
