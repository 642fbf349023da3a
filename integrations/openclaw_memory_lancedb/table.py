"""The table of vectors in LanceDB: rows by id, one writer at a time, and no more old versions than needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from filelock import FileLock, Timeout
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from openclaw_memory import errors
from openclaw_memory.workspace import SafeFolder
from openclaw_memory_lancedb.entries import EntryFilter

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

NAME = "entries"
# Each write is a version of the table with a file of its own, and each file costs a search. Compaction writes all rows
# again, so that a large table waits for more of them.
FEWEST_VERSIONS, MOST_VERSIONS = 20, 500
# Versions so old are removed: a search that began earlier on one of them begins again.
_KEPT = timedelta(seconds=1)
_FORGOTTEN = timedelta(milliseconds=1)  # of those with the bytes of removed rows
_LOCK_SECONDS = 60.0
_TRIES, _FIRST_WAIT, _LONGEST_WAIT = 8, 0.05, 2.0
_AT_ONCE = 1000  # ids in one statement

_Result = TypeVar("_Result")


class Row(NamedTuple):
    """The row of an entry, without its text: `digest` tells if the vector is still the text's."""

    id: str
    digest: str
    importance: float
    category: str
    created_at: int


_COLUMNS = {"id": "id", "digest": "digest", "importance": "importance", "category": "category"} | {
    "createdAt": "created_at"
}


class Table:
    """The rows at an address. Safe to use from several threads and processes."""

    def __init__(self, root: Path, own: str, uri: str | None = None) -> None:
        """Name the table. Nothing is imported, read or written yet.

        Args:
            root: The workspace.
            own: The folder of the table in it. It is used only if no link is on the way. Next to it is the
                file by which writers wait for each other.
            uri: Another folder, or an address that LanceDB knows.

        Raises:
            MissingExtraError: lancedb is not installed.
        """
        if find_spec("lancedb") is None:
            raise errors.MissingExtraError(
                'openclaw_memory_lancedb needs LanceDB: pip install ".[lancedb]" in its checkout'
            )
        self._folder, self._path, self._own = SafeFolder(root), own, root / own
        self.uri, self._is_own = (os.fspath(self._own), True) if uri is None else (uri, False)
        self._lock_file = self._own.with_suffix(".lock")
        self._connection: Any = None
        self._writes = 0

    def read_meta(self) -> tuple[str, int] | None:
        """Return the identity of the model that made the vectors, and their dimensions; None if there is no table."""

        def read() -> tuple[str, int] | None:
            table = self._open_table()
            if table is None:
                return None
            schema = table.schema
            identity = (schema.metadata or {}).get(b"identity", b"").decode()
            return identity, int(schema.field("vector").type.list_size)

        return self._retry(read)

    def read_rows(self) -> dict[str, Row]:
        """Return every row by id."""

        def read() -> dict[str, Row]:
            table = self._open_table()
            rows = [] if table is None else table.search().select([*_COLUMNS]).limit(None).to_arrow().to_pylist()
            return {row["id"]: _make_row(row) for row in rows}

        return self._retry(read)

    def find_nearest(self, vector: Vector, k: int, entry_filter: EntryFilter) -> list[tuple[Row, Vector, float]]:
        """Return the k rows nearest to a vector, nearest first, with their vectors and cosines; all are compared."""
        import numpy as np

        def read() -> list[tuple[Row, Vector, float]]:
            table = self._open_table()
            if table is None:
                return []
            query = table.search(vector, vector_column_name="vector").distance_type("cosine").limit(k)
            query = query.where(_make_sql(entry_filter)).select([*_COLUMNS, "vector", "_distance"])
            rows = query.to_arrow().to_pylist()
            return [
                (_make_row(row), np.asarray(row["vector"], "float32"), max(-1.0, min(1.0, 1.0 - row["_distance"])))
                for row in rows
            ]

        return self._retry(read)

    def read_vector(self, entry_id: str) -> Vector | None:
        """Return the vector of an entry; None if there is none."""
        import numpy as np

        def read() -> Vector | None:
            table = self._open_table()
            rows = [] if table is None else table.search().where(_is_one_of([entry_id])).select(["vector"]).to_list()
            return np.asarray(rows[0]["vector"], "float32") if rows else None

        return self._retry(read)

    def put(
        self,
        rows: Sequence[Row],
        vectors: Matrix,
        identity: str,
        *,
        still: Callable[[], Collection[Row]] | None = None,
        fresh: bool = False,
    ) -> None:
        """Write rows, each in place of the one with its id.

        Args:
            rows: The rows, each id once.
            vectors: Their vectors, shape (len(rows), dims).
            identity: The identity of the model that made them.
            still: Returns the rows that are still to be written when it is this writer's turn; all where None.
            fresh: Whether these replace the whole table.

        Raises:
            EmbedderError: The table holds vectors of another model, or of other dimensions. Nothing was written.
            IndexLockedError: Another process writes for longer than a minute.
        """
        dims = vectors.shape[1]

        def write() -> None:
            current = None if still is None else still()
            places = [at for at, row in enumerate(rows) if current is None or row in current]
            data = _make_arrow([rows[at] for at in places], vectors[places], identity)
            table = self._open_table()
            if table is None or fresh:
                self._connect().create_table(NAME, data=data, mode="create" if table is None else "overwrite")
                return
            stored = table.schema.field("vector").type.list_size
            if stored != dims:
                raise errors.EmbedderError(
                    f"the embedder {identity!r} made vectors of {dims} dimensions, and those of {self.uri} have "
                    f"{stored}: open it with the embedder that made them, or call rebuild()"
                )
            if places:
                table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(data)

        self._write(write)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows by id; unknown ones are left out."""
        removed = list(ids)

        def write() -> None:
            table = self._open_table()
            if table is None:
                return
            for first in range(0, len(removed), _AT_ONCE):
                table.delete(_is_one_of(removed[first : first + _AT_ONCE]))

        if removed:
            self._write(write)

    def compact(self, *, if_due: bool = False) -> None:
        """Merge the files of the table, remove old versions, and with them the bytes of rows that were removed.

        Args:
            if_due: Only where there are so many versions that it is worth it, or removed rows whose bytes are there.
        """

        def write() -> None:
            table = self._open_table()
            if table is None:
                return
            stats = table.stats()
            lengths = stats["fragment_stats"]["lengths"]
            fragments = stats["fragment_stats"]["num_fragments"]
            has_removed = bool(fragments) and round(lengths["mean"] * fragments) > stats["num_rows"]
            versions = len(table.list_versions())
            if if_due and not has_removed and versions < get_version_limit(stats["num_rows"]):
                return
            if has_removed:  # LanceDB leaves the bytes of a few removed rows in their file
                table = self._connect().create_table(NAME, data=table.to_arrow(), mode="overwrite")
            table.optimize(cleanup_older_than=_FORGOTTEN if has_removed else _KEPT)

        with self._lock():
            self._retry(write)

    @property
    def has_writes(self) -> bool:
        """Return True if this object has written since it was made."""
        return self._writes > 0

    def _write(self, write: Callable[[], None]) -> None:
        with self._lock():
            self._retry(write)
        self._writes += 1
        if self._writes % FEWEST_VERSIONS == 0:
            self.compact(if_due=True)

    def _open_table(self) -> Any:
        """Return the table as it is now; None if there is none."""
        try:
            return self._connect().open_table(NAME)
        except (ValueError, FileNotFoundError) as error:
            if "not found" in str(error).lower():
                return None
            raise

    def _connect(self) -> Any:
        if self._connection is None:
            if self._is_own:
                self._refuse(_find_links(self._own))
            import lancedb  # pyright: ignore[reportMissingImports] - an extra, which types are not checked with

            self._connection = lancedb.connect(self.uri)
        return self._connection

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock of writers: those who write at once would cost each other's work, and could double an entry."""
        self._refuse(_find_links(self._lock_file))
        try:
            self._folder.make_folder(self._path if self._is_own else self._path.rpartition("/")[0])
        except (errors.WorkspaceError, errors.WriteError) as error:
            raise errors.StoreError(f"LanceDB cannot use {self._own}: {error}") from error
        try:
            with FileLock(self._lock_file, timeout=_LOCK_SECONDS, mode=0o600):
                yield
        except Timeout as error:
            raise errors.IndexLockedError(
                f"another process has written to {self.uri} for {_LOCK_SECONDS:.0f} s: end it, or call this again"
            ) from error

    def _refuse(self, links: Iterator[str]) -> None:
        for link in links:
            raise errors.StoreError(f"{link} is a link, and what it leads to is not touched: move it away")

    def _retry(self, work: Callable[[], _Result]) -> _Result:
        """Call `work`, and again if another writer, on a machine without the lock, came first."""
        trying = Retrying(
            retry=retry_if_exception(_is_transient),
            stop=stop_after_attempt(_TRIES),
            wait=wait_random_exponential(_FIRST_WAIT, _LONGEST_WAIT),
            reraise=True,
        )
        try:
            return trying(work)
        except (RuntimeError, ValueError, OSError) as error:
            raise errors.StoreError(
                f"LanceDB cannot use {self.uri}: {error}; what it holds can be made again: remove it, and open it again"
            ) from error


def _find_links(place: Path) -> Iterator[str]:
    """Yield the links in the way: a file or folder of ours in a workspace, its folder, and the entries of a folder.

    A workspace from someone else may lead us elsewhere by it. A lock with a second name would be emptied under both.
    LanceDB itself gives its files second names for a moment, and writes none of them in place.
    """
    yield from (os.fspath(path) for path in (place.parent, place) if path.is_symlink())
    if place.is_file() and place.stat().st_nlink > 1:
        yield os.fspath(place)
    for folder, names, files in os.walk(place):
        yield from (path for name in (*names, *files) if os.path.islink(path := os.path.join(folder, name)))


def get_version_limit(rows: int) -> int:
    """Return how many versions a table of so many rows has before it is compacted."""
    return min(max(FEWEST_VERSIONS, rows // 100), MOST_VERSIONS)


def _is_transient(error: BaseException) -> bool:
    """Return True for a passing error of LanceDB: a commit came too late, or a version is gone."""
    words = str(error).lower()
    return isinstance(error, RuntimeError | OSError) and ("commit conflict" in words or "not found" in words)


def _make_arrow(rows: Sequence[Row], vectors: Matrix, identity: str) -> Any:
    """Return rows as a table of Arrow, marked with the identity of the model."""
    import pyarrow as pa  # pyright: ignore[reportMissingImports] - likewise

    kinds = {"importance": pa.float64(), "createdAt": pa.int64()}
    dims = vectors.shape[1]
    fields = [pa.field(column, kinds.get(column, pa.string()), nullable=False) for column in _COLUMNS]
    columns = [
        pa.array([getattr(row, name) for row in rows], field.type)
        for field, name in zip(fields, _COLUMNS.values(), strict=True)
    ]
    fields.append(pa.field("vector", pa.list_(pa.float32(), dims), nullable=False))
    flat = pa.array(vectors.reshape(-1).astype("float32", copy=False))
    columns.append(pa.FixedSizeListArray.from_arrays(flat, dims))
    return pa.table(columns, schema=pa.schema(fields, metadata={"identity": identity}))


def _make_row(values: Mapping[str, Any]) -> Row:
    return Row(**{name: values[column] for column, name in _COLUMNS.items()})


def _make_sql(entry_filter: EntryFilter) -> str:
    """Return the filter of a search. Its values were checked: categories that there are, and numbers."""
    names = ", ".join(map(_quote, entry_filter.categories))
    terms = [f"category IN ({names})" if names else "false"]
    if entry_filter.min_importance > 0:
        terms.append(f"importance >= {entry_filter.min_importance!r}")
    if entry_filter.since > 0:
        terms.append(f'"createdAt" >= {entry_filter.since:d}')
    return " AND ".join(terms)


def _is_one_of(ids: Iterable[str]) -> str:
    return f"id IN ({', '.join(map(_quote, ids))})"


def _quote(value: str) -> str:
    """Return a text as a literal of SQL, with each quote doubled."""
    return "'" + value.replace("'", "''") + "'"
