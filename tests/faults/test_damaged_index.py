"""An index that is damaged in any way: a search answers right, and says what happened; the old file is gone."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from damages import DAMAGES, bit_flip
from index_files import copy_workspace, index_file
from processes import QUIET, content, fresh, synced

from openclaw_memory import Memory

WORDS = 40


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Synced notes of which each has a word of its own."""
    notes = tmp_path_factory.mktemp("damaged") / "notes"
    (notes / "memory").mkdir(parents=True)
    for number in range(WORDS):
        lines = [f"memo word{number}x line {line} of apples and pears" for line in range(30)]
        (notes / f"memory/{number}.md").write_text("\n".join(lines) + "\n")
    synced(notes)
    return notes


@pytest.mark.fault(5, 6)
@pytest.mark.parametrize("times", [1, pytest.param(100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.sampled(2)
def test_a_search_of_a_damaged_index_answers_right_and_says_so(tmp_path, begun, damage, times):
    right = content(index_file(begun))
    told = 0
    for number in range(times):
        dice = random.Random(f"{damage.__name__} {number}")
        notes = tmp_path / str(number)
        copy_workspace(begun, notes)
        index = index_file(notes)
        data = bytearray(index.read_bytes())
        damage(data, dice)
        index.write_bytes(data)
        asked = dice.randrange(WORDS)
        with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
            results = memory.search(f"word{asked}x")
            assert results[0].path == f"memory/{asked}.md", number
            for result in results:
                text = memory.get(result.path, start=result.start_line, lines=result.end_line - result.start_line + 1)
                assert all(run in text.text for run in result.snippet.split("\n…\n")), number
            is_told = "damaged" in str(results.reason)
            told += is_told
            # What the search did not meet
            reports = memory.sync(), memory.sync(force=True)
        if not (is_told or any("damaged" in str(report.rebuilt) for report in reports)):
            # Neither met it: a byte that means nothing, or a rebuild freed it
            assert synced(notes) == fresh(notes)
        else:
            assert content(index) == right
        shutil.rmtree(notes)
    if damage is not bit_flip:
        assert told >= times / 3


@pytest.mark.fault(4)
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.sampled(2)
def test_an_index_that_was_deleted_in_part_or_whole_is_built_again(tmp_path, begun, suffix):
    notes = tmp_path / "notes"
    copy_workspace(begun, notes)
    index = index_file(notes)
    with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
        assert memory.search("word7x")[0].path == "memory/7.md"
        (notes / "memory/new.md").write_text("memo word99x of plums\n")
        memory.sync()
        Path(f"{index}{suffix}").unlink()
    with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
        assert memory.search("word7x")[0].path == "memory/7.md"
        memory.sync()
        assert memory.search("word99x")[0].path == "memory/new.md"
    assert synced(notes) == fresh(notes)
