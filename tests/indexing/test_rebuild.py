"""An index that answers is built again beside, and replaced whole: until then, and whatever happens, it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.store import rebuild
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.types import Progress


def left(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if rebuild.SUFFIX in file.name]


def write(place: Any, files: int = 5) -> None:
    for number in range(files):
        place.write(f"memory/{number}.md", f"memo {number} apple", f"memo {number} pear")


@pytest.mark.usefixtures("one_file_a_transaction")
@pytest.mark.parametrize("again", ["it was asked for", "chunking", "the embedder"])
def test_searches_are_answered_by_the_whole_old_index_until_the_new_one_is_whole(place, again):
    write(place)
    place.sync()
    before, seen = place.rows(), []
    if again == "chunking":
        place.config = replace(place.config, chunking=ChunkingConfig(style="tokens"))
    if again == "the embedder":
        place.embedder = RecordingEmbedder(name="another")

    def look(_: Progress) -> None:
        meta = place.store.read_meta()
        seen.append((place.rows() == before, meta.complete, len(left(place.root.parent))))

    report = place.sync(force=True, progress=look)
    assert report.rebuilt.startswith(again)
    assert {(same, complete) for same, complete, _ in seen} == {(True, True)}
    assert (max(files for *_, files in seen) >= 1) == (place.store.describe().backend == "sqlite")
    assert (left(place.root.parent), place.store.verify(), len(place.store.get_files())) == ([], (), 5)


@pytest.mark.usefixtures("one_file_a_transaction")
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_rebuild_that_a_progress_callback_ends_leaves_the_old_index_and_nothing_else(place, error):
    write(place)
    place.sync()
    before = place.rows()
    place.config = replace(place.config, chunking=ChunkingConfig(style="tokens"))

    def end(step: Progress) -> None:
        if step.label == "files" and step.completed == 3:
            raise error

    with pytest.raises(error):
        place.sync(progress=end)
    assert (place.rows(), place.store.read_meta().complete, left(place.root.parent)) == (before, True, [])


@pytest.mark.usefixtures("one_file_a_transaction")
def test_a_first_index_is_built_in_its_place_and_goes_on_where_it_was_cut_short(place):
    write(place)

    def end(step: Progress) -> None:
        assert left(place.root.parent) == []
        if step.completed == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.sync(progress=end)
    assert (len(place.store.get_files()), place.store.read_meta().complete) == (3, False)
    report = place.sync()
    assert (len(report.added), report.unchanged, place.store.read_meta().complete) == (2, 3, True)


def test_a_rebuild_embeds_only_what_has_changed(place):
    write(place)
    place.sync()
    place.embedder.documents.clear()
    place.write("memory/0.md", "memo plum")
    report = place.sync(force=True)
    assert (report.embedded, place.embedder.documents, report.changed) == (1, ["memo plum"], ("memory/0.md",))
