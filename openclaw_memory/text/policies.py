"""Decide what of a text may be stored and shown, by the user's ordered rules (pure).

A rule matches by a pattern, by the type, key or sensitivity of a record, or by both. Of all that match, the strictest
counts: `never-store`, then `masked`, then `allowed`, which is the default. A pattern is searched in a whole text, in
which `^` and `$` are the ends of a line, and letters are one with their accents (NFC): some systems part them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple
from unicodedata import is_normalized, normalize

from openclaw_memory.config.sections import PolicyAction, PolicyRule
from openclaw_memory.errors import PolicyError
from openclaw_memory.text.fence import without_fenced
from openclaw_memory.text.front_matter import front_matter_end, parse
from openclaw_memory.text.redaction import redact

MASK = "***"
ACTIONS: tuple[PolicyAction, ...] = ("never-store", "masked", "allowed")  # the strictest first

# What of a record's file says nothing of its value: the fields that are shown though the record is masked.
_PLAIN = frozenset(
    {"openclaw_memory", "memory_id", "user_id", "type", "key", "confidence", "sensitivity", "ttl", "version"}
    | {"last_confirmed_at", "created_at", "updated_at", "confirmed"}
)
_APART = str.maketrans("-_./", "    ")  # what parts the words of a name
_MOST_NAMES = 100_000  # whose rules are kept: a scan asks for each file again
_FIELD = re.compile(r"([a-z_]+):")
_ENDS = ("\x00", "\x1f")  # of a part of what is digested; no setting holds them
# Letters besides their own capitals that `i`, `s` and `k` match where case is ignored. To replace each in turn takes a
# tenth of the time of `str.translate`.
_FOLDED = (("\u0131", "i"), ("\u0130", "i"), ("\u017f", "s"), ("\u212a", "k"))


class About(NamedTuple):
    """What a rule may know of a record besides its text."""

    type: str
    key: str
    sensitivity: str


class Verdict(NamedTuple):
    """What is to be done with a text, and the name of the rule that says so; None for the default."""

    action: PolicyAction
    rule: str | None


class _Compiled(NamedTuple):
    """A rule, its pattern, and words of which that needs one; folded ones where it ignores case.

    `mark` is a digest of what the rule matches, whatever its name is.
    """

    rule: PolicyRule
    mark: str
    pattern: re.Pattern[str] | None
    needs: tuple[str, ...]
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class Policies:
    """Rules, compiled once; without any nothing is changed, and nothing is looked at."""

    rules: tuple[PolicyRule, ...] = ()
    digest: str = field(init=False, compare=False)
    """Changes with what the rules leave out and mask; "" without such rules."""
    _by_action: Mapping[str, tuple[_Compiled, ...]] = field(init=False, compare=False, repr=False)
    _knows_records: bool = field(init=False, compare=False, repr=False)
    _names: dict[str, str | None] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compile the rules, whose patterns the settings have checked."""
        by_action = {action: tuple(map(_compiled, self._of(action))) for action in ACTIONS}
        strict = [*by_action["never-store"], *by_action["masked"]]
        said = [_ENDS[0].join(map(str, (one.rule.action, *_conditions(one.rule)))) for one in strict]
        digest = sha256(_ENDS[1].join(sorted(said)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        object.__setattr__(self, "digest", digest if strict else "")
        object.__setattr__(self, "_by_action", by_action)
        object.__setattr__(self, "_knows_records", any(_is_of_records(rule) for rule in self.rules))

    def __bool__(self) -> bool:
        """Whether there is any rule that leaves out or masks."""
        return bool(self.digest)

    def verdict(self, text: str, about: About | None = None) -> Verdict:
        """Return the strictest action whose rule matches, and the name of the first such rule.

        Args:
            text: Any text.
            about: The record that it is of, if it is of one.
        """
        for action in ACTIONS:
            if (one := self._first(action, text, about)) is not None:
                return Verdict(action, one.name)
        return Verdict("allowed", None)

    def check(self, about: About | None, *texts: str) -> None:
        """Check that texts may be stored.

        Args:
            about: The record that they are of, if they are of one.
            texts: What is to be written.

        Raises:
            PolicyError: A rule says never to store one of them; the error names the rule, and never the text.
        """
        if not self._by_action["never-store"]:
            return
        for text in texts or ("",):
            if (rule := self._first("never-store", text, about)) is not None:
                raise PolicyError(
                    f"the rule {rule.name!r} says never to store this, and nothing was written: leave it out, or "
                    "change policies.rules in the user's settings",
                    rule=rule.name,
                )

    def rule_of_name(self, name: str) -> str | None:
        """Return the `never-store` rule by which a file of this name is left out; None for none.

        A pattern is searched in the name as it is, and with blanks for the signs that part words in names. Rules for
        records have no say.

        Args:
            name: What a person or a program chose of a path.
        """
        if name in self._names:
            return self._names[name]
        composed = _composed(name)
        texts = composed, composed.translate(_APART)
        found = next((rule.name for text in texts if (rule := self._first("never-store", text, None))), None)
        if len(self._names) >= _MOST_NAMES:
            self._names.clear()
        self._names[name] = found
        return found

    def check_name(self, name: str) -> None:
        """Check that a file of this name may be stored.

        Args:
            name: As `rule_of_name`.

        Raises:
            PolicyError: A rule says never to; the error names the rule, and never the name.
        """
        if (rule := self.rule_of_name(name)) is not None:
            raise PolicyError(
                f"the rule {rule!r} says never to store a file of this name, and nothing was written: choose another "
                "name, or change policies.rules in the user's settings",
                rule=rule,
            )

    def shown_name(self, name: str) -> str:
        """Return the name of a file that is left out with `***` for what a `never-store` rule matches."""
        rules = [one.pattern for one in self._by_action["never-store"] if one.pattern and not _is_of_records(one.rule)]
        name = _composed(name)
        spans = [
            match.span() for text in (name, name.translate(_APART)) for one in rules for match in one.finditer(text)
        ]
        shown = _with_masks(name, spans)
        return MASK if shown == name or self.rule_of_name(shown) else shown

    def check_value(self, value: Any, about: About | None = None) -> None:
        """Check every text, and every number as it is written, in a value of JSON; as `check`."""
        if self._by_action["never-store"]:
            said = (one for one in leaves(value) if isinstance(one, str | int | float) and not isinstance(one, bool))
            self.check(about, *map(str, said))

    def shown(self, text: str, about: About | None = None) -> str:
        """Return a text as it may be indexed and shown: its lines keep their numbers.

        Lines that a `never-store` rule matches are blank, what a `masked` one matches is `***`.

        Args:
            text: The text: of a whole file where rules ask for records, since its front matter says which it is.
            about: The record that it is of; that in its front matter where None.
        """
        if not self.digest:
            return text
        if (composed := _composed(text)) is text:
            return self._shown(text, about)
        if (shown := self._shown(composed, about)) == composed:
            return text
        lines = zip(text.split("\n"), composed.split("\n"), shown.split("\n"), strict=True)
        return "\n".join(line if left == seen else left for line, seen, left in lines)

    def _shown(self, text: str, about: About | None) -> str:
        if about is None and self._knows_records:
            about = about_in(text)
        masks = list(self._applying("masked", text, about))
        shown = self._without_lines(text, about)
        if any(pattern is None for pattern in masks):
            return _mask_record(shown)
        spans = [match.span() for pattern in masks if pattern is not None for match in pattern.finditer(shown)]
        # What is left may read on: `a` and `b` are next to each other where the line between them went.
        return self._without_lines(_with_masks(shown, spans), about) if spans else shown

    def storable(self, text: str) -> str:
        """Return a text with the lines blank that a `never-store` rule matches; they keep their numbers.

        Args:
            text: The text, of no record.
        """
        return self._without_lines(text, None) if self.digest else text

    def shown_value(self, value: Any, about: About | None = None) -> Any:
        """Return a copy of a value of JSON with every text, and every name, as it may be shown."""
        if isinstance(value, str):
            return self.shown(value, about)
        if isinstance(value, Mapping):
            return {self.shown(key, about): self.shown_value(inner, about) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.shown_value(inner, about) for inner in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = str(value)
            return value if (said := self.shown(written, about)) == written else said
        return value

    def left_out(self, text: str) -> str | None:
        """Return the marks of the rules that leave lines of a file out, parted by spaces; None for none.

        They are what an index keeps of a file: with `named` they become names, also of rules that were renamed since.
        """
        text = _composed(text)
        about = about_in(text) if self._knows_records else None
        folded = _Folded(text)
        marks = [one.mark for one in self._by_action["never-store"] if _matches(one, text, folded, about)]
        return " ".join(dict.fromkeys(marks)) or None

    def named(self, marks: str | None) -> list[str]:
        """Return the names of the rules that have these marks."""
        wanted = set((marks or "").split())
        return [one.rule.name for one in self._by_action["never-store"] if one.mark in wanted]

    def _of(self, action: str) -> Iterator[PolicyRule]:
        return (rule for rule in self.rules if rule.action == action)

    def _first(self, action: str, text: str, about: About | None) -> PolicyRule | None:
        text = _composed(text)
        folded = _Folded(text)
        found = (one.rule for one in self._by_action[action] if _matches(one, text, folded, about))
        return next(found, None)

    def _applying(self, action: str, text: str, about: About | None) -> Iterator[re.Pattern[str] | None]:
        """Yield the patterns of the rules that match; None for a rule that matches whatever the text is."""
        folded = _Folded(text)
        return (one.pattern for one in self._by_action[action] if _matches(one, text, folded, about))

    def _without_lines(self, text: str, about: About | None) -> str:
        """Return the text with the lines blank that may not be stored, until no rule matches what is left."""
        while True:
            spans: list[tuple[int, int]] = []
            for pattern in self._applying("never-store", text, about):
                if pattern is None:
                    return "\n" * text.count("\n")
                spans += [match.span() for match in pattern.finditer(text)]
            if not spans or (left := _blanked(text, spans)) == text:
                return text
            text = left


def _composed(text: str) -> str:
    """Return a text in NFC; the same object where it is."""
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def about_in(text: str) -> About | None:
    """Return what the front matter of a file says of the record in it; None for any other file."""
    matter = parse(text) if text.startswith("---") else None
    return None if matter is None else about_fields(matter.fields)


def about_fields(said: Mapping[str, Any]) -> About | None:
    """Return what the fields of a file say of the record in it; None if they are not those of a record.

    A sensitivity that was removed or misspelled counts as high.
    """
    if not isinstance(said.get("type"), str) or "key" not in said or "memory_id" not in said:
        return None
    sensitivity = said.get("sensitivity")
    return About(said["type"], str(said["key"]), sensitivity if sensitivity in ("low", "medium") else "high")


def indexed_text(note: str, policies: Policies) -> str:
    """Return a note without what is left out of the index: recalled text, comments, secrets, and what policies say."""
    above = front_matter_end(note)  # nothing in a document's fields may reach into its text
    about = about_in(note) if policies and above else None
    return note[:above] + redact(without_fenced(policies.shown(note[above:], about)))


class _Folded:
    """A text in lower case, made where a rule first asks for it."""

    __slots__ = ("_folded", "_text")

    def __init__(self, text: str) -> None:
        self._text, self._folded = text, ""

    def __contains__(self, word: str) -> bool:
        if not self._folded:
            text = self._text
            for letter, folded in () if text.isascii() else _FOLDED:
                text = text.replace(letter, folded)
            self._folded = text.lower()
        return word in self._folded


def _matches(one: _Compiled, text: str, folded: _Folded, about: About | None) -> bool:
    rule = one.rule
    if _is_of_records(rule) and (
        about is None
        or (rule.type is not None and rule.type != about.type)
        or (rule.key is not None and not fnmatchcase(_composed(about.key), _composed(rule.key)))
        or (rule.sensitivity is not None and rule.sensitivity != about.sensitivity)
    ):
        return False
    if one.pattern is None:
        return True
    if one.needs:
        where = folded if one.ignores_case else text
        for word in one.needs:
            if word in where:
                break
        else:
            return False
    return one.pattern.search(text) is not None


def _is_of_records(rule: PolicyRule) -> bool:
    return not (rule.type is None and rule.key is None and rule.sensitivity is None)


def _conditions(rule: PolicyRule) -> tuple[str | None, ...]:
    return rule.pattern, rule.type, rule.key, rule.sensitivity


def _compiled(rule: PolicyRule) -> _Compiled:
    mark = sha256(repr(_conditions(rule)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if rule.pattern is None:
        return _Compiled(rule, mark, None, (), ignores_case=False)
    wanted = _composed(rule.pattern)
    pattern = re.compile(wanted, re.MULTILINE)
    ignores_case = bool(pattern.flags & re.IGNORECASE)
    return _Compiled(rule, mark, pattern, _needed(wanted, ignores_case), ignores_case)


_FLAGS = re.compile(r"\(\?[aims]+\)")
_TOKEN = re.compile(
    r"\\(?P<escaped>.)|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<quantifier>[*+?]|\{\d*,?\d*\})|(?P<other>.)", re.DOTALL
)


def _needed(pattern: str, ignores_case: bool) -> tuple[str, ...]:
    """Return words of which a pattern needs one to match: the longest of each alternative; () if not plain to see.

    To look for one takes a hundredth of the time that `re` takes to search a text in vain.
    """
    body = _FLAGS.sub("", pattern, count=1) if _FLAGS.match(pattern) else pattern
    if "(?" in body.replace("(?:", "") or re.search(r"\\[xuUN0-9]", body):
        return ()
    words: list[str] = []
    runs, run, depth = [""], "", 0
    for token in chain(_TOKEN.finditer(body), [None]):
        other = token["other"] if token else "|"
        if other == "|" and not depth:
            words.append(max((*runs, run), key=len))
            runs, run = [""], ""
            continue
        escaped, quantifier = (token["escaped"], token["quantifier"]) if token else (None, None)
        literal = other if other is not None and other not in "().|^${}[]" else None
        if escaped is not None and not escaped.isalnum():
            literal = escaped
        depth += (other == "(") - (other == ")")
        if quantifier is not None and quantifier != "+":
            run = run[:-1]  # the character before it may be missing
        if literal is None or depth or (ignores_case and not literal.isascii()):
            runs.append(run)
            run = ""
        else:
            run += literal
    if not all(words):
        return ()
    return tuple(word.lower() if ignores_case else word for word in words)


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """Return the text with every line blank that a span touches."""
    kept: list[str] = []
    at = 0
    for start, end in sorted(spans):
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", max(start, end - 1))
        last = len(text) if last < 0 else last
        if last <= at and kept:
            continue
        first = max(first, at)
        kept += [text[at:first], "\n" * text.count("\n", first, last)]
        at = last
    return "".join((*kept, text[at:]))


def _with_masks(text: str, spans: list[tuple[int, int]]) -> str:
    """Return the text with `***` for each of the spans, followed by as many line ends as it had."""
    kept: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if end <= at:
            continue
        begin = max(start, at)
        mask = "" if start < at else MASK
        kept += [text[at:begin], mask, "\n" * text.count("\n", begin, end)]
        at = end
    return "".join((*kept, text[at:]))


def _mask_record(file: str) -> str:
    """Return the file of a record, or a text of it, with nothing but plain fields; its lines stay."""
    above = file[: front_matter_end(file)].count("\n")

    def line_shown(number: int, line: str) -> str:
        name = _FIELD.match(line) if number < above else None
        is_plain = not line.strip() or (number < above and line.rstrip() == "---")
        return line if is_plain or (name is not None and name[1] in _PLAIN) else MASK

    return "\n".join(line_shown(number, line) for number, line in enumerate(file.split("\n")))


NONE = Policies()


def leaves(value: Any) -> Iterator[Any]:
    """Yield the names of objects, as text, and all that is neither an object nor an array, in the order of the value.

    Args:
        value: What JSON can hold.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value
