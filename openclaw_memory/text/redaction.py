"""Mask secrets before text is indexed or shown: tokens known by their prefix; in conversations also assigned values.

A token of 18 characters or more keeps its first six and last four, as in OpenClaw; of a shorter one, a private key or
a password in an URL nothing is kept. Lines stay where they are. A password in plain words is not recognised.
"""

from __future__ import annotations

import re
from functools import lru_cache

_KEPT_FROM = 18  # OpenClaw's numbers
_KEPT_START, _KEPT_END = 6, 4
_HIDDEN = "***"

# The patterns are typed from the providers' documentation, and linear. Each is behind two gates, which cost next to
# nothing: what some character of the token is followed by, and a word that the token holds.
_TOKENS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        r"_[A-Za-z0-9_+/=-]{16}",
        (
            ("k_", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),  # Stripe
            ("whsec_", r"\bwhsec_[A-Za-z0-9+/=]{16,}"),
            ("gh", r"\bgh[oprsu]_[A-Za-z0-9]{20,}"),  # GitHub
            ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
            ("hf_", r"\bhf_[A-Za-z0-9]{20,}"),  # Hugging Face
            ("gsk_", r"\bgsk_[A-Za-z0-9]{20,}"),  # Groq
            ("r8_", r"\br8_[A-Za-z0-9]{20,}"),  # Replicate
            ("lsv2_", r"\blsv2_(?:pt|sk)_[a-f0-9_]{20,}"),  # LangSmith
            ("npm_", r"\bnpm_[A-Za-z0-9]{20,}"),
            ("rubygems_", r"\brubygems_[a-f0-9]{20,}"),
            ("dckr_pat_", r"\bdckr_pat_[A-Za-z0-9_-]{20,}"),
            ("_v1_", r"\bdo[opr]_v1_[a-f0-9]{20,}"),  # DigitalOcean
            ("shp", r"\bshp(?:at|ca|pa|ss)_[A-Za-z0-9]{20,}"),  # Shopify
            ("lin_api_", r"\blin_api_[A-Za-z0-9]{20,}"),  # Linear
            ("ntn_", r"\bntn_[A-Za-z0-9]{20,}"),  # Notion
            ("figd_", r"\bfigd_[A-Za-z0-9_-]{20,}"),  # Figma
            ("sbp_", r"\bsbp_[a-f0-9]{20,}"),  # Supabase
            ("sb_secret_", r"\bsb_secret_[A-Za-z0-9_-]{16,}"),
            ("glsa_", r"\bglsa_[A-Za-z0-9_]{20,}"),  # Grafana
        ),
    ),
    (
        r"-[A-Za-z0-9_-]{10}",
        (
            ("sk-", r"\bsk-(?=[\w-]{0,64}\d)[A-Za-z0-9_-]{16,}"),  # OpenAI, Anthropic, DeepSeek, OpenRouter
            ("glpat-", r"\bglpat-[A-Za-z0-9_-]{18,}"),  # GitLab
            ("xox", r"\bxox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),  # Slack
            ("xapp-", r"\bxapp-[A-Za-z0-9-]{10,}"),
            ("GOCSPX-", r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
            ("xai-", r"\bxai-[A-Za-z0-9]{20,}"),
            ("pplx-", r"\bpplx-[A-Za-z0-9]{20,}"),
            ("tvly-", r"\btvly-[A-Za-z0-9-]{20,}"),  # Tavily
            ("nvapi-", r"\bnvapi-[A-Za-z0-9_-]{20,}"),
            ("pypi-", r"\bpypi-[A-Za-z0-9_-]{30,}"),
            ("PMAK-", r"\bPMAK-[a-f0-9-]{20,}"),  # Postman
            ("AGE-SECRET-KEY-1", r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}"),
        ),
    ),
    (
        r"\.[A-Za-z0-9_-]{16}",
        (
            ("ya29.", r"\bya29\.[A-Za-z0-9_-]{20,}"),
            ("SG.", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),  # SendGrid
            ("hvs.", r"\bhvs\.[A-Za-z0-9_-]{20,}"),  # Vault
            ("eyJ", r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]{5,})?"),  # JSON Web Tokens
        ),
    ),
    (
        "",
        (
            ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
            ("AIza", r"\bAIza[A-Za-z0-9_-]{30,}"),  # Google
            ("AKIA", r"\bAKIA[A-Z0-9]{16}\b"),  # AWS
            ("ASIA", r"\bASIA[A-Z0-9]{16}\b"),
            ("SK", r"\bSK[0-9a-f]{32}\b"),  # Twilio
            (":AA", r"\b\d{6,12}:AA[A-Za-z0-9_-]{30,}"),  # Telegram's bots
            ("dapi", r"\bdapi[a-f0-9]{32}\b"),  # Databricks
            ("ATATT3", r"\bATATT3[A-Za-z0-9_=-]{20,}"),  # Atlassian
        ),
    ),
)

_KEY_BEGIN = "-----BEGIN "
_KEY_EDGE = r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"(?:\s+[A-Za-z0-9+/=]{16,})*(?:\s+[A-Za-z0-9+/]+=+)?"

_NAME = r"(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|token|secret|password|passwd|pwd)"
_VALUE = r"""[^\s"'`,;&)}\]\\]+"""

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
    """The text with every token masked that its prefix gives away, and every private key."""
    for gate, tokens in _TOKENS:
        if gate and not _compiled(gate).search(text):
            continue
        for word, pattern in tokens:
            if word in text:
                text = _compiled(pattern).sub(_masked_whole, text)
    return _without_private_keys(text) if _KEY_BEGIN in text else text


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


def masked(token: str) -> str:
    """A token by its first six and last four characters; `***` for one of less than 18."""
    return f"{token[:_KEPT_START]}…{token[-_KEPT_END:]}" if len(token) >= _KEPT_FROM else _HIDDEN


@lru_cache(maxsize=128)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _masked_whole(match: re.Match[str]) -> str:
    return masked(match[0])


def _masked_last(match: re.Match[str]) -> str:
    return match[1] + (match[2] if _is_masked(match[2]) else masked(match[2]))


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
