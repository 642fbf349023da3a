"""Every parser of text that others write: how it is called, which pieces mean something to it, what stretches it."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import NamedTuple

import apsw

from openclaw_memory import MemoryConfig
from openclaw_memory.config.config import parse_toml
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.conversation.snapshots import parse_snapshot
from openclaw_memory.indexing.file_rows import make_metadata
from openclaw_memory.records.file_format import parse_record
from openclaw_memory.search.query import match_file_name, read_query
from openclaw_memory.security.keys import explain_refusal
from openclaw_memory.store.fts import clean_terms, quote
from openclaw_memory.text import front_matter
from openclaw_memory.text.days import find_dates, get_path_day
from openclaw_memory.text.fence import escape_fences, remove_fences, strip_fenced
from openclaw_memory.text.policies import Policies
from openclaw_memory.text.quotation import find_source
from openclaw_memory.text.quotation import quote as quotation
from openclaw_memory.text.terms import select_content_words, split_query
from openclaw_memory.types.files import parse_citation
from openclaw_memory.workspace.time_zone import to_day
from openclaw_memory.workspace.transcripts import explain_foreign, read_parts, read_records

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
POLICIES = Policies(
    (
        PolicyRule("codename", "never-store", pattern="(?i)falcon"),
        PolicyRule("pay", "masked", pattern=r"\d{5} euros"),
        PolicyRule("delicate", "masked", sensitivity="high"),
    )
)


class Parser(NamedTuple):
    """A parser: `read` it is called with a text, which is put together from `pieces`; `stretch` are repeated to 100 KB."""

    read: Callable[[str], object]
    pieces: tuple[str, ...]
    stretch: tuple[str, ...]


def _front_matter(text: str) -> None:
    file = f"---\n{text}"
    read = front_matter.parse(file)
    front_matter.parse_own_fields(file)
    if read is not None:
        front_matter.get_embedding(file, read.fields)
        make_metadata("memory/notes/a.md", file, read, 0)
        make_metadata("memory/records/fact/a.md", file, None, 0)


_FIELDS = (
    'memory_id: "m"\nuser_id: null\ntype: "fact"\nkey: "k"\nvalue: "v"\nconfidence: 0.5\nsource: {"kind": "user", "ref": "r", '
    '"observed_at": "2026-01-01T00:00:00Z"}\nsensitivity: "low"\nttl: null\nlast_confirmed_at: "2026-01-01T00:00:00Z"\n'
    'version: 1\ncreated_at: "2026-01-01T00:00:00Z"\nupdated_at: "2026-01-01T00:00:00Z"\n'
)


def _record(text: str) -> None:
    path = "memory/records/fact/k.md"
    # A field that comes twice counts as it is the last time: the text changes any of the fields above it.
    read = front_matter.parse(f"---\nopenclaw_memory: 1\n{_FIELDS}{text}")
    if read is not None:
        explain_refusal(path, read.fields, read.text)
        record, _ = parse_record(path, read, NOW)
        _ = record.expires_at, record.to_dict()


def _transcript(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    explain_foreign(io.BytesIO(data))
    for _ in read_parts(io.BytesIO(data), policies=POLICIES):
        pass
    for _ in read_records(io.BytesIO(data)):
        pass


def _snapshot(text: str) -> None:
    parse_snapshot(text.encode("utf-8", "surrogatepass"), ".memory/snapshots/a.json")


def _settings(text: str) -> None:
    tables = parse_toml(text, "config.toml")
    MemoryConfig().replace({name: table for name, table in tables.items() if isinstance(table, dict)})
    MemoryConfig().replace(tables)


def _policies(text: str) -> None:
    pattern = text.partition("\n")[0]
    if len(pattern) > 60:  # a user's own patterns may be as slow as they like: what is fuzzed is who reads them
        pattern = "a"
    rule = PolicyRule("fuzzed", "masked", pattern=pattern or None, key=text[:20] or None)
    Policies((rule,)).mask("a b c")
    Policies((PolicyRule("pattern", "masked", pattern=pattern or "a"),)).mask("a b c")
    Policies((rule,)).find_name_rule(text[:40])


def _shown(text: str) -> None:
    shown = POLICIES.mask(text)
    assert shown.count("\n") == text.count("\n")
    POLICIES.list_matching_rules(text)


_words = apsw.Connection(":memory:")
_words.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
_words.execute("INSERT INTO words VALUES ('the boiler is serviced')")


def _query(text: str) -> None:
    read_query(text)
    match_file_name(text)
    select_content_words(text)
    asked = clean_terms(split_query(text))
    if asked:
        _words.execute("SELECT * FROM words WHERE words MATCH ?", (" OR ".join(map(quote, asked)),)).fetchall()


def _dates(text: str) -> None:
    for one in find_dates(text):
        one.rate_agreement(date(2026, 11, 23))
    get_path_day(f"memory/{text}.md")
    get_path_day(text)
    to_day(text, "since", None)


def _recalled(text: str) -> None:
    strip_fenced(text)
    remove_fences(text)
    escape_fences(text)


def _quotation(text: str) -> None:
    lines = quotation(text, "a page").split("\n")
    assert all(line.startswith(">") for line in lines)
    assert find_source(lines, 1, len(lines)) is not None
    find_source(text.split("\n"), 1, text.count("\n") + 1)


_JSON = (
    '{"',
    '"}',
    '":',
    '","',
    "[",
    "]",
    "{",
    "}",
    "null",
    "true",
    "1e999",
    "NaN",
    "-0",
    "9" * 30,
    "\\ud800",
    "\\u0000",
    '"',
)
_TALK = (
    *_JSON, "\n", '{"type":"message","message":{"role":"user","content":"hi"}}\n', '{"type":"session","id":"a"}\n',
    '"type":"message"', '"message":', '"role":"assistant"', '"content":[{"type":"text","text":"', '"timestamp":', '"2026-01-01T00:00:00Z"',
    '{"parentUuid":null,"sessionId":"s","type":"user","uuid":"u","message":{"role":"user","content":"hi"}}\n',
    '{"info":{"id":"m","role":"user","sessionID":"s","time":{"created":1}},"parts":[{"type":"text","text":"hi"}]}\n',
    '{"id":"x","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]},"create_time":1}}\n',
    '"provenance":{"kind":"', "[cron:", "NO_REPLY", "<recalled-memory", "</recalled-memory>", "HEARTBEAT_OK",
)  # fmt: skip
_YAML = (
    "---\n", "openclaw_memory: 1\n", "openclaw_memory:", "key: ", "tags: [a, b]\n", "- a\n", "  - b\n", "  inner:\n", "    x: 1\n", '"', "'",
    "# no\n", ": ", "|\n", ">\n", "&a ", "*a ", "{", "}", "\r\n", "\t", "null", "date: 2026-01-01\n", "<<<<<<< a\n", "=======\n", ">>>>>>> b\n",
    'embedding: {"model": "m", "dims": 3, "vector": "AAAAAAAAAAAAAAAA"}\n', "~", *_JSON[:8],
)  # fmt: skip
_DAYS = (
    "2026", "-01-", "-", "31", "30", "29", "02", "january ", "jan ", "mei ", "mars ", "1st ", "of ", "年", "月", "日", "2026-02-30", "0000-00-00",
    "W07", "T00:00", "+24:00", "Z", ".", "/", "13", "٣", "９", "\0", " ", "last ", "in ",
)  # fmt: skip

PARSERS: dict[str, Parser] = {
    "front matter": Parser(
        _front_matter, _YAML, ("a: 1\n", "a:\n  b: 1\n", "- a\n", "a: [", "  ", "a", "---", "'", "a: \"", "\t", "a: {", ": ", "embedding: ", "#", "---\n", "\r\n")
    ),
    "record": Parser(
        _record,
        (*_YAML, 'version: 2\n', "version: 1e9\n", 'ttl: 99999999999999999999\n', "confidence: 2\n", 'history: [{"version": 1}]\n', "waiting: [[]]\n",
         'created_at: "9999-12-31T23:59:59Z"\n', 'updated_at: "0001-01-01T00:00:00+23:59"\n', 'signature: "hmac-sha256:', 'sensitivity: "high"\n',
         "memory_id: []\n", "key: {}\n", 'source: "x"\n', "tokens: 5\n", "value: [[[[]]]]\n", "---\nk: v\n", "---\n\ud800"),
        ("waiting: []\n", "a: 1\n", "=======\n", "<<<<<<< ", "k: v\n", " ", "\r\n"),
    ),
    "transcript": Parser(
        _transcript, _TALK, ('{"a":', "[", '{"type":"message","message":{"role":"user","content":"hi"}}\n', "\n", " ", "\\u0000", "<recalled-memory", '{"a":1}\n')
    ),
    "snapshot": Parser(_snapshot, (*_TALK, '"session_id":"a"', '"messages":[', '"version":1,'), ('{"a":', "[", '"', "1", "a")),
    "citation": Parser(
        parse_citation, ("MEMORY.md", "#", "L", "1", "-L", ",", "9" * 40, "0", "[", "]", " ", "0123abcd", "memory/a.md#L3-L5,L9", "\n", "٣"),
        ("9", "L1,", "#", "#L1", "L1-L2,", " ", "[", "a#L", "-"),
    ),
    "settings": Parser(
        _settings,
        ("[chunking]\n", "[search]\n", "[[policies]]\n", "max_chars = ", "style = ", "rules = ", "half_life_days = ", "1", "-1", "1e999", "nan", "inf", '"a"',
         "[", "]", "{", "}", "=", "\n", "true", "1979-05-27", "a.b.c = 1\n", "'''", '"""', "\\u0000", 'name = "x"\n', 'action = "masked"\n', 'pattern = "("\n', "\r\n"),
        ("[a]\n", "a = 1\n", "#", " ", "\n", "[[policies]]\n"),
    ),
    "policies": Parser(
        _policies,
        ("(", ")", "[", "]", "*", "+", "?", "{", "}", "a", "\\b", "\\", "|", "^", "$", ".", "(?i)", "(?P<a>", "(?=", "é", "e\u0301", "{99999999999}", "\n", "-", "_"),
        ("a", "a-", "é", "e\u0301", "_"),
    ),
    "what policies leave": Parser(
        _shown, ("falcon", "FALCON", "\n", "12345 euros", " ", *_YAML[:8], "e\u0301", "ﬀ", "İ"), ("falcon\n", "falcon", "12345 euros ", "e\u0301", "a", "\n", "1", "İ")
    ),
    "query": Parser(
        _query, ('"', "(", ")", "*", "NEAR", " AND ", " OR ", " NOT ", "^", ":", "-", "+", "{", "}", "text:", "a", "北", "e\u0301", "\0", "\ud800", "'", ";", "İ", "boiler", " "),
        ("a ", "a", "北", "a-", "aB", "_", "é ", "1", "\u0301", "'", '"', "-a\t", '"a" ', "a:", "/a.md ", "👩\u200d"),
    ),
    "dates": Parser(_dates, _DAYS, ("1 ", "2026-01-01 ", "1 jan ", "jan ", "2026年1月", "-", "1", "of ", "a")),
    "recalled": Parser(
        _recalled,
        ("<recalled-memory", ' id="0123456789abcdef"', ">", "</recalled-memory", "&lt;", "&gt;", "\\u003c", "recalled‐memory", "<relevant-memories>",
         "</relevant-memories>", "<!--", "-->", "\n", "＜", "RECALLED-MEMORY", "<<<EXTERNAL_UNTRUSTED_CONTENT>>>", "a"),
        ("<recalled-memory>", "</recalled-memory>", "<", "<!--", "-->", "&lt;", "<relevant-memories>", "‐", "recalled-", "\n"),
    ),
    "quotation": Parser(
        _quotation, ("> ", ">", "— ", "-- ", "–", "\n", "a", " ", "\r", "\u2028", "\t", "<recalled-memory>"), (">", "> ", "> — ", "— ", "\n", " ", "\r", "> >")
    ),
}  # fmt: skip
