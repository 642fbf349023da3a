"""Keep the memories of many people or agents open: a bounded pool that closes the least recently used first."""

from __future__ import annotations

import os
import re
import string
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlsplit
from uuid import UUID
from weakref import WeakValueDictionary

from msgspec import to_builtins

from openclaw_memory._safe import warn
from openclaw_memory._system import check_process
from openclaw_memory.config.config import MemoryConfig, check_config
from openclaw_memory.embeddings.selection import EmbedderChoice, make_selector
from openclaw_memory.errors import ConfigError, InvalidInputError, StoreError

if TYPE_CHECKING:
    from asyncio import Future

    from openclaw_memory.memory import Memory
    from openclaw_memory.store.registry import StoreChoice

# Every file system keeps these as they are; not upper case, since some take `Anna` and `anna` for the same.
_UNSAFE = re.compile(r"[^a-z0-9_@+=.-]")
# Names of devices on Windows, and those under which a memory has files of its own.
_RESERVED = re.compile(r"\.|(?:con|prn|aux|nul|memory|sessions|(?:com|lpt)[0-9])(?:\.|$)")
_FIXED = re.compile(r"[A-Za-z0-9_@+=.-]*")
_MAX_CHARS = 120  # of a folder's name; file systems take 255, some take 143
_PREFIX_CHARS = 48  # of a longer name, before its hash


def encode_folder_name(name: str) -> str:
    """Encode any text as the name of a folder: another one for every name, on every file system.

    Lower-case ASCII letters, digits and `-_@+=.` stay as they are, so that `anna@example.com` is its own folder. All
    other bytes of UTF-8 are written as `%` and two digits, and a long name ends with its SHA-256.

    Args:
        name: Any text: an id, an address, whatever strangers send.

    Raises:
        InvalidInputError: The name is empty, or not a text.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"the name of a memory must be a text such as 'anna', not {name!r}")
    folder = _UNSAFE.sub(lambda match: _escape(match[0]), name)
    if _RESERVED.match(name):
        folder = _escape(folder[0]) + folder[1:]
    if folder.endswith("."):  # Windows drops it
        folder = folder[:-1] + _escape(".")
    if len(folder) <= _MAX_CHARS:
        return folder
    return f"{folder[:_PREFIX_CHARS]}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _escape(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


def _add_tenant(url: str) -> Callable[[str], str]:
    """Return a function from an agent to the URL of its store in a database."""
    parts = urlsplit(url)
    if "tenant" in dict(parse_qsl(parts.query, keep_blank_values=True)):
        place = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        raise ConfigError(f"{place} names a tenant, and each agent is one itself: leave it out")
    return lambda agent: parts._replace(query=f"{parts.query}&tenant={quote(agent, safe='')}".lstrip("&")).geturl()


class _Key(NamedTuple):
    """Identify a memory of a pool."""

    folders: tuple[str, ...]  # below the root
    workspace: str = ""  # elsewhere
    settings: str = ""

    @property
    def agent(self) -> str:
        """The id of the agent, which no other one has: no name of a folder holds a slash or a space."""
        return f"{'/'.join(self.folders)} {self.workspace}".rstrip()


class _Entry:
    """A memory of a pool, and how many blocks use it."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.users = 0
        self.opening = threading.Lock()


class Memories:
    """The memories in the folders below `root`, one for each name. Safe to use from several threads.

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
        store: Callable[[str], StoreChoice] | None = None,
    ) -> None:
        """Name the pool of the memories below `root`. Nothing is read or written yet.

        Args:
            root: The folder of their folders; it is made where it is missing, as they are.
            embedder: As for `Memory.open`; it is loaded once.
            config: As for `Memory.open`, for all of them. In the database of `store.url`, each agent is a tenant, by
                the name of its folder.
            max_open: How many may be open while not all of them are in use.
            store: Returns where the index of an agent is kept, as `Memory.open` takes it. It is called with the agent's
                id, the name of its folder. Default: `config.store`.

        Raises:
            ConfigError: As `Memory.open`, or an argument has a wrong type or value.
        """
        if not isinstance(max_open, int) or isinstance(max_open, bool) or max_open < 1:
            raise ConfigError(f"max_open={max_open!r} is not a number of memories: pass a whole number above 0")
        if not isinstance(root, str | os.PathLike) or not os.fspath(root) or "://" in os.fspath(root):
            raise ConfigError(f"root must be the path of a folder, not {root!r}; a database belongs in config.store")
        self.root = Path(os.path.abspath(os.path.expanduser(root)))
        self.max_open = max_open
        self.config = check_config(config)
        url = self.config.store.url
        is_database = "://" in url and not url.startswith("sqlite:")
        self._store = _add_tenant(url) if store is None and is_database else store
        self._embedders = make_selector(embedder, self.config.embedding)
        self._pid = os.getpid()
        self._lock = threading.Lock()  # never held while a memory is opened or closed
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()  # the least recently used first
        self._is_closed = False

    def use(
        self, name: str, *, workspace: str | os.PathLike[str] | None = None, config: MemoryConfig | None = None
    ) -> Lease:
        """Return the lease of the memory of `name`: `with users.use("anna") as memory:`, or `async with`.

        The memory is not closed before the block has ended; do not keep it for longer. The same memory is returned for
        the same name, workspace and settings. The block raises PathNotAllowedError where a link is in the place of the
        folder, WriteError where it cannot be made, WorkspaceError where it cannot be read, and StoreError after
        `close`.

        Args:
            name: Any text, such as the id of a person or an agent. Names that differ have different folders.
            workspace: An existing folder of notes elsewhere, such as the agent's own. Default: the one below `root`.
            config: Settings of this memory. Default: those of all.

        Raises:
            InvalidInputError: The name is empty, or not a text.
        """
        elsewhere = "" if workspace is None else os.path.abspath(os.path.expanduser(os.fspath(workspace)))
        return Lease(self, (encode_folder_name(name),), elsewhere, config)

    def use_template(self, template: str) -> MemoryTemplate:
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
            self._is_closed = True
        self._close_unused()

    def _take(self, key: _Key, config: MemoryConfig) -> tuple[_Entry, Memory]:
        """Open a memory, or take the open one; it is in use until `_release`. Others who ask for it wait meanwhile."""
        check_process(self._pid, repr(self))
        with self._lock:
            if self._is_closed:
                raise StoreError(f"{self!r} is closed: make another one")
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            entry.users += 1
        try:
            with entry.opening:
                if entry.memory is None:
                    self._close_unused()
                    entry.memory = self._open(key, config)
                return entry, entry.memory
        except BaseException:
            self._release(key, entry)
            raise

    def _release(self, key: _Key, entry: _Entry) -> None:
        """End a use of a memory; `_close_unused` closes it where it is one too many."""
        with self._lock:
            entry.users -= 1
            if not entry.users and entry.memory is None:
                self._entries.pop(key, None)
            else:
                self._entries.move_to_end(key)

    def _close_unused(self) -> None:
        """Close the least recently used memories that are one too many."""
        with self._lock:
            surplus = len(self._entries) - (0 if self._is_closed else self.max_open)
            unused = [key for key, entry in self._entries.items() if not entry.users]
            closing = [self._entries.pop(key).memory for key in unused[: max(surplus, 0)]]
        for memory in closing:
            try:
                if memory is not None:
                    memory.close()
            except Exception as error:  # noqa: BLE001 - the caller asked for another memory
                warn(f"{memory!r} was not closed properly: {type(error).__name__}: {error}")
        if self._is_closed and not self._entries:
            self._embedders.close()

    def _open(self, key: _Key, config: MemoryConfig) -> Memory:
        from openclaw_memory.memory import Memory
        from openclaw_memory.workspace.safe_folder import SafeFolder

        if not key.workspace:
            SafeFolder(self.root, create=True).make_folder("/".join(key.folders))
        return Memory.open(
            key.workspace or self.root.joinpath(*key.folders),
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

    def __repr__(self) -> str:
        return f"Memories({str(self.root)!r}, max_open={self.max_open}): {len(self._entries)} open"


class Lease:
    """Use a memory of a pool for a `with` or `async with` block, and hold it open.

    Attributes:
        folder: The folder of the memory, which need not exist yet.
        config: Its settings.
    """

    def __init__(
        self, memories: Memories, folders: tuple[str, ...], workspace: str = "", config: MemoryConfig | None = None
    ) -> None:
        self._memories = memories
        self.config = memories.config if config is None else check_config(config)
        # All of the settings, also those that no `repr` shows.
        settings = "" if self.config == memories.config else repr(to_builtins(self.config, enc_hook=repr))
        self._key = _Key(folders, workspace, settings)
        self.folder = Path(workspace or memories.root.joinpath(*folders))
        self._entries: list[_Entry] = []

    def __enter__(self) -> Memory:
        entry, memory = self._memories._take(self._key, self.config)
        self._entries.append(entry)
        return memory

    def __exit__(self, *_: object) -> None:
        self._memories._release(self._key, self._entries.pop())
        self._memories._close_unused()

    async def __aenter__(self) -> Memory:
        import asyncio

        from openclaw_memory.aio import run_in_thread

        taking = asyncio.ensure_future(run_in_thread(self.__enter__))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._release_cancelled)  # a thread takes it all the same
            raise

    def _release_cancelled(self, taking: Future[Memory]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self.__exit__()

    async def __aexit__(self, *_: object) -> None:
        from openclaw_memory.aio import run_in_thread

        # At once: a task that is cancelled waits for nothing.
        self._memories._release(self._key, self._entries.pop())
        await run_in_thread(self._memories._close_unused)

    def __repr__(self) -> str:
        return f"Lease({str(self.folder)!r})"


class MemoryTemplate:
    """Choose a memory of a pool by values of a run: `"{tenant}/{user_id}"`. `fields` are their names."""

    def __init__(self, memories: Memories, template: str) -> None:
        self.memories, self.template = memories, template
        try:
            self._folders = [list(string.Formatter().parse(folder)) for folder in template.split("/")]
        except ValueError as error:
            raise ConfigError(f"the template of memories {template!r} is wrong: {error}") from error
        self.fields = tuple(field for folder in self._folders for _, field, _, _ in folder if field is not None)
        problem = "" if self.fields else "it names no value, such as {user_id}; Memory.open opens a folder for all"
        for folder in self._folders:
            fixed = "".join(literal for literal, *_ in folder)
            fields = [(field, spec, conversion) for _, field, spec, conversion in folder if field is not None]
            if fixed in {".", ".."} or not (fixed or fields) or not _FIXED.fullmatch(fixed):
                problem = f"a folder cannot be called {fixed!r}: letters, digits and -_@+=. can be in it"
            elif len(fields) > 1:
                problem = "two values in the name of one folder run into each other: part them with a /"
            elif any(spec or conversion or not field.isidentifier() for field, spec, conversion in fields):
                problem = "between braces belongs a name alone, such as {user_id}"
        if problem:
            raise ConfigError(f"the template of memories {template!r} is wrong: {problem}")

    def use(self, values: Mapping[str, Any], how: str = "") -> Lease:
        """Return the lease of the memory of a run.

        Args:
            values: The values of the run: texts, whole numbers or UUIDs.
            how: How to give a missing value, as the end of an error.

        Raises:
            ConfigError: A value is missing, empty, or of another type.
        """
        names = {field: self._encode(field, values.get(field), how) for field in self.fields}
        folders = (
            "".join(literal + names.get(field or "", "") for literal, field, *_ in folder) for folder in self._folders
        )
        return Lease(self.memories, tuple(folders))

    def _encode(self, field: str, value: object, how: str) -> str:
        if value is None or value == "":
            problem = "is missing from" if value is None else "is empty in"
            end = f": {how}" if how else ""
            raise ConfigError(f"{field} {problem} this run, and chooses its memory ({self.template!r}){end}")
        if not isinstance(value, str | int | UUID) or isinstance(value, bool):
            raise ConfigError(f"{field}={value!r:.80} chooses no memory: pass a text, a whole number or a UUID")
        return encode_folder_name(str(value))


# Parts of one agent that are each given the same template share its memories. A pool without users is freed.
_shared: WeakValueDictionary[Path, Memories] = WeakValueDictionary()
_sharing = threading.Lock()


def read_template(text: str) -> MemoryTemplate:
    """Read a template with its root: `"users/{user_id}"` are the memories in the folder `users`.

    Args:
        text: The template; the folders before the first one with a value are the root.

    Raises:
        ConfigError: As `Memories.use_template`.
    """
    folders = text.replace(os.sep, "/").split("/")
    first = next((at for at, folder in enumerate(folders) if "{" in folder), len(folders) - 1)
    fresh = Memories("/".join(folders[:first]) or ("/" if first else "."))
    with _sharing:
        return _shared.setdefault(fresh.root, fresh).use_template("/".join(folders[first:]))
