"""Secrets are masked, and what only looks like one is not."""

import re
from importlib import metadata
from pathlib import Path

import pytest
import secret_samples
from cpu_time import least_seconds
from hypothesis import given
from hypothesis import strategies as st
from secret_samples import HARMLESS, HEX, MIXED, UPPER

from openclaw_memory.text import redaction
from openclaw_memory.text.redaction import FORMATS, mask_token, redact, redact_session

TOKENS = {**secret_samples.KNOWN, **secret_samples.LISTED}


@pytest.mark.fault(33)
@pytest.mark.parametrize("around", ["{}", "use {} now", '"{}"', "({}).", "key={}\n"])
def test_a_token_known_by_its_prefix_is_masked(around):
    for name, token in TOKENS.items():
        text = around.format(token)
        for safe in (redact(text), redact_session(text)):
            assert token not in safe, name
            assert token[8:-5] not in safe, name


@pytest.mark.fault(33)
def test_every_pattern_has_a_token_that_only_it_masks():
    for one in FORMATS:
        assert any(one.literal in token and re.search(one.pattern, token) for token in TOKENS.values()), one


@pytest.mark.parametrize("text", secret_samples.NAMED.values(), ids=secret_samples.NAMED)
def test_a_token_without_a_form_is_masked_behind_the_name_of_its_provider(text):
    value = re.split("[=:] ?", text)[-1].strip("'\" ")
    assert value not in redact(text)
    assert value[8:-5] not in redact(text)


def test_a_password_in_an_address_is_hidden():
    assert redact("postgres://ana:s3cret@db.example/x") == "postgres://ana:***@db.example/x"


@pytest.mark.fault(53)
@pytest.mark.parametrize("off", ["off", "0", "False", "no"])
def test_what_only_the_lists_know_is_masked_unless_that_is_switched_off(off, monkeypatch):
    texts = [*secret_samples.LISTED.values(), *secret_samples.NAMED.values(), "https://ana:s3cret@x.example"]
    monkeypatch.setenv("OPENCLAW_MEMORY_LISTED_SECRETS", off)
    # A bot's token of Mapbox holds what looks like a JSON Web Token, and so on.
    assert sum(redact(text) == text for text in texts) >= len(texts) - 3
    assert all(redact(text) != text for text in secret_samples.KNOWN.values())
    monkeypatch.delenv("OPENCLAW_MEMORY_LISTED_SECRETS")
    assert all(redact(text) != text for text in texts)


SLUG = HEX[:32]
LINKS_AND_DOCUMENTATION = [
    f"https://www.notion.so/acme/Technical-Roadmap-{SLUG}",
    f"https://www.notion.so/acme/My-task-{SLUG}?pvs=4",
    f"https://medium.com/acme/sk-{SLUG}",
    f"https://x.example/?next=/final-{SLUG}&id=al-{MIXED[:43]}",
    f"[report](risk/pa-{MIXED[:43]}.md)",
    f"[[sk-{SLUG}]] and [Password Managers](#password-managers)",
    f"the file final-report-task-{SLUG}.md, my-key-{SLUG}.md",
    f"![](https://images.example/2.png?jwt=eyJhbGciOiJIUzI1NiJ9.{MIXED[:40]}.{MIXED[:43]})",
    f"https://s3.example/a?X-Amz-Credential=AKIA{UPPER[:16]}%2Faws4_request",
    "AKIAIOSFODNN7EXAMPLE, sk-your-key-here-1234567890, ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxx, sk-1234567890abcdef1234567890",
    "npm_config_registry_of_the_environment, github_pat_how_to_create_one, hf_hubdownloadwithprogress",
    "postgres://user:password@db.internal/x, http://app:app@localhost, https://<user>:<password>@host",
    "ftp://ana:s3cret@ftp.example.com",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    '$password = ConvertTo-SecureString "P@ssw0rd" -AsPlainText',
    "MUST_CHANGE_PASSWORD = 1 and PASSWD=../../etc/passwd",
    'api_key=os.environ["KEY"], password=${DB_PASSWORD}, secret=None, "nextToken": "abcdef"',
]


@pytest.mark.fault(33)
@pytest.mark.parametrize("text", [*HARMLESS, *LINKS_AND_DOCUMENTATION])
def test_what_is_no_secret_stays(text):
    assert redact(text) == text
    assert redact_session(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [row.split("\t") for row in Path(__file__).with_name("masked.tsv").read_text("utf-8").splitlines()],
)
def test_what_is_assigned_to_the_name_of_a_secret_is_masked_in_talk(text, safe):
    assert redact_session(text) == safe


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (f"https://x.example/?api_key=sk-{MIXED[:30]}", "https://x.example/?api_key=sk-aB3…7zaB"),
        (f"https://api.example/bot123456789:AA{MIXED[:33]}/getMe", "https://api.example/bot123456…B3dE/getMe"),
        (f"https://ghp_{MIXED[:36]}@github.com/acme", "https://ghp_aB…E6gH@github.com/acme"),
        ('$password = ConvertTo-SecureString "Hunter2X!"', '$password = ConvertTo-SecureString "***"'),
        ("$PASSWORD = ConvertTo-SecureString -String 'Hunter2X!'", "$PASSWORD = ConvertTo-SecureString -String '***'"),
    ],
)
def test_the_value_is_masked_and_not_what_leads_to_it(text, safe):
    assert redact(text) == redact_session(text) == safe


BODY = f"{HEX}\n{MIXED[:64]}\nDEF01w=="
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (f"one\n{KEY}\ntwo", "one\n***\n\n\n\n\ntwo"),
        (f"{KEY}\n{KEY}", "***\n\n\n\n\n***\n\n\n\n"),
        (f"{KEY[:120]} and on\n{KEY}", "***\n\n and on\n***\n\n\n\n"),
        (f"{KEY[:-30]}\nand on", "***\n\n\n\nand on"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nxx\n-----END PGP PRIVATE KEY BLOCK-----", "***\n\n"),
        ("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",) * 2,
    ],
)
def test_a_private_key_is_hidden_and_the_lines_stay(text, safe):
    assert redact(text) == safe
    assert redact(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(("token", "safe"), [("x" * 17, "***"), ("a" * 6 + "x" * 8 + "b" * 4, "aaaaaa…bbbb")])
def test_a_long_token_keeps_its_ends(token, safe):
    assert mask_token(token) == safe


secrets = st.sampled_from(
    [*TOKENS.values(), *HARMLESS, KEY, "password=", "API_KEY: ", "--token ", '"secret":"', "Bearer "]
)


@given(st.lists(st.one_of(secrets, st.text(max_size=6))).map(" ".join))
def test_what_is_masked_stays_as_it_is_and_no_line_moves(text):
    for mask in (redact, redact_session):
        safe = mask(text)
        assert mask(safe) == safe
        assert safe.count("\n") == text.count("\n") or mask is redact_session


PIECES = [
    *(one.literal for one in FORMATS), *[*TOKENS.values()][::5], *secret_samples.NAMED.values(),
    "password=", "a_", "A", "://a:", "-----BEGIN PRIVATE KEY-----", '"token":"', "Bearer ", "--token ", "sk-sk-",
    "eyJaaaaaaaaaaa.", "1", "basic ", "key_", "token: ", "a-", "sk-1a", "aask-1a\n", "ghp_1a\n", "\n1a", "\u200b", "k\u200b",
    "a1\n> ", "aws key ", "aws key=1a1a", "eyJ", "eyJhbGciO", "M1.", "=", ":", "= ", "sl.", "gl", "x" * 399 + "1a\n",
]  # fmt: skip


# Seconds of a processor for 100,000 characters.
BAR = 0.1
SLOWER = 2  # on a machine half as fast
LOOKED_FOR = (
    "_RUN", "_ESCAPED_RUN", "_ESCAPE", "_NEXT_LINE", "_ASSIGNED", "_URL", "_KEY_EDGE", "_HEADER", "_FLAG", "_ASSIGNMENT",
    "_COLON", "_FIELD", "_POWERSHELL", "_CONSTANT", "_MASKED",
)  # fmt: skip


def seconds(mask, text):
    """Processor time; a first time compiles patterns."""
    return least_seconds(lambda: mask(text), enough=BAR * SLOWER)


def patterns_of_masking():
    """Each pattern that is looked for in a whole text, by what names it."""
    own = {name: value for name, value in vars(redaction).items() if name in LOOKED_FOR}
    assert len(own) == len(LOOKED_FOR)
    return {**own, **{one.pattern: one.pattern for one in FORMATS}}


@pytest.mark.fault(15)
@pytest.mark.nightly
def test_no_pattern_takes_long_by_itself():
    texts = [((piece * 100_000)[:100_000]) for piece in PIECES]
    slowest = (0.0, "", "")
    for name, pattern in patterns_of_masking().items():
        compiled = re.compile(pattern)
        for text, piece in zip(texts, PIECES, strict=True):
            took = least_seconds(lambda: [None for _ in compiled.finditer(text)], enough=BAR * SLOWER)  # noqa: B023
            slowest = max(slowest, (took, name, piece[:40]))
    print(f"at most {slowest[0]:.3f} s for 100,000 characters, of {slowest[1]!r} in {slowest[2]!r}")
    assert slowest[0] <= BAR * SLOWER


@pytest.mark.fault(15)
@pytest.mark.parametrize("size", [3_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_no_text_takes_long(size):
    worst, worst_of_talk = (0.0, ""), (0.0, "")
    for piece in PIECES:
        text = (piece * size)[:size]
        for whole in (text, f"x.{'a1' * 20} {text}.", f"{text}{TOKENS['github']}"):
            worst = max(worst, (seconds(redact, whole), piece[:40]))
        whole = f"token key bearer basic :// @ {text}"
        worst_of_talk = max(worst_of_talk, (seconds(redact_session, whole), piece[:40]))
    print(f"at most {worst[0]:.3f} s for {size:,} characters ({worst[1]!r}), in talk {worst_of_talk}")
    assert worst[0] <= BAR * SLOWER
    assert worst_of_talk[0] <= BAR * 8  # eight more patterns, for what is assigned


def test_nothing_of_what_packages_say_of_themselves_is_masked():
    texts = {one.name: one.read_text("METADATA") or "" for one in metadata.distributions()}
    assert len(texts) > 20
    assert [name for name, text in texts.items() if redact(text) != text] == []
