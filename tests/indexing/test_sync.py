"""One sync: what it finds, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from watching import eventually

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.errors import WorkspaceError
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.sync import describe_index, sync
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.types import Progress
from openclaw_memory.workspace import Workspace

from .conftest import DOWN


def lines(count: int, word: str = "apple") -> list[str]:
    return [
        f"- memo {word} number {number} is about something of its own, long enough to fill" for number in range(count)
    ]


def test_a_first_sync_adds_every_file_and_changes_additions_and_removals_are_followed_by_path(place):
    for name in ("a", "b", "c"):
        place.write(f"memory/{name}.md", f"memo {name}")
    report = place.sync()
    assert report.added == ("memory/a.md", "memory/b.md", "memory/c.md")
    assert (report.changed, report.removed, report.unchanged, report.rebuilt, report.ok) == ((), (), 0, None, True)
    assert place.texts() == ["memo a", "memo b", "memo c"]
    place.write("memory/a.md", "memo a, second version")
    (place.root / "memory/b.md").unlink()
    place.write("memory/d.md", "memo d")
    report = place.sync()
    assert (report.changed, report.removed, report.added) == (("memory/a.md",), ("memory/b.md",), ("memory/d.md",))
    assert report.unchanged == 1
    assert place.texts() == ["memo a, second version", "memo c", "memo d"]


def test_a_file_restored_with_an_older_mtime_is_read_again(place):
    file = place.write("MEMORY.md", "memo new")
    place.sync()
    place.write("MEMORY.md", "memo old")
    os.utime(file, (1_000_000, 1_000_000))
    assert place.sync().changed == ("MEMORY.md",)
    assert place.texts() == ["memo old"]


def test_an_edit_of_equal_size_within_the_clocks_tick_is_found(place):
    file = place.write("MEMORY.md", "memo one")
    place.sync()
    stamp = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"memo two")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    record = place.store.get_files()["MEMORY.md"]
    place.store.replace_files([(replace(record, checked_ns=stamp.st_mtime_ns + 1), None)])
    assert place.sync().changed == ("MEMORY.md",)
    assert place.texts() == ["memo two"]


def test_a_touched_file_with_equal_text_is_read_once_and_then_left_alone(place, monkeypatch):
    file = place.write("MEMORY.md", "memo one")
    place.sync()
    os.utime(file, ns=(time.time_ns() - 10**12 + 1, time.time_ns() - 10**12 + 1))
    eventually(lambda: time.time_ns() - file.stat().st_ctime_ns > 20_000_000)  # a tick of the clock: beyond doubt
    assert place.sync().unchanged == 1
    read: list[str] = []
    monkeypatch.setattr(Workspace, "read", lambda _self, path: read.append(path))
    assert (place.sync().unchanged, read) == (1, [])


def test_searches_can_filter_by_the_scalars_in_the_metadata_of_a_document(place):
    secret = "sk-" + "a1B2" * 12
    metadata = {"year": 2026, "tags": ["a"], "text": "x" * 300, "key": secret, "draft": False}
    above = ("---", "openclaw_memory: 1", f"metadata: {json.dumps(metadata)}", "---")
    place.write("memory/notes/a.md", *above, "the memo")
    place.write("memory/b.md", *above, "the memo")
    place.sync()
    (stored,) = place.store.get_file_chunks("memory/notes/a.md")
    own = {name for name in stored.chunk.metadata if name.startswith(":")}
    assert own == {":document", ":tags"}
    said = {name: value for name, value in stored.chunk.metadata.items() if name not in own}
    assert said == {"year": 2026, "draft": False, "tags": None, "text": None, "key": None}
    hits = place.store.search_text(["memo"], 5, where=lambda _, fields: fields.get("year") == 2026)
    assert [hit.chunk_id for hit in hits] == [stored.id]


# --- vectors are content-addressed
@pytest.mark.parametrize(
    ("before", "after"),
    [("memory/phoenix.md", "memory/griffin.md"), ("memory/2026-01-02.md", "memory/old/2026-01-02.md")],
)
def test_a_rename_embeds_nothing(place, before, after):
    file = place.write(before, *lines(40))
    place.sync()
    place.embedder.documents.clear()
    (place.root / after).parent.mkdir(exist_ok=True)
    file.rename(place.root / after)
    report = place.sync()
    assert (report.added, report.removed) == ((after,), (before,))
    assert (report.embedded, place.embedder.documents) == (0, [])
    assert place.store.search_vector(place.embedder.embed_query("memo apple"), 3)


def test_a_line_added_on_top_embeds_one_or_two_chunks(place):
    body = [f"## Heading {number}\n\n" + "\n".join(lines(4, f"w{number}")) for number in range(10)]
    place.write("memory/topics.md", *body)
    assert place.sync().embedded >= 10
    place.write("memory/topics.md", "memo line on top", *body)
    assert 1 <= place.sync().embedded <= 2


# --- building again
def other_model(place: Any) -> None:
    place.embedder = RecordingEmbedder(name="other")


def other_chunks(place: Any) -> None:
    place.config = MemoryConfig(chunking=ChunkingConfig(max_chars=200))


def no_embedder(place: Any) -> None:
    place.embedder = None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (other_model, "other other-64"),
        (other_chunks, "max_chars was 700 and is now 200"),
        (no_embedder, "keywords only"),
    ],
)
def test_another_embedder_or_chunking_builds_the_index_again_and_says_why(place, change, word):
    place.write("MEMORY.md", *lines(12))
    place.sync()
    change(place)
    report = place.sync()
    assert word in (report.rebuilt or "")
    assert (report.unchanged, report.added, report.changed) == (1, (), ())
    assert place.store.describe().chunks > 0
    assert place.sync().rebuilt is None


def test_an_embedder_that_does_not_answer_does_not_cost_the_index_it_would_replace(place):
    place.write("MEMORY.md", "memo one")
    place.sync()
    identity, dims = place.store.read_meta().identity, place.store.read_meta().dims
    place.embedder = RecordingEmbedder(name="other")
    place.embedder.failure = DOWN
    report = place.sync()
    assert (report.rebuilt, report.ok, [file.path for file in report.waiting]) == (None, False, ["MEMORY.md"])
    assert (place.store.read_meta().identity, place.store.read_meta().dims) == (identity, dims)
    place.write("MEMORY.md", "memo two")
    assert ["out of order" in file.reason for file in place.sync().waiting] == [True]
    assert place.store.search_text(["two"], 5)
    place.embedder.failure = None
    assert "and is now" in str(place.sync().rebuilt)
    assert place.store.read_meta().identity == place.embedder.identity != identity


# --- failures
def failing_read(monkeypatch: pytest.MonkeyPatch, path: str, error: Exception) -> None:
    real = Workspace.read

    def read(self: Workspace, wanted: str) -> str:
        if wanted == path:
            raise error
        return real(self, wanted)

    monkeypatch.setattr(Workspace, "read", read)


@pytest.mark.fault(25)
@pytest.mark.parametrize(
    ("error", "reason"),
    [(PermissionError(13, "Permission denied"), "Permission denied"), (ValueError("odd"), "ValueError: odd")],
)
def test_a_file_that_fails_once_is_reported_and_retried_without_being_touched(place, monkeypatch, error, reason):
    place.write("memory/bad.md", "memo bad")
    place.write("memory/good.md", "memo good")
    with monkeypatch.context() as patch:
        failing_read(patch, "memory/bad.md", error)
        report = place.sync()
    assert [file.path for file in report.failed] == ["memory/bad.md"]
    assert reason in report.failed[0].reason
    assert (report.ok, report.added) == (False, ("memory/good.md",))
    assert place.sync().added == ("memory/bad.md",)
    assert place.texts() == ["memo bad", "memo good"]


@pytest.mark.fault(25)
def test_a_changed_file_that_fails_keeps_the_lines_it_had_until_it_can_be_read(place, monkeypatch):
    place.write("MEMORY.md", "memo first")
    place.sync()
    place.write("MEMORY.md", "memo second version")
    with monkeypatch.context() as patch:
        failing_read(patch, "MEMORY.md", OSError("input/output error"))
        place.sync()
    assert place.texts() == ["memo first"]
    assert place.sync().changed == ("MEMORY.md",)
    assert place.texts() == ["memo second version"]


@pytest.mark.fault(16)
def test_a_file_that_cannot_be_decoded_is_named_and_does_not_stop_the_others(place):
    (place.root / "MEMORY.md").write_bytes(b"memo \xff\xc0\xff\xc0")
    place.write("memory/good.md", "memo good")
    report = place.sync()
    assert [file.path for file in report.skipped] == ["MEMORY.md"]
    assert place.texts() == ["memo good"]
    place.write("MEMORY.md", "memo mended")
    assert (place.sync().added, place.texts()) == (("MEMORY.md",), ["memo mended", "memo good"])


def test_a_file_that_vanishes_between_the_look_and_the_reading_is_removed(place, monkeypatch):
    place.write("MEMORY.md", "memo one")
    file = place.write("memory/a.md", "memo two")
    place.sync()
    place.write("memory/a.md", "memo two, changed")
    real = Workspace.scan

    def scan_then_lose(self: Workspace) -> Any:
        found = real(self)
        file.unlink()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "scan", scan_then_lose)
        report = place.sync()
    assert (report.removed, report.failed) == (("memory/a.md",), ())
    assert place.texts() == ["memo one"]


def test_a_workspace_that_has_gone_is_an_error_and_costs_no_rows(place):
    place.write("MEMORY.md", "memo one")
    place.sync()
    workspace = place.workspace
    place.root.rename(place.root.with_name("elsewhere"))
    with pytest.raises(WorkspaceError):
        sync(SyncParts(workspace, place.store, place.embedder, place.config))
    assert place.texts() == ["memo one"]


@pytest.mark.fault(22)
def test_an_embedder_that_answers_with_too_few_vectors_stores_none(place, monkeypatch):
    place.write("MEMORY.md", *lines(30))
    real = type(place.embedder).embed_documents

    def short(self: Any, texts: Sequence[str]) -> Any:
        return real(self, texts)[:-1]

    monkeypatch.setattr(type(place.embedder), "embed_documents", short)
    assert ["shape" in file.reason for file in place.sync().waiting] == [True]
    assert place.store.describe().vectors == 0


def test_progress_counts_files_up_to_the_total(place):
    for number in range(150):
        place.write(f"memory/{number:03}.md", f"memo {number}")
    steps: list[Progress] = []
    place.sync(progress=steps.append)
    assert [step.completed for step in steps] == sorted({step.completed for step in steps})
    assert len(steps) > 1
    last = steps[-1]
    assert (last.completed, last.total, last.label, last.embedded) == (150, 150, "files", 150)
    assert last.tokens == sum(len(row.chunk.embedding_text) for row in place.store.get_chunks(range(1, 151)))
    assert last.rate > 0


def test_a_sync_that_goes_on_with_a_build_does_not_call_the_next_one_complete(place):
    place.write("MEMORY.md", "memo one")
    place.store.begin_build(describe_index(place.embedder, place.config.chunking))
    begun: list[str] = []

    def begin_another(_: Progress) -> None:
        begun.append(place.store.begin_build(place.store.read_meta()).store.read_meta().building)

    place.sync(progress=begin_another)
    assert place.store.read_meta().building == begun[-1]
