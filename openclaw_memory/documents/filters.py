"""Filter documents by metadata: plain data with operators and dotted names, as frameworks' filters become it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import Any, TypeAlias
from uuid import UUID

from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document
from openclaw_memory.types.conditions import DOCUMENT, OWN, PART_OF, FileRange, Metadata, classify
from openclaw_memory.types.files import parse_citation
from openclaw_memory.workspace.document_cache import make_key, split_key
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER

_Test: TypeAlias = Callable[[Any], bool]

_BELOW = f"{DOCUMENTS_FOLDER}/"
_NOWHERE = "/"  # the path of no file

_JOINS: Mapping[str, Callable[[Iterable[bool]], bool]] = {"$and": all, "$or": any}


class DocumentFilter:
    """A filter of documents by metadata, ids, wholes and tests, which must all hold.

    Called with a document, it returns whether this one passes. In a large memory the filter costs less than a function
    that does the same: the index knows most metadata, all ids, and the wholes that documents are a part of.
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
            metadata: The filter, as `compile_filter` takes it; None lets everything pass.
            tests: Functions of a document.
            ids: Only documents with these ids, or lines with these citations.
            parts_of: Only documents that are a part of these, or lines of the files at these paths.
            folder: Only documents below this folder, `memory/notes/`.

        Raises:
            QueryError: As `compile_filter`.
        """
        self._matches, self.tests = compile_filter(metadata), tuple(tests)
        self._ids = None if ids is None else frozenset(ids)
        self._parts_of = None if parts_of is None else frozenset(parts_of)
        self._folder = folder
        self._indexed = None if metadata is None else _index_filter(metadata, self._matches)
        # For tests, and for metadata that the index does not have.
        self.reads_documents = bool(self.tests) or metadata is not None

    def narrow(self, collection: str) -> ChunkScope | None:
        """Return the chunks that documents which pass can have, or None if these may be all.

        Args:
            collection: The collection that is searched, "" for none.
        """
        scope = ChunkScope(collection, self._indexed, self._ids, self._parts_of, self._folder)
        return None if scope == ChunkScope("") else scope

    def __call__(self, document: Document) -> bool:
        return (
            (self._ids is None or document.id in self._ids)
            and (self._parts_of is None or document.part_of in self._parts_of)
            and document.path.startswith(self._folder)
            and self._matches(document.metadata)
            and all(test(document) for test in self.tests)
        )


@dataclass(frozen=True)
class ChunkScope:
    """A filter of chunks: those that a document of a collection can have if it passes a filter. Equal for equal ones.

    A chunk passes if the index does not know enough of its document.
    """

    collection: str
    metadata: IndexedFilter | None = None
    ids: frozenset[str] | None = None
    parts_of: frozenset[str] | None = None
    folder: str = ""
    is_of_people: bool = False

    def __call__(self, path: str, metadata: Metadata) -> bool:
        if not path.startswith(self.folder) or (self.is_of_people and path.startswith(_BELOW)):
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
        places = (parse_citation(doc_id) for doc_id in self.ids or ())
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
class IndexedFilter:
    """A filter of the metadata that the index keeps of a chunk; equal for equal filters."""

    text: str
    names: tuple[str, ...] = field(compare=False)
    matches: Callable[[Metadata], bool] = field(compare=False)

    def __call__(self, path: str, metadata: Metadata) -> bool:
        # Elsewhere files are of people, and the fields above their text are not in the index. None: it is not kept.
        is_unknown = not path.startswith(_BELOW) or any(metadata.get(name, ...) is None for name in self.names)
        return is_unknown or self.matches(metadata)


def _index_filter(conditions: Mapping[str, Any], matches: _Test) -> IndexedFilter | None:
    """Return a filter for the index; None if it uses names that no index keeps."""
    names = list(_iterate_names(conditions))
    if not all(classify(name) == "text" and not name.startswith(OWN) for name in names):
        return None
    names += [name.partition(".")[0] for name in names]
    return IndexedFilter(repr(conditions), tuple(dict.fromkeys(names)), matches)


def _iterate_names(conditions: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the names of metadata in a filter."""
    for name, operand in conditions.items():
        if name == "$not":
            yield from _iterate_names(operand)
        elif name in _JOINS:
            for part in operand:
                yield from _iterate_names(part)
        else:
            yield name


def compile_filter(conditions: Mapping[str, Any] | None) -> Callable[[Mapping[str, Any]], bool]:
    r"""Return a function that tells whether values by name, such as metadata, pass a filter.

    All of its entries must hold. An entry is a name with a condition for its value: an equal value, equal entries of a
    dict, or operators. The name `a.b` means the entry `b` of the dict `a`, unless there is a value of that very name.
    A missing value is like None.

    - `$eq $ne $gt $gte $lt $lte`: numbers are compared with numbers, texts with texts in the order of their characters,
      and a `date` or `datetime` with the one that a text spells in ISO 8601 (UTC if it names no zone). Values that
      cannot be compared do not match.
    - `$in`, `$nin`: one of a list; of a value that is a list, any of its elements.
    - `$exists`: true for any value but None.
    - `$contains`: an element of a list, or a part of a text; `$within` is the reverse.
    - `$like`, `$ilike`: a text, in which `%` is any characters and `_` one, if no `\` precedes; `$ilike` ignores case.
    - `$and`, `$or` of a list and `$not` join operators, or, in place of a name, filters.

    Args:
        conditions: The filter; None lets everything pass.

    Raises:
        QueryError: An operator is unknown, or does not take its operand.
    """
    tests = [_compile_entry(str(name), name, expected) for name, expected in (conditions or {}).items()]
    return tests[0] if len(tests) == 1 else lambda values: all(test(values) for test in tests)


def _compile_entry(label: str, name: Any, expected: Any) -> _Test:
    if label in _JOINS:
        return _join(label, expected, compile_filter)
    if label == "$not":
        return _reject(compile_filter(_require(label, expected, Mapping, "conditions as a dict")))
    if label.startswith("$"):
        raise _make_error(label)
    test, path = _compile_value(expected), label.split(".")
    if len(path) == 1:
        return lambda values: test(values.get(name))
    return lambda values: test(values[name] if name in values else _get_inner(values, path))


def _get_inner(values: Any, path: Sequence[str]) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def _compile_value(expected: Any) -> _Test:
    """Return the test of a value: the operators hold, or it is equal."""
    if isinstance(expected, Mapping):
        if any(str(name).startswith("$") for name in expected):
            tests = [_compile_operator(str(name), operand) for name, operand in expected.items()]
            return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)
        parts = {name: _compile_value(part) for name, part in expected.items()}
        return lambda value: isinstance(value, dict) and all(test(value.get(name)) for name, test in parts.items())
    if isinstance(expected, (list, tuple)):
        elements = [_compile_value(part) for part in expected]
        return lambda value: (
            isinstance(value, (list, tuple))
            and len(value) == len(elements)
            and all(test(part) for part, test in zip(value, elements, strict=True))
        )
    return _compare(operator.eq, expected)


def _compile_operator(name: str, operand: Any) -> _Test:
    if name in _JOINS:
        return _join(name, operand, _compile_value)
    if name not in _OPERATORS:
        raise _make_error(name)
    return _OPERATORS[name](name, operand)


def _order(holds: Callable[[Any, Any], bool], name: str, operand: Any) -> _Test:
    if not isinstance(operand, (int, float, str, list, date)):
        raise QueryError(f"the filter's {name} compares numbers, texts and dates, not {operand!r}: use a function")
    return _compare(holds, operand)


def _match_any(name: str, operand: Any) -> _Test:
    tests = [_compile_value(part) for part in _require(name, operand, (list, tuple), "a list")]
    return lambda value: any(
        test(part) for test in tests for part in ([value, *value] if isinstance(value, (list, tuple)) else [value])
    )


def _check_existence(name: str, operand: Any) -> _Test:
    _require(name, operand, bool, "True or False")
    return lambda value: (value is not None) is operand


def _match_pattern(name: str, operand: Any, flags: int = 0) -> _Test:
    parts = re.findall(r"\\[%_\\]|.", _require(name, operand, str, "a text"), re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
    pattern = re.compile(regex, re.DOTALL | flags)
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _compare(holds: Callable[[Any, Any], bool], operand: Any) -> _Test:
    operand = str(operand) if isinstance(operand, UUID) else operand
    if isinstance(operand, date):
        limit = _add_zone(operand) if isinstance(operand, datetime) else operand
        return _try(lambda value: holds(_parse_date(value, limit), limit))
    return _try(lambda value: holds(value, operand))


def _try(holds: _Test) -> _Test:
    def test(value: Any) -> bool:
        try:
            return bool(holds(value))
        except TypeError:  # a number was compared with a text, or looked into
            return False

    return test


def _parse_date(value: Any, like: date) -> date | None:
    """Return the date, or the moment if `like` is one, that a text spells; None for any other value."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return _add_zone(moment) if isinstance(like, datetime) else moment.date()


def _add_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _join(name: str, operand: Any, compile_part: Callable[[Any], _Test]) -> _Test:
    parts = _require(name, operand, (list, tuple), "a list")
    tests = [compile_part(_require(name, part, Mapping, "conditions as a dict")) for part in parts]
    join = _JOINS[name]
    return lambda value: join(test(value) for test in tests)


def _reject(test: _Test) -> _Test:
    return lambda value: not test(value)


def _require(name: str, operand: Any, kind: Any, description: str) -> Any:
    """Return the operand of an operator; raise QueryError if it is not of the kind that this takes."""
    if not isinstance(operand, kind):
        raise QueryError(f"the filter's {name} takes {description}, not {operand!r}")
    return operand


def _make_error(name: str) -> QueryError:
    return QueryError(
        f"the filter's operator {name!r} is unknown: use a function, which a vector store takes as its `filter`, or "
        "one of $eq $ne $gt $gte $lt $lte $in $nin $exists $contains $like $ilike, and $and $or $not around them"
    )


_OPERATORS: Mapping[str, Callable[[str, Any], _Test]] = {
    "$eq": lambda _, operand: _compare(operator.eq, operand),
    "$ne": lambda _, operand: _reject(_compare(operator.eq, operand)),
    "$gt": partial(_order, operator.gt),
    "$gte": partial(_order, operator.ge),
    "$lt": partial(_order, operator.lt),
    "$lte": partial(_order, operator.le),
    "$in": _match_any,
    "$nin": lambda name, operand: _reject(_match_any(name, operand)),
    "$not": lambda _, operand: _reject(_compile_value(operand)),
    "$exists": _check_existence,
    "$contains": lambda _, operand: _try(lambda value: operand in value),
    "$within": lambda _, operand: _try(lambda value: value in operand),
    "$like": _match_pattern,
    "$ilike": partial(_match_pattern, flags=re.IGNORECASE),
}
