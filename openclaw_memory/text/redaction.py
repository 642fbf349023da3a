"""Mask secrets before text is indexed or shown: tokens of a known form, and in conversations also assigned values.

A token of 18 characters or more keeps its first six and last four, as in OpenClaw; a shorter one, a private key and a
password in an URL are hidden. Lines stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from openclaw_memory._system import read_lines
from openclaw_memory.config.environment import should_mask_listed_secrets
from openclaw_memory.text.fence import replace_spans

_MASKED_FROM, _START_CHARS, _END_CHARS = 18, 6, 4  # OpenClaw's numbers
_HIDDEN = "***"
_MASKED = r"""(?<!\w)[^\s"'…]{6}…[^\s"'…]{4}"""
_SHORTEST_SIGN = 2  # of a token's beginning, shorter ones begin words too

# The characters of tokens; and those that are not seen in the middle of one: joiners, marks of direction and order,
# variation selectors, tags, controls, line ends that Markdown ignores, and the sign that replaces NUL.
_WRITTEN = r"A-Za-z0-9_+/=.:~%\-"
_UNSEEN = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufffd\\U000e0000-\\U000e0fff"
)


class Format(NamedTuple):
    """One format of tokens: a literal that each holds, a pattern, and whether it is only on public lists."""

    literal: str
    pattern: str
    is_listed: bool


_ROWS = list(map(str.split, read_lines(__file__, "secret_formats.txt")))
_PARTS = {row[1]: row[2] for row in _ROWS if row[0] == "part"}
FORMATS = [
    Format(row[1], re.sub("<[A-Z]+>", lambda name: _PARTS[name[0]], row[2]), row[0] == "listed")
    for row in _ROWS
    if row[0] in {"known", "listed"}
]
_PROVIDERS = "|".join(name for row in _ROWS if row[0] == "providers" for name in row[1:])
# A run must hold the mark of a format to be searched for it: few hold the first three, and few formats lack them.
_MARKS = ("_", "-", ".", "")
_BY_MARK = tuple(
    (mark, [own for own in FORMATS if next(sign for sign in _MARKS if sign in own.literal) == mark]) for mark in _MARKS
)
# No token is shorter.
_RUN = rf"[{_WRITTEN}{_UNSEEN}]{{16,}}"
# Markdown's editors write `ghp\_` for `ghp_`.
_ESCAPE = r"\\(?=[_.+=~-])"
_ESCAPED_RUN = rf"(?:[{_WRITTEN}{_UNSEEN}]|{_ESCAPE}){{16,}}"
# The same, but seen from afar: each character as a byte, which says whether it may be in a run.
_MAY_BE_IN_A_RUN = bytes(
    120 if byte >= 128 or re.match(rf"[{_WRITTEN}{_UNSEEN}?\\\\]", chr(byte)) else 32 for byte in range(256)
)
_FAR_RUN = b"x" * 16
_OTHER = rf"[^{_WRITTEN}]"
# Where a token may go on after the end of a line, and the marks of a quotation: a mix that no ordinary word has, digits
# and letters or small and capital ones side by side.
_MIXED = rf"(?:\d[{_UNSEEN}]?[A-Za-z]|[A-Za-z][{_UNSEEN}]?\d|[a-z][{_UNSEEN}]?[A-Z])"
_NEXT_LINE = rf"\n[ \t>]{{0,8}}(?=[{_WRITTEN}{_UNSEEN}]*?{_MIXED})[{_WRITTEN}{_UNSEEN}]+"
_NO_RUN = rf"[^{_WRITTEN}{_UNSEEN}]"
# What looks random whatever came before it, unlike a name with a number.
_RANDOM = r"\d[A-Za-z]+\d"
_SHORTEST_REST = 8
# No line of a token that is cut into several is longer: certificates have 64, e-mails 78, listings 120.
_LONGEST_LINE = 400

_KEY_BEGIN = "-----BEGIN "
_KEY_EDGE = r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"(?:\s+[A-Za-z0-9+/=]{16,})*(?:\s+[A-Za-z0-9+/]+=+)?"

_NAME = r"(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|token|secret|password|passwd|pwd)"
_VALUE = r"""[^\s"'`,;&)}\]\\]+"""

# A value in a note, before which a provider is named: `DATADOG_API_KEY=…`, `the Heroku token: …`.
_ASSIGNED = r"""([=:][ \t"'`]{0,4})([A-Za-z0-9_+-][A-Za-z0-9_+/-]{15,}+(?:(?!=)|={1,2}(?![A-Za-z0-9_+/=-])))"""
_SECRETS_NAME = r"""(?i)(?:key|token|secret|pass|pwd|auth|credential)[a-z0-9_ ."'`-]{0,20}$"""
_PROVIDERS_SECRET = rf"(?i)(?<![a-z])(?:{_PROVIDERS})[a-z0-9_ .-]{{0,30}}{_SECRETS_NAME.removeprefix('(?i)')}"
_LONGEST_NAME = 80

# The last group is masked.
_HEADER = (
    r"(?i)((?:authorization\s*[:=]\s*(?:bearer|basic|token)|\bbearer|\bbasic(?=\s+[^\s]{0,64}[\d=]))\s+)"
    r"([A-Za-z0-9._~+/=-]{16,})"
)
_FLAG = rf"""(?i)(--{_NAME}[ =]["']?)({_VALUE})"""
_ASSIGNMENT = rf"""(?i)((?<![:/])\b(?:[a-z0-9]{{1,32}}[_-]){{0,4}}{_NAME}=["']?)({_VALUE})"""
# `token: see above` is not a secret: after a colon, a value is one where it holds a digit.
_COLON = rf"""(?i)((?<![:/])\b(?:[a-z0-9]{{1,32}}[_-]){{0,4}}{_NAME}: ?["']?)((?=[^\s]{{0,64}}\d){_VALUE})"""

# Of these nothing is kept: a field of JSON, a constant of the environment, a password in an URL.
_FIELD = (
    r"""(?i)(?!"(?:next|page|client|request|lock)[_-]?token)"""
    rf"""("[a-z0-9_-]{{0,32}}{_NAME}"\s{{0,4}}:\s{{0,4}}")([^"]+)(?=")"""
)
_CONSTANT = rf"""(\b[A-Z0-9_]{{0,64}}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)\s?[=:]\s?["']?(?!ConvertTo-))({_VALUE})"""
_URL = r"""(://([^\s/:@]{0,64}):)([^\s/@]+)(?=@([^\s/:?#'"`)]{0,64}))"""

# What stands for a secret in documentation: a word for it, the same sign many times, a series; and what Stripe, Azure
# and JSON Web Tokens are explained with.
_PLACEHOLDER = (
    r"(?i)example|your[-_]?|placeholder|dummy|redacted|changeme|sample|(.)\1{5}|1234567890abcdef|abcdef123456|"
    r"4eC39HqLyj|Eby8vdM02xNO|eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l|eyJzb21lIjoi"
)
_PLAIN = (
    r"(?:my|the|your)?[-_]?(?:p[a@]ss(?:w[o0]r[dt]|wd|phrase)?|pwd?|secret|token|x+|\*+|(?:[\[<{$%(]|&lt;)[^\"'\n]*|.{1,3})"
    r"[\]>}]*"
)
_POWERSHELL = rf"""(?i)(\bConvertTo-SecureString\s+(?:-String\s+)?(["']))(?!{_PLAIN}\2)[^"']+(?=\2)"""
_NO_HOST = r"(?i)(?:.*\.)?(?:example|company|domain)\.(?:com|net|org)"
# What is no value in a conversation: a number, a path, a variable, a call.
_NO_VALUE = (
    r"(?i).{1,2}|\d{3}|none|null|true|false|(?:\.{1,2}|~|/(?:dev|etc|home|opt|path|run|tmp|usr|var))/.*|file:.*|"
    r"(?:\w\w-)?your[-_].*|token|key|#[\w-]*|<.*|\{.*|\$\{?\w+\}?|\*+|\.{3}|…|[a-z_][\w.]*[\[(].*"
)
# A key in PEM that no program reads: without a line of it, or with a word of documentation.
_NO_KEY = r"(?is)(?=.*[ .'\"])(?!.*[a-z0-9+/]{24}).*|.*(?:example|\.{3}|x{4}).*"
# An address up to its path, the target of a link, the name of a note: what follows leads somewhere.
_ADDRESS = r"://[^/?#]*[/?#]|\bwww\.|\]\(|\[\["
_ADDRESS_END = r"""[\s<>"'`]"""
_LONGEST_ADDRESS = 600
# There, only what a parameter is named for is a secret, and formats that are no slugs.
_PARAMETER = r"(?i)(?:[?&]t|key|token|secret|passw(?:or)?d|pwd|auth)=$"
_UNLIKE_SLUGS = ("_", "/", ":AA", "=")


def redact(text: str) -> str:
    """Return the text with masks for every token that its form gives away, and for every private key.

    Invisible characters and line ends hide no token that they are put into.
    """
    if "\n" in text:
        text = _mask_cut_tokens(text)
    is_escaped = "\\" in text and _compile(_ESCAPE).search(text)
    text, has_runs = _mask_tokens(text, _compile(_ESCAPED_RUN if is_escaped else _RUN))
    if has_runs and ("=" in text or ":" in text):  # an assigned value is a run, too
        text = _compile(_ASSIGNED).sub(_mask_provider_secret, text)
    if "@" in text and "://" in text and should_mask_listed_secrets():
        text = _compile(_URL).sub(_hide_password, text)
    if "-SecureString" in text and should_mask_listed_secrets():
        text = _compile(_POWERSHELL).sub(rf"\1{_HIDDEN}", text)
    return _mask_private_keys(text) if _KEY_BEGIN in text else text


def redact_session(text: str) -> str:
    """Mask secrets in a line of a conversation as `redact` does, and values that are assigned to a secret's name.

    Such as `password=…`, `API_KEY: …`, `"apiKey": "…"`, `--token …`, `Authorization: Bearer …` and `://user:…@host`.
    """
    text = redact(text)
    low = text.lower()
    if "bearer " in low or "basic " in low or "authorization" in low:
        text = _compile(_HEADER).sub(_mask_last, text)
    if "://" in text and "@" in text:
        text = _compile(_URL).sub(_hide_password, text)
    is_assigned = "=" in text or ":" in text or "--" in text
    if is_assigned and any(name in low for name in ("key", "token", "secret", "passw", "pwd")):
        for pattern in (_FIELD, _CONSTANT):
            text = _compile(pattern).sub(_hide_last, text)
        for pattern in (_FLAG, _ASSIGNMENT, _COLON):
            text = _compile(pattern).sub(_mask_last, text)
    return text


def redact_talk(text: str) -> str:
    """Mask secrets in each line of a conversation as `redact_session` does; lines stay where they are."""
    return "\n".join(map(redact_session, redact(text).split("\n")))


def mask_value(value: Any, mask: Callable[[str], str]) -> Any:
    """Return a copy of a value of JSON with every text, name and number as it may be shown.

    Args:
        value: The value.
        mask: Returns a text as it may be shown.
    """
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask_value(key, mask): mask_value(inner, mask) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [mask_value(inner, mask) for inner in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return masked if is_number and (masked := mask(str(value))) != str(value) else value


def mask_token(token: str) -> str:
    """Return a token by its first six and last four characters; `***` for one of less than 18."""
    return f"{token[:_START_CHARS]}…{token[-_END_CHARS:]}" if len(token) >= _MASKED_FROM else _HIDDEN


def find_masks(text: str) -> list[str]:
    """Return the masks of tokens with a known beginning; in `she said nothing…then left` is none."""
    short = ("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "sk_", "rk_")
    literals = (*short, *(own.literal for own in FORMATS if not own.is_listed and len(own.literal) > _SHORTEST_SIGN))
    return [mask for mask in _compile(_MASKED).findall(text) if mask.startswith(literals)]


def explain_masks(*texts: str) -> str | None:
    """Explain the masks of tokens in texts in a sentence, with how to see the line; None without any."""
    masks = [mask for text in texts if "…" in text for mask in find_masks(text)]
    return f"{masks[0]} is a secret, masked: to see its line, open the file in an editor" if masks else None


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _mask_tokens(text: str, run: re.Pattern[str]) -> tuple[str, bool]:
    """Return the text with the tokens in its runs masked, and whether there may be runs in it.

    Most texts have few, and they are located in bytes, which takes a tenth of the time of the pattern.
    """
    far = text.encode("ascii", "replace").translate(_MAY_BE_IN_A_RUN)
    spans: list[tuple[int, int]] = []
    at = 0
    while (start := far.find(_FAR_RUN, at)) >= 0:
        at = far.find(b" ", start)
        at = at if at >= 0 else len(text)
        spans += (span for match in run.finditer(text, start, at) for span in _find_secrets(text, *match.span()))
    return replace_spans(text, spans, _mask_lines), at > 0


def _mask_lines(secret: str) -> str:
    """Return the mask of a token, followed by as many line ends as it had."""
    return mask_token(_compile(_OTHER).sub("", secret)) + "\n" * secret.count("\n")


def _find_secrets(text: str, first: int, last: int) -> list[tuple[int, int]]:
    """Return where the tokens begin and end in a part of a text, which is one run or cut into lines."""
    run = text[first:last]
    visible = _compile(_OTHER).sub("", run)
    matches = [
        (*match.span(), literal, is_listed)
        for mark, formats in _BY_MARK
        if mark in visible
        for literal, pattern, is_listed in formats
        if literal in visible
        for match in _compile(pattern).finditer(visible)
    ]
    if not matches:
        return []
    masks_listed = should_mask_listed_secrets()
    places = [first + place for place, character in enumerate(run) if not _compile(_OTHER).match(character)]
    spans: list[tuple[int, int]] = []
    for start, end, literal, is_listed in sorted(matches):
        begin, is_hidden = places[start], masks_listed or not is_listed
        if not is_hidden or _is_placeholder(visible[start:end]) or _is_slug(text, begin, literal):
            continue
        if spans and begin < spans[-1][1]:
            begin = spans.pop()[0]
        spans.append((begin, places[end - 1] + 1))
    return spans


def _is_placeholder(token: str) -> bool:
    """Return whether a text with the form of a token is a name in small letters, or stands for one in documentation."""
    is_name = token.islower() and not any(map(str.isdigit, token))
    return is_name or _compile(_PLACEHOLDER).search(token) is not None


def _is_slug(text: str, start: int, literal: str) -> bool:
    """Return whether a token of a format is a slug: it stands in the path of an address or the target of a link."""
    if any(sign in literal for sign in _UNLIKE_SLUGS):
        return False
    before = _compile(_ADDRESS_END).split(text[max(0, start - _LONGEST_ADDRESS) : start])[-1]
    return bool(_compile(_ADDRESS).search(before)) and not _compile(_PARAMETER).search(before)


def _mask_cut_tokens(text: str) -> str:
    """Return the text with a mask for each token that goes on in the next line."""
    spans: list[tuple[int, int]] = []
    at = 0
    for line_end in _compile(_NEXT_LINE).finditer(text):
        if line_end.start() < at:
            continue
        start = _find_beginning(text, at, line_end.start())
        head = text[start : line_end.start()].rstrip()
        is_whole = any(end == start + len(head) for _, end in _find_secrets(text, start, line_end.start()))
        if is_whole and (len(line_end[0]) <= _SHORTEST_REST or not _compile(_RANDOM).search(line_end[0])):
            continue
        end = line_end.end()
        while further := _compile(_NEXT_LINE).match(text, end):
            end = further.end()
        spans += [(a, b) for a, b in _find_secrets(text, start, end) if "\n" in text[a:b]]
        at = end
    return replace_spans(text, spans, _mask_lines)


def _find_beginning(text: str, first: int, end: int) -> int:
    """Return where the run of characters of a token begins that ends at `end`."""
    start = max(first, end - _LONGEST_LINE)
    return max((match.end() for match in _compile(_NO_RUN).finditer(text, start, end)), default=start)


def _mask_provider_secret(match: re.Match[str]) -> str:
    """Return an assignment with its value masked, if a provider's name and a word for a secret precede it."""
    before = match.string[max(0, match.start() - _LONGEST_NAME) : match.start()]
    # The words for a secret come first: the names of all providers take long to search for.
    is_named = _compile(_SECRETS_NAME).search(before) and _compile(_PROVIDERS_SECRET).search(before)
    if not is_named or not _compile(_RANDOM).search(match[2]) or _is_slug(match.string, match.start(2), ""):
        return match[0]
    return match[1] + mask_token(match[2]) if should_mask_listed_secrets() else match[0]


def _mask_last(match: re.Match[str]) -> str:
    name, value = match[1].lower(), match[2]
    if _compile(_NO_VALUE).fullmatch(value):
        return match[0]
    if "passw" in name or "pwd" in name:
        return match[1] + _HIDDEN
    is_masked = len(value) == _START_CHARS + 1 + _END_CHARS and value[_START_CHARS] == "…"
    return match[1] + (value if is_masked else mask_token(value))


def _hide_last(match: re.Match[str]) -> str:
    return match[0] if _compile(_NO_VALUE).fullmatch(match[2]) else match[1] + _HIDDEN


def _hide_password(match: re.Match[str]) -> str:
    """Return the part of an address up to its host without the password, unless it is one of documentation."""
    start, user, password, host = match.groups()
    is_shown = password == user or _compile(f"(?i){_PLAIN}").fullmatch(password) or _compile(_NO_HOST).fullmatch(host)
    return match[0] if is_shown else start + _HIDDEN


def _mask_private_keys(text: str) -> str:
    """Return the text with `***` for each private key, in as many lines; one without an end goes to its last letter."""
    edges = list(_compile(_KEY_EDGE).finditer(text))
    parts: list[str] = []
    at = 0
    for edge, following in zip(edges, [*edges[1:], None], strict=False):
        if edge[1] == "END":
            continue
        is_whole = following is not None and following[1] == "END"
        body = following if is_whole else _compile(_KEY_BODY).match(text, edge.end())
        end = body.end() if body else edge.end()
        if _compile(_NO_KEY).fullmatch(text[edge.end() : following.start() if is_whole and following else end] or "."):
            continue
        parts += [text[at : edge.start()], _HIDDEN]
        at = end
        parts.append("\n" * text.count("\n", edge.start(), at))
    return "".join((*parts, text[at:]))
