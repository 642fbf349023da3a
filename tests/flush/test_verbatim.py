"""What a conversation loses is in its log, each message as often as it was said, with secrets masked."""

import json
import os

import pytest

from openclaw_memory.conversation import get_text
from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError, WriteError
from openclaw_memory.workspace import Workspace, files
from openclaw_memory.workspace.transcript_records import MAX_LINE_BYTES

SECRET = "sk-proj-" + "a1B2c3D4" * 5


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "notes").mkdir()
    return Workspace.open(tmp_path / "notes")


@pytest.fixture
def log(workspace):
    return workspace.open_log("talk")


def said(text, **more):
    return {"role": "user", "content": text, **more}


def test_each_message_is_written_once_whatever_it_says_and_comes_back_with_its_id(log):
    written = log.write_messages([said("Yes."), said("Yes.", id="mine"), said("No.")])
    assert [get_text(message) for message in log.read_messages()] == ["Yes.", "Yes.", "No."]
    assert [message["id"] for message in written] == [entry["id"] for entry in list(log.read_entries())[1:]]
    assert log.write_messages([]) == []


def test_secrets_are_masked_in_what_is_written_and_in_what_comes_back(log):
    call = {"type": "toolCall", "id": "a", "name": "pay", "arguments": {"key": SECRET}}
    written = log.write_messages([said(f"It is {SECRET}."), {"role": "assistant", "content": [call]}])
    assert SECRET not in json.dumps([written, log.read_messages()])


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        ([{"type": "data", "value": float("nan")}], "cannot be written as JSON"),
        ([{"type": "data", "value": {1, 2}}], "cannot be written as JSON"),
        *[
            pytest.param([block], "bytes, more than 8,388,608", marks=pytest.mark.nightly)
            for block in (
                {"type": "data", "value": "x" * MAX_LINE_BYTES},
                {"type": "text", "text": "x" * MAX_LINE_BYTES},
                {"type": "text", "text": "\ud83d" * (MAX_LINE_BYTES // 3)},  # it is escaped
            )
        ],
    ],
    ids=["no number", "no JSON", "too long", "too long a text", "a text that is escaped"],
)
def test_of_a_message_that_no_log_can_hold_the_words_are_kept(log, blocks, why):
    content = [{"type": "text", "text": "The code is 4711."}, *blocks, {"type": "text", "text": "So it is."}]
    log.write_messages([said("One."), {"role": "toolResult", "toolCallId": "a", "content": content}, said("Two.")])
    one, in_part, two = log.read_messages()
    assert (get_text(one), get_text(two)) == ("One.", "Two.")
    assert (in_part["role"], in_part["toolCallId"]) == ("toolResult", "a")
    assert get_text(in_part).startswith("The code is 4711.\n")
    assert "So it is.\n[not all is kept: " in get_text(in_part)
    assert why in get_text(in_part)


def test_what_the_disk_refuses_is_not_there_in_part(log, monkeypatch):
    log.write_messages([said("One.")])

    def refuse(*_):
        raise WriteError("full")

    monkeypatch.setattr(files.atomic, "append_in_one_write", refuse)
    with pytest.raises(WriteError):
        log.write_messages([said("Two."), said("Three.")])
    assert [get_text(message) for message in log.read_messages()] == ["One."]


def test_what_came_since_a_size_of_the_log_is_read_from_there(log):
    assert log.read_messages_since(0) == []
    log.write_messages([said("One.")])
    size = log.size
    written = log.write_messages([said("Two."), said("Three.")])
    assert log.read_messages_since(size) == written
    assert log.read_messages_since(log.size) == []
    for start in (0, 1_000_000):  # of a log that was made again all is new
        assert [get_text(message) for message in log.read_messages_since(start)] == ["One.", "Two.", "Three."]


# --- the transcript of another program: each message once, wherever reading begins


def line(number, text, **fields):
    record = {"type": "user", "uuid": f"u{number}", "sessionId": "s", "message": {"role": "user", "content": text}}
    return json.dumps(record | fields) + "\n"


def spoken(log):
    return [message["content"][0]["text"] for message in log.read_messages()]


@pytest.mark.parametrize("words", [3, 300])
def test_a_transcript_that_grows_is_read_from_where_it_was_read_to(tmp_path, log, words):
    file, end, texts = tmp_path / "talk.jsonl", 0, []
    for number in range(40):
        texts.append(f"{number} {'word ' * words}")
        with file.open("a") as opened:
            opened.write(line(number, texts[-1]))
        end = log.keep_transcript(file, end)
        assert end == file.stat().st_size
    assert spoken(log) == texts
    assert log.keep_transcript(file) == end
    assert spoken(log) == texts


def test_messages_without_ids_are_known_by_their_places(tmp_path, log):
    file = tmp_path / "talk.jsonl"
    file.write_text(line(1, "Yes", uuid=None) * 2)
    for _ in range(2):
        log.keep_transcript(file)
    assert spoken(log) == ["Yes", "Yes"]
    end = file.stat().st_size
    file.write_text(file.read_text() + line(3, "Yes"))
    log.keep_transcript(file, end)
    assert spoken(log) == ["Yes", "Yes", "Yes"], "in another message the same words are kept again"


@pytest.mark.parametrize("start", [-1, 3, 10_000])
def test_reading_begins_at_the_beginning_where_no_line_begins(tmp_path, log, start):
    file = tmp_path / "talk.jsonl"
    file.write_text(line(1, "Hello"))
    log.keep_transcript(file, start)
    assert spoken(log) == ["Hello"]


def test_half_a_line_is_left_for_later(tmp_path, log):
    file, whole, later = tmp_path / "talk.jsonl", line(1, "Hello"), line(2, "Later")
    file.write_text(whole + later[:40])
    end = log.keep_transcript(file)
    assert (end, spoken(log)) == (len(whole), ["Hello"])
    file.write_text(whole + later)
    log.keep_transcript(file, end)
    assert spoken(log) == ["Hello", "Later"]


def test_what_is_no_transcript_is_refused(tmp_path, log):
    with pytest.raises(NotFoundError, match="does not exist"):
        log.keep_transcript(tmp_path / "none.jsonl")
    (tmp_path / "other.jsonl").write_text('{"kind": "odd"}\n')
    with pytest.raises(InvalidInputError, match="not a transcript in a format of"):
        log.keep_transcript(tmp_path / "other.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathNotAllowedError, match="not a file"):
        log.keep_transcript(tmp_path / "pipe")
    log.append("user", "Hello")
    with pytest.raises(InvalidInputError, match="in the folder of the log"):
        log.keep_transcript(os.path.join(log.folder.base, log.path))
