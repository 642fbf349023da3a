"""Transcripts in the index: read part by part, gone on with where they grow, and read again where they were rewritten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from openclaw_memory.indexing import pipeline
from openclaw_memory.indexing.changes import compare
from openclaw_memory.text.fence import fence_text
from openclaw_memory.types import Progress
from openclaw_memory.workspace import Workspace, transcripts

from .conftest import DOWN

PATH = "sessions/talk.jsonl"


@pytest.fixture
def small(monkeypatch):
    """Parts of a few messages, and writes of a few chunks."""
    monkeypatch.setattr(transcripts, "read_parts", partial(transcripts.read_parts, part_bytes=400))
    monkeypatch.setattr(pipeline, "CHUNKS_PER_WRITE", 3)


@pytest.fixture
def asked(monkeypatch):
    """The first lines of all parts that were read, in their order."""
    lines: list[int] = []
    real = Workspace.read_parts

    def transcript(self: Workspace, path: str, mark: str | None = None) -> Iterator[Any]:
        for part in real(self, path, mark):
            lines.append(part.first_line)
            yield part

    monkeypatch.setattr(Workspace, "read_parts", transcript)
    return lines


def ids(place: Any, path: str = PATH) -> list[int]:
    return [stored.id for stored in place.store.get_file_chunks(path)]


def add(file: Path, text: str) -> None:
    with file.open("a") as transcript:
        transcript.write(text)


def is_like_new(place: Any, open_place: Callable[..., Any], name: str = "fresh") -> bool:
    fresh = open_place(place.root, place.root.parent / f"{name}.sqlite")
    fresh.sync()
    equal = (fresh.rows(), fresh.store.get_files()[PATH].hash) == (place.rows(), place.store.get_files()[PATH].hash)
    fresh.store.close()
    return equal


@pytest.mark.usefixtures("small")
def test_chunks_of_a_transcript_have_the_lines_and_offsets_of_the_whole_file(place):
    for number in range(40):
        place.say(PATH, f"memo {number}", role="user" if number % 2 else "toolResult")
    place.sync()
    text = place.workspace.read(PATH)
    found = [stored.chunk for stored in place.store.get_file_chunks(PATH)]
    assert len({chunk.section for chunk in found}) > 3
    for chunk in found:
        assert text[chunk.start_char :].startswith(chunk.text)
        assert text.split("\n")[chunk.start_line - 1 : chunk.end_line] == chunk.text.split("\n")
        assert chunk.section <= chunk.start_line
    assert {chunk.end_line for chunk in found} >= {40}
    assert place.store.describe().sources["sessions"] == (1, len(found))


def test_a_transcript_is_found_by_the_day_it_was_said_and_by_its_name(place):
    place.say(PATH, "memo apple", day="2026-11-20")
    place.say(PATH, "memo pear", day="2026-11-21")
    place.sync()
    for terms, lines in ((["2026-11-20"], [1]), (["2026-11-21"], [2]), (["talk"], [1, 2]), (["jsonl"], [])):
        found = place.store.get_chunks(hit.chunk_id for hit in place.store.search_text(terms, 9))
        assert [stored.chunk.start_line for stored in found] == lines, terms
    assert [stored.chunk.context for stored in place.store.get_file_chunks(PATH)] == ["2026-11-20", "2026-11-21"]


@pytest.mark.usefixtures("small")
def test_what_is_added_is_read_from_the_open_part_on_and_nothing_before(place, asked, open_place):
    place.say(PATH, *(f"memo apple {number}" for number in range(40)))
    assert place.sync().added == (PATH,)
    last_part, before = asked[-1], ids(place)
    place.embedder.documents.clear()
    asked.clear()
    place.say(PATH, "memo pear")
    report = place.sync()
    assert (report.changed, report.unchanged, report.skipped) == ((PATH,), 0, ())
    assert asked == [last_part] or asked == [41]
    assert len(place.embedder.documents) == 1
    kept = set(before) & set(ids(place))
    assert kept == {stored.id for stored in place.store.get_file_chunks(PATH) if stored.chunk.start_line < asked[0]}
    assert min(set(ids(place)) - kept) > max(before)
    assert is_like_new(place, open_place)


def test_where_nothing_complete_was_added_only_the_stamp_is_new(place):
    file = place.say(PATH, "memo apple")
    place.sync()
    before = ids(place)
    add(file, '{"type": "message", "mess')
    os.utime(file, (1_000_000, 1_000_000))
    report = place.sync()
    assert (report.changed, report.unchanged, report.embedded) == ((), 1, 0)
    assert ids(place) == before
    assert place.store.get_files()[PATH].mtime_ns == 1_000_000 * 10**9
    assert compare(place.workspace.scan().files, place.store.get_files()).dirty == ()


def test_lines_that_cannot_be_read_are_named_whenever_they_are(place):
    file = place.say(PATH, "memo one", "memo two")
    add(file, "no JSON\n{]\n\n[1]\n")
    (skipped,) = place.sync().skipped
    assert skipped.path == PATH
    assert skipped.reason.startswith("3 lines are no JSON object")
    assert skipped.reason.endswith("the first is line 3")
    assert place.sync(force=True).skipped == (skipped,)
    add(place.say("sessions/b.jsonl", "memo"), "no JSON\n")
    assert [file.reason for file in place.sync().skipped if "b.jsonl" in file.path] == [
        "line 2 is no JSON object of at most 8 MiB and was left out"
    ]
    assert len(place.rows()) == 2


def stop_after(writes: int) -> Callable[[Progress], None]:
    def progress(_: Progress) -> None:
        nonlocal writes
        writes -= 1
        if writes < 0:
            raise KeyboardInterrupt

    return progress


@pytest.mark.fault(2)
@pytest.mark.usefixtures("small")
def test_a_sync_that_dies_between_two_pieces_is_gone_on_with(place, asked, open_place):
    place.say(PATH, *(f"memo apple {number}" for number in range(60)))
    with pytest.raises(KeyboardInterrupt):
        place.sync(progress=stop_after(2))
    held = len(ids(place))
    assert 0 < held < 15
    assert compare(place.workspace.scan().files, place.store.get_files()).dirty == (PATH,)
    asked.clear()
    report = place.sync()
    assert report.changed == (PATH,)
    assert 1 < asked[0] < 60
    assert is_like_new(place, open_place)
    assert place.store.read_meta().complete


@pytest.mark.usefixtures("small")
def test_vectors_that_one_part_lacks_are_made_up_for_from_the_beginning(place, open_place):
    place.say(PATH, *(f"memo apple {number}" for number in range(20)))
    place.sync()
    place.say(PATH, *(f"memo pear {number}" for number in range(20)))
    place.embedder.failure = DOWN
    for _ in range(2):
        report = place.sync()
        assert [file.path for file in report.waiting] == [PATH]
        assert len(place.store.search_text(["memo"], 99)) == len(ids(place)) == 10
    place.say(PATH, "memo plum")
    assert [file.path for file in place.sync().waiting] == [PATH]
    place.embedder.failure = None
    assert place.sync().ok
    assert is_like_new(place, open_place)
    assert place.store.get_files()[PATH].vectors_missing is None


@pytest.mark.fault(32)
def test_what_was_recalled_is_never_indexed_again(place):
    place.write(
        "MEMORY.md",
        "memo before",
        fence_text("memo quince\n\n# memo quince", "memory/a.md#L3"),
        "memo after",
        "<relevant-memories>\nmemo quince\n</relevant-memories>",
        fence_text("memo quince", "memory/a.md#L3").upper(),
        "memo last",
        fence_text("memo", "b")[:30],
        "memo of somebody else",
    )
    place.say(PATH, f"memo said {fence_text('memo quince', 'MEMORY.md')} memo pear")
    place.say(PATH, f"memo said {json.dumps({'text': fence_text('memo quince', 'MEMORY.md')})} memo fig")
    place.say(PATH, f"memo said {fence_text('memo quince', 'MEMORY.md').upper()} memo plum")
    place.sync()
    assert place.store.search_text(["quinc"], 9) == []
    assert not any("quince" in text for text in place.embedder.documents)
    lines = place.workspace.read("MEMORY.md").split("\n")
    for stored in place.store.get_file_chunks("MEMORY.md"):
        found = stored.chunk.text.split("\n")
        at = range(stored.chunk.start_line, stored.chunk.end_line + 1)
        assert len(found) == len(at)
        assert all(not words or words == lines[number - 1] for number, words in zip(at, found, strict=True))
    words = {word for stored in place.store.get_file_chunks("MEMORY.md") for word in stored.chunk.text.split("\n")}
    assert {"memo before", "memo after", "memo last", "memo of somebody else"} <= words
    assert [stored.chunk.text for stored in place.store.get_file_chunks(PATH)] == [
        'User: memo said memo pear\nUser: memo said {"text": ""} memo fig\nUser: memo said memo plum'
    ]


def test_a_line_that_somebody_goes_on_with_is_taken_back(place, open_place):
    file = place.say(PATH, "memo apple")
    place.say(PATH, "memo pear", day="2026-11-22")
    file.write_bytes(file.read_bytes()[:-1])
    place.sync()
    assert len(place.rows()) == 2
    add(file, '{"type": "mess')
    place.sync()
    assert [row[4] for row in place.rows()] == ["User: memo apple"]
    assert is_like_new(place, open_place)


@pytest.mark.parametrize("added", [[], ["memo plum"]])
def test_a_transcript_that_was_rewritten_in_place_is_read_anew_whether_or_not_it_has_grown(place, open_place, added):
    file = place.say(PATH, *(f"memo apple {number:06}" for number in range(1500)))
    place.sync()
    stamp = file.stat()
    file.write_bytes(file.read_bytes().replace(b"apple 000300", b"olive 000300"))
    place.say(PATH, *added)
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert place.sync().changed == (PATH,)
    assert len(place.store.search_text(["oliv"], 9)) == 1
    assert is_like_new(place, open_place)


OTHER = """\
{"type": "turn_start", "payload": {"id": "s", "cwd": "/work"}}
{"type": "turn", "payload": {"role": "user", "content": [{"text": "When?"}]}}
"""


def transcript(place: Any, text: str) -> None:
    (place.root / PATH).parent.mkdir(exist_ok=True)
    (place.root / PATH).write_text(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (OTHER, "its first record is of type 'turn_start'"),
        ('{"role": "user", "content": "When does the ferry leave?"}\n', "its first record is of type None"),
        ('no JSON\n{"event": 1}\n', "its first record is of type None"),
    ],
    ids=["another program", "no types", "after a line that is no record"],
)
def test_a_transcript_of_another_program_is_skipped_with_the_reason(place, text, what):
    transcript(place, text)
    for _ in range(2):
        report = place.sync()
        assert (report.added, report.failed, [file.path for file in report.skipped]) == ((), (), [PATH])
        assert what in report.skipped[0].reason
    assert not place.store.get_files()


def test_once_it_is_one_of_openclaws_it_is_indexed(place):
    transcript(place, OTHER)
    place.sync()
    (place.root / PATH).unlink()
    place.say(PATH, "memo apple")
    assert (place.sync().added, place.sync().skipped) == ((PATH,), ())
