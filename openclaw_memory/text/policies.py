"""Decide which parts of a text may be stored and shown, by the user's rules (pure).

A rule matches by a pattern, by the type, key or sensitivity of a record, or by both. The strictest rule that matches
counts: `never-store`, then `masked`, then `allowed`, which is the default. A pattern is searched in a whole text, in
which `^` and `$` are the ends of a line, and letters are composed with their accents (NFC).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple
from unicodedata import is_normalized, normalize

from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.errors import PolicyError
from openclaw_memory.text.fence import strip_fenced
from openclaw_memory.text.front_matter import measure_front_matter, parse
from openclaw_memory.text.redaction import mask_value, redact

MASK = "***"
_Span = tuple[int, int]

# Fields of a record that are shown though the record is masked: they hold nothing of its value.
_PLAIN = frozenset(
    {"openclaw_memory", "memory_id", "user_id", "type", "key", "confidence", "sensitivity", "ttl", "version"}
    | {"last_confirmed_at", "created_at", "updated_at", "confirmed"}
)
_FIELD = re.compile(r"([a-z_]+):")
# A URI that holds its data, at least some dozens of characters, which may go on in lines below; a shape in inline SVG.
_DATA = re.compile(
    r"(\bdata:[\w.+-]*(?:\\?/[\w.+*-]+)?(?:;[\w.+-]+(?:=[\w.+-]*)?)*,|<(?:path|poly\w+)\b[^<>]*?\s(?:d|points)=[\"'](?![<%]))"
    r"(?:<svg(?:(?!data:)[^\n])*?</svg>|%3Csvg(?:(?!data:)[^\n])*?%3C/svg%3E"
    r"|(?:[\w+/=%.~!*$&-]|\\[/nr]){64,}"
    r"(?:\s*\n[ \t>]*[\w+/=%]{40,}(?=\s*(?:[)\"'>]|$)))*(?:\s*\n[ \t>]*[\w+/]+={1,2})?"
    r"|[-+.,\w\s]{64,}+(?=[\"']))",
    re.IGNORECASE | re.MULTILINE,
)
_SEPARATORS = str.maketrans("-_./", "    ")  # between the words of a file name


class About(NamedTuple):
    """The properties of a record that a rule can ask for."""

    type: str
    key: str
    sensitivity: str


class _Rule(NamedTuple):
    """A rule of the settings with its pattern compiled."""

    rule: PolicyRule
    pattern: re.Pattern[str] | None

    @property
    def is_for_records(self) -> bool:
        return not (self.rule.type is None and self.rule.key is None and self.rule.sensitivity is None)

    def is_match(self, text: str, about: About | None) -> bool:
        """Return whether the rule applies to a text, composed, of a record or of none."""
        rule = self.rule
        if self.is_for_records and (
            about is None
            or rule.type not in (None, about.type)
            or rule.sensitivity not in (None, about.sensitivity)
            or (rule.key is not None and not fnmatchcase(_compose(about.key), _compose(rule.key)))
        ):
            return False
        return self.pattern is None or self.pattern.search(text) is not None


class Policies:
    """Rules, compiled once. Without any, all texts stay as they are.

    Attributes:
        digest: Changes with the rules that leave out or mask; "" without such rules.
    """

    def __init__(self, rules: Iterable[PolicyRule] = ()) -> None:
        """Compile the rules; the settings have checked their patterns.

        Args:
            rules: The rules.
        """
        compiled = [
            _Rule(rule, None if rule.pattern is None else re.compile(_compose(rule.pattern), re.MULTILINE))
            for rule in rules
        ]
        self._never = [rule for rule in compiled if rule.rule.action == "never-store"]
        self._masked = [rule for rule in compiled if rule.rule.action == "masked"]
        self._asks_for_records = any(rule.is_for_records for rule in compiled)
        described = sorted(repr(rule.rule) for rule in (*self._never, *self._masked))
        self.digest = sha256(repr(described).encode("utf-8", "replace")).hexdigest()[:16] if described else ""

    def __bool__(self) -> bool:
        """Return whether any rule leaves out or masks."""
        return bool(self.digest)

    def check(self, about: About | None, *texts: str) -> None:
        """Check that texts may be stored.

        Args:
            about: The record that they belong to; None if they belong to none.
            texts: The texts to be written.

        Raises:
            PolicyError: A rule says never to store one of them; the error names the rule, not the text.
        """
        for text in (texts or ("",)) if self._never else ():
            if (rule := self._find_never(text, about)) is not None:
                raise _make_error(rule, "this", "leave it out")

    def check_value(self, value: Any, about: About | None = None) -> None:
        """Check every text, and every number as it is written, in a value of JSON, as `check` does.

        Args:
            value: The value.
            about: The record that it belongs to; None if it belongs to none.

        Raises:
            PolicyError: A rule says never to store a text in it.
        """
        if self._never:
            leaves = (leaf for leaf in iterate_leaves(value) if isinstance(leaf, str | int | float))
            self.check(about, *(str(leaf) for leaf in leaves if not isinstance(leaf, bool)))

    def check_name(self, name: str) -> None:
        """Check that a file of this name may be stored.

        Raises:
            PolicyError: A rule says never to; the error names the rule, not the file.
        """
        if (rule := self.find_name_rule(name)) is not None:
            raise _make_error(rule, "a file of this name", "choose another name")

    def find_name_rule(self, name: str) -> str | None:
        """Return the `never-store` rule that leaves a file of this name out, or None.

        A pattern is searched in the name as it is, and with blanks between its words. Rules for records do not count.
        """
        name = _compose(name)
        rules = (self._find_never(text, None) for text in (name, name.translate(_SEPARATORS)))
        return next(filter(None, rules), None)

    def mask_name(self, name: str) -> str:
        """Return the name of a file that is left out with `***` for the parts that a `never-store` rule matches."""
        patterns = [rule.pattern for rule in self._never if rule.pattern and not rule.is_for_records]
        name = _compose(name)
        variants = (name, name.translate(_SEPARATORS))
        masked = _mask_spans(name, [span for text in variants for span in _find_spans(patterns, text)])
        return MASK if masked == name or self.find_name_rule(masked) else masked

    def mask(self, text: str, about: About | None = None) -> str:
        """Return a text as it may be indexed and shown; its lines keep their numbers.

        Lines that a `never-store` rule matches are blank, matches of a `masked` rule are `***`.

        Args:
            text: The text; if it is a whole file, its front matter tells which record it is.
            about: The record that it belongs to; that of its front matter where None.
        """
        if not self.digest:
            return text
        if (composed := _compose(text)) is text:
            return self._mask(text, about)
        if (masked := self._mask(composed, about)) == composed:
            return text
        lines = zip(text.split("\n"), composed.split("\n"), masked.split("\n"), strict=True)
        return "\n".join(line if after == before else after for line, before, after in lines)

    def mask_value(self, value: Any, about: About | None = None) -> Any:
        """Return a copy of a value of JSON with every text, name and number as it may be shown.

        Args:
            value: The value.
            about: The record that it belongs to; None if it belongs to none.
        """
        return mask_value(value, partial(self.mask, about=about))

    def list_matching_rules(self, text: str) -> str | None:
        """List the names of the rules that leave lines of a file out, quoted and separated by commas, or None."""
        text = _compose(text)
        about = parse_about(text) if self._asks_for_records else None
        return ", ".join(repr(rule.rule.name) for rule in self._never if rule.is_match(text, about)) or None

    def _find_never(self, text: str, about: About | None) -> str | None:
        text = _compose(text)
        return next((rule.rule.name for rule in self._never if rule.is_match(text, about)), None)

    def _mask(self, text: str, about: About | None) -> str:
        if about is None and self._asks_for_records:
            about = parse_about(text)
        patterns = [rule.pattern for rule in self._masked if rule.is_match(text, about)]
        left = self.hide_unstorable(text, about)
        if None in patterns:
            return _mask_record(left)
        spans = _find_spans(patterns, left)
        # What a mask leaves may read on, and match again.
        return self.hide_unstorable(_mask_spans(left, spans), about) if spans else left

    def hide_unstorable(self, text: str, about: About | None = None) -> str:
        """Return the text with the lines blank that may not be stored, until no rule matches the remainder.

        Args:
            text: The text; its lines keep their numbers.
            about: The record that it belongs to; None if it belongs to none.
        """
        while True:
            patterns = [rule.pattern for rule in self._never if rule.is_match(text, about)]
            if None in patterns:
                return "\n" * text.count("\n")
            blanked = _clear_spans(text, _find_spans(patterns, text))
            if blanked == text:
                return text
            text = blanked


NONE = Policies()


def _make_error(rule: str, thing: str, remedy: str) -> PolicyError:
    refusal = f"the rule {rule!r} says never to store {thing}, and nothing was written"
    return PolicyError(f"{refusal}: {remedy}, or change policies in the user's settings", rule=rule)


def parse_about(text: str) -> About | None:
    """Return the properties of the record in a file, from its front matter, or None for any other file."""
    matter = parse(text) if text.startswith("---") else None
    return None if matter is None else get_about(matter.fields)


def get_about(fields: Mapping[str, Any]) -> About | None:
    """Return the properties of the record with these fields, or None if they belong to no record.

    A sensitivity that was removed or misspelled counts as high.
    """
    if not isinstance(fields.get("type"), str) or "key" not in fields or "memory_id" not in fields:
        return None
    sensitivity = fields.get("sensitivity")
    return About(fields["type"], str(fields["key"]), sensitivity if sensitivity in ("low", "medium") else "high")


def mask_note(note: str, policies: Policies) -> str:
    """Return a note as it is indexed: without recalled text, comments, secrets, and lines that policies leave out."""
    above = measure_front_matter(note)  # nothing in a document's fields may reach into its text
    about = parse_about(note) if policies and above else None
    return note[:above] + redact(shorten_data(strip_fenced(policies.mask(note[above:], about))))


def shorten_data(text: str) -> str:
    """Return a text with `…` in place of the data of images: in URIs, and the shapes of SVG; its lines stay."""
    if not any(mark in text.lower() for mark in ("data:", "<svg")):
        return text
    return _DATA.sub(lambda match: f"{match[1]}…" + "\n" * match[0].count("\n", len(match[1])), text)


def iterate_leaves(value: Any) -> Iterator[Any]:
    """Yield the names of objects, as text, and all that is neither an object nor an array, in their order."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from iterate_leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from iterate_leaves(inner)
    else:
        yield value


def _compose(text: str) -> str:
    """Return a text in NFC; the same object where it is."""
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def _find_spans(patterns: Iterable[re.Pattern[str] | None], text: str) -> list[_Span]:
    return sorted(match.span() for pattern in patterns if pattern for match in pattern.finditer(text))


def _clear_spans(text: str, spans: Iterable[_Span]) -> str:
    """Return the text with every line blank that one of the sorted spans touches."""
    touched: set[int] = set()
    number = at = 0
    for start, end in spans:
        number, at = number + text.count("\n", at, start), start
        touched.update(range(number, number + text.count("\n", start, max(start, end - 1)) + 1))
    if not touched:
        return text
    return "\n".join("" if number in touched else line for number, line in enumerate(text.split("\n")))


def _mask_spans(text: str, spans: Iterable[_Span]) -> str:
    """Return the text with `***` for each of the spans, followed by as many line ends as it had."""
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if end > at:
            begin, mask = max(start, at), MASK if start >= at else ""
            parts += [text[at:begin], mask, "\n" * text.count("\n", begin, end)]
            at = end
    return "".join((*parts, text[at:]))


def _mask_record(file: str) -> str:
    """Return the file of a record, or a part, with nothing but plain fields; its lines stay."""
    above = file[: measure_front_matter(file)].count("\n")

    def is_plain(number: int, line: str) -> bool:
        if not line.strip():
            return True
        name = _FIELD.match(line)
        return number < above and (line.rstrip() == "---" or (name is not None and name[1] in _PLAIN))

    return "\n".join(line if is_plain(at, line) else MASK for at, line in enumerate(file.split("\n")))
