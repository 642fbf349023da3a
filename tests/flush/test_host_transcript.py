"""Keeping what another program's transcript says: each message once, wherever reading begins."""

import json
import os

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import InvalidInputError, NotFoundError
from openclaw_memory.testing import RecordingEmbedder


def line(number, text, **fields):
    record = {"type": "user", "uuid": f"u{number}", "sessionId": "s", "message": {"role": "user", "content": text}}
    return json.dumps(record | fields) + "\n"


@pytest.fixture
def log(tmp_path):
    (tmp_path / "notes").mkdir()
    with Memory.open(tmp_path / "notes", embedder=RecordingEmbedder()) as memory:
        yield memory.sessions.log("s")


def said(log):
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
    assert said(log) == texts
    assert log.keep_transcript(file) == end
    assert said(log) == texts


def test_messages_without_ids_are_known_by_their_places(tmp_path, log):
    file = tmp_path / "talk.jsonl"
    file.write_text(line(1, "Yes", uuid=None) * 2)
    for _ in range(2):
        log.keep_transcript(file)
    assert said(log) == ["Yes", "Yes"]
    end = file.stat().st_size
    file.write_text(file.read_text() + line(3, "Yes"))
    log.keep_transcript(file, end)
    assert said(log) == ["Yes", "Yes", "Yes"], "in another message the same words are kept again"


@pytest.mark.parametrize("start", [-1, 3, 10_000])
def test_reading_begins_at_the_beginning_where_no_line_begins(tmp_path, log, start):
    file = tmp_path / "talk.jsonl"
    file.write_text(line(1, "Hello"))
    log.keep_transcript(file, start)
    assert said(log) == ["Hello"]


def test_half_a_line_is_left_for_later(tmp_path, log):
    file, whole, later = tmp_path / "talk.jsonl", line(1, "Hello"), line(2, "Later")
    file.write_text(whole + later[:40])
    end = log.keep_transcript(file)
    assert (end, said(log)) == (len(whole), ["Hello"])
    file.write_text(whole + later)
    log.keep_transcript(file, end)
    assert said(log) == ["Hello", "Later"]


def test_what_is_no_transcript_is_refused(tmp_path, log):
    with pytest.raises(NotFoundError, match="there is no transcript"):
        log.keep_transcript(tmp_path / "none.jsonl")
    (tmp_path / "other.jsonl").write_text('{"kind": "odd"}\n')
    with pytest.raises(InvalidInputError, match="not a transcript in a format of"):
        log.keep_transcript(tmp_path / "other.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="not an ordinary file"):
        log.keep_transcript(tmp_path / "pipe")
    log.append("user", "Hello")
    with pytest.raises(InvalidInputError, match="in the folder of the log"):
        log.keep_transcript(os.path.join(log.folder.base, log.path))
