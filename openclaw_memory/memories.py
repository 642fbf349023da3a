"""Memories of many people: a bounded pool of them in folders below one root, each opened when it is asked for."""

from __future__ import annotations

import os
import string
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Self
from uuid import UUID
from weakref import WeakValueDictionary

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.config import MemoryConfig
from openclaw_memory.config.config import settings_of
from openclaw_memory.embeddings.selection import EmbedderChoice, embedders_of
from openclaw_memory.errors import ConfigError, InvalidInputError, StoreError, WriteError, remedy

if TYPE_CHECKING:
    from asyncio import Future

    from openclaw_memory.memory import Memory

# What every file system keeps as it is; upper case is not among it, since some take `Anna` and `anna` for the same.
_PLAIN = frozenset(string.ascii_lowercase + string.digits + "-_@+=.")
# Names that Windows gives to devices, and those under which a memory keeps files of its own.
_TAKEN = {
    "con",
    "prn",
    "aux",
    "nul",
    "memory",
    "sessions",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}
_LONGEST = 120  # characters of a folder's name; file systems take 255, and some encrypted ones 143
_KEPT = 48  # of a longer one, before the hash that tells it apart


def folder_name(name: str) -> str:
    """Return the name of the folder of a memory: another one for every name, on every file system, and nothing else.

    Lower-case ASCII letters, digits and `-_@+=.` stay as they are, so that `anna@example.com` is its own folder. All
    other bytes of UTF-8 are written as `%` and two digits, and a long name ends with its SHA-256.

    Args:
        name: Any text: an id, an address, whatever strangers send.

    Raises:
        InvalidInputError: The name is empty, or no text.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"the name of a memory must be a text such as 'anna', not {name!r}")
    written = "".join(one if one in _PLAIN else _escaped(one) for one in name)
    if written.startswith(".") or name.partition(".")[0] in _TAKEN:
        written = _escaped(written[0]) + written[1:]
    if written.endswith("."):  # Windows drops it
        written = written[:-1] + _escaped(".")
    if len(written) <= _LONGEST:
        return written
    return f"{written[:_KEPT]}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _escaped(one: str) -> str:
    return "".join(f"%{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))


class _Place:
    """One folder of a pool: its memory, while that is open, and who uses it."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.users: list[int] = []  # the thread of each lease: a child that is forked has but one of them
        self.moving = _forks.lock()  # held while the memory is opened or closed


class Memories:
    """The memories in the folders below `root`, one for each name. Safe to use from several threads, and after a fork.

    A memory is opened by the first `use` of its name, and stays open for the next one. Where more than `max_open` are
    open, the least recently used that are not in use are closed. A memory in use is never closed: while more than
    `max_open` are in use at once, as many are open, and each of them is closed when it is given back. No call waits for
    another one's memory. All share one embedder.

    >>> import tempfile
    >>> from openclaw_memory import Memories
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Memories(folder.name, embedder=None) as users:
    ...     with users.use("anna") as memory:
    ...         memory.append("Anna takes the ferry.", date="2026-11-21").path
    ...     with users.use("bob") as memory:
    ...         len(memory.search("ferry"))
    'memory/2026-11-21.md'
    0
    >>> folder.cleanup()
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        embedder: EmbedderChoice = "default",
        config: MemoryConfig | None = None,
        max_open: int = 64,
    ) -> None:
        """Name the pool of the memories below `root`. Nothing is read or written yet.

        Args:
            root: The folder of their folders; it is made where it is missing, as they are.
            embedder: As for `Memory.open`; it is loaded once.
            config: As for `Memory.open`, for all of them.
            max_open: How many may be open while not all of them are in use.

        Raises:
            ConfigError: As `Memory.open`, or `max_open` is not a whole number above 0.
        """
        if not isinstance(max_open, int) or isinstance(max_open, bool) or max_open < 1:
            raise ConfigError(f"max_open={max_open!r} is not a number of memories: pass a whole number above 0")
        if not isinstance(root, str | os.PathLike) or not os.fspath(root):
            raise ConfigError(f"the root of memories must be the path of a folder, not {root!r}")
        self.root = Path(os.path.abspath(os.path.expanduser(root)))
        self.max_open = max_open
        self.config = settings_of(config)
        self._embedders = embedders_of(embedder, self.config.embedding)
        self._lock = _forks.lock()  # never held while a memory is opened or closed
        self._places: OrderedDict[tuple[str, ...], _Place] = OrderedDict()  # the least recently used first
        self._closing = 0  # how many of the places are being emptied
        self._closed = False
        _forks.in_child(self)

    def after_fork(self) -> None:
        """Forget the leases of threads that are not there, and what they were opening or closing."""
        self._closing = 0
        for place in self._places.values():
            place.users = [thread for thread in place.users if thread == get_ident()]
        kept = [(parts, place) for parts, place in self._places.items() if place.memory is not None]
        self._places = OrderedDict(kept)

    def use(self, name: str) -> Lease:
        """Return the lease of the memory of `name`: `with users.use("anna") as memory:`, or `async with`.

        The memory is not closed before the block has ended; do not keep it for longer.

        Args:
            name: Any text; see `folder_name` for its folder. Names that differ have different folders.

        Raises:
            InvalidInputError: The name is empty, or no text.

        The block raises PathNotAllowedError where a link is in the place of the folder, WriteError where it cannot be
        made, WorkspaceError where it cannot be read, and StoreError after `close`.
        """
        return Lease(self, (folder_name(name),))

    def template(self, template: str) -> MemoryTemplate:
        """Return the choice of a memory by values of a run, to pass as `memory=` to an adapter.

        Args:
            template: The folder below `root`, such as `"{tenant}/{user_id}"`.

        Raises:
            ConfigError: The template names no value, or two people could get one folder.
        """
        return MemoryTemplate(self, template)

    def close(self) -> None:
        """Close the memories; those in use are closed when they are given back. Calling it twice is allowed."""
        with self._lock:
            self._closed = True
        self._close_unused()

    def _close_unused(self) -> None:
        """Close the least recently used memories that are not in use, until no more than `max_open` are open."""
        while (found := self._unused()) is not None:
            parts, place, memory = found
            try:
                memory.close()
            except Exception as error:  # noqa: BLE001 - who asks for another memory is not the one to tell
                warn(f"{memory!r} was not closed properly: {type(error).__name__}: {error}")
            finally:
                place.moving.release()
                with self._lock:
                    self._closing -= 1
                    self._forget_empty(parts, place)
        if self._closed and not self._places:
            self._embedders.close()

    def _take(self, parts: tuple[str, ...]) -> Memory:
        """Return the memory of a folder, in use until `_give_back`. Others who ask for it wait while it is opened.

        Args:
            parts: The names of the folders below `root`.

        Raises:
            StoreError, PathNotAllowedError, WriteError, WorkspaceError: As `use`.
        """
        with self._lock:
            if self._closed:
                raise StoreError(f"{self!r} is closed: make another one")
            if parts not in self._places:
                self._places[parts] = _Place()
            place = self._places[parts]
            self._places.move_to_end(parts)
            place.users.append(get_ident())
        try:
            with place.moving:
                if place.memory is None:
                    self._close_unused()
                    place.memory = self._open(parts)
                return place.memory
        except BaseException:
            self._give_back(parts, get_ident())
            raise

    def _give_back(self, parts: tuple[str, ...], thread: int) -> None:
        """End a use of a memory, which was begun in `thread`; `_close_unused` closes it where it is one too many."""
        with self._lock:
            place = self._places.get(parts)
            if place is None or thread not in place.users:
                return  # this is a child, and the thread is its parent's
            place.users.remove(thread)
            self._places.move_to_end(parts)
            self._forget_empty(parts, place)

    def _unused(self) -> tuple[tuple[str, ...], _Place, Memory] | None:
        """Take the next memory to close out of its place, whose lock is then held; None where none is to be closed."""
        with self._lock:
            if len(self._places) - self._closing <= (0 if self._closed else self.max_open):
                return None
            for parts, place in self._places.items():
                # Whoever opens it counts as its user: the lock is free, unless it is being closed already.
                if not place.users and place.memory is not None and place.moving.acquire(blocking=False):
                    memory, place.memory = place.memory, None
                    self._closing += 1
                    return parts, place, memory
        return None

    def _forget_empty(self, parts: tuple[str, ...], place: _Place) -> None:
        if not place.users and place.memory is None and not place.moving.locked():
            self._places.pop(parts, None)

    def _open(self, parts: tuple[str, ...]) -> Memory:
        from openclaw_memory.memory import Memory
        from openclaw_memory.workspace.atomic import make_folders

        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"the folder {self.root} cannot be made ({error.strerror}): {remedy(error)}") from error
        folder = self.root.joinpath(*parts)
        make_folders(self.root, parts, str(folder))
        return Memory.open(folder, embedder=self._embedders.lent(), config=self.config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self  # as a Memory: frameworks that copy their parts share it

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is open and cannot be pickled: hand over its root, and make another one there")

    def __repr__(self) -> str:
        return f"Memories({str(self.root)!r}, max_open={self.max_open}): {len(self._places)} open"


class Lease:
    """A memory of a pool for the time of a `with` or `async with` block, in which it is not closed."""

    def __init__(self, memories: Memories, parts: tuple[str, ...]) -> None:
        self._memories, self._parts = memories, parts
        self._threads: list[int] = []

    @property
    def folder(self) -> Path:
        """The folder of the memory, which need not exist yet."""
        return self._memories.root.joinpath(*self._parts)

    @property
    def config(self) -> MemoryConfig:
        """The settings of the memory, which need not be open for it."""
        return self._memories.config

    def __enter__(self) -> Memory:
        memory = self._memories._take(self._parts)
        self._threads.append(get_ident())
        return memory

    def __exit__(self, *_: object) -> None:
        self._memories._give_back(self._parts, self._threads.pop())
        self._memories._close_unused()

    async def __aenter__(self) -> Memory:
        import asyncio

        from openclaw_memory.aio import in_thread

        taking = asyncio.ensure_future(in_thread(self.__enter__))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._give_up)  # a thread takes it all the same
            raise

    def _give_up(self, taking: Future[Memory]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self.__exit__()

    async def __aexit__(self, *_: object) -> None:
        from openclaw_memory.aio import in_thread

        self._memories._give_back(
            self._parts, self._threads.pop()
        )  # at once: a task that is cancelled waits for nothing
        await in_thread(self._memories._close_unused)

    def __repr__(self) -> str:
        return f"Lease({str(self.folder)!r})"


class MemoryTemplate:
    """The memories of a pool, chosen by values of a run: `"{tenant}/{user_id}"`. `fields` are their names."""

    def __init__(self, memories: Memories, template: str) -> None:
        self.memories, self.template = memories, template
        try:
            self._parts = [list(string.Formatter().parse(part)) for part in template.split("/")]
        except ValueError as error:
            raise self._wrong(str(error)) from error
        self.fields = tuple(field for part in self._parts for _, field, _, _ in part if field is not None)
        if not self.fields:
            raise self._wrong("it names no value, such as {user_id}; Memory.open opens a folder for all")
        for part in self._parts:
            fixed = "".join(literal for literal, *_ in part)
            fields = [(field, spec, conversion) for _, field, spec, conversion in part if field is not None]
            if fixed in {".", ".."} or not (fixed or fields) or not set(fixed) <= _PLAIN | set(string.ascii_uppercase):
                raise self._wrong(f"a folder cannot be called {fixed!r}: letters, digits and -_@+=. can be in it")
            if len(fields) > 1:
                raise self._wrong("two values in the name of one folder run into each other: part them with a /")
            if any(spec or conversion or not field.isidentifier() for field, spec, conversion in fields):
                raise self._wrong("between braces belongs a name alone, such as {user_id}")

    def use(self, values: Mapping[str, Any], how: str = "") -> Lease:
        """Return the lease of the memory of a run.

        Args:
            values: The values of the run: texts, whole numbers or UUIDs.
            how: How to give a value that is missing, in words that end an error.

        Raises:
            ConfigError: A value is missing, empty, or of another type.
        """
        names = {field: self._value(field, values.get(field), how) for field in self.fields}
        return Lease(
            self.memories,
            tuple("".join(literal + names.get(field or "", "") for literal, field, *_ in part) for part in self._parts),
        )

    def _value(self, field: str, value: object, how: str) -> str:
        if value is None or value == "":
            what = "is missing from" if value is None else "is empty in"
            raise ConfigError(f"{field} {what} this run, and chooses its memory ({self.template!r}){how and ': '}{how}")
        if not isinstance(value, str | int | UUID) or isinstance(value, bool):
            raise ConfigError(f"{field}={value!r:.80} chooses no memory: pass a text, a whole number or a UUID")
        return folder_name(str(value))

    def _wrong(self, why: str) -> ConfigError:
        return ConfigError(f"the template of memories {self.template!r} is wrong: {why}")

    def __repr__(self) -> str:
        return f"{self.memories!r}.template({self.template!r})"


# Parts of one agent that are each given the same template share its memories. A pool of which no part is left is freed.
_shared: WeakValueDictionary[Path, Memories] = WeakValueDictionary()
_sharing = _forks.lock()


def template_of(text: str) -> MemoryTemplate:
    """Return the template of a text with its root: `"users/{user_id}"` are the memories in the folder `users`.

    Args:
        text: The template; what comes before the first folder with a value is the root.

    Raises:
        ConfigError: As `Memories.template`.
    """
    parts = text.replace(os.sep, "/").split("/")
    first = next((at for at, part in enumerate(parts) if "{" in part), len(parts) - 1)
    fresh = Memories("/".join(parts[:first]) or ("/" if first else "."))
    with _sharing:
        return _shared.setdefault(fresh.root, fresh).template("/".join(parts[first:]))
