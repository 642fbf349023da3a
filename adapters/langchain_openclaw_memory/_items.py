"""An item of a LangGraph store as a Markdown file: where it lies, its front matter, and the body that is searched.

Front matter: `namespace`, `key`, `value`, `created_at`, `updated_at`, and `text_at` where the body is a part of the
value. Each item lies at the one path that its namespace and key lead to; a copy of its file elsewhere is no item.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from langgraph.store.base import Item, get_text_at_path, tokenize_path

from openclaw_memory.errors import QueryError

_LOG = logging.getLogger(__name__)

FOLDER = "memory"
WHOLE = "$"  # LangGraph's name for the whole value among the fields to search

# What vector stores add lies in this folder of `memory/`.
_TAKEN_FOLDER = "notes"
# The same file on every disk: those that ignore case, and those that compose or decompose letters, included.
_PLAIN_NAME = re.compile(r"[a-z0-9_-]{1,80}")
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: names of devices, with any extension.
_WINDOWS_DEVICE = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
_SHOWN_OF_A_NAME = 40  # letters; at most 4 bytes each, with mark, digest and suffix below the 255 bytes of a file name
# Names of fields that add nothing to what their text says.
_NAMELESS = frozenset({"content", "data", "memory", "text"})


def path_of(namespace: Sequence[str], key: str) -> str:
    """The file of an item, `memory/<namespace>/<key>.md`; names that are no safe file names get a digest."""
    return f"{folder_of(namespace)}/{_file_name(key)}.md"


def folder_of(namespace: Sequence[str]) -> str:
    """The folder below which all items of a namespace, and of those that begin with it, lie."""
    names = [_file_name(label) for label in namespace]
    if names and names[0] == _TAKEN_FOLDER:
        names[0] = _marked(names[0])
    return "/".join((FOLDER, *names))


def _file_name(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) and not _WINDOWS_DEVICE.fullmatch(name)
    return name if is_plain else _marked(name)


def _marked(name: str) -> str:
    """What is readable of a name, then `~`, which no plain name has, and 64 bits of the SHA-256 of its UTF-8."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name))
    return f"{'-'.join(words)[:_SHOWN_OF_A_NAME]}~{digest}"


def json_value(value: Any, where: str = "the value") -> Any:
    """`value` as JSON keeps it: tuples are lists, mappings are dicts.

    Raises:
        QueryError: something in it is not JSON, or is text that is not Unicode.
    """
    if isinstance(value, str):
        return checked_text(value, where)
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise QueryError(f"{where} has the key {name!r}, and JSON has only strings: write {str(name)!r}")
        return {
            checked_text(name, f"a key of {where}"): json_value(part, f"{where}[{name!r}]")
            for name, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [json_value(part, f"{where}[{number}]") for number, part in enumerate(value)]
    raise QueryError(f"{where} is {value!r}, which is not JSON: put a string, a number, a list or a dict in its place")


def checked_text(text: str, where: str) -> str:
    """`text`, if it can be written to a file.

    Raises:
        QueryError: it holds a lone surrogate.
    """
    if _shown(text) != text.replace("\0", ""):
        raise QueryError(f"{where} is {text!r}, which is not Unicode: take the lone surrogate out")
    return text


def file_of(item: Item, paths: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Front matter and body of an item, of which what lies at `paths` can be found by a search.

    Where that is one text, the body is this text, and is the only place where it stands: who edits it in an editor
    changes the value. Else the body lists what can be found, and the `value` of the front matter is the truth.
    """
    fields: dict[str, Any] = {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
    }
    texts = list(dict.fromkeys(_texts(item.value, paths)))
    if len(texts) == 1 and texts[0].is_body:
        fields["value"] = _with(item.value, texts[0].keys, None)
        return fields | {"text_at": list(texts[0].keys)}, texts[0].text
    return fields, "\n".join(map(_line, texts))


def item_in(path: str, fields: Mapping[str, Any], text: str) -> Item | None:
    """The item that a file holds; None where the file is something else, or where its front matter was damaged."""
    try:
        namespace, key = tuple(fields["namespace"]), fields["key"]
        if unicodedata.normalize("NFC", path) != path_of(namespace, key):
            return None
    except (KeyError, TypeError, AttributeError):  # a document of another kind
        return None
    try:
        value = {**fields["value"]}
        if keys := fields.get("text_at"):
            # Editors save other ends of lines, and blank lines at the end: a text that is a body has none of them.
            value = _with(value, keys, "\n".join(text.strip().splitlines()))
        created_at, updated_at = (_moment(fields[name]) for name in ("created_at", "updated_at"))
    except (KeyError, TypeError, ValueError):
        _LOG.warning("%s is passed over: mend its front matter, where `value` is a JSON object on one line", path)
        return None
    return Item(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)


def _moment(written: str) -> datetime:
    """A point in time; who edits one without its zone means the local time."""
    return datetime.fromisoformat(written).astimezone(UTC)


class _Text(NamedTuple):
    """A text of a value: the path that was asked for, and the keys that lead to it where they are only keys."""

    label: str
    text: str
    keys: tuple[str, ...] = ()
    is_body: bool = False


def _texts(value: dict[str, Any], paths: Sequence[str]) -> Iterator[_Text]:
    for path in paths:
        if path == WHOLE:
            for keys, leaf in _leaves(value, ()):
                is_body = isinstance(leaf, str) and keys[-1] in _NAMELESS and _at(value, keys) == leaf
                yield _Text(".".join(keys), str(leaf), keys, is_body and _comes_back(leaf))
            continue
        keys = tuple(tokenize_path(path))
        found = get_text_at_path(value, list(keys))
        leaf = _at(value, keys)
        is_body = isinstance(leaf, str) and found == [leaf] and _comes_back(leaf)
        for text in found:
            yield _Text(path, text, keys, is_body)


def _leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What is neither list nor dict, with the keys that lead there; the elements of a list go by the list's name."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, (*keys, name))
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, keys)
    elif value is not None:
        yield keys, value


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _with(value: dict[str, Any], keys: Sequence[str], leaf: str | None) -> dict[str, Any]:
    """A copy of `value` with `leaf` where `keys` lead; its keys keep their order."""
    first, *rest = keys
    return {**value, first: _with(value[first], rest, leaf) if rest else leaf}


def _comes_back(text: str) -> bool:
    """Whether a text is the same after an editor, or any other program that reads lines, has saved the file."""
    return text.strip() == text != "" and text.splitlines() == text.split("\n") and _shown(text) == text


def _line(text: _Text) -> str:
    label = " ".join(text.label.split())
    return _shown(f"- {label}: " + "\n  ".join(text.text.splitlines()))


def _shown(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
