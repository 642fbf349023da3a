"""The log of a session: entries are added whole, in OpenClaw's shape, and read back."""

import os
import subprocess

import pytest
from processes import python

from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.session_log import make_log_name


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path)


def test_a_log_begins_with_a_header_and_each_entry_names_the_one_before(workspace, tmp_path):
    log = workspace.open_log("s-1", parent_session="s-0")
    first = log.append("user", "Hello", name="Ana")
    second = log.append("assistant", [{"type": "text", "text": "Hi"}])
    third = log.append_entry("compaction", summary="greetings", firstKeptEntryId=second)
    header, *entries = log.read_entries()
    assert (header["type"], header["id"], header["cwd"], header["parentSession"]) == (
        "session",
        "s-1",
        str(tmp_path),
        "s-0",
    )
    assert [(entry["type"], entry["id"], entry["parentId"]) for entry in entries] == [
        ("message", first, None),
        ("message", second, first),
        ("compaction", third, second),
    ]
    assert entries[0]["message"] == {"role": "user", "content": "Hello", "name": "Ana"}
    assert workspace.read("sessions/s-1.jsonl") == "\nUser: Hello\nAssistant: Hi\n\n"
    assert workspace.read_excerpt(log.path, 2, 1).citation == "sessions/s-1.jsonl#L2"


def test_entries_that_come_together_follow_each_other_and_cost_one_write(workspace, monkeypatch):
    log = workspace.open_log("s")
    first = log.append("user", "one")
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    second, third, fourth = log.append_entries(
        [
            {"type": "message", "id": "mine", "message": {"role": "user", "content": "two"}},
            {"type": "compaction", "summary": "both"},
            {"type": "message", "parentId": first, "message": {"role": "user", "content": "another two"}},
        ]
    )
    assert len(flushed) == 1
    assert [(entry["id"], entry["parentId"]) for entry in list(log.read_entries())[2:]] == [
        ("mine", first),
        (third, second),
        (fourth, first),
    ]


@pytest.mark.parametrize("wrong", [{"type": "message", "message": float("nan")}, {"message": {}}])
def test_of_entries_that_come_together_all_are_written_or_none(workspace, tmp_path, wrong):
    log = workspace.open_log("s")
    with pytest.raises(InvalidInputError):
        log.append_entries([{"type": "message", "message": {"role": "user", "content": "two"}}, wrong])
    assert list(log.read_entries()) == []
    assert log.append_entries([]) == []
    assert not list(tmp_path.rglob("*.jsonl"))


def test_another_log_of_the_same_session_goes_on_where_the_first_stopped(workspace):
    first = workspace.open_log("s").append("user", "one")
    workspace.open_log("s").append("assistant", "two")
    entries = list(workspace.open_log("s").read_entries())
    assert [entry["type"] for entry in entries] == ["session", "message", "message"]
    assert entries[2]["parentId"] == first


def test_messages_are_those_of_one_branch(workspace):
    log = workspace.open_log("s")
    a = log.append("user", "a")
    b = log.append("assistant", "b")
    log.append_entry("compaction", summary="ab")
    c = log.append_entry("message", parentId=a, message={"role": "assistant", "content": "c"})
    log.append("user", "d")
    assert [one["content"] for one in log.read_messages()] == ["a", "c", "d"]
    assert [one["content"] for one in log.read_messages(leaf=b)] == ["a", "b"]
    assert [one["content"] for one in log.read_messages(leaf=c)] == ["a", "c"]
    with pytest.raises(NotFoundError, match="no entry 'x'"):
        log.read_messages(leaf="x")


@pytest.mark.fault(1)
def test_half_a_line_of_a_killed_writer_stays_apart_from_what_follows(workspace, tmp_path):
    log = workspace.open_log("s")
    first = log.append("user", "one")
    with (tmp_path / "sessions/s.jsonl").open("ab") as file:
        file.write(b'{"type":"message","id":"half')
    log.append("user", "two")
    assert [entry["parentId"] for entry in log.read_entries() if entry["type"] == "message"] == [None, first]
    assert workspace.read(log.path) == "\nUser: one\n\nUser: two\n"


@pytest.mark.parametrize("content", ["a\nb", "\ud800", "\u2028\x85\0", "😀", '"}\n{"type"'])
def test_what_is_written_is_what_is_read(workspace, content):
    log = workspace.open_log("s")
    log.append("user", content)
    log.append("user", "next")
    assert [one["content"] for one in log.read_messages()] == [content, "next"]


@pytest.mark.parametrize("content", [float("nan"), {1, 2}, b"bytes", object()])
def test_what_is_no_json_is_refused_and_nothing_is_written(workspace, content):
    log = workspace.open_log("s")
    log.append("user", "one")
    with pytest.raises(InvalidInputError, match="not JSON"):
        log.append("user", [content])
    assert len(list(log.read_entries())) == 2


@pytest.mark.parametrize(
    ("session_id", "start"),
    [
        ("0b6ad4f2-9f0e", "0b6ad4f2-9f0e.jsonl"),
        ("../../etc/passwd", "etc-passwd-"),
        ("agent:main:telegram", "agent-main-telegram-"),
        ("..", ""),
        ("日本", ""),
        ("a" * 300, "a" * 80 + "-"),
        (".hidden", "hidden-"),
        ("CON\0", "CON-"),
    ],
)
def test_any_id_makes_a_file_name(session_id, start):
    name = make_log_name(session_id)
    assert name.startswith(start)
    assert name.endswith(".jsonl")
    assert len(name) < 110
    assert not {"/", "\\", ":", "\0"} & set(name)
    assert not name.startswith((".", "-"))


@pytest.mark.parametrize("session_id", ["", "  ", None, 7])
def test_a_session_needs_an_id(workspace, session_id):
    with pytest.raises(InvalidInputError, match="needs an id"):
        workspace.open_log(session_id)


def test_a_symlink_is_never_written_through(workspace, tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/s.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(PathNotAllowedError):
        workspace.open_log("s").append("user", "x")
    assert (tmp_path / "other").read_text() == "mine"
    (tmp_path / "elsewhere").mkdir()
    linked = Workspace.open(tmp_path, sessions=SessionsConfig(folder="linked"))
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathNotAllowedError):
        linked.open_log("s").append("user", "x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_entries_are_of_the_day_of_the_journals_clocks(tmp_path):
    log = Workspace(WorkspaceFiles(tmp_path), sessions=SessionsConfig(timezone="Pacific/Kiritimati")).open_log("s")
    log.append("user", "x")
    assert [entry["timestamp"][-6:] for entry in log.read_entries()] == ["+14:00"] * 2


WRITES_MANY = """
import sys
from openclaw_memory.workspace import Workspace
log = Workspace.open(sys.argv[1]).open_log("shared")
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    log.append("user", f"{sys.argv[2]}-{number}")
"""


@pytest.mark.fault(10)
def test_processes_that_write_at_once_lose_no_entry_and_make_one_chain(tmp_path):
    writers = [python(WRITES_MANY, tmp_path, who, stdin=subprocess.PIPE) for who in range(2)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        print(file=writer.stdin, flush=True)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 2
    log = Workspace.open(tmp_path).open_log("shared")
    said = [one["content"] for one in log.read_messages()]
    assert sorted(said) == sorted(f"{who}-{number}" for who in range(2) for number in range(20))
    assert [entry["type"] for entry in log.read_entries()].count("session") == 1
