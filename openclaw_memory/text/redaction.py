"""Mask secrets before text is indexed or shown: tokens known by their form; in conversations also assigned values.

A token of 18 characters or more keeps its first six and last four, as in OpenClaw; of a shorter one, a private key or
a password in an URL, nothing is kept. Lines stay where they are.
"""

from __future__ import annotations

import re
from functools import lru_cache

from openclaw_memory.config.environment import should_mask_listed_secrets
from openclaw_memory.text.secret_formats import KNOWN, LISTED, PROVIDERS

_KEPT_FROM = 18  # OpenClaw's numbers
_KEPT_START, _KEPT_END = 6, 4
_HIDDEN = "***"
_MASKED = r"""(?<!\w)[^\s"'…]{6}…[^\s"'…]{4}"""
_SHORTEST_SIGN = 2  # of a token's beginning, shorter ones begin words too

# What tokens are written with; and what is not seen in the middle of one: joiners, marks of direction and order,
# variation selectors, tags, controls, line ends that are none to Markdown, and what is read in the place of NUL.
_WRITTEN = r"A-Za-z0-9_+/=.:~%\-"
_UNSEEN = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufffd\\U000e0000-\\U000e0fff"
)
# What a run has to hold for a format to be looked for: few hold the first three, and few formats do without them.
_MARKS = ("_", "-", ".", "")
_BY_MARK = tuple(
    (
        mark,
        tuple(
            (one.literal, one.pattern, formats is LISTED)
            for formats in (KNOWN, LISTED)
            for one in formats
            if next(other for other in _MARKS if other in one.literal) == mark
        ),
    )
    for mark in _MARKS
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
# Where a token may go on after the end of a line, and the marks of a quotation: with what no ordinary word has, digits
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
_ASSIGNED = r"""([=:][ \t"'`]{0,4})([A-Za-z0-9_+=-][A-Za-z0-9_+/=-]{15,})"""
_PROVIDERS_SECRET = (
    rf"(?i)(?<![a-z])(?:{PROVIDERS})[a-z0-9_ .-]{{0,30}}(?:key|token|secret|pass|pwd|auth|credential)"
    r"""[a-z0-9_ ."'`-]{0,20}$"""
)
_LONGEST_NAME = 80

# The last group is what is masked.
_HEADER = (
    r"(?i)((?:authorization\s*[:=]\s*(?:bearer|basic|token)|\bbearer|\bbasic(?=\s+[^\s]{0,64}[\d=]))\s+)"
    r"([A-Za-z0-9._~+/=-]{16,})"
)
_FLAG = rf"""(?i)(--{_NAME}[ =]["']?)({_VALUE})"""
_ASSIGNMENT = rf"""(?i)(\b(?:[a-z0-9]{{1,32}}[_-]){{0,4}}{_NAME}=["']?)({_VALUE})"""
# `token: see above` is not a secret: after a colon, a value is one where it holds a digit.
_COLON = rf"""(?i)(\b(?:[a-z0-9]{{1,32}}[_-]){{0,4}}{_NAME}: ?["']?)((?=[^\s]{{0,64}}\d){_VALUE})"""

# Of these nothing is kept: a field of JSON, a constant of the environment, a password in an URL.
_FIELD = rf"""(?i)("[a-z0-9_-]{{0,32}}{_NAME}"\s{{0,4}}:\s{{0,4}}")([^"]+)(?=")"""
_CONSTANT = rf"""(\b[A-Z0-9_]{{0,64}}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)\s?[=:]\s?["']?)({_VALUE})"""
_URL = r"(://[^\s/:@]{0,64}:)([^\s/@]+)(?=@)"


def redact(text: str) -> str:
    """The text with every token masked that its form gives away, and every private key.

    Characters that are not seen, and line ends, hide no token that they are put into.
    """
    if "\n" in text:
        text = _without_cut_tokens(text)
    is_escaped = "\\" in text and _compiled(_ESCAPE).search(text)
    text, has_runs = _without_tokens(text, _compiled(_ESCAPED_RUN if is_escaped else _RUN))
    if has_runs and ("=" in text or ":" in text):  # what is assigned is a run, too
        text = _compiled(_ASSIGNED).sub(_masked_of_a_provider, text)
    if "@" in text and "://" in text and should_mask_listed_secrets():
        text = _compiled(_URL).sub(_hidden_last, text)
    if _KEY_BEGIN in text:
        text = _without_private_keys(text)
    return text


def redact_session(text: str) -> str:
    """What was said in a conversation, on one line: as `redact`, and without what is assigned to a secret's name.

    That is `password=…`, `API_KEY: …`, `"apiKey": "…"`, `--token …`, `Authorization: Bearer …` and `://user:…@host`.
    """
    text = redact(text)
    low = text.lower()
    if "bearer " in low or "basic " in low or "authorization" in low:
        text = _compiled(_HEADER).sub(_masked_last, text)
    if "://" in text and "@" in text:
        text = _compiled(_URL).sub(_hidden_last, text)
    is_assigned = "=" in text or ":" in text or "--" in text
    if is_assigned and any(name in low for name in ("key", "token", "secret", "passw", "pwd")):
        for pattern in (_FIELD, _CONSTANT):
            text = _compiled(pattern).sub(_hidden_last, text)
        for pattern in (_FLAG, _ASSIGNMENT, _COLON):
            text = _compiled(pattern).sub(_masked_last, text)
    return text


def redact_talk(text: str) -> str:
    """As `redact_session`, of a text of several lines, which stay what they are."""
    return "\n".join(map(redact_session, redact(text).split("\n")))


def mask_token(token: str) -> str:
    """A token by its first six and last four characters; `***` for one of less than 18."""
    return f"{token[:_KEPT_START]}…{token[-_KEPT_END:]}" if len(token) >= _KEPT_FROM else _HIDDEN


def find_masks(text: str) -> list[str]:
    """Return the masks of tokens whose beginning says what they were; in `she said nothing…then left` is none."""
    literals = tuple(one.literal for one in KNOWN if len(one.literal) > _SHORTEST_SIGN)
    return [mask for mask in _compiled(_MASKED).findall(text) if mask.startswith(literals)]


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _without_tokens(text: str, run: re.Pattern[str]) -> tuple[str, bool]:
    """The text with the tokens in its runs masked, and whether there may be runs in it.

    Most texts have few, and where these are is found in bytes, which takes a tenth of the time of the pattern.
    """
    far = text.encode("ascii", "replace").translate(_MAY_BE_IN_A_RUN)
    kept: list[str] = []
    at = 0
    while (start := far.find(_FAR_RUN, at)) >= 0:
        end = far.find(b" ", start)
        end = end if end >= 0 else len(text)
        kept += [text[at:start], run.sub(_masked_run, text[start:end])]
        at = end
    return "".join((*kept, text[at:])), bool(kept)


def _masked_run(match: re.Match[str]) -> str:
    run = match[0]
    return _with_masks(run, _secrets_in(run))


def _with_masks(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with a mask for each of the spans, followed by as many line ends as it had."""
    kept: list[str] = []
    at = 0
    for start, end in spans:
        secret = text[start:end]
        kept += [text[at:start], mask_token(_compiled(_OTHER).sub("", secret)), "\n" * secret.count("\n")]
        at = end
    return "".join((*kept, text[at:])) if spans else text


def _secrets_in(run: str) -> list[tuple[int, int]]:
    """The tokens in a text without white space, or in one that is cut into lines: where each begins and ends."""
    seen = _compiled(_OTHER).sub("", run)
    found = [
        (*match.span(), is_listed)
        for mark, formats in _BY_MARK
        if mark in seen
        for literal, pattern, is_listed in formats
        if literal in seen
        for match in _compiled(pattern).finditer(seen)
    ]
    if not found:
        return []
    masks_listed = should_mask_listed_secrets()
    spans: list[tuple[int, int]] = []
    for start, end, is_listed in sorted(found):
        if is_listed and not masks_listed:
            continue
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    if len(seen) == len(run) or not spans:
        return spans
    places = [place for place, character in enumerate(run) if not _compiled(_OTHER).match(character)]
    return [(places[start], places[end - 1] + 1) for start, end in spans]


def _without_cut_tokens(text: str) -> str:
    """The text with a mask for each token that goes on in the next line."""
    spans: list[tuple[int, int]] = []
    at = 0
    for line_end in _compiled(_NEXT_LINE).finditer(text):
        if line_end.start() < at:
            continue
        start = _beginning(text, at, line_end.start())
        head = text[start : line_end.start()]
        is_whole = any(end == len(head.rstrip()) for _, end in _secrets_in(head))
        if is_whole and (len(line_end[0]) <= _SHORTEST_REST or not _compiled(_RANDOM).search(line_end[0])):
            continue
        end = line_end.end()
        while further := _compiled(_NEXT_LINE).match(text, end):
            end = further.end()
        lines = text[start:end]
        spans += [(start + a, start + b) for a, b in _secrets_in(lines) if "\n" in lines[a:b]]
        at = end
    return _with_masks(text, spans)


def _beginning(text: str, first: int, end: int) -> int:
    """Where the run of characters of a token begins that ends at `end`."""
    start = max(first, end - _LONGEST_LINE)
    return max((match.end() for match in _compiled(_NO_RUN).finditer(text, start, end)), default=start)


def _masked_of_a_provider(match: re.Match[str]) -> str:
    """The value that a provider's name and a word for a secret stand before, masked."""
    if not _compiled(_RANDOM).search(match[2]):
        return match[0]
    before = match.string[max(0, match.start() - _LONGEST_NAME) : match.start()]
    is_one = _compiled(_PROVIDERS_SECRET).search(before) and should_mask_listed_secrets()
    return match[1] + mask_token(match[2]) if is_one else match[0]


def _masked_last(match: re.Match[str]) -> str:
    name = match[1].lower()
    if "passw" in name or "pwd" in name:
        return match[1] + _HIDDEN
    return match[1] + (match[2] if _is_masked(match[2]) else mask_token(match[2]))


def _hidden_last(match: re.Match[str]) -> str:
    return match[1] + _HIDDEN


def _is_masked(value: str) -> bool:
    return len(value) == _KEPT_START + 1 + _KEPT_END and value[_KEPT_START] == "…"


def _without_private_keys(text: str) -> str:
    """Each private key as `***`, in as many lines as it took; one whose end is missing goes as far as its letters."""
    edges = list(_compiled(_KEY_EDGE).finditer(text))
    kept: list[str] = []
    at = 0
    for edge, following in zip(edges, [*edges[1:], None], strict=False):
        if edge[1] == "END":
            continue
        kept += [text[at : edge.start()], _HIDDEN]
        is_whole = following is not None and following[1] == "END"
        body = following if is_whole else _compiled(_KEY_BODY).match(text, edge.end())
        at = body.end() if body else edge.end()
        kept.append("\n" * text.count("\n", edge.start(), at))
    return "".join((*kept, text[at:]))
