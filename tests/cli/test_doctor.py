"""The doctor: a healthy memory has no problems, and each ill is named with its cure."""

import json
import os
import re
import shlex
import subprocess
import time
from types import SimpleNamespace

import apsw
import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli import main
from openclaw_memory.cli.doctor import _workspace, examine
from openclaw_memory.config import EmbeddingConfig, SessionsConfig
from openclaw_memory.embeddings import hashing
from openclaw_memory.errors import EmbedderError, IndexLockedError
from openclaw_memory.indexing.history import LAST_ERROR, LAST_SYNC, record_of, record_of_error
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import SyncReport


def levels(findings):
    return {finding.check: finding.level for finding in findings}


def problems(findings):
    return [finding for finding in findings if finding.level == "problem"]


def of(findings, check):
    """The one finding of a check."""
    (found,) = [finding for finding in findings if finding.check == check]
    return found


def test_a_synced_memory_has_no_problems(notes):
    with Memory.open(notes) as memory:
        memory.sync()
    findings = examine(lambda: Memory.open(notes))
    assert set(levels(findings).values()) == {"ok"}
    checks = {"workspace", "files", "embedder", "index", "keyword search", "vector search"}
    checks |= {"session start", "transcripts", "last sync", "clock", "time zone", "disk"}
    assert checks <= set(levels(findings))


def test_looking_makes_no_index(notes):
    examine(lambda: Memory.open(notes))
    assert not (notes / ".memory").exists()


def test_a_memory_without_an_index_is_told_how_to_get_one(notes):
    findings = examine(lambda: Memory.open(notes))
    assert levels(findings)["index"] == "note"
    assert any("openclaw-memory index" in finding.remedy for finding in findings)


def test_an_empty_workspace_is_a_problem(tmp_path):
    assert levels(examine(lambda: Memory.open(tmp_path)))["files"] == "problem"


def test_a_missing_workspace_is_the_only_finding(tmp_path):
    (finding,) = examine(lambda: Memory.open(tmp_path / "none"))
    assert finding.level == "problem"
    assert "none" in finding.detail


def test_a_file_that_is_left_out_is_named(notes):
    (notes / "memory" / "link.md").symlink_to(notes / "MEMORY.md")
    assert any("memory/link.md" in finding.detail for finding in examine(lambda: Memory.open(notes)))


def test_keywords_alone_are_no_problem_when_chosen(notes):
    config = MemoryConfig(embedding=EmbeddingConfig(provider="none"))
    with Memory.open(notes, config=config) as memory:
        memory.sync()
    findings = levels(examine(lambda: Memory.open(notes, config=config)))
    assert findings["embedder"] == "ok"
    assert "vector search" not in findings


def test_an_embedder_that_does_not_load_is_a_problem(notes, monkeypatch):
    def fail(*_):
        raise EmbedderError("hashing is out of order")

    monkeypatch.setattr(hashing, "create", fail)
    config = MemoryConfig(embedding=EmbeddingConfig(provider="hashing"))
    findings = examine(lambda: Memory.open(notes, config=config))
    assert levels(findings)["embedder"] == "problem"
    assert any("out of order" in finding.detail for finding in findings)


def test_a_provider_that_nobody_knows_is_a_problem(notes):
    config = MemoryConfig(embedding=EmbeddingConfig(provider="nosuch"))
    (finding,) = examine(lambda: Memory.open(notes, config=config))
    assert (finding.level, "nosuch" in finding.detail) == ("problem", True)


def test_an_index_of_a_newer_version_is_not_to_be_built_again_by_force(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        index = memory.index_path
    db = apsw.Connection(str(index))
    db.execute("UPDATE meta SET value = json_set(value, '$.schema_version', 1000) WHERE key LIKE '%meta%'")
    db.close()
    (finding,) = problems(examine(lambda: Memory.open(notes)))
    assert "update openclaw-memory-index, or delete the index" in finding.detail
    assert "force" not in finding.detail + finding.remedy
    index.unlink()
    with Memory.open(notes) as memory:
        assert memory.sync().ok


def test_a_file_in_the_place_of_the_folder_of_the_index_is_a_problem_with_its_cure(notes):
    (notes / ".memory").write_text("what is this")
    (finding,) = [finding for finding in examine(lambda: Memory.open(notes)) if finding.level == "problem"]
    subprocess.run(shlex.split(finding.remedy.partition(": ")[2]), check=True)
    with Memory.open(notes) as memory:
        assert memory.search("boiler")


def test_each_command_that_a_remedy_names_is_for_the_same_memory(notes, capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "--workspace", str(notes)])
    named = re.findall(r"`openclaw-memory (index.*?)`", capsys.readouterr().out)
    assert set(named) == {f"index --workspace {notes}"}
    with pytest.raises(SystemExit) as leaving:
        main(shlex.split(named[0]))
    assert leaving.value.code == 0
    with pytest.raises(SystemExit):
        main(["doctor", "--workspace", str(notes)])
    assert "openclaw-memory index" not in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_workspace_is_worth_a_note(notes):
    notes.chmod(0o500)
    try:
        assert levels(examine(lambda: Memory.open(notes)))["workspace"] == "note"
    finally:
        notes.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_notes_that_may_not_be_read_are_a_problem_of_rights(notes):
    with Memory.open(notes) as memory:
        memory.sync()
    (notes / "memory").chmod(0)
    try:
        findings = examine(lambda: Memory.open(notes))
        (problem,) = problems(findings)
        assert (problem.check, problem.detail.startswith("memory cannot be read")) == ("files", True)
        assert not any("openclaw-memory index" in finding.remedy for finding in findings)
        subprocess.run(shlex.split(problem.remedy.partition(": ")[2]), check=True)
        assert problems(examine(lambda: Memory.open(notes))) == []
    finally:
        (notes / "memory").chmod(0o700)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_folder_on_a_read_only_mount_is_not_cured_by_rights(notes, monkeypatch, read_only):
    flags = os.statvfs(notes).f_flag | os.ST_RDONLY if read_only else 0
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    found = of(_workspace(str(notes)), "workspace")
    assert (found.level, "chmod" in found.remedy, "mount" in found.remedy) == ("note", not read_only, read_only)


def test_a_sync_that_was_interrupted_is_no_problem(notes):
    def cut(_):
        raise KeyboardInterrupt

    with Memory.open(notes) as memory, pytest.raises(KeyboardInterrupt):
        memory.sync(progress=cut)
    findings = examine(lambda: Memory.open(notes), " --workspace notes")
    assert problems(findings) == []
    (told,) = [finding for finding in findings if "not complete" in finding.detail]
    assert told.remedy == "Run `openclaw-memory index --workspace notes`."


def test_an_index_that_holds_nothing_yet_has_its_command(notes):
    SqliteStore.open(notes / ".memory" / "index.sqlite").close()
    findings = examine(lambda: Memory.open(notes), " --workspace notes")
    (told,) = [finding for finding in findings if "nothing is indexed yet" in finding.detail]
    assert told.remedy == "Run `openclaw-memory index --workspace notes`."


def test_a_damaged_index_is_a_problem_with_its_cure(notes):
    (notes / ".memory").mkdir()
    (notes / ".memory" / "index.sqlite").write_bytes(b"not a database at all" * 1000)
    (finding,) = problems(examine(lambda: Memory.open(notes)))
    assert finding.check == "index"
    assert "index --force" in finding.remedy


def test_damage_that_still_opens_is_found_by_the_check_of_the_whole_index(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        index = memory.index_path
    db = apsw.Connection(str(index))
    db.execute("DELETE FROM chunk_terms_data WHERE id > 10")
    db.close()

    findings = [finding for finding in examine(lambda: Memory.open(notes)) if finding.check == "index"]

    assert [finding.level for finding in findings] == ["problem"]
    assert "index --force" in findings[0].remedy


@pytest.mark.parametrize(("there", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_there_are_problems(there, code, notes, tmp_path, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["doctor", "--json", "--workspace", str(notes if there else tmp_path / "none")])
    assert leaving.value.code == code
    assert json.loads(capsys.readouterr().out)["ok"] is there


@pytest.fixture
def opened(embedding_server):
    """Opens a folder of notes with a model, of the default or another name, of the server."""

    def opened(notes, model="any"):
        options = {"base_url": embedding_server.base_url("openai"), "model": model, "api_key": "sk-wrong"}
        rules = EmbeddingConfig(provider="openai", providers={"openai": options})
        return Memory.open(notes, config=MemoryConfig(embedding=rules))

    return opened


@pytest.mark.parametrize("model", ["any", "another"])
@pytest.mark.parametrize("ill", ["down", "wrong key"])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_service_that_does_not_answer_is_one_problem_of_its_own(notes, opened, embedding_server, ill, model, indexed):
    if indexed:
        with opened(notes) as memory:
            assert memory.sync().ok
    if ill == "down":
        embedding_server.stop()
    else:
        embedding_server.key = "sk-right"
    findings = examine(lambda: opened(notes, model))
    (problem,) = problems(findings)
    assert (problem.check, "127.0.0.1" in problem.detail, "--force" in problem.remedy) == ("embedder", True, False)
    assert [finding.level for finding in findings if finding.check == "embedder"] == ["problem"]
    assert "vector search" not in levels(findings)


def test_vectors_that_are_still_to_come_are_worth_a_note(notes, opened, embedding_server):
    embedding_server.key = "sk-right"
    with opened(notes) as memory:
        assert len(memory.sync().waiting) == 4
    embedding_server.key = None
    findings = examine(lambda: opened(notes))
    assert problems(findings) == []
    assert (levels(findings)["embedder"], levels(findings)["vector search"]) == ("ok", "note")
    assert levels(findings)["files"] == "ok"
    assert any("4 files without vectors" in finding.detail for finding in findings)


def test_an_index_of_another_model_is_not_said_to_answer_by_vectors(notes, opened):
    with opened(notes) as memory:
        memory.sync()
    findings = examine(lambda: opened(notes, "another"))
    assert (problems(findings), levels(findings)["vector search"]) == ([], "note")


def test_vectors_that_do_not_fit_the_index_have_a_cure_that_works(notes, opened, embedding_server):
    with opened(notes) as memory:
        memory.sync()
        index = memory.index_path
    embedding_server.dims += 1
    (problem,) = problems(examine(lambda: opened(notes)))
    assert problem.check == "vector search"
    assert (str(index) in problem.remedy, "--force" in problem.remedy) == (True, False)
    index.unlink()
    with opened(notes) as memory:
        assert memory.sync().ok
    assert problems(examine(lambda: opened(notes))) == []


def test_the_fallback_is_said_to_stand_in_for_the_provider_that_is_wanted(notes):
    rules = EmbeddingConfig(
        provider="openai", fallback="static", providers={"openai": {"base_url": "http://127.0.0.1:9/v1"}}
    )
    config = MemoryConfig(embedding=rules)
    with Memory.open(notes, config=config) as memory:
        assert memory.sync().ok
    (found,) = [
        finding for finding in examine(lambda: Memory.open(notes, config=config)) if finding.check == "embedder"
    ]
    assert (found.level, "in place of openai" in found.detail) == ("note", True)


def test_of_many_files_that_wait_for_a_sync_ten_are_named(notes):
    for number in range(30):
        (notes / f"memory/note{number}.md").write_text("some words\n")
    (found,) = [finding for finding in examine(lambda: Memory.open(notes)) if "not indexed" in finding.detail]
    assert (found.detail.count(".md"), found.detail.endswith("and 24 more")) == (10, True)


def test_a_damaged_index_keeps_the_doctor_from_nothing_else(notes):
    (notes / ".memory").mkdir()
    (notes / ".memory/index.sqlite").write_bytes(b"not a database at all" * 1000)
    os.utime(notes / "MEMORY.md", (4e9, 4e9))
    found = levels(examine(lambda: Memory.open(notes)))
    assert (found["index"], found["clock"], found["workspace"]) == ("problem", "note", "ok")


def test_a_locked_index_is_no_damage(notes, monkeypatch):
    def held(*_, **__):
        raise IndexLockedError("the index is held")

    monkeypatch.setattr(Memory, "status", held)
    (finding,) = problems(examine(lambda: Memory.open(notes)))
    assert ("held" in finding.detail, "--force" in finding.remedy) == (True, False)


def test_why_a_file_is_not_indexed_is_told(notes):
    with Memory.open(notes) as memory:
        memory.sync()
    (notes / "memory/new.md").write_text("new\n")
    (notes / "MEMORY.md").write_text("other words\n")
    (found,) = [finding for finding in examine(lambda: Memory.open(notes)) if "not indexed" in finding.detail]
    assert "MEMORY.md (changed since it was indexed), memory/new.md (new)" in found.detail


def test_a_sync_older_than_the_newest_file_is_worth_a_note(notes):
    with Memory.open(notes) as memory:
        memory.sync()
    (notes / "memory/new.md").write_text("new\n")
    found = of(examine(lambda: Memory.open(notes), " --workspace notes"), "last sync")
    assert (found.level, "memory/new.md" in found.detail) == ("note", True)
    assert "`openclaw-memory index --workspace notes`" in found.remedy


def test_what_ended_the_last_sync_is_a_problem_until_a_sync_has_come_to_its_end(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        index = memory.index_path

    store = SqliteStore.open(index)
    store.note(LAST_ERROR, record_of_error("no space is left on the disk", time.time() + 1))
    store.close()
    found = of(examine(lambda: Memory.open(notes)), "last sync")
    assert (found.level, "no space is left" in found.detail) == ("problem", True)

    store = SqliteStore.open(index)
    store.note(LAST_SYNC, record_of(SyncReport(), "manual", time.time() + 2))
    store.close()
    assert of(examine(lambda: Memory.open(notes)), "last sync").level == "ok"


@pytest.mark.parametrize(
    ("words", "letters", "told"),
    [(1500, 4, "ok"), (2500, 4, "note"), (1500, 400, "note")],
    ids=["fits", "words", "cut"],
)
def test_a_long_term_memory_beyond_its_budget_is_worth_a_note(notes, words, letters, told):
    (notes / "MEMORY.md").write_text(f"{'x' * letters}\n" * words)
    (found,) = [
        finding
        for finding in examine(lambda: Memory.open(notes))
        if finding.check == "session start" and "MEMORY.md" in finding.detail
    ]
    assert found.level == told


def test_transcripts_are_counted_where_they_lie(notes, tmp_path):
    assert of(examine(lambda: Memory.open(notes)), "transcripts").detail.startswith("there are none yet")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}\n")
    config = MemoryConfig(sessions=SessionsConfig(folder=str(folder)))
    found = of(examine(lambda: Memory.open(notes, config=config)), "transcripts")
    assert (found.level, found.detail) == ("ok", f"1 in {folder}, 3 B")


@pytest.mark.parametrize(
    ("sessions", "told"), [(SessionsConfig(folder="USER.md"), "problem"), (SessionsConfig(index=False), "ok")]
)
def test_a_folder_of_transcripts_that_is_none_is_a_problem_where_they_are_wanted(notes, sessions, told):
    (notes / "USER.md").write_text("# User\n")
    config = MemoryConfig(sessions=sessions)
    assert of(examine(lambda: Memory.open(notes, config=config)), "transcripts").level == told


def test_an_index_that_others_may_read_is_worth_a_note(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        index = memory.index_path
    index.chmod(0o644)
    (found,) = [finding for finding in examine(lambda: Memory.open(notes)) if "other users" in finding.detail]
    subprocess.run(shlex.split(found.remedy.partition(": ")[2]), check=True)
    assert set(levels(examine(lambda: Memory.open(notes))).values()) == {"ok"}
