"""`OpenClawStore`: LangGraph's long-term memory, each item a Markdown file that people can read and correct."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from langgraph.store import base

from langchain_openclaw_memory._session import describe_unknown, use_run_memory
from openclaw_memory import Memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.documents import item_files
from openclaw_memory.errors import ConfigError, InvalidInputError, QueryError
from openclaw_memory.runs import MemoryChoice, RunMemory

_LOG = logging.getLogger(__name__)
_SYNC_SECONDS = 5.0  # a search waits at most this long for the sync of another process
_MOST_BYTES = 2000  # of a path within the workspace: systems limit the whole path to 4096
# A read puts off the end of an item if so much of its time has passed: not each one touches the file.
_REFRESHED = 0.1


class OpenClawStore(base.BaseStore):
    """A LangGraph store over a memory: `create_agent(..., store=OpenClawStore(memory))`.

    An item is the file `memory/<namespace>/<key>.md`. The value is in the front matter; the body is what a search can
    find of it. If that is one string, the body is its only place, and correcting it there corrects the value; of
    several, an edit of the body is logged, and changes nothing. Notes that people wrote are not items, and are neither
    overwritten nor deleted. Secrets are masked in searches; `get` returns a value as it was put.

    It answers as LangGraph's `InMemoryStore` does; the guide has a table of the differences, and says how times to live
    are kept. What is put is indexed at once, unless another process syncs for long. What people change in a file `get`
    returns from then on, and searches know from the next sync on. Items that the query does not find follow, up to the
    limit, without a score.
    """

    __slots__ = ("_caches", "_choice", "_fields", "_memory", "ttl_config")

    supports_ttl = True

    def __init__(
        self, memory: MemoryChoice, *, fields: Sequence[str] = (item_files.WHOLE,), ttl: base.TTLConfig | None = None
    ) -> None:
        """Make a store over an open memory.

        Args:
            memory: The memory, or a selector of one for each run, see `memory_tools`; call `sweep_ttl` in a run then.
            fields: The paths of a value that can be found by a search, where `put` names none, such as `a.b` or
                `c[*].d`, each with a vector of its own; "$" is the whole value, with one vector.
            ttl: LangGraph's settings of times to live, in minutes: `default_ttl`, `refresh_on_read`, and
                `sweep_interval_minutes`, after which a write also deletes expired items.

        Raises:
            TypeError: `memory` is not a `Memory`.
            ConfigError: `fields` is a single text, or `ttl` has an unknown setting.
        """
        self._choice = RunMemory.read_choice(memory)
        if isinstance(self._choice, Memory):
            self._memory = self._choice
        if isinstance(fields, str):
            raise ConfigError(f"fields={fields!r} is one text: give a list of paths, such as [{fields!r}]")
        if unknown := {*(ttl or {})} - {*base.TTLConfig.__annotations__}:
            raise ConfigError(describe_unknown(unknown, base.TTLConfig.__annotations__, "ttl"))
        self._fields = tuple(fields)
        self.ttl_config = ttl
        self._caches: WeakKeyDictionary[Memory, _Cache] = WeakKeyDictionary()

    def _use(self, memory: Memory) -> OpenClawStore:
        store = OpenClawStore(memory, fields=self._fields, ttl=self.ttl_config)
        store._caches = self._caches
        return store

    @property
    def _cache(self) -> _Cache:
        return self._caches.setdefault(self._memory, _Cache())

    @use_run_memory
    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Do several operations. Reads come before all writes; of two puts of an item the last counts.

        Each file is replaced at once, the batch as a whole is not: if it fails midway, earlier writes stay.
        Deletions come last.

        Raises:
            InvalidNamespaceError: A namespace or one of its labels is empty, or a label holds a period.
            InvalidInputError: A value is not JSON, is nested too deeply, a name holds a secret, or a filter has an
                unknown operator. Nothing was written.
            PathNotAllowedError: A person's own file is in the place of an item.
            PolicyError: A rule says never to store a value.
            WriteError: A file could not be written.
        """
        operations = list(ops)
        puts: dict[tuple[tuple[str, ...], str], base.PutOp] = {}
        for op in operations:
            base.validate_op_namespace(op)
            if isinstance(op, base.PutOp):
                puts[op.namespace, op.key] = _check_put(op)
        results = [self._read(op) for op in operations]
        self._write(puts.values())
        interval = (self.ttl_config or {}).get("sweep_interval_minutes")
        if puts and interval is not None and time.monotonic() - self._cache.swept >= 60 * interval:
            self.sweep_ttl()
        return results

    @use_run_memory
    def sweep_ttl(self) -> int:
        """Delete expired items, and return their number."""
        self._cache.swept = time.monotonic()
        self._list_items(())
        entries = self._cache.entries.items()
        expired = [path for path, entry in entries if entry.item and self._is_older(path, entry.seconds)]
        self._memory.documents.files.delete(*expired)
        return len(expired)

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run `batch` in a thread."""
        return await run_in_thread(self.batch, list(ops))

    def _read(self, op: base.Op) -> base.Result:
        if isinstance(op, base.GetOp):
            return self._get_item(tuple(op.namespace), op.key, refresh=op.refresh_ttl)
        if isinstance(op, base.SearchOp):
            return list(self._search(op))
        if isinstance(op, base.ListNamespacesOp):
            return _list_namespaces({item.namespace for item in self._list_items(()).values()}, op)
        if not isinstance(op, base.PutOp):
            raise InvalidInputError(f"{op!r} is not an operation: use GetOp, SearchOp, ListNamespacesOp or PutOp")
        return None

    def _get_item(self, namespace: tuple[str, ...], key: str, *, refresh: bool = False) -> base.Item | None:
        path = self._memory.workspace.files.find(item_files.make_path(namespace, key))
        entry = self._load(path)
        if entry is None or entry.item is None or self._is_older(path, entry.seconds):
            return None
        if refresh:
            self._refresh(path, entry)
        return deepcopy(entry.item)

    def _list_items(self, prefix: tuple[str, ...]) -> dict[str, base.Item]:
        """Return the items of a namespace and those below it by path, oldest first. They are shared: only read them.

        Those that have changed in the index, which follows the files, are read again.
        """
        files, cache = self._memory.documents.files.sync(wait=_SYNC_SECONDS), self._cache
        if cache.files is not files:
            cache.files, cache.listings = files, {}
            cache.entries = {path: entry for path, entry in cache.entries.items() if path in files}
            cache.records = {path: record for path, record in cache.records.items() if path in files}
        folder = item_files.make_folder(prefix) + "/"
        if folder not in cache.listings:
            paths = [path for path in files if path.startswith(folder) and item_files.is_place(path)]
            for path in paths:
                if cache.records.get(path) != files[path]:
                    self._load(path)
                    cache.records[path] = files[path]
            items = [(path, item) for path in paths if path in cache.entries and (item := cache.entries[path].item)]
            items.sort(key=lambda pair: (pair[1].created_at, pair[1].namespace, pair[1].key))
            timed = [path for path, _ in items if cache.entries[path].seconds is not None]
            cache.listings[folder] = dict(items), timed
        listed, timed = cache.listings[folder]
        expired = {path for path in timed if self._is_older(path, cache.entries[path].seconds)}
        return {path: item for path, item in listed.items() if path not in expired} if expired else listed

    def _is_older(self, path: str, seconds: float | None) -> bool:
        """Tell whether so many seconds have passed since a file was written or refreshed, by its mtime."""
        try:
            return seconds is not None and _now() - os.lstat(self._memory.workspace.root / path).st_mtime > seconds
        except FileNotFoundError:
            return True

    def _refresh(self, path: str, entry: _Entry) -> None:
        if entry.seconds is not None and self._is_older(path, _REFRESHED * entry.seconds):
            with suppress(OSError):  # it was deleted just now
                os.utime(self._memory.workspace.root / path, (_now(), _now()))

    def _load(self, path: str) -> _Entry | None:
        """Return the item in a file, parsed again only if the file has changed: a warning about it is logged once."""
        file, entries = self._memory.documents.files.read(path), self._cache.entries
        if file is None:
            entries.pop(path, None)
        elif path not in entries or entries[path].file != file:
            entries[path] = _Entry(file, _parse_item(path, *file), _get_ttl(file[0]))
        return entries.get(path)

    def _search(self, op: base.SearchOp) -> Iterator[base.SearchItem]:
        prefix, fits = tuple(op.namespace_prefix), self._memory.documents.compile_filter(op.filter)
        items, last = self._list_items(prefix), op.offset + op.limit
        if op.filter:
            items = {path: item for path, item in items.items() if fits(item.value)}
        scores: dict[str, float] = {}
        if op.query and items and last > 0:
            search, folder = self._memory.documents.files.search, item_files.make_folder(prefix)
            scores = dict(search(op.query, last, folder, items.__contains__))
        ranked = chain(scores, (path for path in items if path not in scores))
        for path in islice(ranked, op.offset, last):
            entry, file = self._load(path), self._memory.documents.files.read(path, masked=True)
            if entry is None or entry.item is None or file is None:
                continue
            if op.refresh_ttl:
                self._refresh(path, entry)
            item, value = entry.item, deepcopy(item_files.read_value(*file))
            yield base.SearchItem(
                item.namespace, item.key, value, item.created_at, item.updated_at, score=scores.get(path)
            )

    def _write(self, puts: Iterable[base.PutOp]) -> None:
        """Write all items at once, and then delete."""
        began = datetime.now(UTC)
        written: list[tuple[str, Mapping[str, Any], str]] = []
        deleted: list[str] = []
        for number, op in enumerate(puts):
            now = began + timedelta(microseconds=number)  # the order of a batch is that of its items
            path = item_files.make_path(op.namespace, op.key)
            if op.value is None:
                deleted.append(path)
                continue
            before = self._get_item(op.namespace, op.key)
            created_at = before.created_at if before else now
            item = base.Item(
                value=dict(op.value), key=op.key, namespace=op.namespace, created_at=created_at, updated_at=now
            )
            fields: Sequence[str] = self._fields if op.index is None else op.index or ()
            about, body = _format_item(item, fields)
            written.append((path, about if op.ttl is None else {**about, "ttl": op.ttl}, body))
        self._memory.documents.files.write(*written)
        self._memory.documents.files.delete(*deleted)
        if written or deleted:
            self._memory.documents.files.sync(wait=_SYNC_SECONDS)


class _Entry(NamedTuple):
    """A file as it was read: its item if it holds one, and its seconds to live."""

    file: tuple[Mapping[str, Any], str]
    item: base.Item | None
    seconds: float | None


@dataclass(eq=False)
class _Cache:
    """The items of one memory, while its files are as they were."""

    files: object = None
    swept: float = field(default_factory=time.monotonic)
    records: dict[str, object] = field(default_factory=dict)
    entries: dict[str, _Entry] = field(default_factory=dict)
    # The items below a folder by path, and the paths of those that expire.
    listings: dict[str, tuple[dict[str, base.Item], list[str]]] = field(default_factory=dict)


_now = time.time


def _get_ttl(fields: Mapping[str, Any]) -> float | None:
    minutes = fields.get("ttl")
    return 60.0 * minutes if isinstance(minutes, int | float) else None


def _check_put(op: base.PutOp) -> base.PutOp:
    if not op.namespace:
        raise base.InvalidNamespaceError("Namespace cannot be empty.")
    if op.value is not None and not isinstance(op.value, Mapping):
        raise InvalidInputError(f"a value must be a dict, such as {{'text': ...}}, not {op.value!r:.80}")
    if isinstance(op.index, str):
        raise InvalidInputError(f"index={op.index!r} is one text: give a list of paths, such as [{op.index!r}]")
    if op.ttl is not None and not (isinstance(op.ttl, int | float) and op.ttl > 0):
        raise InvalidInputError(f"a time to live is a number of minutes above 0, not {op.ttl!r}")
    if (length := len(item_files.make_path(op.namespace, op.key).encode())) > _MOST_BYTES:
        raise InvalidInputError(f"namespace and key make {length} bytes, more than {_MOST_BYTES}: use fewer labels")
    if item_files.is_too_deep(op.value):
        raise InvalidInputError(f"the value is nested deeper than {item_files.MAX_DEPTH} levels: make it flatter")
    return op._replace(namespace=tuple(op.namespace))


def _list_namespaces(namespaces: Iterable[tuple[str, ...]], op: base.ListNamespacesOp) -> list[tuple[str, ...]]:
    """Return the namespaces that an operation asks for: those that match, cut to its depth, sorted, its page."""
    conditions = op.match_conditions or ()
    matched = {name[: op.max_depth] for name in namespaces if all(_is_match(name, part) for part in conditions)}
    return sorted(matched)[op.offset : op.offset + op.limit]


def _is_match(namespace: tuple[str, ...], condition: base.MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in {"prefix", "suffix"}:
        raise QueryError(f"namespaces match by 'prefix' or 'suffix', not by {condition.match_type!r}")
    if len(namespace) < len(path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    return all(expected in ("*", label) for label, expected in zip(namespace[start:], path, strict=False))


def _format_item(item: base.Item, paths: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return front matter and body of an item; searches find its values at `paths`."""
    times = (item.created_at, item.updated_at)
    return item_files.make_file(item.namespace, item.key, item.value, times, _list_texts(item.value, paths), paths)


def _parse_item(path: str, fields: Mapping[str, Any], text: str) -> base.Item | None:
    """Return the item in a file; None if the file is something else, or its front matter is damaged."""
    if not item_files.is_item(path, fields):
        return None
    namespace, key = tuple(fields["namespace"]), fields["key"]
    try:
        value = item_files.read_value(fields, text)
        if not fields.get("text_at") and "index" in fields and not _is_shown(value, fields["index"], text):
            _LOG.warning(
                "%r was edited below its front matter, where searches look, and the item is unchanged: its text is "
                "in several fields, so edit `value` above the text instead",
                path,
            )
        times = (datetime.fromisoformat(fields[name]) for name in ("created_at", "updated_at"))
        created_at, updated_at = (moment.astimezone(UTC) for moment in times)  # edited to have no zone, it is local
    except (KeyError, TypeError, ValueError):
        _LOG.warning("%r is skipped: fix its front matter, where `value` must be a JSON object on one line", path)
        return None
    return base.Item(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)


def _is_shown(value: dict[str, Any], paths: Sequence[str], text: str) -> bool:
    """Tell whether a body is the unedited text of a value."""
    return item_files.trim_body(text) == item_files.trim_body(item_files.make_body(_list_texts(value, paths), paths))


def _list_texts(value: dict[str, Any], paths: Sequence[str]) -> list[item_files.Text]:
    return [text for path in paths for text in _find_texts(value, path)]


def _find_texts(value: dict[str, Any], path: str) -> Iterator[item_files.Text]:
    if path == item_files.WHOLE:
        yield from item_files.list_texts(value)
        return
    keys = tuple(base.tokenize_path(path))
    yield from (item_files.Text(path, keys, text) for text in base.get_text_at_path(value, list(keys)))
