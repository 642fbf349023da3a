"""Read and write the front matter of a document: fields as JSON, one a line, above its text (pure).

Such a file is `---`, `openclaw_memory: 1`, a line `name: JSON` for each field, `---`, the text, and a line feed. Other
programs read it as YAML, and simple YAML that they or people write there is read back: in a third of the time of
libyaml, field by field where one is damaged, and without dates and octal numbers that nobody meant. Front matter is not
memory: it is not cut, embedded or indexed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import normalize
from uuid import UUID

from openclaw_memory.errors import InvalidInputError

VERSION = 1
MAX_BLOCK = 64 * 1024  # characters of a value that people wrote over several lines; each level copies it
MAX_DEPTH = 64  # of values in values: deeper ones could not be read again everywhere

# The field that identifies the vector that came with a document, and its keys.
EMBEDDING, MODEL, KEY = "embedding", "model", "key"
PART_OF = "part_of"  # the field that names the whole that the document is a part of, such as the file of a node

_OPENING = re.compile(r"---\r?\nopenclaw_memory:[^\n]*(?:\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_VERSION = re.compile(rf"---\r?\nopenclaw_memory: *{VERSION}\s*(?:\n|\Z)")
_NAME = re.compile(r"""(?!openclaw_memory)[^\s"'#:\[{&*!|>%@`-][^\s#:]*(?: [^\s#:]+)*""")
# Lines as `render` writes them, by which they are recognised if nothing else separates them from the text.
_WRITTEN = re.compile(r"(?:[a-z_]+: (?:[\[{\"].*|-?\d[\d.eE+-]*|true|false|null)\r?(?:\n|\Z))*+")
# YAML as people write it: a name, plain or in quotation marks, and the value behind the colon.
_FIELD = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'#:\[{&*!|>%@`-][^:]*+)[ \t]*+:(?:[ \t]+(.*)|)""")
_OWN_OPENING = re.compile(r"---[ \t]*\r?\n")
_FLOW_LIST = re.compile(r"([A-Za-z_]+)[ \t]*:[ \t]*\[([^\[\]{}]*)\][ \t]*(?:#.*)?")  # [a, b], which is not JSON
_PROPERTY = re.compile(r"(?m)^(?:- )?(title|alias)::[ \t]+(.+)$")  # of a page of Logseq
_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_MERGE = re.compile(r"<{7}(?: |$)|={7}$|>{7}(?: |$)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_HEX = re.compile("[0-9a-f]{64}")
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None}
# Ends of lines to YAML, or marks that editors take out, which JSON would keep.
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


class FrontMatter(NamedTuple):
    """The fields and the text of a document; `damage` describes the parts that cannot be read."""

    fields: dict[str, Any]
    text: str
    damage: tuple[str, ...] = ()


class Embedding(NamedTuple):
    """The vector that came with a document: its model, its dimensions, and its key in the index."""

    model: str
    dims: int
    key: str

    @property
    def identity(self) -> str:
        """The name under which a store has it: vectors of one model but other dimensions are never compared."""
        return f"{self.model}#{self.dims}"


def get_embedding(file: str, fields: Mapping[str, Any]) -> Embedding | None:
    """Return the vector that came with a document, or None; without a readable key its key is a digest of the file."""
    embedding = fields.get(EMBEDDING)
    if not isinstance(embedding, dict) or not embedding.get(MODEL):
        return None
    dims, key = embedding.get("dims"), str(embedding.get(KEY, ""))
    key = key if _HEX.fullmatch(key) else sha256(file.encode("utf-8", "surrogatepass")).hexdigest()
    return Embedding(str(embedding[MODEL]), dims if isinstance(dims, int) else 0, key)


def measure_front_matter(text: str) -> int:
    """Return how many characters of a file precede the text of its document; 0 if no program wrote it."""
    opening = _OPENING.match(text) if text.startswith("---") else None
    if opening is None:
        return 0
    closing = _CLOSING.search(text, opening.end())
    # Without a closing line, the text begins below the lines that only a program writes.
    above = closing or _WRITTEN.match(text, opening.end())
    return above.end() if above else opening.end()


def render(fields: Mapping[str, Any], text: str) -> str:
    """Return the file of a document.

    Args:
        fields: Its fields, whose names are plain words, and whose values are JSON.
        text: Its text.

    Raises:
        InvalidInputError: A name could not be read again, or a value is not JSON: the message says where in the fields.
    """
    if wrong := [name for name in fields if not _NAME.fullmatch(name)]:
        raise InvalidInputError(f"{wrong[0]!r} cannot name a field: use letters, and not what this library uses")
    lines = [f"{name}: {_to_json(value, name)}\n" for name, value in fields.items()]
    return f"---\nopenclaw_memory: {VERSION}\n{''.join(lines)}---\n{text}\n"


def parse(file: str) -> FrontMatter | None:
    """Return the fields and text of a file as `render` writes it; None for any other file.

    A file that begins like one is read as one whatever happened to it since: parts that cannot be read are left out of
    the fields and described in `damage`. The last line feed is not part of the text, and may be missing, as some
    editors leave it. Simple YAML is read too: unquoted strings, and mappings and lists in blocks.
    """
    opening = _VERSION.match(file) if file.startswith("---") else None
    if opening is None:
        return None
    end = measure_front_matter(file)
    above = file[opening.end() : end]
    closing = _CLOSING.search(above)
    lines = _split(above[: closing.start() if closing else None])
    fields, unread = _parse_table(lines)
    damage = [
        f"line {number + 3} {'is a mark of a merge' if _MERGE.match(lines[number]) else 'cannot be read'}"
        for number in unread
    ]
    if closing is None:
        damage.append("the line `---` between fields and text is missing")
    return FrontMatter(fields, file[end:].removesuffix("\n"), tuple(damage))


def parse_own_fields(file: str) -> dict[str, Any]:
    """Return the fields above a note that a person wrote, by names in lower case, as far as they are simple YAML.

    There are none without a line `---` at its beginning and another one below, or in a document.
    """
    if not _OWN_OPENING.match(file) or _OPENING.match(file):
        return {}
    head, start = file[:MAX_BLOCK], file.index("\n") + 1
    closing = _CLOSING.search(head, start)
    if closing is None:
        return {}
    lines = _split(head[start : closing.start()])
    fields, unread = _parse_table(lines)
    for match in filter(None, (_FLOW_LIST.fullmatch(lines[at]) for at in unread)):
        fields[match[1]] = [item.strip().strip("\"'") for item in match[2].split(",")]
    return {name.lower(): value for name, value in fields.items()}


def list_names(file: str) -> list[str]:
    """Return the names of a note besides that of its file: the title and the aliases above its text.

    Args:
        file: All of the file; of a page of Logseq, they are properties: `alias:: Anna, Ann`.
    """
    fields = parse_own_fields(file) or dict(_PROPERTY.findall(file[:MAX_BLOCK].partition("\n\n")[0]))
    names = [fields.get("title")]
    for value in map(fields.get, ("alias", "aliases")):
        names += value if isinstance(value, list) else str(value or "").split(",")
    return [text for name in names if (text := str(name or "").strip(" []"))]


def split_link(text: str) -> list[str]:
    """Return the names in a wikilink, `[[Note#Heading|shown]]`, without the heading; any other text is one name."""
    link = _LINK.fullmatch(text.strip())
    return [part.partition("#")[0].strip() for part in link[1].split("|")] if link else [text.strip()]


def fold_name(name: str) -> str:
    """Return the name of a note as names are compared."""
    return normalize("NFC", name).casefold()


def _split(block: str) -> list[str]:
    return [line.rstrip("\r") for line in block.split("\n")]


def _parse_table(lines: Sequence[str], depth: int = 0) -> tuple[dict[str, Any], list[int]]:
    """Return the fields that lines hold, and the numbers, from 0, of the fields that cannot be read."""
    fields: dict[str, Any] = {}
    unread: list[int] = []
    starts = [at for at, line in enumerate(lines) if line.strip() and line[0] not in " \t#" and not _is_item(line)]
    if any(line.strip() and not line.startswith("#") for line in lines[: starts[0] if starts else None]):
        unread.append(0)
    for start, stop in pairwise([*starts, len(lines)]):
        match = _FIELD.fullmatch(lines[start])
        inside = [line for line in lines[start + 1 : stop] if line.strip() and not line.lstrip().startswith("#")]
        try:
            value = (match[2] or "").strip() if match else ""
            if match is None or (value and inside):  # a value that goes on in the lines below it
                raise ValueError(lines[start])
            fields[match[1].strip().strip("\"'")] = _parse_value(value) if value else _parse_block(inside, depth + 1)
        except (ValueError, RecursionError):
            unread.append(start)
    return fields, unread


def _parse_block(lines: Sequence[str], depth: int) -> Any:
    """Return the mapping or the list of plain values in indented lines; None for no lines.

    Raises:
        ValueError: They hold neither.
    """
    if not lines:
        return None
    if depth > MAX_DEPTH or sum(map(len, lines)) > MAX_BLOCK:
        raise ValueError(lines[0])
    indent = min(len(line) - len(line.lstrip(" ")) for line in lines)
    inner = [line[indent:] for line in lines]
    if all(map(_is_item, inner)):
        return [_parse_value(line[1:].strip()) for line in inner]
    fields, unread = _parse_table(inner, depth)
    if unread:
        raise ValueError(inner[unread[0]])
    return fields


def _is_item(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _parse_value(text: str) -> Any:
    """Return a value on one line: JSON, or a plain or quoted string of YAML.

    Raises:
        ValueError: It is neither.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        plain = _COMMENT.sub("", text).strip()
    if plain.startswith("'") and plain.endswith("'") and len(plain) > 1:
        return plain[1:-1].replace("''", "'")
    if not plain or plain.lower() in _CONSTANTS:
        return _CONSTANTS[plain.lower() or "~"]
    return json.loads(plain) if plain[0] in "[{\"'" or _NUMBER.fullmatch(plain) else plain


def _to_json(value: Any, name: str) -> str:
    _check_json(value, name, 0)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_encode)
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{name} holds text that is not Unicode: remove the lone surrogate") from error
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be written as JSON ({error}): turn it into text") from error
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _encode(value: date | UUID) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _check_json(value: Any, name: str, depth: int) -> None:
    """Raise InvalidInputError if a value, called `name`, is not JSON, with the way to the nested part."""
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"{name} is nested deeper than {MAX_DEPTH} levels: make it flatter")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidInputError(f"{name} has the key {key!r}, which is not a string, as keys of JSON are")
            _check_json(inner, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check_json(inner, f"{name}[{index}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{name} is {value}, which JSON does not know: leave it out, or use None")
    elif value is not None and not isinstance(value, str | int | float | date | UUID):
        kind = type(value).__name__
        raise InvalidInputError(f"{name} is of type {kind}, not JSON: turn it into text, a number, a list or a dict")
