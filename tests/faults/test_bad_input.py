"""Bad input, in the library and at the command line: each gets a typed error or a defined answer that says what to do.

What tests/test_memory.py, tests/cli and tests/store prove already is not repeated here.
"""

from __future__ import annotations

import errno
import gc
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from cpu_time import least_seconds
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import OpenClawMemoryError, WorkspaceError

HOSTILE = [
    "", " ", "\n\t\r", "\0", "a\0b", '"', '""', '"""', "'", "''", "`", "\\", "\\\\", "%", "_", "*", "^boiler", "boiler*",
    "-boiler", "+boiler", "boiler AND", "AND", "OR OR", "NOT boiler", "NEAR(boiler, 5)", "NEAR(", ")(", "(((((", "{a b}:c",
    "terms:boiler", "context_terms : x", "rowid:1", "a:b:c", '"boiler" AND "', "; DROP TABLE chunks;", "' OR 1=1 --",
    "') UNION SELECT * FROM files --", "/* boiler */", "${HOME}", "{{boiler}}", "$(reboot)", "../../etc/passwd", "%s%n%x",
    "\ud800", "boiler \udfff", "\ufeffboiler", "\u202eboiler", "e\u0301" * 50, "\u0301" * 500, "🦄" * 300, "👩‍👩‍👧‍👦", "ﷺ" * 200,
    "北" * 5000, "boiler " * 14_000, "x" * 100_000, "_" * 100_000, "a-" * 50_000, "\U0010ffff\uffff", "NULL", "nan", "-1",
]  # fmt: skip
PRESETS = {"default": MemoryConfig(), "openclaw": MemoryConfig.openclaw()}


# --- queries
@pytest.fixture(
    scope="module",
    params=[
        ("default", "static"),
        ("openclaw", None),
        pytest.param(("default", None), marks=pytest.mark.nightly),
        pytest.param(("openclaw", "static"), marks=pytest.mark.nightly),
    ],
    ids=str,
)
def memory(request, tmp_path_factory):
    preset, embedder = request.param
    folder = tmp_path_factory.mktemp("bad")
    (folder / "MEMORY.md").write_text(
        'The boiler, "Old Faithful", is in the cellar.\n北の部屋は寒い。\n', encoding="utf-8"
    )
    with Memory.open(folder, embedder=embedder, config=PRESETS[preset]) as opened:
        opened.sync()
        yield opened


def check(memory: Memory, query: str) -> None:
    try:
        results = memory.search(query)
    except Exception as error:
        error.add_note(f"the query was {query[:30]!a}")
        raise
    assert results.query == query
    assert all(0 <= result.score <= 1 and result.snippet for result in results), ascii(query[:30])


@pytest.mark.fault(14)
def test_a_hostile_query_is_answered_and_harms_nothing(memory):
    for query in HOSTILE:
        check(memory, query)
    assert memory.search("boiler")[0].path == "MEMORY.md"
    assert memory.status(deep=True).problems == ()


@pytest.mark.fault(14)
@settings(max_examples=20)
@given(query=st.text(max_size=60) | st.text(alphabet='ab"()*:^-+{} \0ANDORT北\u0301', max_size=40))
def test_any_text_is_a_query(memory, query):
    check(memory, query)


ONE_KIND = [
    "a", "_", "a-", "a_b ", "1", "1 ", "9", "Ab ", "é", "e\u0301", "\u0301", "北", "🦄", "ﷺ", "ß", "İ", "ab1", "jan ", "may ",
    "1 jan ", "2026-01-02 ", "2026年1月", "Ａ", "½", "\u0e01", "\u0915\u093f", "א\u05b0", "\0", "(", "\u200b", "a'", "/",
]  # fmt: skip
ALL_KINDS = {
    "Chinese": "".join(chr(0x4E00 + at * 7 % 20_000) for at in range(1999)),
    "Korean": "".join(chr(0xAC00 + at * 7 % 11_000) for at in range(1999)),
    "words": " ".join(f"w{at}" for at in range(500))[:1999],
    "joined": "-".join(chr(97 + at % 26) + chr(97 + at // 26 % 26) for at in range(700))[:1999],
    "humps": "".join(chr(97 + at % 26) + chr(65 + at // 26 % 26) for at in range(1000))[:1999],
    "dates": " ".join(f"{at % 28 + 1} jan {1900 + at % 190}" for at in range(200))[:1999],
}


ONE_KIND_REPEATED = [pytest.param((kind * 1999)[:1999], id=ascii(kind), marks=pytest.mark.nightly) for kind in ONE_KIND]


@pytest.mark.fault(14)
@pytest.mark.parametrize("query", [*ONE_KIND_REPEATED, *ALL_KINDS.values()], ids=ascii)
@pytest.mark.sampled(4)
def test_a_query_of_many_characters_of_one_kind_is_answered(memory, query):
    check(memory, query)


@pytest.mark.fault(14)
@pytest.mark.nightly
def test_no_query_takes_a_tenth_of_a_second_of_a_processor(memory):
    chance, slowest = random.Random(1), (0.0, "")
    kinds = [*ONE_KIND, *(character for query in ALL_KINDS.values() for character in query[:60])]
    fuzzed = ("".join(chance.choices(kinds, k=chance.randrange(1, 700))) for _ in range(10_000))
    long = [(kind * 1999)[:1999] for kind in ONE_KIND]
    memory.search(long[0])  # loads what searches need
    gc.collect()
    gc.freeze()  # what this process of tests holds besides is not a search's
    for query in (*HOSTILE, *long, *ALL_KINDS.values(), *fuzzed):
        took = least_seconds(lambda query=query: memory.search(query), enough=0.1)
        slowest = max(slowest, (took, query))
    gc.unfreeze()
    print(f"\n{slowest[0] * 1000:.0f} ms at most, for {slowest[1][:40]!a}")
    assert slowest[0] < 0.1


@pytest.mark.parametrize(
    ("wish", "value"),
    [
        ("max_results", 0), ("max_results", 10**15), ("max_results", -1), ("min_score", -0.1), ("min_score", 1.1), ("min_score", "nan"),
        ("source", "notes"),
    ],
)  # fmt: skip
def test_a_wish_out_of_range_is_named_with_what_would_do(run, notes, wish, value):
    option = f"--{wish.replace('_', '-')}"
    outcome = run("search", "-w", notes, f"{option}={value}", "boiler")
    assert outcome.code == 2
    assert wish in outcome.err or option in outcome.err or str(value) in outcome.err
    assert outcome.err.count("\n") == 1


# --- files
@pytest.mark.fault(25)
def test_an_unreadable_file_is_reported_and_the_others_are_found(run, notes, monkeypatch):
    real = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if os.fsdecode(path).endswith("household.md"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with Memory.open(notes, embedder=None) as memory:
        report = memory.sync()
        left_out = {file.path: file.reason for file in (*report.failed, *report.skipped)}
        assert "ermission" in left_out["memory/household.md"]
        assert memory.search("GEO-1000")
        with pytest.raises(OpenClawMemoryError, match=r"household\.md"):
            memory.get("memory/household.md")
    outcome = run("index", "-w", notes)
    assert "memory/household.md" in outcome.out
    monkeypatch.undo()
    with Memory.open(notes, embedder=None) as memory:
        assert "memory/household.md" in memory.sync().added


@pytest.mark.parametrize("command", [["search", "boiler"], ["index"], ["status"], ["show", "MEMORY.md"], ["add", "x"]])
def test_a_workspace_that_may_not_be_looked_into_is_named(run, notes, monkeypatch, command):
    def refused(call: Any) -> Any:
        def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
            if str(notes) in str(path) or options.get("dir_fd") is not None:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return call(path, *arguments, **options)

        return refuse

    for holder, name in ((os, "open"), (os, "scandir"), (Path, "is_file")):
        monkeypatch.setattr(holder, name, refused(getattr(holder, name)))
    with pytest.raises(WorkspaceError, match="notes"):
        Memory.open(notes).sync()
    monkeypatch.setattr(os, "access", lambda *_: False)
    outcome = run(command[0], "-w", notes, *command[1:])
    assert outcome.code == 2
    assert re.fullmatch(rf"error: workspace {notes} cannot be read: [^\n]*`chmod u\+rx {notes}`[^\n]*\n", outcome.err)
