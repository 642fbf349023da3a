"""Whatever happens to the files and to the index, one sync ends equal to an index built from the files alone."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openclaw_memory.errors import CorruptIndexError
from openclaw_memory.indexing import pipeline
from openclaw_memory.store import SqliteStore
from openclaw_memory.store.connection import PAGE_SIZE
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.types import Progress
from openclaw_memory.workspace import transcripts

from .conftest import DOWN

PART_BYTES = 400  # of transcripts, two or three of the lines below

PATHS = st.sampled_from(
    ["MEMORY.md", "USER.md", "memory/a.md", "memory/b.md", "memory/2026-01-02.md", "memory/deep/c.md"]
)
TRANSCRIPTS = st.sampled_from(["sessions/a.jsonl", "sessions/b.jsonl"])
WORDS = st.lists(st.sampled_from("apple pear plum GEO-1000 数据库 # - ```".split()), min_size=1, max_size=6)
TEXTS = st.lists(WORDS.map(lambda words: "memo " + " ".join(words)), min_size=0, max_size=40).map("\n".join)
DAYS = st.sampled_from(["2026-01-02", "2026-01-03"])
# How a line of a transcript ends: whole, or without its newline, or in the middle: then the next one glues to it.
ENDS = st.sampled_from(["newline", "newline", "newline", "nothing", "half"])
NOTE_STEPS = (
    st.tuples(st.just("write"), PATHS, TEXTS),
    st.tuples(st.just("add a line"), PATHS, WORDS.map(" ".join)),
    st.tuples(st.just("delete"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("touch"), PATHS),
    st.tuples(st.just("break"), PATHS),
)
TALK_STEPS = (
    st.tuples(st.just("say"), TRANSCRIPTS, st.lists(WORDS.map(" ".join), min_size=1, max_size=12), DAYS, ENDS),
    st.tuples(st.just("say"), TRANSCRIPTS, st.lists(WORDS.map(" ".join), min_size=1, max_size=2), DAYS, ENDS),
    st.tuples(st.just("write"), TRANSCRIPTS, TEXTS),
    st.tuples(st.just("rewrite"), TRANSCRIPTS),
    st.tuples(st.just("cut short"), TRANSCRIPTS, st.floats(0, 1)),
    st.tuples(st.just("delete"), TRANSCRIPTS),
    st.tuples(st.just("rename"), TRANSCRIPTS, TRANSCRIPTS),
    st.tuples(st.just("touch"), TRANSCRIPTS),
    st.tuples(st.just("break"), TRANSCRIPTS),
)
INDEX_STEPS = (
    st.tuples(st.just("sync")),
    st.tuples(st.just("rebuild")),
    st.tuples(st.just("die while embedding")),
    st.tuples(st.just("die between two writes"), st.integers(0, 4)),
    st.tuples(st.just("sync while the embedder is down")),
    st.tuples(st.just("change the model"), st.sampled_from("ab")),
    st.tuples(st.just("lose the index")),
    st.tuples(st.just("be killed between two writes"), st.integers(0, 4), st.booleans()),
    st.tuples(st.just("sync elsewhere"), st.booleans()),
    st.tuples(st.just("write garbage into the index"), st.floats(0, 1, exclude_max=True), st.integers(1, 3)),
)
FILE_STEPS = {"lose the index", "be killed between two writes", "write garbage into the index"}


class World:
    """A workspace, and an index that follows it through whatever a step does."""

    def __init__(self, folder: Path, open_place: Callable[[Path, Path], Any]) -> None:
        self.root, self.index = folder / "workspace", folder / "index" / "index.sqlite"
        self.root.mkdir()
        self.fresh = folder / "fresh" / "index.sqlite"
        self.open_place = open_place
        self.place = open_place(self.root, self.index)
        self.seen: dict[int, object] = {}
        self.has_file = self.index.exists()

    def step(self, name: str, *arguments: Any) -> None:
        if name in FILE_STEPS and not self.has_file:
            return
        try:
            getattr(self, name.replace(" ", "_") if name != "break" else "damage")(*arguments)
            self.no_id_names_another_chunk()
        except CorruptIndexError:
            self.heal()

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def add_a_line(self, path: str, words: str) -> None:
        if (file := self.root / path).exists():
            self.write(path, f"memo {words}\n{file.read_text(encoding='utf-8', errors='replace')}")

    def say(self, path: str, texts: Sequence[str], day: str, end: str) -> None:
        line = ""
        for number, text in enumerate(texts):
            message = {"role": "user" if number % 3 else "toolResult", "content": f"memo {text}"}
            line = json.dumps({"type": "message", "timestamp": f"{day}T10:00:00Z", "message": message})
            self.add(path, f"{line}\n" if number < len(texts) - 1 else "")
        self.add(path, {"newline": f"{line}\n", "nothing": line, "half": line[: len(line) // 2]}[end])

    def add(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        with (self.root / path).open("a", encoding="utf-8") as file:
            file.write(text)

    def rewrite(self, path: str) -> None:
        if (file := self.root / path).exists():
            file.write_bytes(file.read_bytes().replace(b"apple", b"quince").replace(b"pear", b"fig"))

    def cut_short(self, path: str, share: float) -> None:
        if (file := self.root / path).exists():
            os.truncate(file, int(file.stat().st_size * share))

    def delete(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    def rename(self, path: str, other: str) -> None:
        if (self.root / path).exists():
            (self.root / other).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).replace(self.root / other)

    def touch(self, path: str) -> None:
        if (self.root / path).exists():
            os.utime(self.root / path, (1_000_000, 1_000_000))

    def damage(self, path: str) -> None:
        if (file := self.root / path).exists():
            file.write_bytes(b"memo \xff\xfe\xff\x00\x80")

    def sync(self, **options: Any) -> None:
        self.place.sync(**options)

    def rebuild(self) -> None:
        self.sync(force=True)

    def sync_elsewhere(self, force: bool) -> None:
        other = self.open_place(self.root, self.index)
        other.embedder = self.place.embedder
        try:
            other.sync(force=force)
        finally:
            other.store.close()

    def die_while_embedding(self) -> None:
        self.place.embedder.failure = KeyboardInterrupt()
        try:
            self.sync()
        except KeyboardInterrupt:
            self.reopen()
        finally:
            self.place.embedder.failure = None

    def die_between_two_writes(self, writes: int) -> None:
        def progress(step: Progress) -> None:
            nonlocal writes
            writes -= 1
            if writes < 0:
                raise KeyboardInterrupt(step)

        try:
            self.sync(progress=progress)
        except KeyboardInterrupt:
            self.reopen()

    def be_killed_between_two_writes(self, writes: int, force: bool) -> None:
        left = self.index.parent.with_name("left")

        def progress(step: Progress) -> None:
            nonlocal writes
            writes -= 1
            if writes < 0:
                shutil.copytree(self.index.parent, left)  # what a process leaves that does nothing any more
                raise KeyboardInterrupt(step)

        try:
            self.sync(force=force, progress=progress)
        except KeyboardInterrupt:
            self.place.store.close()
            shutil.rmtree(self.index.parent)
            left.rename(self.index.parent)
            self.place.store = self.open_place(self.root, self.index).store

    def sync_while_the_embedder_is_down(self) -> None:
        self.place.embedder.failure = DOWN
        try:
            self.sync()
        finally:
            self.place.embedder.failure = None

    def change_the_model(self, name: str) -> None:
        self.place.embedder = RecordingEmbedder(name=name)

    def reopen(self) -> None:
        self.place.store.close()
        self.place.store = self.open_place(self.root, self.index).store

    def lose_the_index(self) -> None:
        self.place.store.close()
        for file in self.index.parent.iterdir():
            file.unlink()
        self.place.store = self.open_place(self.root, self.index).store
        self.seen.clear()

    def write_garbage_into_the_index(self, where: float, pages: int) -> None:
        self.place.store.close()
        size = self.index.stat().st_size
        with self.index.open("r+b") as file:
            file.seek(int(where * (size // PAGE_SIZE)) * PAGE_SIZE)
            file.write(b"\xa5" * PAGE_SIZE * pages)
        self.place.store = self.open_place(self.root, self.index).store

    def heal(self) -> None:
        """What the upkeep of a memory does once it has met damage."""
        if not self.has_file:
            return
        self.place.store.close()
        store = SqliteStore(self.index)
        if problems := store.verify():
            store.delete_damaged("; ".join(problems))
            self.seen.clear()
        store.close()
        self.place.store = self.open_place(self.root, self.index).store

    def no_id_names_another_chunk(self) -> None:
        for path in self.place.store.get_files():
            for stored in self.place.store.get_file_chunks(path):
                assert self.seen.setdefault(stored.id, (path, stored.chunk)) == (path, stored.chunk)


NOTE = ("write", "memory/a.md", "memo apple\nmemo pear")


@pytest.mark.fault(42)
@example(steps=[NOTE, ("be killed between two writes", 0, False)])
@example(steps=[NOTE, ("sync",), NOTE, ("be killed between two writes", 0, True), ("sync elsewhere", True)])
@example(steps=[NOTE, ("sync",), ("write garbage into the index", 0.3, 3), ("sync",)])
@given(steps=st.lists(st.one_of(*NOTE_STEPS, *TALK_STEPS, *INDEX_STEPS), min_size=1, max_size=20))
@settings(max_examples=8)
def test_any_sequence_of_edits_and_accidents_ends_equal_to_a_fresh_index(open_place, steps):
    check_ends_equal_to_fresh(open_place, steps)


@pytest.mark.fault(42)
@given(steps=st.lists(st.one_of(*TALK_STEPS[:2], *TALK_STEPS, *INDEX_STEPS[:1] * 4, *INDEX_STEPS), max_size=20))
@settings(max_examples=8)
def test_any_sequence_of_talk_and_accidents_ends_equal_to_a_fresh_index(open_place, steps):
    check_ends_equal_to_fresh(open_place, steps)


def check_ends_equal_to_fresh(open_place: Callable[[Path, Path], Any], steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Parts and writes are small, so that a few lines make several.
        patch.setattr(transcripts, "read_parts", partial(transcripts.read_parts, part_bytes=PART_BYTES))
        patch.setattr(pipeline, "CHUNKS_PER_WRITE", 3)
        world = World(Path(folder), open_place)
        for name, *arguments in steps:
            world.step(name, *arguments)
        # A file that cannot be decoded keeps its last good lines, which a fresh index never saw.
        for path in world.root.rglob("*.md"):
            if b"\xff" in path.read_bytes():
                path.unlink()
        world.heal()  # there may be damage that nothing has met so far
        world.sync()
        assert not list(world.index.parent.glob("*.rebuild-*"))
        fresh = open_place(world.root, world.fresh)
        fresh.embedder = world.place.embedder
        fresh.sync()
        assert world.place.store.read_meta().identity == fresh.store.read_meta().identity
        assert world.place.rows() == fresh.rows()
        ours, theirs = world.place.store.get_files(), fresh.store.get_files()
        assert {path: record.hash for path, record in ours.items()} == {
            path: record.hash for path, record in theirs.items()
        }
        world.place.store.close()
        fresh.store.close()


@pytest.mark.fault(4)
def test_an_index_that_was_deleted_is_built_again_with_equal_ids_and_hits(place, open_place):
    for number in range(20):
        place.write(f"memory/{number}.md", *(f"memo apple {number} {line}" for line in range(30)))
    place.sync()
    again = open_place(place.root, place.root.parent / "again.sqlite")
    again.sync()
    question = place.embedder.embed_query("memo apple 7")
    assert again.store.search_text(["appl", "apple", "7"], 50) == place.store.search_text(["appl", "apple", "7"], 50)
    found, wanted = (which.store.search_vector(question, 50) for which in (again, place))
    assert [hit.chunk_id for hit in found] == [hit.chunk_id for hit in wanted]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in wanted])
    assert again.rows() == place.rows()
    again.store.close()
