"""What a conversation loses is in its log, each message as often as it was said, with secrets masked."""

import json

import pytest

from openclaw_memory.errors import WriteError
from openclaw_memory.sessions import Flush, since_compaction, text_of, transcribed
from openclaw_memory.sessions.cycle import failures
from openclaw_memory.workspace import Workspace, session_log
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES

SECRET = "sk-proj-" + "a1B2c3D4" * 5


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.fixture
def log(workspace):
    return workspace.session_log("talk")


def said(text, **more):
    return {"role": "user", "content": text, **more}


def test_each_message_is_written_once_whatever_it_says_and_comes_back_with_its_id(log):
    written = transcribed(log, [said("Yes."), said("Yes.", id="mine"), said("No.")])
    assert [text_of(message) for message in log.messages()] == ["Yes.", "Yes.", "No."]
    assert [message["id"] for message in written] == [entry["id"] for entry in list(log.entries())[1:]]
    assert transcribed(log, []) == []


def test_secrets_are_masked_in_what_is_written_and_in_what_comes_back(log):
    call = {"type": "toolCall", "id": "a", "name": "pay", "arguments": {"key": SECRET}}
    written = transcribed(log, [said(f"It is {SECRET}."), {"role": "assistant", "content": [call]}])
    assert SECRET not in json.dumps([written, log.messages()])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([{"type": "data", "value": float("nan")}], "cannot be written as JSON"),
        ([{"type": "data", "value": {1, 2}}], "cannot be written as JSON"),
        ("x" * MAX_LINE_BYTES, "bytes, of which 8,388,608 are read"),
    ],
    ids=["no number", "no JSON", "too long"],
)
def test_a_message_that_no_log_can_hold_is_there_without_its_words(log, content, why):
    answer = {"role": "toolResult", "toolCallId": "a", "toolName": "look", "content": content}
    transcribed(log, [said("One."), answer, said("Two.")])
    one, left_out, two = log.messages()
    assert (text_of(one), text_of(two)) == ("One.", "Two.")
    assert (left_out["role"], left_out["toolCallId"], left_out["toolName"]) == ("toolResult", "a", "look")
    assert why in text_of(left_out)


def test_what_the_disk_refuses_is_not_there_in_part(log, monkeypatch):
    transcribed(log, [said("One.")])

    def refuse(*_):
        raise WriteError("full")

    monkeypatch.setattr(session_log, "write_whole", refuse)
    with pytest.raises(WriteError):
        transcribed(log, [said("Two."), said("Three.")])
    assert [text_of(message) for message in log.messages()] == ["One."]


def test_what_came_since_a_size_of_the_log_is_read_from_there(log):
    transcribed(log, [said("One.")])
    size = log.size
    written = transcribed(log, [said("Two."), said("Three.")])
    assert since_compaction(log, size, 10_000) == written
    assert since_compaction(log, log.size, 10_000) == []
    assert [text_of(message) for message in since_compaction(log, 0, 10_000)] == ["One.", "Two.", "Three."]


def test_of_a_log_that_was_made_anew_all_is_new(log):
    transcribed(log, [said("One.")])
    assert [text_of(message) for message in since_compaction(log, 1_000_000, 10_000)] == ["One."]


def test_no_more_than_the_end_of_the_log_is_read(log):
    transcribed(log, [said(f"Line {number}.") for number in range(100)])
    found = [text_of(message) for message in since_compaction(log, 0, 1_000)]
    assert 0 < len(found) < 10
    assert found[-1] == "Line 99."


def test_of_a_log_that_was_never_written_nothing_is_new(log):
    assert since_compaction(log, 0, 10_000) == []


def test_a_failure_is_listed_also_where_it_could_not_be_written(workspace, monkeypatch):
    shared = {}
    Flush(workspace, "a", shared=shared).save(flush_error="the model is away")

    def refuse(*_):
        raise WriteError("full")

    monkeypatch.setattr("openclaw_memory.sessions.state.replace_file", refuse)
    Flush(workspace, "b", shared=shared).save(flush_error="the disk is full")
    assert failures(workspace, shared) == {"a": "the model is away", "b": "the disk is full"}
    monkeypatch.undo()
    Flush(workspace, "b", shared=shared).save(flush_error=None)
    assert failures(workspace, shared) == {"a": "the model is away"}
