"""What is gathered before an index is given up for another: all of it, told as it goes."""

from __future__ import annotations

from dataclasses import replace

from openclaw_memory.indexing.gathering import gather, missing_texts
from openclaw_memory.indexing.parts import SyncParts
from openclaw_memory.types import Progress


def test_progress_of_gathering_counts_files_whose_texts_are_there(place):
    for number in range(700):
        place.write(f"memory/{number:03}.md", f"memo {number}")

    steps: list[Progress] = []
    files = place.workspace.scan().files
    parts = SyncParts(place.workspace, place.store, place.embedder, place.config, progress=steps.append)
    counts = gather(parts, place.embedder, files)
    assert counts[0] == len(files) == 700
    embedded = [(step.completed, step.embedded) for step in steps if step.label == "files embedded"]
    assert embedded == [(255, 256), (511, 512), (700, 700)]
    looked = [step.completed for step in steps if step.label == "files looked through"]
    assert looked == list(range(64, 700, 64))
    assert steps[-1].total == 700
    assert gather(parts, place.embedder, files) == (0, 0)


def test_of_transcripts_that_are_known_only_what_was_added_is_missing(place):
    parts = SyncParts(place.workspace, place.store, place.embedder, place.config)
    missing = lambda known: [  # noqa: E731
        text for _, text in missing_texts(parts, "another", place.workspace.scan().files, known)
    ]
    path = "sessions/talk.jsonl"
    place.say(path, "memo old", day="2026-11-20")
    place.sync()
    known = place.store.files()
    assert missing(known) == []
    place.say(path, "memo new")
    new, old = "2026-11-21\nUser: memo new", "2026-11-20\nUser: memo old"
    assert missing(known) == [new]
    assert missing({path: replace(known[path], vectors_missing="the service was down")}) == [old, new]
    assert missing(None) == [old, new]
