"""Memories of many people or agents: a bounded pool, each opened when it is asked for and closed when it is idle."""

from __future__ import annotations

import os
import string
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self
from urllib.parse import parse_qsl, quote, urlsplit
from uuid import UUID
from weakref import WeakValueDictionary

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.config import MemoryConfig
from openclaw_memory.config.config import settings_of
from openclaw_memory.embeddings.selection import EmbedderChoice, make_selector
from openclaw_memory.errors import ConfigError, InvalidInputError, StoreError

if TYPE_CHECKING:
    from asyncio import Future

    from openclaw_memory.memory import Memory
    from openclaw_memory.store.registry import StoreChoice

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
_LONGEST = 120  # characters of a folder's name; file systems take 255, some take 143
_KEPT = 48  # of a longer one, before the hash that tells it apart
# A conversation that pauses for longer waits for its memory to be opened again, which takes 1.4 ms.
IDLE_SECONDS = 600.0


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


def _is_database(text: object) -> bool:
    """Return whether a text is the URL of a store for many agents: of any but SQLite."""
    scheme, mark, _ = str(text).partition("://")
    return bool(mark) and scheme != "sqlite"


def _tenants_of(address: str) -> Callable[[str], str]:
    """Return what makes the URL of the store of an agent in a database."""
    parts = urlsplit(address)
    if "tenant" in dict(parse_qsl(parts.query, keep_blank_values=True)):
        raise ConfigError(f"{_shown(address)} names a tenant, and each agent is one itself: leave it out")
    return lambda agent: parts._replace(query=f"{parts.query}&tenant={quote(agent, safe='')}".lstrip("&")).geturl()


def _shown(address: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


class _Key(NamedTuple):
    """What a memory of a pool is kept by: the agent, its workspace if it is not below the root, and its settings."""

    parts: tuple[str, ...]  # the names of the folders below the root
    workspace: str = ""
    settings: str = ""

    @property
    def agent(self) -> str:
        """The id of the agent, which no other one has: no name of a folder holds a slash or a space."""
        return f"{'/'.join(self.parts)} {self.workspace}".rstrip()


class _Place:
    """One memory of a pool, while it is open, and who uses it."""

    def __init__(self) -> None:
        self.idle_since = 0.0  # when it was given back, by the monotonic clock
        self.memory: Memory | None = None
        self.users: list[int] = []  # the thread of each lease: a child that is forked has but one of them
        self.moving = _forks.lock()  # held while the memory is opened or closed


class Memories:
    """The memories in the folders below `root`, one for each name. Safe to use from several threads, and after a fork.

    A memory is opened by the first `use` of its name, and stays open for the next one. It is closed when it was not
    used for `idle_seconds`. Where more than `max_open` are open, the least recently used that are not in use are
    closed. A memory in use is never closed: while more than `max_open` are in use at once, as many are open, and each
    of them is closed when it is given back. No call waits for another one's memory. All share one embedder.

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
        idle_seconds: float | None = IDLE_SECONDS,
        store: Callable[[str], StoreChoice] | None = None,
    ) -> None:
        """Name the pool of the memories below `root`. Nothing is read or written yet.

        Args:
            root: The folder of their folders; it is made where it is missing, as they are.
            embedder: As for `Memory.open`; it is loaded once.
            config: As for `Memory.open`, for all of them.
            max_open: How many may be open while not all of them are in use.
            idle_seconds: After this time without use a memory is closed; None keeps it open.
            store: Returns where the index of an agent is kept, as `Memory.open` takes it. It is called with the agent's
                id, the name of its folder. Default: what `config.store` says; in a database each agent is a tenant.

        Raises:
            ConfigError: As `Memory.open`, or `max_open` is not a whole number above 0, or `idle_seconds` not a number
                above 0.
        """
        from openclaw_memory.indexing.background import Background

        if not isinstance(max_open, int) or isinstance(max_open, bool) or max_open < 1:
            raise ConfigError(f"max_open={max_open!r} is not a number of memories: pass a whole number above 0")
        if idle_seconds is not None and not (isinstance(idle_seconds, int | float) and idle_seconds > 0):
            raise ConfigError(f"idle_seconds={idle_seconds!r} is not a time: pass seconds above 0, or None")
        if not isinstance(root, str | os.PathLike) or not os.fspath(root) or "://" in os.fspath(root):
            raise ConfigError(f"the root of memories must be the path of a folder, not {root!r}")
        self.root = Path(os.path.abspath(os.path.expanduser(root)))
        self.max_open, self.idle_seconds = max_open, idle_seconds
        self.config = settings_of(config)
        url = self.config.store.url
        self._store = _tenants_of(url) if store is None and _is_database(url) else store
        self._embedders = make_selector(embedder, self.config.embedding)
        self._lock = _forks.lock()  # never held while a memory is opened or closed
        self._places: OrderedDict[_Key, _Place] = OrderedDict()  # the least recently used first
        self._closing = 0  # how many of the places are being emptied
        self._closed = False
        self._background = Background(self._close_idle)
        _forks.in_child(self)

    def after_fork(self) -> None:
        """Forget the leases of threads that are not there, and what they were opening or closing."""
        self._closing = 0
        for place in self._places.values():
            place.users = [thread for thread in place.users if thread == get_ident()]
        kept = [(key, place) for key, place in self._places.items() if place.memory is not None]
        self._places = OrderedDict(kept)

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        *,
        folder: str | os.PathLike[str] | None = None,
        embedder: EmbedderChoice = "default",
        config: MemoryConfig | None = None,
        max_open: int = 64,
        idle_seconds: float | None = IDLE_SECONDS,
    ) -> Self:
        """Return the memories below a folder, or those with their indexes in one database.

        In a database each agent is a tenant, by the name of its folder: its URL is that of the database with `tenant=`
        and this name. Their notes are in `folder`, on this machine or on a disk that several share.

        Args:
            root: The folder of their folders, or the URL of a store that keeps many agents, each as a `tenant`.
            folder: With an address, the folder of their folders.
            embedder: As for `Memory.open`; it is loaded once.
            config: As for `Memory.open`, for all of them.
            max_open: How many may be open while not all of them are in use.
            idle_seconds: After this time without use a memory is closed; None keeps it open.

        Raises:
            ConfigError: As the constructor; or an address has no folder, or names a tenant, which each agent is itself.
        """
        address = root if isinstance(root, str) and _is_database(root) else None
        if (address is None) != (folder is None):
            raise ConfigError(
                f"the notes of the memories in {_shown(str(root))} need a folder: pass folder=..."
                if address
                else f"folder={folder!r} goes with the address of a database, and {root!r} is a folder itself"
            )
        store = None if address is None else _tenants_of(address)
        place = root if folder is None else folder
        return cls(place, embedder=embedder, config=config, max_open=max_open, idle_seconds=idle_seconds, store=store)

    def use(
        self, name: str, *, workspace: str | os.PathLike[str] | None = None, config: MemoryConfig | None = None
    ) -> Lease:
        """Return the lease of the memory of `name`: `with users.use("anna") as memory:`, or `async with`.

        The memory is not closed before the block has ended; do not keep it for longer. The same memory is returned for
        the same name, workspace and settings.

        Args:
            name: Any text, such as the id of a person or an agent; see `folder_name` for its folder. Names that differ
                have different folders.
            workspace: An existing folder of notes elsewhere, such as the agent's own. Default: the one below `root`.
            config: Settings of this memory. Default: those of all.

        Raises:
            InvalidInputError: The name is empty, or no text.

        The block raises PathNotAllowedError where a link is in the place of the folder, WriteError where it cannot be
        made, WorkspaceError where it cannot be read, and StoreError after `close`.
        """
        elsewhere = "" if workspace is None else os.path.abspath(os.path.expanduser(os.fspath(workspace)))
        return Lease(self, (folder_name(name),), elsewhere, config)

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
        self._background.stop()
        self._close_unused()

    def _close_idle(self) -> None:
        """Close what was not used for long, and come back for the next one."""
        self._close_unused()
        with self._lock:
            idle = [place.idle_since for place in self._places.values() if self._is_unused(place)]
        if idle and self.idle_seconds is not None and not self._closed:
            self._background.request(max(0.001, min(idle) + self.idle_seconds - time.monotonic()))

    def _close_unused(self) -> None:
        """Close the least recently used memories not in use that are idle or one too many."""
        while (found := self._unused()) is not None:
            key, place, memory = found
            try:
                memory.close()
            except Exception as error:  # noqa: BLE001 - who asks for another memory is not the one to tell
                warn(f"{memory!r} was not closed properly: {type(error).__name__}: {error}")
            finally:
                place.moving.release()
                with self._lock:
                    self._closing -= 1
                    self._forget_empty(key, place)
        if self._closed and not self._places:
            self._embedders.close()

    def _take(self, key: _Key, config: MemoryConfig) -> Memory:
        """Return a memory, in use until `_give_back`. Others who ask for it wait while it is opened.

        Args:
            key: What it is kept by.
            config: Its settings.

        Raises:
            StoreError, PathNotAllowedError, WriteError, WorkspaceError: As `use`.
        """
        with self._lock:
            if self._closed:
                raise StoreError(f"{self!r} is closed: make another one")
            if key not in self._places:
                self._places[key] = _Place()
            place = self._places[key]
            self._places.move_to_end(key)
            place.users.append(get_ident())
        try:
            with place.moving:
                if place.memory is None:
                    self._close_unused()
                    place.memory = self._open_one(key, config)
                return place.memory
        except BaseException:
            self._give_back(key, get_ident())
            raise

    def _give_back(self, key: _Key, thread: int) -> None:
        """End a use of a memory, which was begun in `thread`; `_close_unused` closes it where it is one too many."""
        with self._lock:
            place = self._places.get(key)
            if place is None or thread not in place.users:
                return  # this is a child, and the thread is its parent's
            place.users.remove(thread)
            place.idle_since = time.monotonic()
            self._places.move_to_end(key)
            self._forget_empty(key, place)
            begins_to_wait = self._is_unused(place) and self.idle_seconds is not None and not self._closed
        if begins_to_wait and self.idle_seconds is not None:
            self._background.request(self.idle_seconds)

    def _unused(self) -> tuple[_Key, _Place, Memory] | None:
        """Take the next memory to close out of its place, whose lock is then held; None where none is to be closed."""
        with self._lock:
            is_crowded = len(self._places) - self._closing > (0 if self._closed else self.max_open)
            for key, place in self._places.items():
                if not self._is_unused(place):
                    continue
                if not is_crowded and not self._is_idle(place):
                    return None  # those that follow were used later
                # Who opens it counts as its user: the lock is free, unless it is being closed already.
                if place.memory is not None and place.moving.acquire(blocking=False):
                    memory, place.memory = place.memory, None
                    self._closing += 1
                    return key, place, memory
        return None

    @staticmethod
    def _is_unused(place: _Place) -> bool:
        return not place.users and place.memory is not None

    def _is_idle(self, place: _Place) -> bool:
        return self.idle_seconds is not None and time.monotonic() - place.idle_since >= self.idle_seconds

    def _forget_empty(self, key: _Key, place: _Place) -> None:
        if not place.users and place.memory is None and not place.moving.locked():
            self._places.pop(key, None)

    def _open_one(self, key: _Key, config: MemoryConfig) -> Memory:
        from openclaw_memory.memory import Memory
        from openclaw_memory.workspace.safe_folder import SafeFolder

        if not key.workspace:
            SafeFolder(self.root, create=True).make_folder("/".join(key.parts))
        return Memory.open(
            key.workspace or self.root.joinpath(*key.parts),
            embedder=self._embedders.share(),
            config=config,
            store=None if self._store is None else self._store(key.agent),
        )

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

    def __init__(
        self, memories: Memories, parts: tuple[str, ...], workspace: str = "", config: MemoryConfig | None = None
    ) -> None:
        self._memories = memories
        self._config = memories.config if config is None else settings_of(config)
        # All of the settings, also what no `repr` shows.
        self._key = _Key(parts, workspace, "" if self._config == memories.config else repr(asdict(self._config)))
        self._threads: list[int] = []

    @property
    def folder(self) -> Path:
        """The folder of the memory, which need not exist yet."""
        return Path(self._key.workspace or self._memories.root.joinpath(*self._key.parts))

    @property
    def config(self) -> MemoryConfig:
        """The settings of the memory, which need not be open for it."""
        return self._config

    def __enter__(self) -> Memory:
        memory = self._memories._take(self._key, self._config)
        self._threads.append(get_ident())
        return memory

    def __exit__(self, *_: object) -> None:
        self._memories._give_back(self._key, self._threads.pop())
        self._memories._close_unused()

    async def __aenter__(self) -> Memory:
        import asyncio

        from openclaw_memory.aio import run_in_thread

        taking = asyncio.ensure_future(run_in_thread(self.__enter__))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._give_up)  # a thread takes it all the same
            raise

    def _give_up(self, taking: Future[Memory]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self.__exit__()

    async def __aexit__(self, *_: object) -> None:
        from openclaw_memory.aio import run_in_thread

        # At once: a task that is cancelled waits for nothing.
        self._memories._give_back(self._key, self._threads.pop())
        await run_in_thread(self._memories._close_unused)

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
