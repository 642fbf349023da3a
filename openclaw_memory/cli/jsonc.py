"""Change one value in the text of a JSON file that may have comments, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r"""(?P<skip>(?:\s|//[^\n]*|/\*.*?\*/)+)
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
      | (?P<mark>[{}\[\],:])
      | (?P<bare>[^\s{}\[\],:"/]+)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class Node:
    """A value and its span in the text; `parts` are its members by key, or its items by number."""

    value: Any
    start: int
    end: int
    parts: dict[str | int, Node] = field(default_factory=dict)


def read(text: str) -> Node:
    """Return the value of a text, with comments and trailing commas as editors allow them.

    Raises:
        ValueError: It is something else; says where.
    """
    tokens = _Tokens(text)
    if tokens.kind == "end":
        raise ValueError("it is empty")
    node = _value(tokens)
    if tokens.kind != "end":
        raise tokens.wrong()
    return node


def with_value(text: str, path: Sequence[str | int], value: Any) -> str:
    """Return a text with a value set; what is missing on the way is made, objects for names, a list for a number.

    What is new is put before what is there. A number that is the length of a list adds an item to it.

    Args:
        text: The text; an empty one is an empty object.
        path: The keys down to the value.
        value: The value, as JSON.

    Raises:
        ValueError: The text is no JSON, or something on the way is neither an object nor a list, as its key wants.
    """
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    node = root = read(text)
    depth = 0
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict if isinstance(key, str) else list):
            at = ".".join(map(str, path[:depth])) or "the whole"
            raise ValueError(f"{at} is no {'object' if isinstance(key, str) else 'list'}")
        if key not in node.parts:
            break
        node = node.parts[key]
    else:
        new = f"{text[: node.start]}{_written(text, node, value)}{text[node.end :]}"
        return mark + _checked(root.value, new, path, value)
    for missing in reversed(path[depth + 1 :]):
        value = {missing: value} if isinstance(missing, str) else [value]
    inner = _indent(text, node)
    end = _line_end(text)
    name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else ""
    after = "," if node.parts else f"{end}{_margin(text, node.start)}"
    rest = text[node.start + 1 :]
    if not node.parts:  # of an empty object nothing is left between the braces but comments
        rest = rest.lstrip() if not text[node.start + 1 : node.end - 1].strip() else rest
    written = _dumped(value, inner, end)
    new = f"{text[: node.start + 1]}{end}{inner}{name}{written}{after}{rest}"
    return mark + _checked(root.value, new, path[: depth + 1], value)


def _checked(before: Any, new: str, path: Sequence[str | int], value: Any) -> str:
    """Return the new text, if it says what the old one said, and the value."""
    wanted = deepcopy(before)
    holder = wanted
    for key in path[:-1]:
        holder = holder[key]
    _set(holder, path[-1], value)
    if read(new).value != wanted:
        raise ValueError("it cannot be changed without a change of something else")
    return new


def _set(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, list) and key == len(holder):
        holder.insert(0, value)
    else:
        holder[key] = value


def _written(text: str, node: Node, value: Any) -> str:
    return _dumped(value, _margin(text, node.start), _line_end(text))


def _dumped(value: Any, margin: str, end: str) -> str:
    unit = "\t" if "\t" in margin else "  "
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{end}{margin}".join(lines)


def _indent(text: str, node: Node) -> str:
    """Return the margin of what is in an object or list: that of its first part, or a level more than its own."""
    for part in node.parts.values():
        margin = _margin(text, part.start)
        if "\n" in text[node.start : part.start]:
            return margin
    margin = _margin(text, node.start)
    return margin + ("\t" if "\t" in margin else "  ")


def _margin(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


class _Tokens:
    """The tokens of a text, one after another: `kind`, `text` and `start` are those of the present one."""

    def __init__(self, text: str) -> None:
        self._whole, self._found = text, _found(text)
        self.kind, self.text, self.start, self.end = "", "", 0, 0
        self.step()

    def step(self) -> None:
        self.kind, self.text, self.start, self.end = next(self._found)

    def is_at(self, mark: str) -> bool:
        return self.kind == "mark" and self.text == mark

    def take(self, mark: str) -> bool:
        there = self.is_at(mark)
        if there:
            self.step()
        return there

    def wrong(self) -> ValueError:
        line = self._whole.count("\n", 0, self.start) + 1
        return ValueError(f"it is no JSON at line {line}: {self.text[:20] or 'the end'!r} is not expected there")


def _found(text: str) -> Iterator[tuple[str, str, int, int]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            yield "wrong", text[at : at + 20], at, at
            return
        at = found.end()
        if found.lastgroup != "skip":
            yield str(found.lastgroup), found[0], found.start(), at
    while True:
        yield "end", "", len(text), len(text)


def _value(tokens: _Tokens) -> Node:
    kind, text, start = tokens.kind, tokens.text, tokens.start
    if kind in {"string", "bare"}:
        try:
            node = Node(json.loads(text), start, tokens.end)
        except ValueError:
            raise tokens.wrong() from None
        tokens.step()
        return node
    if tokens.take("{"):
        return _collected(tokens, start, "}")
    if tokens.take("["):
        return _collected(tokens, start, "]")
    raise tokens.wrong()


def _collected(tokens: _Tokens, start: int, closing: str) -> Node:
    parts: dict[str | int, Node] = {}
    while not tokens.is_at(closing):
        key: str | int = len(parts)
        if closing == "}":
            if tokens.kind != "string":
                raise tokens.wrong()
            key = json.loads(tokens.text)
            tokens.step()
            if not tokens.take(":"):
                raise tokens.wrong()
        parts[key] = _value(tokens)
        if not tokens.take(",") and not tokens.is_at(closing):
            raise tokens.wrong()
    end = tokens.end
    tokens.step()
    values: Mapping[str | int, Any] = {key: part.value for key, part in parts.items()}
    return Node(dict(values) if closing == "}" else [*values.values()], start, end, parts)
