"""`OpenClawStore`: LangGraph's long-term memory, each item a Markdown file that people can read and correct."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from langchain_openclaw_memory._session import describe_unknown, use_run_memory
from langchain_openclaw_memory._store_items import format_item, parse_item
from openclaw_memory import Memory, SearchFilter
from openclaw_memory.aio import run_in_thread
from openclaw_memory.documents import item_files
from openclaw_memory.errors import ConfigError, InvalidInputError, QueryError, SyncBusyError
from openclaw_memory.runs import MemoryChoice, RunMemory

_PASSAGES = 4  # of an item at most, on average, that a search returns
_SYNC_SECONDS = 5.0  # a search waits at most this long for the sync of another process
_MOST_BYTES = 2000  # of a path within the workspace: systems limit the whole path to 4096
_MOST_RESULTS = 1000  # of one search; see `Memory.search`
# A read puts off the end of an item if so much of its time has passed: not each one touches the file.
_REFRESHED = 0.1


class OpenClawStore(BaseStore):
    """A LangGraph store over a memory: `create_agent(..., store=OpenClawStore(memory))`.

    An item is the file `memory/<namespace>/<key>.md`. The value is in the front matter; the body is what a search can
    find of it. If that is one string, the body is its only place, and correcting it there corrects the value; of
    several, an edit of the body is logged, and changes nothing. Notes that people wrote are not items, and are neither
    overwritten nor deleted. Secrets are masked in searches; `get` returns a value as it was put.

    It answers as LangGraph's `InMemoryStore` does; the README has a table of the differences, and says how times to
    live are kept. A search with a query first indexes the items of its namespace that have changed, unless another
    process syncs for long. Items that the query does not find follow, unscored, up to the limit.
    """

    __slots__ = ("_choice", "_fields", "_memory", "_read_before", "_swept", "ttl_config")

    supports_ttl = True

    def __init__(
        self, memory: MemoryChoice, *, fields: Sequence[str] = (item_files.WHOLE,), ttl: TTLConfig | None = None
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
        if unknown := {*(ttl or {})} - {*TTLConfig.__annotations__}:
            raise ConfigError(describe_unknown(unknown, TTLConfig.__annotations__, "ttl"))
        self._fields = tuple(fields)
        self.ttl_config = ttl
        self._swept: dict[Path, float] = {}  # when, by the folder of the memory
        # The items of files, while these are as they were: the fields are the same object then.
        self._read_before: dict[str, tuple[Mapping[str, Any], str, Item | None]] = {}

    def _use(self, memory: Memory) -> OpenClawStore:
        store = OpenClawStore(memory, fields=self._fields, ttl=self.ttl_config)
        store._swept = self._swept
        return store

    @use_run_memory
    def batch(self, ops: Iterable[Op]) -> list[Result]:
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
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in operations:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = _check_put(op)
        results = [self._read(op) for op in operations]
        self._write(puts.values())
        interval = (self.ttl_config or {}).get("sweep_interval_minutes")
        if puts and interval is not None:
            now = time.monotonic()
            if now - self._swept.setdefault(self._memory.workspace.root, now) >= 60 * interval:
                self.sweep_ttl()
        return results

    @use_run_memory
    def sweep_ttl(self) -> int:
        """Delete expired items, and return their number."""
        self._swept[self._memory.workspace.root] = time.monotonic()
        files = self._memory.documents.files
        below = files.iterate(item_files.FOLDER)
        expired = [
            path for path, fields, _ in below if self._is_expired(path, fields) and item_files.is_item(path, fields)
        ]
        files.delete(*expired)
        return len(expired)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `batch` in a thread."""
        return await run_in_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get_item(tuple(op.namespace), op.key, refresh=op.refresh_ttl)
        if isinstance(op, SearchOp):
            return list(self._search(op))
        if isinstance(op, ListNamespacesOp):
            return _list_namespaces({item.namespace for item in self._list_items(()).values()}, op)
        if isinstance(op, PutOp):
            return None
        raise InvalidInputError(
            f"{op!r} is not an operation of a store: use GetOp, SearchOp, ListNamespacesOp or PutOp"
        )

    def _get_item(self, namespace: tuple[str, ...], key: str, *, refresh: bool = False) -> Item | None:
        path = self._memory.workspace.files.find(item_files.make_path(namespace, key))
        file = self._memory.documents.files.read(path)
        item = self._parse(path, *file) if file else None
        if item is None:
            return None
        if refresh:
            self._refresh(path)
        return deepcopy(item)

    def _list_items(self, prefix: tuple[str, ...]) -> dict[str, Item]:
        """Return the items of a namespace and those below it by path, oldest first. They are shared: only read them."""
        folder = item_files.make_folder(prefix)
        parsed = [
            (path, self._parse(path, fields, text))
            for path, fields, text in self._memory.documents.files.iterate(folder)
        ]
        if not prefix:  # of all files: forget those that are gone
            for path in self._read_before.keys() - {path for path, _ in parsed}:
                self._read_before.pop(path, None)
        items = {path: item for path, item in parsed if item is not None}
        return dict(sorted(items.items(), key=lambda entry: (entry[1].created_at, entry[1].namespace, entry[1].key)))

    def _get_age(self, path: str) -> float:
        """Return the seconds since a file was written or refreshed, from its mtime."""
        try:
            return _now() - os.lstat(self._memory.workspace.root / path).st_mtime
        except FileNotFoundError:
            return float("inf")

    def _is_expired(self, path: str, fields: Mapping[str, Any]) -> bool:
        seconds = _get_ttl(fields)
        return seconds is not None and self._get_age(path) > seconds

    def _refresh(self, path: str) -> None:
        entry = self._read_before.get(path)
        seconds = _get_ttl(entry[0]) if entry and entry[2] else None
        with suppress(OSError):  # it was deleted just now
            if seconds is not None and self._get_age(path) > _REFRESHED * seconds:
                os.utime(self._memory.workspace.root / path, (_now(), _now()))

    def _parse(self, path: str, fields: Mapping[str, Any], text: str) -> Item | None:
        """Return the item in a file, parsed again only if the file has changed: a warning about it is logged once."""
        if self._is_expired(path, fields):
            return None
        before = self._read_before.get(path)
        if before is None or (before[0] is not fields and before[:2] != (fields, text)):
            before = (fields, text, parse_item(path, fields, text))
        self._read_before[path] = (fields, text, before[2])
        return before[2]

    def _search(self, op: SearchOp) -> Iterator[SearchItem]:
        fits = self._memory.documents.compile_filter(op.filter)
        items = {path: item for path, item in self._list_items(tuple(op.namespace_prefix)).items() if fits(item.value)}
        scores = self._search_scores(op.query, items, op.offset + op.limit) if op.query else {}
        ranked = [*scores, *(path for path in items if path not in scores)]
        for path in ranked[op.offset : op.offset + op.limit]:
            item = deepcopy(items[path])
            if op.refresh_ttl:
                self._refresh(path)
            yield SearchItem(
                item.namespace, item.key, item.value, item.created_at, item.updated_at, score=scores.get(path)
            )

    def _search_scores(self, query: str, items: Mapping[str, Item], count: int) -> dict[str, float]:
        """Return the scores of the items that a query finds, by path, best first; up to `count`."""
        scores: dict[str, float] = {}
        if not items or count < 1:
            return scores
        with suppress(SyncBusyError):  # what is not indexed yet comes unscored
            self._memory.documents.files.sync(items, wait=_SYNC_SECONDS)
        results = min(_MOST_RESULTS, _PASSAGES * count)
        only = SearchFilter(source="memory", path=[*items])
        for hit in self._memory.search(query, max_results=results, min_score=0.0, filter=only):
            scores.setdefault(hit.path, hit.score)
        return scores

    def _write(self, puts: Iterable[PutOp]) -> None:
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
            item = Item(value=dict(op.value), key=op.key, namespace=op.namespace, created_at=created_at, updated_at=now)
            fields: Sequence[str] = self._fields if op.index is None else op.index or ()
            about, body = format_item(item, fields)
            written.append((path, about if op.ttl is None else {**about, "ttl": op.ttl}, body))
        self._memory.documents.files.write_many(written)
        self._memory.documents.files.delete(*deleted)


_now = time.time


def _get_ttl(fields: Mapping[str, Any]) -> float | None:
    minutes = fields.get("ttl")
    return 60.0 * minutes if isinstance(minutes, int | float) else None


def _check_put(op: PutOp) -> PutOp:
    if not op.namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    if op.value is not None and not isinstance(op.value, Mapping):
        raise InvalidInputError(f"a value must be a dict, such as {{'text': ...}}, not {op.value!r:.80}")
    if isinstance(op.index, str):
        raise InvalidInputError(f"index={op.index!r} is one text: give a list of paths, such as [{op.index!r}]")
    if op.ttl is not None and not (isinstance(op.ttl, int | float) and op.ttl > 0):
        raise InvalidInputError(f"a time to live is a number of minutes above 0, not {op.ttl!r}")
    if (length := len(item_files.make_path(op.namespace, op.key).encode())) > _MOST_BYTES:
        raise InvalidInputError(
            f"namespace and key make a path of {length} bytes, more than {_MOST_BYTES}: use fewer labels"
        )
    if item_files.is_too_deep(op.value):
        raise InvalidInputError(f"the value is nested deeper than {item_files.MAX_DEPTH} levels: make it flatter")
    return op._replace(namespace=tuple(op.namespace))


def _list_namespaces(namespaces: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """Return the namespaces that an operation asks for: those that match, cut to its depth, sorted, its page."""
    conditions = op.match_conditions or ()
    matched = [
        namespace for namespace in namespaces if all(_is_match(namespace, condition) for condition in conditions)
    ]
    return sorted({namespace[: op.max_depth] for namespace in matched})[op.offset : op.offset + op.limit]


def _is_match(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in {"prefix", "suffix"}:
        raise QueryError(f"namespaces match by 'prefix' or 'suffix', not by {condition.match_type!r}")
    if len(namespace) < len(path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    return all(expected in ("*", label) for label, expected in zip(namespace[start:], path, strict=False))
