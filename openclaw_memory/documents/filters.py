"""Match metadata against a filter, plain data with operators and dotted names; frameworks' filters become one."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import Any, Self, TypeAlias

from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document
from openclaw_memory.types.files import cited
from openclaw_memory.types.where import DOCUMENT, OWN, PART_OF, FileRange, Metadata, kind_of
from openclaw_memory.workspace.document_cache import make_key, split_key
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER

_Test: TypeAlias = Callable[[Any], bool]

_BELOW = f"{DOCUMENTS_FOLDER}/"
_NOWHERE = "/"  # the path of no file
MOST_SEEN = 1000  # values of which a filter remembers whether they pass: mostly many documents have the same

_JOINED: Mapping[str, Callable[[Iterable[bool]], bool]] = {"$and": all, "$or": any}


class DocumentFilter:
    """A filter of documents by metadata, ids, wholes and tests, which must all hold.

    Called with a document, it says whether this one does. In a large memory the filter costs less than a function that
    does the same: the index knows most metadata, all ids and what documents are a part of.
    """

    def __init__(
        self,
        metadata: Mapping[str, Any] | None = None,
        tests: Iterable[Callable[[Document], bool]] = (),
        *,
        ids: Iterable[str] | None = None,
        parts_of: Iterable[str] | None = None,
        folder: str = "",
    ) -> None:
        """Join a filter and tests.

        Args:
            metadata: The filter, as `matching` takes it; None lets everything pass.
            tests: Functions of a document.
            ids: Only documents with these ids, or lines with these citations.
            parts_of: Only documents that are a part of these, or lines of the files at these paths.
            folder: Only documents below this folder, `memory/notes/`.

        Raises:
            QueryError: As `matching`.
        """
        self._fits, self.tests = matching(metadata), tuple(tests)
        self._ids = None if ids is None else frozenset(ids)
        self._parts_of = None if parts_of is None else frozenset(parts_of)
        self._folder = folder
        self._of_chunks = None if metadata is None else _of_chunks(metadata, self._fits)
        self._has_metadata = metadata is not None

    def also(self, *tests: Callable[[Document], bool]) -> Self:
        """Return this filter with further tests.

        Args:
            tests: Functions of a document.
        """
        other = copy(self)
        other.tests = (*self.tests, *tests)
        return other

    @property
    def is_exact(self) -> bool:
        """True if the index alone can answer it."""
        return not self.tests and (self._of_chunks is not None or not self._has_metadata)

    @property
    def reads_documents(self) -> bool:
        """True if documents have to be read for it: for tests, and for metadata that the index does not have."""
        return bool(self.tests) or self._has_metadata

    def narrow(self, collection: str) -> ChunkScope | None:
        """Return the chunks that documents which count can have, or None if these may be all.

        Args:
            collection: The collection that is searched, "" for none.
        """
        is_open = self._of_chunks is None and self._ids is None and self._parts_of is None and not self._folder
        if is_open and not collection:
            return None
        return ChunkScope(collection, self._of_chunks, self._ids, self._parts_of, self._folder)

    def __call__(self, document: Document) -> bool:
        return (
            (self._ids is None or document.id in self._ids)
            and (self._parts_of is None or document.part_of in self._parts_of)
            and document.path.startswith(self._folder)
            and self._fits(document.metadata)
            and all(test(document) for test in self.tests)
        )


@dataclass(frozen=True)
class ChunkScope:
    """A filter of chunks: those that a document of a collection can have if it passes a filter. Equal for equal ones.

    What the index does not know of a document, as of one from before it knew it, passes.
    """

    collection: str
    metadata: OfChunks | None = None
    ids: frozenset[str] | None = None
    parts_of: frozenset[str] | None = None
    folder: str = ""

    def __call__(self, path: str, metadata: Metadata) -> bool:
        if not path.startswith(self.folder):
            return False
        key, whole = metadata.get(DOCUMENT), metadata.get(PART_OF)
        if not path.startswith(_BELOW):  # of a person
            if self.collection or (self.ids is not None and path not in self._cited_paths):
                return False
            whole = path
        elif isinstance(key, str):
            collection, doc_id = split_key(key)
            if collection != self.collection or (self.ids is not None and doc_id not in self.ids):
                return False
        is_known = whole is not None or (key is not None and PART_OF not in metadata)
        if self.parts_of is not None and is_known and whole not in self.parts_of:
            return False
        return self.metadata is None or self.metadata(path, metadata)

    @cached_property
    def _cited_paths(self) -> frozenset[str]:
        places = (cited(doc_id) for doc_id in self.ids or ())
        return frozenset(place[0] for place in places if place is not None)

    @cached_property
    def files(self) -> tuple[FileRange, ...]:
        """The ranges that hold all files which pass."""
        if self.ids is not None:
            keys = [FileRange("doc_id", make_key(self.collection, doc_id)) for doc_id in self.ids if doc_id.strip()]
            return (*keys, *(FileRange("path", path) for path in self._cited_paths or {_NOWHERE}))
        if self.parts_of is not None:
            wholes = self.parts_of or {_NOWHERE}
            return (*(FileRange("part_of", whole) for whole in wholes), *(FileRange("path", whole) for whole in wholes))
        if self.collection:
            return (FileRange("doc_id", make_key(self.collection, ""), is_prefix=True),)
        return (FileRange("path", self.folder, is_prefix=True),) if self.folder else ()


@dataclass(frozen=True)
class OfChunks:
    """Whether a chunk can be of a document whose metadata pass a filter; equal for equal filters."""

    written: str
    names: tuple[str, ...] = field(compare=False)
    fits: Callable[[Metadata], bool] = field(compare=False)
    _seen: dict[tuple[object, ...], bool] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, path: str, metadata: Metadata) -> bool:
        # Elsewhere files are of people, and what they say above the text is not in the index.
        if not path.startswith(_BELOW):
            return True
        values = tuple([metadata.get(name, ...) for name in self.names])
        if None in values:  # it is not known what one of them is
            return True
        passes = self._seen.get(values)
        if passes is None:
            passes = self.fits(metadata)
            if len(self._seen) < MOST_SEEN:
                self._seen[values] = passes
        return passes


def _of_chunks(wanted: Mapping[str, Any], fits: Callable[[Mapping[str, Any]], bool]) -> OfChunks | None:
    """Return what a filter says of chunks; None if it cannot be written down, or has names that are not in an index."""
    names = list(_names(wanted))
    if not all(kind_of(name) == "text" and not name.startswith(OWN) for name in names):
        return None
    names += [name.partition(".")[0] for name in names]
    try:
        return OfChunks(json.dumps(wanted, default=_spelled), tuple(dict.fromkeys(names)), fits)
    except (TypeError, ValueError):
        return None


def _names(wanted: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the names of metadata in a filter."""
    for name, operand in wanted.items():
        if name == "$not":
            yield from _names(operand)
        elif name in _JOINED:
            for part in operand:
                yield from _names(part)
        else:
            yield name


def _spelled(value: object) -> str:
    if isinstance(value, date):
        return repr(value)
    raise TypeError


def matching(wanted: Mapping[str, Any] | None) -> Callable[[Mapping[str, Any]], bool]:
    r"""Return a function that says whether values by name, such as metadata, pass a filter.

    All of its entries must hold. An entry is a name with what its value must be: an equal value, equal entries of a
    dict, or operators. The name `a.b` means the entry `b` of the dict `a`, unless there is a value of that very name.
    What is missing is like None.

    - `$eq $ne $gt $gte $lt $lte`: numbers are compared with numbers, texts with texts in the order of their characters,
      and a `date` or `datetime` with the one that a text spells in ISO 8601 (UTC if it names no zone). What cannot be
      compared does not match.
    - `$in`, `$nin`: one of a list; of a value that is a list, any of its elements.
    - `$exists`: true for any value but None.
    - `$contains`: an element of a list, or a part of a text; `$within` is the reverse.
    - `$like`, `$ilike`: a text, in which `%` is any characters and `_` one, if no `\` precedes; `$ilike` ignores case.
    - `$and`, `$or` of a list and `$not` join operators, or, in place of a name, filters.

    Args:
        wanted: The filter; None lets everything pass.

    Raises:
        QueryError: An operator is unknown, or does not take its operand.
    """
    tests = [_entry(str(name), name, expected) for name, expected in (wanted or {}).items()]
    if len(tests) == 1:
        return tests[0]
    return lambda values: all(test(values) for test in tests)


def _entry(label: str, name: Any, wanted: Any) -> _Test:
    if label in _JOINED:
        return _joined(label, wanted, matching)
    if label == "$not":
        return _inverse(matching(_mapping(label, wanted)))
    if label.startswith("$"):
        raise _unknown(label)
    test, path = _test(wanted), label.split(".")
    if len(path) == 1:
        return lambda values: test(values.get(name))
    return lambda values: test(values[name] if name in values else _at(values, path))


def _at(values: Any, path: Sequence[str]) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def _test(wanted: Any) -> _Test:
    """Return the test of a value: the operators hold, or it is equal."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            held = [_operator(str(name), operand) for name, operand in wanted.items()]
            if len(held) == 1:
                return held[0]
            return lambda value: all(test(value) for test in held)
        parts = {name: _test(part) for name, part in wanted.items()}
        return lambda value: isinstance(value, dict) and all(test(value.get(name)) for name, test in parts.items())
    if isinstance(wanted, (list, tuple)):
        elements = [_test(part) for part in wanted]
        return lambda value: (
            isinstance(value, (list, tuple))
            and len(value) == len(elements)
            and all(test(part) for part, test in zip(value, elements, strict=True))
        )
    return _compared(operator.eq, wanted)


def _operator(name: str, operand: Any) -> _Test:
    if name in _JOINED:
        return _joined(name, operand, _test)
    if name not in _OPERATORS:
        raise _unknown(name)
    return _OPERATORS[name](name, operand)


def _ordered(holds: Callable[[Any, Any], bool], name: str, operand: Any) -> _Test:
    if not isinstance(operand, (int, float, str, list, date)):
        raise QueryError(f"the filter's {name} compares numbers, texts and dates, not {operand!r}: use a function")
    return _compared(holds, operand)


def _in(name: str, operand: Any) -> _Test:
    allowed = [_test(one) for one in _list(name, operand)]
    return lambda value: any(test(one) for test in allowed for one in _each(value))


def _exists(name: str, operand: Any) -> _Test:
    if not isinstance(operand, bool):
        raise QueryError(f"the filter's {name} takes True or False, not {operand!r}")
    return lambda value: (value is not None) is operand


def _like(name: str, operand: Any, flags: int = 0) -> _Test:
    if not isinstance(operand, str):
        raise QueryError(f"the filter's {name} takes a text, not {operand!r}")
    parts = re.findall(r"\\[%_\\]|.", operand, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
    pattern = re.compile(regex, re.DOTALL | flags)
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _compared(holds: Callable[[Any, Any], bool], operand: Any) -> _Test:
    if isinstance(operand, date):
        limit = _moment(operand) if isinstance(operand, datetime) else operand
        return _held(lambda value: holds(_date_in(value, limit), limit))
    return _held(lambda value: holds(value, operand))


def _held(holds: _Test) -> _Test:
    def test(value: Any) -> bool:
        try:
            return bool(holds(value))
        except TypeError:  # a number was compared with a text, or looked into
            return False

    return test


def _date_in(value: Any, like: date) -> date | None:
    """Return the date, or the moment if `like` is one, that a text spells; None for any other value."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return _moment(moment) if isinstance(like, datetime) else moment.date()


def _moment(written: datetime) -> datetime:
    return written if written.tzinfo else written.replace(tzinfo=UTC)


def _joined(name: str, operand: Any, test_of: Callable[[Any], _Test]) -> _Test:
    parts = [test_of(_mapping(name, part)) for part in _list(name, operand)]
    join = _JOINED[name]
    return lambda value: join(test(value) for test in parts)


def _inverse(test: _Test) -> _Test:
    return lambda value: not test(value)


def _each(value: Any) -> list[Any]:
    """Return a value, and the elements of a list."""
    return [value, *value] if isinstance(value, (list, tuple)) else [value]


def _list(name: str, operand: Any) -> Sequence[Any]:
    if not isinstance(operand, (list, tuple)):
        raise QueryError(f"the filter's {name} takes a list, not {operand!r}")
    return operand


def _mapping(name: str, operand: Any) -> Mapping[str, Any]:
    if not isinstance(operand, Mapping):
        raise QueryError(f"the filter's {name} takes conditions as a dict, not {operand!r}")
    return operand


def _unknown(name: str) -> QueryError:
    return QueryError(
        f"the filter's operator {name!r} is unknown: use a function, which a vector store takes as its `filter`, or "
        "one of $eq $ne $gt $gte $lt $lte $in $nin $exists $contains $like $ilike, and $and $or $not around them"
    )


_OPERATORS: Mapping[str, Callable[[str, Any], _Test]] = {
    "$eq": lambda _, operand: _compared(operator.eq, operand),
    "$ne": lambda _, operand: _inverse(_compared(operator.eq, operand)),
    "$gt": partial(_ordered, operator.gt),
    "$gte": partial(_ordered, operator.ge),
    "$lt": partial(_ordered, operator.lt),
    "$lte": partial(_ordered, operator.le),
    "$in": _in,
    "$nin": lambda name, operand: _inverse(_in(name, operand)),
    "$not": lambda _, operand: _inverse(_test(operand)),
    "$exists": _exists,
    "$contains": lambda _, operand: _held(lambda value: operand in value),
    "$within": lambda _, operand: _held(lambda value: value in operand),
    "$like": _like,
    "$ilike": partial(_like, flags=re.IGNORECASE),
}
