"""Transcripts as text: line n says what line n of the file says, whatever else the file holds."""

import datetime
import json

import pytest

from openclaw_memory.config.sections import FilesConfig, SessionsConfig
from openclaw_memory.errors import PathNotAllowedError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.transcripts import PART_BYTES, Mark

NAME = "sessions/talk.jsonl"


def message(role, content, **fields):
    inner = {"role": role, "content": content}
    provenance = fields.pop("provenance", None)
    if provenance:
        inner["provenance"] = provenance
    return json.dumps({"type": "message", "message": inner, **fields})


def flat(role, content, **fields):
    return json.dumps({"type": "message", "role": role, "content": content, **fields})


def written(root, *lines, name=NAME, end="\n"):
    file = root / name
    file.parent.mkdir(exist_ok=True, parents=True)
    data = b"\n".join(line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass") for line in lines)
    file.write_bytes(data + end.encode())
    return Workspace.open(root)


def shown(root, *lines):
    """The lines of the text, one for each line given."""
    text = written(root, *lines).read(NAME)
    assert text.count("\n") == len(lines)
    return text.split("\n")[:-1]


# --- what is shown
@pytest.mark.parametrize(
    ("line", "text"),
    [
        (message("user", "Hello"), "User: Hello"),
        (flat("assistant", "Hi", id="b", parentId="a"), "Assistant: Hi"),
        (message("user", [{"type": "text", "text": "two\nlines"}, {"type": "image", "data": "x"}]), "User: two lines"),
        (message("user", "a\u2028b\x85c\rd\x0be\x1cf"), "User: a b c d e f"),
        (message("user", "half \ud83d of a face"), "User: half \ufffd of a face"),
        (message("user", "a\0b"), "User: a\ufffdb"),
        ("\ufeff" + message("user", "after a mark"), "User: after a mark"),
        (message("user", "in Windows") + "\r", "User: in Windows"),
        (message("user", "x", extra=[1e999]).replace("Infinity", "1e999"), "User: x"),
        (b'{"type":"message","message":{"role":"user","content":"caf\xe9"}}', "User: caf\ufffd"),
    ],
)
def test_a_message_is_one_line(tmp_path, line, text):
    assert shown(tmp_path, line, message("user", "next")) == [text, "User: next"]


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"type": "session", "id": "s"}),
        json.dumps({"type": "compaction", "id": "c", "summary": "what was said", "firstKeptEntryId": "a"}),
        json.dumps({"type": "custom_message", "content": "for the model only", "hidden": True}),
        message("toolResult", "of a tool"),
        message("system", "be kind"),
        message("user", "unseen", hidden=True),
        message("user", "unseen", display=False),
        message("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "toolCall", "name": "exec"}]),
        message("assistant", "NO_REPLY"),
        message("assistant", "HEARTBEAT_OK"),
        message("user", "System: [2026-11-01] Node connected"),
        message("user", "[cron:daily] Write the report"),
        message("user", "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK."),
        message("user", "exec finished: code 0"),
        message("user", "from elsewhere", provenance={"kind": "inter_session"}),
        message("user", "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>a<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"),
        message("user", ""),
        message("user", None),
        json.dumps({"type": "message", "message": "no message"}),
        json.dumps({"type": "message", "message": {"role": ["user"], "content": "x"}}),
        "",
    ],
)
def test_what_nobody_said_is_an_empty_line(tmp_path, line):
    found = list(written(tmp_path, line, message("user", "next")).read_parts(NAME))
    assert found[0].text == "\nUser: next\n"
    assert found[0].unreadable == 0


@pytest.mark.parametrize("tool", ["heartbeat", "memory_search", "memory_get"])
def test_a_turn_that_a_machine_began_mutes_the_replies_to_it_until_somebody_speaks(tmp_path, tool):
    lines = shown(
        tmp_path,
        message("user", "go", provenance={"kind": "internal_system", "sourceTool": tool}),
        message("assistant", "an echo"),
        message("toolResult", "x"),
        message("assistant", "another"),
        message("user", "So?"),
        message("assistant", "An answer."),
    )
    assert lines == ["", "", "", "", "User: So?", "Assistant: An answer."]


def test_who_sent_a_message_from_where_is_not_what_was_said(tmp_path):
    envelope = 'Conversation info (untrusted metadata):\n```json\n{"chat": "x"}\n```\n'
    assert shown(tmp_path, message("user", f"{envelope}\n{envelope}\nHello"))[0] == "User: Hello"


@pytest.mark.fault(32)
def test_recalled_blocks_and_secrets_are_not_shown(tmp_path):
    recalled = "<relevant-memories>\nold news\n</relevant-memories>\nWhat now?"
    token = "ghp_" + "a1" * 18
    lines = shown(tmp_path, message("user", recalled), message("user", f"use {token} or password=open-sesame-please"))
    assert lines == ["User: What now?", "User: use ghp_a1…a1a1 or password=***"]


# --- what cannot be read


def test_half_a_line_is_left_for_later(tmp_path):
    whole = message("user", "the second")
    workspace = written(tmp_path, message("user", "the first"), whole[:-5], end="")
    (part,) = workspace.read_parts(NAME)
    assert (part.text, part.unreadable) == ("User: the first\n", 0)
    assert list(workspace.read_parts(NAME, str(part.mark))) == []
    written(tmp_path, message("user", "the first"), whole)
    (grown,) = workspace.read_parts(NAME, str(part.mark))
    assert grown.text == "User: the first\nUser: the second\n"


# --- parts and days


def test_a_part_is_of_one_day_as_its_timestamps_are_written(tmp_path):
    lines = [
        json.dumps({"type": "session", "id": "s", "timestamp": "2026-10-31T23:59:00Z"}),
        message("user", "late", timestamp="2026-11-01T23:59:00-05:00"),
        message("toolResult", "no words", timestamp="2026-11-02T00:00:00-05:00"),
        message("assistant", "later", timestamp="2026-11-02T00:01:00-05:00"),
        message("assistant", "whenever"),
        message("assistant", "in numbers", timestamp=1793664000000),
        message("assistant", "and before", timestamp="2026-11-02T12:00:00"),
    ]
    parts = list(written(tmp_path, *lines).read_parts(NAME))
    assert [(part.first_line, part.day) for part in parts] == [
        (1, datetime.date(2026, 11, 1)),
        (4, datetime.date(2026, 11, 2)),
        (6, datetime.date(2026, 11, 3)),
        (7, datetime.date(2026, 11, 2)),
    ]


@pytest.mark.parametrize("timestamp", ["bad", "", None, 0, -5, True, 1e300, [], "10000-01-01", 8.6e15])
def test_a_timestamp_that_is_none_gives_no_day(tmp_path, timestamp):
    (part,) = written(tmp_path, message("user", "x", timestamp=timestamp)).read_parts(NAME)
    assert part.day is None


def test_a_file_that_was_changed_in_place_and_has_grown_is_read_from_the_beginning(tmp_path):
    lines = [message("user", f"{n:06}") for n in range(3000)]
    mark = str(list(written(tmp_path, *lines).read_parts(NAME))[-1].mark)
    assert Mark.parse(mark).offset > PART_BYTES
    lines[500] = message("user", "******")
    workspace = written(tmp_path, *lines, message("user", "more"))
    assert list(workspace.read_parts(NAME, mark)) == list(workspace.read_parts(NAME))


# --- which files are transcripts
def test_transcripts_are_listed_after_the_notes(tmp_path):
    (tmp_path / "MEMORY.md").write_text("x")
    workspace = written(tmp_path, message("user", "x"))
    for name in ("sessions.json", "old.jsonl.reset.2026", "notes.md", ".lock"):
        (tmp_path / "sessions" / name).write_text("{}")
    (tmp_path / "sessions/deep").mkdir()
    (tmp_path / "sessions/deep/a.jsonl").write_text("{}")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/a.jsonl").write_text("{}")
    scan = workspace.scan()
    assert [(file.path, file.source) for file in scan.files] == [("MEMORY.md", "memory"), (NAME, "sessions")]
    assert scan.skipped == ()


def test_a_folder_that_is_a_symlink_is_not_followed(tmp_path):
    written(tmp_path / "elsewhere", message("user", "x"))
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/sessions").symlink_to(tmp_path / "elsewhere/sessions")
    workspace = Workspace.open(tmp_path / "ws")
    assert [(one.path, "symlink" in one.reason) for one in workspace.scan().skipped] == [("sessions", True)]
    with pytest.raises(PathNotAllowedError):
        workspace.read(NAME)


@pytest.mark.parametrize("folder", ["{root}/elsewhere", "../elsewhere", "deep/er"])
def test_the_folder_may_lie_anywhere_and_the_path_stays_the_same(tmp_path, folder):
    where = folder.format(root=tmp_path)
    (tmp_path / "ws").mkdir()
    file = tmp_path / "ws" / where / "talk.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(message("user", "x") + "\n")
    workspace = Workspace.open(tmp_path / "ws", sessions=SessionsConfig(folder=where))
    assert [found.path for found in workspace.scan().files] == [NAME]
    assert workspace.read(NAME) == "User: x\n"
    assert workspace.read(str(file.resolve())) == "User: x\n"


def test_a_folder_that_was_named_and_is_missing_is_told(tmp_path):
    assert Workspace.open(tmp_path).scan().skipped == ()
    (skipped,) = Workspace.open(tmp_path, sessions=SessionsConfig(folder="talks")).scan().skipped
    assert (skipped.path, "sessions.folder" in skipped.reason) == ("sessions", True)


@pytest.mark.parametrize(
    ("files", "sessions", "reason"),
    [
        (FilesConfig(), SessionsConfig(index=False), "not a memory file"),
        (FilesConfig(exclude=("sessions/t*",)), SessionsConfig(), "left out by"),
    ],
)
def test_transcripts_that_are_not_indexed_are_not_read_either(tmp_path, files, sessions, reason):
    written(tmp_path, message("user", "x"))
    workspace = Workspace.open(tmp_path, files, sessions)
    assert workspace.scan().files == ()
    with pytest.raises(PathNotAllowedError, match=reason):
        workspace.read(NAME)
