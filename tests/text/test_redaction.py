"""Secrets are masked, and what only looks like one is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.text.redaction import _TOKENS, masked, redact, redact_session

HEX = "0123456789abcdef" * 4
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z" * 3
UPPER = "A1B2C3D4E5F6G7H8" * 3

# As the providers' documentation shows them; none was ever valid.
TOKENS = {
    "openai": f"sk-proj-{MIXED[:48]}",
    "anthropic": f"sk-ant-api03-{MIXED[:60]}",
    "stripe": f"sk_live_{MIXED[:24]}",
    "stripe test": f"rk_test_{MIXED[:24]}",
    "stripe hook": f"whsec_{MIXED[:32]}",
    "github": f"ghp_{MIXED[:36]}",
    "github app": f"ghs_{MIXED[:36]}",
    "github oauth": f"gho_{MIXED[:36]}",
    "github user": f"ghu_{MIXED[:36]}",
    "github refresh": f"ghr_{MIXED[:36]}",
    "github fine": f"github_pat_{MIXED[:22]}_{MIXED[:58]}",
    "gitlab": f"glpat-{MIXED[:20]}",
    "slack": f"xoxb-123456789012-{MIXED[:24]}",
    "slack app": f"xapp-1-A0123-{MIXED[:24]}",
    "slack hook": f"https://hooks.slack.com/services/T0001/B0001/{MIXED[:24]}",
    "google": f"AIza{MIXED[:35]}",
    "google oauth": f"ya29.{MIXED[:40]}",
    "google client": f"GOCSPX-{MIXED[:28]}",
    "aws": f"AKIA{UPPER[:16]}",
    "aws session": f"ASIA{UPPER[:16]}",
    "hugging face": f"hf_{MIXED[:34]}",
    "groq": f"gsk_{MIXED[:52]}",
    "xai": f"xai-{MIXED[:60]}",
    "perplexity": f"pplx-{MIXED[:48]}",
    "replicate": f"r8_{MIXED[:37]}",
    "tavily": f"tvly-{MIXED[:32]}",
    "nvidia": f"nvapi-{MIXED[:64]}",
    "langsmith": f"lsv2_pt_{HEX[:32]}_{HEX[:10]}",
    "npm": f"npm_{MIXED[:36]}",
    "pypi": f"pypi-AgEIcHlwaS5vcmc{MIXED[:60]}",
    "rubygems": f"rubygems_{HEX[:48]}",
    "docker": f"dckr_pat_{MIXED[:27]}",
    "digitalocean": f"dop_v1_{HEX[:64]}",
    "shopify": f"shpat_{HEX[:32]}",
    "sendgrid": f"SG.{MIXED[:22]}.{MIXED[:43]}",
    "twilio": f"SK{HEX[:32]}",
    "telegram": f"123456789:AA{MIXED[:33]}",
    "linear": f"lin_api_{MIXED[:40]}",
    "notion": f"ntn_{MIXED[:43]}",
    "figma": f"figd_{MIXED[:40]}",
    "databricks": f"dapi{HEX[:32]}",
    "atlassian": f"ATATT3{MIXED[:60]}",
    "vault": f"hvs.{MIXED[:60]}",
    "supabase": f"sbp_{HEX[:40]}",
    "supabase key": f"sb_secret_{MIXED[:30]}",
    "grafana": f"glsa_{MIXED[:32]}_{HEX[:8]}",
    "postman": f"PMAK-{HEX[:24]}-{HEX[:34]}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.{MIXED[:40]}.{MIXED[:43]}",
    "age": f"AGE-SECRET-KEY-1{UPPER[:48]}",
}  # fmt: skip

HINTS = [hint for _, tokens in _TOKENS for hint, _ in tokens]

HARMLESS = [
    "The task-force-of-2026 met; sk-learn-contrib-extensions is a package.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixed it", "id 0b6ad4f2-9f0e-4a51-bb0e-7a2f6d0f8b11 in the log",
    "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "Bearer of bad news, the messenger arrived at 10:30.", "The secret: never give up.",
    "My password is in the blue notebook.", "The token economy of 2026 was discussed.",
    "Basic training starts in the morning; basic understanding suffices.",
    "https://example.org/path?page=2&sort=desc#L3", "ratio 16:9, call at 123456789:30",
    "SKU SK1234 and HF_HOME, npm_config and hf_hub are names", "The key: C minor; keyboard=qwerty",
    "ssh user@host.example and mail ana@example.org", "secretary = Ines, monkey: 7, tokens=4000",
]  # fmt: skip


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("around", ["{}", "use {} now", '"{}"', "({}).", "key={}\n"])
def test_a_token_known_by_its_prefix_is_masked(token, around):
    text = around.format(token)

    for safe in (redact(text), redact_session(text)):
        assert token not in safe
        assert token[8:-5] not in safe


def test_every_pattern_has_a_token_that_only_it_masks():
    assert [hint for hint in HINTS if not any(hint in token for token in TOKENS.values())] == []


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text
    assert redact_session(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("password=hunter2", "password=***"),
        ("password=hunter2secretvalue!", "password=hunter…lue!"),
        ("db_password: hunter2", "db_password: ***"),
        ("export API_KEY='abc'", "export API_KEY='***'"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=***"),
        ('{"accessToken": "abcdef", "a": 1}', '{"accessToken": "***", "a": 1}'),
        ("run --token abcdef --verbose", "run --token *** --verbose"),
        ("run --api-key=abcdefghijklmnopqrstuvwx", "run --api-key=abcdef…uvwx"),
        ("Authorization: Bearer abcdefghijklmnopqrst", "Authorization: Bearer abcdef…qrst"),
        ("authorization: basic dXNlcjpwYXNzd29yZA==", "authorization: basic dXNlcj…ZA=="),
        ("postgres://ana:s3cret@db.example/x", "postgres://ana:***@db.example/x"),
        ("https://x.example/?access_token=abcdef&page=2", "https://x.example/?access_token=***&page=2"),
    ],
)
def test_what_is_assigned_to_the_name_of_a_secret_is_masked_in_talk(text, safe):
    assert redact_session(text) == safe


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
    assert masked(token) == safe


secrets = st.sampled_from(
    [*TOKENS.values(), *HARMLESS, KEY, "password=", "API_KEY: ", "--token ", '"secret":"', "Bearer "]
)


@given(st.lists(st.one_of(secrets, st.text(max_size=6))).map(" ".join))
def test_what_is_masked_stays_as_it_is_and_no_line_moves(text):
    for mask in (redact, redact_session):
        safe = mask(text)
        assert mask(safe) == safe
        assert safe.count("\n") == text.count("\n") or mask is redact_session


@pytest.mark.nightly
@pytest.mark.parametrize(
    "piece", [*HINTS, *TOKENS.values(), "password=", "a_", "A", "://a:", "-----BEGIN PRIVATE KEY-----",
              '"token":"', "Bearer ", "--token ", "sk-sk-", "eyJaaaaaaaaaaa.", "1", "basic ", "key_", "token: ", "a-"]
)  # fmt: skip
def test_no_text_takes_long(piece):
    import time

    text = (piece * 100_000)[:100_000]
    start = time.process_time()
    redact_session(text)
    redact_session(f"token key bearer basic :// @ {text}")

    assert time.process_time() - start < 2 * 60 * 0.1  # 0.1 s for each pattern
