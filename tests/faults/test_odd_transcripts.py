"""Transcripts that hold nonsense: each line that cannot be read is skipped and counted, and the others are found."""

from __future__ import annotations

import json
import os

import pytest
from processes import QUIET, bind_socket, fresh, sync_traced, synced

from openclaw_memory import Memory
from openclaw_memory.workspace import Workspace


def message(text: str) -> bytes:
    entry = {"type": "message", "timestamp": "2026-11-21T10:00:00Z", "message": {"role": "user", "content": text}}
    return json.dumps(entry).encode()


NEST = 100_000
# A line, and whether it counts as one that cannot be read.
LINES = {
    "no JSON": (b"this is no JSON", True),
    "half a line": (message("memo half")[:40], True),
    "an integer of 5,000 digits": (b'{"type": "message", "n": ' + b"9" * 5000 + b"}", True),
    "100,000 levels of nesting": (b'{"type": "message", "n": ' + b"[" * NEST + b"]" * NEST + b"}", True),
    "a list": (b"[1, 2]", True),
    "a number": (b"7", True),
    "null": (b"null", True),
    "not UTF-8": (b'{"type": "message", "message": {"role": "user", "content": "memo \xff\xfe"}}', None),
    "NUL": (b"\0" * 50, True),
    "UTF-16": (message("memo wide").decode().encode("utf-16"), True),
    "a line of 9 MB": (b'{"type": "message", "n": "' + b"x" * (9 << 20) + b'"}', True),
    "NaN": (b'{"type": "message", "n": NaN, "message": {"role": "user", "content": "memo nan"}}', True),
    "Infinity": (b'{"type": "message", "n": 1e999, "message": {"role": "user", "content": "memo inf"}}', False),
    "a lone surrogate": (message("memo \ud800 alone"), False),
    "the same key twice": (b'{"type": "x", "type": "message", "message": {"role": "user", "content": "memo"}}', False),
    "U+2028, NEL, form feed": (message("memo a\u2028b\x85c\x0cd\re"), False),
    "a carriage return": (message("memo return") + b"\r", False),
    "an empty line": (b"", False),
    "content that is no text": (b'{"type": "message", "message": {"role": "user", "content": 7}}', False),
    "a message that is none": (b'{"type": "message", "message": [1]}', False),
}


@pytest.mark.fault(18)
@pytest.mark.parametrize(("line", "is_skipped"), LINES.values(), ids=LINES)
@pytest.mark.sampled(4)
def test_a_line_of_nonsense_is_skipped_and_counted_and_the_others_are_found(tmp_path, line, is_skipped):
    notes = tmp_path / "notes"
    (notes / "sessions").mkdir(parents=True)
    file = notes / "sessions/talk.jsonl"
    file.write_bytes(b"\n".join([message("memo first quince"), line, message("memo last plum"), b""]))
    with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
        report = memory.sync()
        assert (report.added, report.failed) == (("sessions/talk.jsonl",), ())
        assert all(file.path == "sessions/talk.jsonl" and "line 2" in file.reason for file in report.skipped)
        if is_skipped is not None:
            assert len(report.skipped) == is_skipped
        for word, number in (("quince", 1), ("plum", 3)):
            hit = memory.search(word, min_score=0.0)[0]
            assert hit.start_line <= number <= hit.end_line
            assert word in memory.get(hit.path, start=number, lines=1).text
        with file.open("ab") as more:
            more.write(message("memo later fig") + b"\n")
        memory.sync()
        assert "fig" in memory.get("sessions/talk.jsonl", start=4, lines=1).text
        assert any("fig" in hit.snippet for hit in memory.search("fig", min_score=0.0))
    assert synced(notes) == fresh(notes)


ENCODINGS = {"a byte order mark": (b"\xef\xbb\xbf", "\n"), "carriage returns": (b"", "\r\n")}


@pytest.mark.fault(16)
@pytest.mark.parametrize(("head", "end"), ENCODINGS.values(), ids=ENCODINGS)
def test_a_transcript_of_another_system_is_read(tmp_path, head, end):
    (tmp_path / "sessions").mkdir()
    lines = [message("memo first quince"), message("memo last plum")]
    (tmp_path / "sessions/talk.jsonl").write_bytes(head + b"".join(line + end.encode() for line in lines))
    with Memory.open(tmp_path, embedder=None, config=QUIET) as memory:
        assert memory.sync().skipped == ()
        for number, word in enumerate(("quince", "plum"), 1):
            assert word in memory.get("sessions/talk.jsonl", start=number, lines=1).text
            assert memory.search(word, min_score=0.0)[0].path == "sessions/talk.jsonl"


@pytest.mark.fault(17)
def test_a_transcript_that_is_none_is_listed_and_a_line_without_end_costs_no_memory(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "talk.jsonl").write_bytes(message("memo quince") + b"\n")
    (folder / "link.jsonl").symlink_to("talk.jsonl")
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    with (folder / "line.jsonl").open("wb") as file:
        file.write(message("memo plum") + b"\n")
        file.truncate(100 << 20)  # one line of zeros without an end
    bind_socket(folder / "socket.jsonl")
    with Memory.open(tmp_path, embedder=None, config=QUIET) as memory:
        memory.search("load what is needed")
        report, peak = sync_traced(memory)
        odd = {f"sessions/{name}.jsonl" for name in ("link", "folder", "pipe", "socket")}
        assert {file.path for file in report.skipped} == odd
        assert {hit.path for hit in memory.search("plum", min_score=0.0)} == {"sessions/line.jsonl"}
    assert peak < 64 << 20


@pytest.mark.fault(19)
@pytest.mark.nightly
def test_more_than_a_hundred_thousand_transcripts_are_scanned(tmp_path):
    (tmp_path / "sessions").mkdir()
    for number in range(100_001):
        (tmp_path / f"sessions/{number}.jsonl").touch()
    found = Workspace.open(tmp_path).scan()
    assert (len(found.files), len(found.skipped)) == (100_001, 0)
