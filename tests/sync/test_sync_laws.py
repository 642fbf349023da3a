"""Whatever happens to the files and to the index, one sync ends equal to an index built from the files alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PATHS = st.sampled_from(
    ["MEMORY.md", "USER.md", "memory/a.md", "memory/b.md", "memory/2026-01-02.md", "memory/deep/c.md"]
)
WORDS = st.lists(st.sampled_from("apple pear plum GEO-1000 数据库 # - ```".split()), min_size=1, max_size=6)
TEXTS = st.lists(WORDS.map(lambda words: "memo " + " ".join(words)), min_size=0, max_size=40).map("\n".join)
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, TEXTS),
    st.tuples(st.just("add a line"), PATHS, WORDS.map(" ".join)),
    st.tuples(st.just("delete"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("touch"), PATHS),
    st.tuples(st.just("break"), PATHS),
    st.tuples(st.just("sync")),
    st.tuples(st.just("rebuild")),
    st.tuples(st.just("die while embedding")),
    st.tuples(st.just("sync while the embedder is down")),
    st.tuples(st.just("change the model"), st.sampled_from("ab")),
    st.tuples(st.just("lose the index")),
)


class World:
    """A workspace, and an index that follows it through whatever a step does."""

    def __init__(self, folder: Path, open_place: Callable[[Path, Path], Any]) -> None:
        self.root, self.index = folder / "workspace", folder / "index" / "index.sqlite"
        self.root.mkdir()
        self.fresh = folder / "fresh" / "index.sqlite"
        self.open_place = open_place
        self.place = open_place(self.root, self.index)

    def step(self, name: str, *arguments: str) -> None:
        getattr(self, name.replace(" ", "_") if name != "break" else "damage")(*arguments)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def add_a_line(self, path: str, words: str) -> None:
        if (file := self.root / path).exists():
            self.write(path, f"memo {words}\n{file.read_text(encoding='utf-8', errors='replace')}")

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

    def sync(self) -> None:
        self.place.sync()

    def rebuild(self) -> None:
        self.place.sync(force=True)

    def die_while_embedding(self) -> None:
        real, self.place.embedder = self.place.embedder, Dying(self.place.embedder)
        try:
            self.place.sync()
        except KeyboardInterrupt:
            self.reopen()
        finally:
            self.place.embedder = real

    def sync_while_the_embedder_is_down(self) -> None:
        self.place.embedder.broken = True
        self.place.sync()
        self.place.embedder.broken = False

    def change_the_model(self, name: str) -> None:
        self.place.embedder.model = name

    def reopen(self) -> None:
        self.place.store.close()
        self.place.store = self.open_place(self.root, self.index).store

    def lose_the_index(self) -> None:
        self.place.store.close()
        for file in self.index.parent.iterdir():
            file.unlink()
        self.place.store = self.open_place(self.root, self.index).store


class Dying:
    """An embedder whose process is killed at its first call for documents."""

    def __init__(self, real: Any) -> None:
        self.provider, self.model, self.identity, self.embed_query = (
            real.provider,
            real.model,
            real.identity,
            real.embed_query,
        )

    def embed_documents(self, texts: Sequence[str]) -> Any:
        raise KeyboardInterrupt(len(texts))


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=20))
def test_any_sequence_of_edits_and_accidents_ends_equal_to_a_fresh_index(
    open_place: Callable[[Path, Path], Any], steps: list[tuple[str, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), open_place)
        for name, *arguments in steps:
            world.step(name, *arguments)
        # A file that cannot be decoded keeps its last good lines, which a fresh index never saw.
        for path in world.root.rglob("*.md"):
            if b"\xff" in path.read_bytes():
                path.unlink()
        world.place.sync()
        fresh = open_place(world.root, world.fresh)
        fresh.embedder.model = world.place.embedder.model
        fresh.sync()
        assert world.place.store.meta().identity == fresh.store.meta().identity
        assert world.place.rows() == fresh.rows()
        assert world.place.store.files().keys() == fresh.store.files().keys()
        world.place.store.close()
        fresh.store.close()


def test_an_index_that_was_deleted_is_built_again_with_equal_ids_and_hits(place: Any, open_place: Any) -> None:
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
