"""Find passwords that are said in plain words, in English, Dutch, German, French and Spanish.

A word for a password has to lead to them (`the wifi password is ...`, `wachtwoord: ...`, `Passwort lautet ...`), and
they have to look like one: digits, signs or capitals inside of them, quotation marks around them, or one word alone
after a colon. An ordinary word after `is` is not masked: `the password is wrong`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

Span = tuple[int, int]

# What every word for a password has: looked for first, and in bytes, since almost no text has one, and it takes least.
_STEMS = (b"pass", b"pin", b"pw", b"wacht", b"kennw", b"contrase", b"clave", b"mdp", b"ww")
_NAMES = (
    r"pass[ -]?(?:word|phrase|code)|passwort|passwoord|passwd|wachtwoord|wachtzin|kennwort"
    r"|contrase(?:\u00f1|n\u0303?)a|(?<=(?:mot|ode) de )passe|(?<=phrase de )passe"
)
# Short ones, which begin no compound; some are one only where a colon or a sign of equality follows.
_SHORT = r"pwd?|mdp|ww(?=\s?[:=])|pass(?=\s?=)|(?<=vpn )pass(?=\s?:)|(?<=wi-fi )pass(?=\s?:)|(?<=wifi )pass(?=\s?:)"
_PINS = r"pin(?:[ -]?(?:code|nummer|number))?"
# What belongs to a password and is none.
_ABOUT = r"(?![\w-]|[ ](?:manager|policy|policies|field|reset|hash|generator|prompt|length|strength)\b)"
_WORD = re.compile(
    rf"(?:(?P<word>{_NAMES}|(?<![^\W_])(?:{_SHORT}))|(?<![^\W_])(?:(?P<pin>{_PINS})|(?P<key>clave))){_ABOUT}",
    re.IGNORECASE,
)
_LEFT = 60  # characters of what a compound begins with: `Netflix-wachtwoord`, `db_password`

_SPACE = r"(?:[ \t\xa0\u202f]+(?:\n[ \t>]{0,8})?|\n[ \t>]{0,8})"
_COPULA = r"(?:is|was|are|ist|war|lautet|lautete|luidt|luidde|est|\u00e9tait|reste|es|era|sigue siendo|hei\u00dft|heet)"
_ADVERB = (
    r"(?:now|currently|still|again|just|simply|probably|called|nu|nog|weer|jetzt|nun|derzeit|noch|wieder|immer"
    r"|maintenant|d\u00e9sormais|toujours|le|el|la|ahora|todav\u00eda|actualmente)"
)
_AND = r"(?:and|but|or|und|aber|oder|maar|et|mais|pero|y)"
_RELATIVE = r",[ ](?:which|that|it|die|dat|das|es|qui|que)"
_BETWEEN = rf"(?:{_SPACE}(?!(?:{_COPULA}|{_AND})\b)[\w'\u2019&-]{{1,30}}){{0,7}}?"
_OF = (
    r"(?:of|for|to|on|at|in|van|voor|der|des|f\u00fcr|vom|von|zum|zur|im|am|auf|du|de|d['\u2019]\w+|pour|\u00e0|del"
    r"|para|en|a)"
)
_BELONGS = rf"(?:{_SPACE}{_OF}(?!\w){_BETWEEN})?"
_CLOSE = r"[*_`\"'\u201d\u00bb]{0,3}"
_ASSIGNED = re.compile(
    rf"{_CLOSE}(?P<far>{_BETWEEN})[ \t\xa0\u202f]{{0,3}}{_CLOSE}"
    rf"(?:[:=]|->|\u2192|=>|[|](?=[^|\n]+[|])){_CLOSE}{_SPACE}?",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"[?]{_SPACE}")
_SAID = re.compile(
    rf"(?:{_BELONGS}|{_RELATIVE})(?:{_SPACE}{_ADVERB})?"
    rf"(?:{_SPACE}{_COPULA}|,?{_SPACE}c['\u2019]est|['\u2019]s|,?{_SPACE}it['\u2019]s)"
    rf"(?:{_SPACE}{_ADVERB})?:?{_SPACE}",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    rf"{_BELONGS}(?:{_SPACE}[\w]{{1,20}}){{0,2}}?{_SPACE}(?:to|into|auf|zu|in|op|naar|en|\u00e0|a|por){_SPACE}",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:set|chang\w*|reset|updat\w*|rotat\w*|zet|gezet|verander\w*|gewijzigd|wijzig\w*"
    r"|(?:ge|ver)?\u00e4nder\w*|setz\w*|gesetzt|stell\w*|gestellt|met[sz]?|mis|remplac\w*|cambi\w*|pon\w*|puesto|puse)\b",
    re.IGNORECASE,
)
_NEXT = re.compile(_SPACE)
_BEFORE = re.compile(
    rf"(\S{{4,80}}){_SPACE}(?:is|was|ist|war|est|\u00e9tait|es|era){_SPACE}(?:[\w'\u2019.-]{{1,16}}{_SPACE}){{1,3}}$",
    re.IGNORECASE,
)

_QUOTED = re.compile(
    r"[*_]{0,2}(?:\"([^\"\n]{3,80})\"|`([^`\n]{3,80})`|[\u201c\u201e]([^\u201c\u201d\n]{3,80})[\u201c\u201d]"
    r"|\u00ab[ \xa0\u202f]?([^\u00bb\n]{3,80}?)[ \xa0\u202f]?\u00bb|\u00bb([^\u00ab\n]{3,80})\u00ab"
    r"|['\u2018\u201a]([^'\u2018\u2019\n]{3,80})['\u2018\u2019](?!\w))"
)
# Up to the next parameter of an address: `?password=...&page=2`.
_PLAIN = re.compile(r"[*_(\[]{0,3}((?:(?!&[a-z_]{1,20}=)[^\s|]){4,128})")
_MARKUP = "*_`\"'.,;:)]}>\u201d\u00bb"  # what stands after a password and is no part of it
_WINDOW = 200  # characters: how far from the word for it a password is looked for

# What has digits, signs or capitals and is none: dates, times, numbers with a unit, versions, addresses, paths, files,
# placeholders, and calls and variables of programs.
_ORDINARY = re.compile(
    r"(?:\d{4}-\d\d(?:-\d\d)?(?:T.*)?|\d{1,2}[:h]\d\d\w*|[\d.,/-]+|v?\d+(?:\.\d+)+\w*|\d{1,3}-?[^\W\d_A-Z]+"
    r"|\d+(?:st|nd|rd|th|er|e)"
    r"|.*://.*|[~.]{0,2}/.*|[\w.+-]+@[\w-]+\.\w+|.*\.[a-z]{2,5}\d?|<.*|[$%]?\{.*|[$%][A-Za-z_]+%?"
    r"|.*\w[(\[].*|.*\w\.[a-z_]+(?:\W.*)?"
    r"|SHA-?\d+|[A-Z]{2,4}-?\d{1,3}|.*\u2026.*|.*[*]{3}.*)",
    re.DOTALL,
)
_PRODUCTS = frozenset(
    "1password keepass keepassxc keepass2 lastpass nordpass argon2 argon2id oauth2 pbkdf2 icloud github gitlab "
    "whatsapp linkedin youtube paypal onedrive iphone office365 microsoft365 bitlocker openvpn mysql "
    "postgresql wordpress".split()
)
_SIGN = re.compile(r"[^\W\d_].*[!@#$%^&*+\u00a7\u20ac\u00a3?_].|[!@#$%^&*+\u00a7\u20ac\u00a3?].*[^\W\d_]", re.DOTALL)
_CAPITAL_INSIDE = re.compile(r"[a-z\u00df-\u00ff][A-Z\u00c0-\u00de]")
_DIGIT_OR_SIGN = re.compile(r"[\d!@#$%^&*+\u00a7\u20ac\u00a3?_]")
_MIXED = re.compile(r"\d.*[^\W\d_]|[^\W\d_].*\d", re.DOTALL)
# What every password has that is recognised, or stands behind: digits, signs, quotation marks, a colon, a capital.
_WORTH_A_LOOK = re.compile(
    r"[\d!@#$%^&*+\u00a7\u20ac\u00a3?_:=>|\u2192\"`'\u201c\u201e\u2018\u201a\u00ab\u00bb]"
    r"|[a-z\u00df-\u00ff][A-Z\u00c0-\u00de]"
)
_SHORTEST = 4
_SHORTEST_BEFORE = 12  # `abc1 is the `
_PIN = re.compile(r"[*_(`\"'\u201c\u201e\u00ab\xa0 ]{0,3}(\d{4,8})(?![\w-])")
_ALONE = re.compile(r"[ \t]{0,8}[.,;]?[ \t]{0,8}(?:[(\n].*)?$", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]{4,}")
# What is said of a password after a colon, in one word.
_NO_PASSWORD = frozenset(
    """required optional mandatory none null true false unknown expired changed wrong correct incorrect
    invalid valid string text bool bytes varchar secret hidden masked pending missing empty same weak
    strong stored private shared verplicht vereist geen onbekend verlopen gewijzigd veranderd onjuist
    fout juist geheim nodig optioneel zelfde leeg pflicht erforderlich n\u00f6tig keins keines unbekannt
    abgelaufen ge\u00e4ndert falsch richtig ung\u00fcltig g\u00fcltig vorhanden leer requis obligatoire
    aucun inconnu expir\u00e9 chang\u00e9 faux invalide valide n\u00e9cessaire vide secrets requerida
    obligatoria ninguna desconocida caducada cambiada incorrecta correcta v\u00e1lida necesaria
    vac\u00eda secreta
    """.split()
)


class _Word(NamedTuple):
    start: int
    end: int
    kind: str


class _Value(NamedTuple):
    start: int
    end: int
    is_password: bool


def plain_passwords(text: str) -> list[Span]:
    """Where the passwords begin and end that the text says in plain words, in order, in time linear in its length."""
    # One byte a character, so that places are the same.
    small = text.encode("ascii", "replace").lower()
    words = _words(text, small)
    found: list[Span] = []
    done = 0
    for at, word in enumerate(words):
        if word.start < done:  # a part of what the last one led to
            continue
        first = max(words[at - 1].end if at else 0, done, word.start - _WINDOW)
        last = min(words[at + 1].start if at + 1 < len(words) else len(text), word.end + _WINDOW)
        value = _after(text, word, first, last)
        if not (value and value.is_password):
            value = _before(text, word, first) or value
        if value:
            done = max(value.end, word.end)
            if value.is_password:
                found.append((value.start, value.end))
    return found


def _words(text: str, small: bytes) -> list[_Word]:
    """The words for a password, in order."""
    matches = (match for stem in _STEMS for at in _places(small, stem) if (match := _WORD.match(text, at)))
    return sorted({_Word(*match.span(), str(match.lastgroup)) for match in matches})


def _places(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _beginning(text: str, at: int, first: int) -> int:
    """Where the compound begins that the word at this place is the end of."""
    start = at
    while start > max(first, at - _LEFT) and (text[start - 1].isalnum() or text[start - 1] in "_-"):
        start -= 1
    return start


def _after(text: str, word: _Word, first: int, last: int) -> _Value | None:
    """What the word for a password leads to."""
    rest = text[word.end : last].strip(" \t\n>")
    if len(rest) < _SHORTEST or not _WORTH_A_LOOK.search(rest):
        return None
    if link := _ASSIGNED.match(text, word.end, last) or _ASKED.match(text, word.end, last):
        is_near = not link.groupdict().get("far")
        return _value(text, link.end(), last, word.kind, may_be_a_word=is_near and word.kind == "word")
    if link := _SAID.match(text, word.end, last):
        return _value(text, link.end(), last, word.kind)
    if (link := _CHANGED.match(text, word.end, last)) and _CHANGES.search(text, first, last):
        return _value(text, link.end(), last, word.kind)
    if (link := _NEXT.match(text, word.end, last)) and word.kind != "key":
        return _value(text, link.end(), last, word.kind, may_be_capitals=False)
    return None


def _before(text: str, word: _Word, first: int) -> _Value | None:
    """The password that the word for it follows: `hunter2 is the password`."""
    if word.start - first < _SHORTEST_BEFORE or not _DIGIT_OR_SIGN.search(text, first, word.start):
        return None
    match = _BEFORE.search(text, first, _beginning(text, word.start, first))
    value = _value(text, match.start(1), match.end(1), word.kind, may_be_capitals=False) if match else None
    return value if value and value.is_password else None


def _value(
    text: str, at: int, last: int, kind: str, *, may_be_a_word: bool = False, may_be_capitals: bool = True
) -> _Value | None:
    """What begins here, and whether that is a password."""
    if kind == "pin":
        pin = _PIN.match(text, at)
        return _Value(*pin.span(1), True) if pin else None
    if quoted := _QUOTED.match(text, at, last):
        group = quoted.lastindex or 0
        return _Value(*quoted.span(group), not _ORDINARY.fullmatch(quoted[group]))
    plain = _PLAIN.match(text, at)
    if not plain:
        return None
    value = plain[1].rstrip(_MARKUP)
    start, end = plain.start(1), plain.start(1) + len(value)
    if _looks_secret(value, may_be_capitals):
        return _Value(start, end, True)
    is_possible = may_be_a_word or (may_be_capitals and value.isdecimal())
    is_alone = is_possible and _ALONE.match(text[end : end + _LEFT].split("\n", maxsplit=1)[0])
    if not is_alone:
        return _Value(start, end, False)
    is_number = value.isdecimal() and len(value) >= _SHORTEST
    is_word = may_be_a_word and _LETTERS.fullmatch(value) and value.lower() not in _NO_PASSWORD
    return _Value(start, end, bool(is_number or is_word))


def _looks_secret(value: str, may_be_capitals: bool) -> bool:
    if len(value) < _SHORTEST:
        return False
    bare = value.rstrip("!?")
    is_odd = _DIGIT_OR_SIGN.search(bare) and (_MIXED.search(value) or _SIGN.search(bare))
    if not is_odd and not (may_be_capitals and _CAPITAL_INSIDE.search(value)):
        return False
    return bare.lower() not in _PRODUCTS and not _ORDINARY.fullmatch(bare)
