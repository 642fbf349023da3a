"""The front door: what each call promises, with the real parts behind it."""

from __future__ import annotations

import copy
import os
import pickle
import re
from pathlib import Path

import pytest
from index_files import index_file

from openclaw_memory import Memory, errors
from openclaw_memory.embeddings import hashing
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.workspace import Workspace


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=HashingEmbedder()) as opened:
        yield opened


def index_of(notes: Path) -> Path:
    return index_file(notes)


# --- opening
def test_opening_writes_nothing_and_a_first_search_builds_the_index(notes):
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        memory.get("MEMORY.md")
        memory.status()
        assert not (notes / ".memory").exists()
        assert memory.search("GEO-1000")[0].path == "memory/2026-02-09.md"
    assert index_of(notes).exists()


def test_a_provider_that_does_not_load_is_named_in_the_status(notes, monkeypatch):
    def fail(*_: object) -> None:
        raise errors.EmbedderError("hashing is out of order; mend it")

    monkeypatch.setattr(hashing, "create", fail)
    with Memory.open(notes, embedder="hashing") as memory:
        assert any("out of order" in notice for notice in memory.status().notices)
        assert {"out of order" in file.reason for file in memory.sync().waiting} == {True}
        assert memory.search("boiler")[0].path == "memory/household.md"


def test_a_workspace_may_leave_files_out_and_set_nothing_that_leads_out(notes):
    (notes / ".memory").mkdir()
    (notes / ".memory/config.toml").write_text(
        '[embedding]\nprovider = "openai"\n[files]\nexclude = ["memory/household.md"]\n'
    )
    with Memory.open(notes, embedder=None) as memory:
        assert memory.config.embedding.provider == "static"
        assert any("embedding.provider" in notice for notice in memory.status().notices)
        assert "memory/household.md" not in memory.sync().added


def test_a_workspace_that_cannot_be_written_is_indexed_and_stays_as_it_is(notes, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or not str(path).startswith(str(notes)))
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        assert memory.search("boiler")
        status = memory.status()
    assert status.index_path == str(index_file(notes))
    assert not (notes / ".memory").exists()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_the_memory_itself_which_is_open_once(memory, copied):
    memory.search("GEO-1000")
    assert copied({"of": memory})["of"] is memory
    assert copied([memory.notes, memory.sessions, memory.control]) == [memory.notes, memory.sessions, memory.control]


def test_a_memory_is_not_pickled_and_says_what_to_do_instead(memory, notes):
    with pytest.raises(TypeError, match=rf"Memory\('{re.escape(str(notes))}'\) .* hand over its path"):
        pickle.dumps(memory)


# --- agents
@pytest.mark.parametrize(("agent", "folder"), [("main", "workspace"), ("Work-2", "workspace-work-2")])
def test_an_agents_notes_and_index_lie_where_openclaw_keeps_them(tmp_path, monkeypatch, agent, folder):
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "MEMORY.md").write_text("The spare key is with Mrs. Groen.\n")
    with Memory.for_agent(agent, embedder=None) as memory:
        assert memory.search("spare key")
    assert (tmp_path / "memory" / f"{agent.lower()}.sqlite").exists()


@pytest.mark.parametrize("agent", ["", "..", "a/b", "../x", ".hidden", "a\x00b", "x" * 65, "main\n", 3])
def test_an_agent_id_that_could_lead_elsewhere_is_refused(agent):
    with pytest.raises(errors.ConfigError, match="agent id"):
        Memory.for_agent(agent)


# --- asking
@pytest.mark.parametrize(
    "wishes",
    [
        {"query": 7}, {"query": None}, {"max_results": 0}, {"max_results": -3}, {"max_results": 2.5},
        {"max_results": True}, {"min_score": -0.1}, {"min_score": 1.1}, {"min_score": float("nan")},
        {"min_score": "0.5"}, {"filter": 3}, {"options": "explain"},
    ],
    ids=str,
)  # fmt: skip
def test_a_wish_that_cannot_be_met_is_a_query_error_that_names_the_value(memory, wishes):
    (name, value), *_ = wishes.items()
    with pytest.raises(errors.QueryError, match=name):
        memory.search(**{"query": "boiler", name: value})


def test_a_sync_that_failed_makes_later_answers_stale(memory, monkeypatch):
    memory.sync()

    def refuse(*_: object) -> None:
        raise OSError("input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "scan", refuse)
        with pytest.raises(OSError, match="input/output"):
            memory.sync()
    assert memory.search("boiler").stale
    memory.sync()
    assert not memory.search("boiler").stale


def test_the_status_names_what_is_indexed_what_is_dirty_and_what_is_skipped(memory, notes):
    (notes / "memory/link.md").symlink_to(notes / "MEMORY.md")
    (notes / "memory/odd.md").write_bytes(b"\xff\xc0\xff")
    memory.sync()
    (notes / "MEMORY.md").unlink()
    (notes / "memory/new.md").write_text("new\n")
    status = memory.status(deep=True)
    assert (status.files, status.sources["memory"][0], status.mode) == (4, 4, "hybrid")
    assert {"MEMORY.md", "memory/new.md"} <= set(status.dirty)
    assert {"memory/link.md", "memory/odd.md"} <= {file.path for file in status.skipped}
    assert status.vector.available
    assert status.vector.verified
    assert status.fts.verified
    assert status.engine


# --- damage, closing, threads
def spoil(index: Path) -> None:
    for companion in ("-wal", "-shm"):
        Path(f"{index}{companion}").unlink(missing_ok=True)
    index.write_bytes(b"this is no database" * 1000)


def test_the_status_changes_nothing_and_says_that_the_index_is_damaged(notes):
    with Memory.open(notes, embedder=None) as memory:
        memory.sync()
    spoil(index_of(notes))
    with Memory.open(notes, embedder=None) as memory, pytest.raises(errors.CorruptIndexError, match="Sync again"):
        memory.status()
    assert index_of(notes).read_bytes().startswith(b"this is no database")


def test_a_citation_opens_the_lines_that_it_names(notes):
    with Memory.open(notes) as memory:
        best = memory.search("Who has the spare key?")[0]
        excerpt = memory.get(best.citation)
        assert excerpt.citation == best.citation
        assert "Mrs. Groen" in excerpt.text
        assert memory.get("MEMORY.md#L4").text == memory.get("MEMORY.md", start=4, lines=1).text
        with pytest.raises(errors.NotFoundError, match="none numbered 40"):
            memory.get("MEMORY.md#L40-L41")
        with pytest.raises(errors.PathNotAllowedError):
            memory.get("../MEMORY.md#L1")


def test_the_default_embedder_is_the_static_model_that_ships(notes):
    with Memory.open(notes) as memory:
        results = memory.search("Who services the boiler?")
        assert (results.mode, results.provider) == ("hybrid", "static")
        assert results[0].path == "memory/household.md"
