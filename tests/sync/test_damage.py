"""A damaged index is kept, and out of the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_memory.errors import StoreError
from openclaw_memory.sync import set_aside


def test_the_index_and_its_companions_are_renamed_and_keep_their_content(tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{index}{suffix}").write_text(f"content{suffix}")
    aside = set_aside(index)
    assert aside.name.startswith("index.sqlite.damaged-")
    assert aside.read_text() == "content"
    assert Path(f"{aside}-wal").read_text() == "content-wal"
    assert not [path for path in tmp_path.iterdir() if path.name in {"index.sqlite", "index.sqlite-wal"}]


def test_an_earlier_damaged_index_is_not_overwritten(tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    kept = []
    for content in ("first", "second", "third"):
        index.write_text(content)
        kept.append(set_aside(index))
    assert [path.read_text() for path in kept] == ["first", "second", "third"]


def test_an_index_that_cannot_be_renamed_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="delete it"):
        set_aside(tmp_path / "index.sqlite")
