import datetime
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import FilesConfig, SessionsConfig
from openclaw_memory.errors import ConfigError, InvalidInputError, PathNotAllowedError, QueryError, WriteError
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace import atomic, notes, time_zone
from openclaw_memory.workspace.files import WorkspaceFiles

DAY = datetime.date(2026, 11, 21)
NOW = datetime.datetime(2026, 11, 21, 9, 5, tzinfo=datetime.UTC)
NOTE = "memory/2026-11-21.md"
RULES = FilesConfig()


def append(root, text, title=None, rules=RULES, **options):
    return notes.append(WorkspaceFiles(root, rules), text, date=DAY, title=title, now=NOW, **options)


def excerpt(text, first, last, **options):
    return Excerpt(NOTE, text, first, last, hash=hashlib.sha256(text.encode()).hexdigest(), **options)


def note(root):
    return (root / NOTE).read_bytes().decode()


def test_a_title_makes_an_entry_with_its_time(tmp_path):
    append(tmp_path, "Booked.", title="Trip\nto  Rome")
    added = append(tmp_path, "Cancelled.", title="Trip")
    assert note(tmp_path) == "# 2026-11-21\n\n## 9:05 - Trip to Rome\n\nBooked.\n\n## 9:05 - Trip\n\nCancelled.\n"
    assert added == excerpt("## 9:05 - Trip\n\nCancelled.", 7, 9)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (b"no newline", "no newline\nx\n", 2),
        (b"a\n", "a\nx\n", 2),
        (b"a\r\nb\r\n", "a\r\nb\r\nx\n", 3),
        (b"\n", "\nx\n", 2),
        ("a\u2028b".encode(), "a\u2028b\nx\n", 2),
        (b"\xef\xbb\xbfa\n", "\ufeffa\nx\n", 2),
    ],
)
def test_what_was_there_stays_and_the_new_text_starts_a_line(tmp_path, before, after, line):
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_bytes(before)
    assert append(tmp_path, "x").start_line == line
    assert note(tmp_path) == after


texts = st.text(st.sampled_from("ab# -\n\r\u2028é😀"), min_size=1, max_size=20).filter(str.strip)
titles = st.none() | st.text(st.sampled_from("ab \n"), max_size=5)


@given(st.lists(st.tuples(texts, titles), min_size=1, max_size=6))
def test_every_entry_is_found_at_the_lines_that_were_returned(tmp_path_factory, entries):
    root = tmp_path_factory.mktemp("journal")
    added = [append(root, text, title) for text, title in entries]
    lines = note(root).split("\n")
    for (text, _), excerpt in zip(entries, added, strict=True):
        assert "\n".join(lines[excerpt.start_line - 1 : excerpt.end_line]) == excerpt.text
        assert excerpt.text.endswith(text.strip("\n"))
    assert [excerpt.start_line for excerpt in added] == sorted({excerpt.start_line for excerpt in added})


@pytest.mark.parametrize(
    ("text", "reason"), [*((text, "empty") for text in ("", " ", "\n\n", "\t\n")), ("a\ud800", "surrogate")]
)
def test_text_that_cannot_be_written_is_an_error(tmp_path, text, reason):
    with pytest.raises(InvalidInputError, match=reason):
        append(tmp_path, text)
    assert not list(tmp_path.iterdir())


def link_folder(root, outside):
    (root / "memory").rmdir()
    (root / "memory").symlink_to(outside)


TRAPS = {
    "a link": lambda root, outside: (root / NOTE).symlink_to(outside / "target.md"),
    "a dangling link": lambda root, outside: (root / NOTE).symlink_to(outside / "new.md"),
    "a hard link": lambda root, outside: os.link(outside / "target.md", root / NOTE),
    "a pipe": lambda root, _: os.mkfifo(root / NOTE),
    "a folder": lambda root, _: (root / NOTE).mkdir(),
    "a linked folder": link_folder,
    "a linked lock": lambda root, outside: (root / "memory/.lock").symlink_to(outside / "target.md"),
}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_a_trap_in_the_place_of_the_note_takes_nothing_outside(tmp_path, trap):
    root, outside = tmp_path / "ws", tmp_path / "outside"
    (root / "memory").mkdir(parents=True)
    outside.mkdir()
    (outside / "target.md").write_text("before", encoding="utf-8")
    trap(root, outside)
    with pytest.raises(PathNotAllowedError):
        append(root, "x")
    assert [path.name for path in outside.iterdir()] == ["target.md"]
    assert (outside / "target.md").read_text(encoding="utf-8") == "before"


def test_a_note_that_the_globs_leave_out_is_not_written(tmp_path):
    with pytest.raises(PathNotAllowedError, match=r"files\.exclude"):
        append(tmp_path, "x", rules=FilesConfig(exclude=("2026-*",)))


def test_a_note_never_grows_beyond_what_can_be_read(tmp_path):
    rules = FilesConfig(max_bytes=40)
    append(tmp_path, "x" * 25, rules=rules)
    before = note(tmp_path)
    with pytest.raises(WriteError, match=r"files\.max_bytes"):
        append(tmp_path, "y", rules=rules)
    assert note(tmp_path) == before


def test_whoever_holds_the_lock_too_long_is_named(tmp_path, monkeypatch):
    import filelock

    append(tmp_path, "x")
    monkeypatch.setattr(atomic, "LOCK_SECONDS", 0.01)
    with filelock.FileLock(tmp_path / "memory/.lock"), pytest.raises(WriteError, match=r"\.lock is held"):
        append(tmp_path, "y")
    append(tmp_path, "z")


APPENDS = 500  # of each process
MANY_APPENDS = """
import datetime, sys
from pathlib import Path
from openclaw_memory.workspace import notes
from openclaw_memory.workspace.files import WorkspaceFiles

now = datetime.datetime(2026, 11, 21, 9, 5, tzinfo=datetime.UTC)
for number in range(int(sys.argv[3])):
    notes.append(WorkspaceFiles(Path(sys.argv[1])), f"- {sys.argv[2]} {number}", date=now.date(), now=now)
"""


@pytest.mark.fault(10)
@pytest.mark.nightly
def test_eight_processes_that_append_at_once_lose_nothing(tmp_path):
    command = [sys.executable, "-c", MANY_APPENDS, str(tmp_path)]
    folder = Path(__file__).parents[2]
    running = [subprocess.Popen([*command, str(process), str(APPENDS)], cwd=folder) for process in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    lines = note(tmp_path).splitlines()
    assert lines[:2] == ["# 2026-11-21", ""]
    assert sorted(lines[2:]) == sorted(f"- {process} {number}" for process in range(8) for number in range(APPENDS))


# --- what stands there already
def test_items_that_follow_each_other_stay_one_list_and_are_not_added_again(tmp_path):
    assert append(tmp_path, "- tea\n- milk") == excerpt("- tea\n- milk", 3, 4)
    assert append(tmp_path, "\n- bread\n\n") == excerpt("- bread", 5, 5)
    again = append(tmp_path, "- milk\n- bread\n", skip_existing=True)
    assert again == excerpt("- milk\n- bread", 4, 5, existed=True)
    assert note(tmp_path) == "# 2026-11-21\n\n- tea\n- milk\n- bread\n"


@pytest.mark.parametrize("heading", ["## 09:05 - Trip", "## 9:05 AM - Trip", "## 11:59 pm - Trip", "## 9:05 - Trip\r"])
def test_an_entry_of_somebody_else_is_recognised(tmp_path, heading):
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_bytes(f"\ufeff{heading}\n\nBooked.\n".encode())
    assert append(tmp_path, "Booked.", title="Trip", skip_existing=True).existed


@pytest.mark.parametrize(
    ("text", "title"), [("Booked", "Trip"), ("Booked.", "Trip to Rome"), ("Booked.\n\nmore", "Trip"), ("ooked.", None)]
)
def test_what_differs_is_added(tmp_path, text, title):
    append(tmp_path, "Booked.", title="Trip")
    assert not append(tmp_path, text, title=title, skip_existing=True).existed
    assert text in note(tmp_path)


# --- whose day it is ---

UTC_LATE = datetime.datetime(2026, 11, 21, 23, 30, tzinfo=datetime.UTC)


def test_without_a_zone_the_machines_clock_counts(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert time_zone.get_local_now(None, UTC_LATE).date() == datetime.date(2026, 11, 22)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe", "/etc/localtime", "a\0b"])
def test_a_zone_that_nobody_knows_is_named(zone):
    with pytest.raises(ConfigError, match=r"sessions\.timezone .* is not a known time zone: name one") as raised:
        time_zone.get_local_now(zone)
    assert repr(zone) in str(raised.value)


@pytest.mark.parametrize("again", [False, True])
def test_what_was_appended_is_shown_without_its_secrets(tmp_path, again):
    key = ["-----BEGIN PRIVATE KEY-----", *["MIIEowIBAAKCAQEAsecretsecretsecret"] * 3]
    append(tmp_path, "\n".join(key[:2]))
    rest = "\n".join([*key[2:], "ghp_0123456789abcdefghijklmnopqrstuvwxyz"])
    if again:
        append(tmp_path, rest)
    shown = append(tmp_path, rest, skip_existing=again)
    assert (shown.start_line, shown.end_line, shown.existed) == (5, 7, again)
    assert (shown.text, shown.hash) == ("\n\nghp_01…wxyz", excerpt(rest, 5, 7).hash)


def test_a_planted_encrypted_twin_hides_no_plain_note(tmp_path):
    (tmp_path / "MEMORY.md").write_text("The key is under the mat.\n")
    (tmp_path / "MEMORY.md.age").write_bytes(b"age-encryption.org/v1\n-> X25519 planted\n")
    with Memory.open(tmp_path, embedder=None) as memory:
        assert "under the mat" in memory.notes.bootstrap(private=True).text
        with pytest.raises(WriteError, match="is there next to"):
            memory.notes.promote(memory.append("It is in the shed.").path, 3, 3)


# --- a day, however a caller names it
DAY_MEANT = datetime.date(2026, 11, 23)
LATE = datetime.datetime(2026, 11, 22, 23, 30, tzinfo=datetime.UTC)  # half past midnight in Amsterdam
AMSTERDAM = MemoryConfig(sessions=SessionsConfig(timezone="Europe/Amsterdam"))
NO_DAYS = [20261123, 1.5, True, b"2026-11-23", ("2026-11-23",), "tomorrow", "", "2026-13-01", "9999-12-31T23:59-10:00"]

MEANT = {
    "a date": DAY_MEANT,
    "a moment without a zone": datetime.datetime.fromisoformat("2026-11-23T00:42:05.891603"),
    "a moment of another zone": LATE,
    "text": " 2026-11-23 ",
    "text of a moment": "2026-11-23T00:42:05.891603",
    "text of a moment of another zone": "2026-11-22T23:30:00Z",
}


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None, config=AMSTERDAM) as opened:
        yield opened


@pytest.fixture(params=MEANT.values(), ids=MEANT.keys())
def meant(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.sampled(3)
def test_each_call_is_about_the_day_that_was_meant(memory, meant):
    path = "memory/2026-11-23.md"
    assert memory.append("The gate was painted green.", date=meant).path == path
    assert [file.name for file in (Path(memory.workspace.root) / "memory").glob("*T*")] == []
    memory.append("The gate was painted blue.", date="2026-11-22")
    memory.sync()
    assert path in [file.path for file in memory.notes.bootstrap(now=meant).files]
    for since, until in ((meant, meant), ("2026-11-23", LATE)):
        assert [one.path for one in memory.search("gate painted", filter={"since": since, "until": until})] == [path]
    assert path in str(memory.control.forget(since=meant).plan)
    assert path in str(memory.control.forget(last_days=1, now=meant).plan)


def test_what_is_no_day_is_an_error_that_names_the_argument_and_the_value(memory):
    calls = {
        "date": lambda given: memory.append("The gate was painted.", date=given),
        "now": lambda given: memory.notes.bootstrap(now=given),
        "since": lambda given: memory.control.forget(since=given),
    }
    for value in NO_DAYS:
        for name, call in calls.items():
            with pytest.raises(InvalidInputError, match=rf"^{name} is .*: give a date"):
                call(value)
        with pytest.raises(QueryError, match=r"^since is .*: give a date"):
            memory.search("gate", filter={"since": value})
