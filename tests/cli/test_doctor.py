"""The doctor: a healthy memory has no problems, and each ill is named with its remedy."""

import json
import re
import shlex
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from index_files import index_file

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.doctor import check_file_system, check_memory, check_room
from openclaw_memory.config.sections import EmbeddingConfig, SessionsConfig
from openclaw_memory.store.embedding_cache import locate_cache

MB = 1_000_000


def examined(notes, config=None, options=""):
    return check_memory(lambda: Memory.open(notes, config=config), options)


def levels(findings):
    return {finding.check: finding.level for finding in findings}


def problems(findings):
    return [finding for finding in findings if finding.level == "problem"]


def of(findings, check, words=""):
    """The one finding of a check, with these words in its detail."""
    (found,) = [finding for finding in findings if finding.check == check and words in finding.detail]
    return found


def follow(finding):
    """Run the command that a remedy names after a colon."""
    subprocess.run(["bash", "-c", finding.remedy.partition(": ")[2]], check=True)


@pytest.fixture
def synced(notes, tmp_path, monkeypatch):
    """Syncs the notes, in a data folder without the workspaces of other tests; returns the index."""
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "home"))
    with Memory.open(notes) as memory:
        memory.sync()
        return memory.index_path


@pytest.mark.usefixtures("synced")
def test_a_synced_memory_has_no_problems(notes):
    findings = levels(examined(notes))
    assert set(findings.values()) == {"ok"}
    checks = {"workspace", "files", "embedder", "index", "keyword search", "vector search"}
    checks |= {"session start", "last sync", "disk"}
    assert checks <= set(findings)


def test_a_missing_workspace_is_the_only_finding(tmp_path):
    (finding,) = examined(tmp_path / "none")
    assert (finding.level, "none" in finding.detail) == ("problem", True)


@pytest.mark.parametrize(("there", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_there_are_problems(there, code, notes, tmp_path, run):
    outcome = run("doctor", "--json", "--workspace", notes if there else tmp_path / "none")
    assert (outcome.code, json.loads(outcome.out)["ok"]) == (code, there)


def test_each_command_that_a_remedy_names_is_for_the_same_memory(notes, run):
    named = re.findall(r"`openclaw-memory (index.*?)`", run("doctor", "--workspace", notes).out)
    assert set(named) == {f"index --workspace {notes}"}
    assert run(*shlex.split(named[0])).code == 0
    assert "openclaw-memory index" not in run("doctor", "--workspace", notes).out


def test_a_file_that_is_left_out_is_named(notes):
    (notes / "memory" / "link.md").symlink_to(notes / "MEMORY.md")
    assert of(examined(notes), "files", "memory/link.md is left out").level == "note"


@pytest.mark.parametrize(
    ("words", "letters", "level"),
    [(1500, 4, "ok"), (2500, 4, "note"), (1500, 400, "note")],
    ids=["fits", "words", "cut"],
)
def test_a_long_term_memory_beyond_its_budget_is_worth_a_note(notes, words, letters, level):
    (notes / "MEMORY.md").write_text(f"{'x' * letters}\n" * words)
    assert of(examined(notes), "session start", "MEMORY.md").level == level


# --- what is not indexed
@pytest.mark.usefixtures("synced")
def test_files_written_since_the_last_sync_are_named_with_the_reason(notes):
    (notes / "MEMORY.md").write_text("other words\n")
    (notes / "memory/new.md").write_text("new\n")
    findings = examined(notes, options=" --workspace notes")
    files = of(findings, "files", "not indexed as they are now")
    assert "MEMORY.md (changed since it was indexed), memory/new.md (new)" in files.detail
    assert files.remedy == "Run `openclaw-memory index --workspace notes`."


def test_a_damaged_index_is_a_problem_with_its_remedy_and_all_else_is_still_checked(notes):
    index_file(notes).parent.mkdir(parents=True)
    index_file(notes).write_bytes(b"not a database at all" * 1000)
    findings = examined(notes)
    (finding,) = problems(findings)
    assert (finding.check, "index --force" in finding.remedy) == ("index", True)
    assert (levels(findings)["disk"], levels(findings)["workspace"]) == ("ok", "ok")


def test_an_index_that_others_may_read_is_worth_a_note(notes, synced):
    synced.chmod(0o644)
    follow(of(examined(notes), "index", "other users"))
    assert set(levels(examined(notes)).values()) == {"ok"}


@pytest.fixture
def opened(embedding_server):
    """Opens a folder of notes with a model, of the default or another name, of the server."""

    def opened(notes, model="any"):
        options = {"base_url": embedding_server.base_url("openai"), "model": model, "api_key": "sk-wrong"}
        rules = EmbeddingConfig(provider="openai", providers={"openai": options})
        return Memory.open(notes, config=MemoryConfig(embedding=rules))

    return opened


@pytest.mark.usefixtures("tries_again_at_once")
@pytest.mark.parametrize("model", ["any", "another"])
@pytest.mark.parametrize("ill", ["down", "wrong key"])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.sampled(3)
def test_a_service_that_does_not_answer_is_one_problem_of_its_own(notes, opened, embedding_server, ill, model, indexed):
    if indexed:
        with opened(notes) as memory:
            assert memory.sync().ok
    if ill == "down":
        embedding_server.stop()
    else:
        embedding_server.key = "sk-right"
    findings = check_memory(lambda: opened(notes, model))
    (problem,) = problems(findings)
    assert (problem.check, "127.0.0.1" in problem.detail, "--force" in problem.remedy) == ("embedder", True, False)
    assert of(findings, "embedder") == problem
    assert "vector search" not in levels(findings)


def test_vectors_that_do_not_fit_the_index_have_a_remedy_that_works(notes, opened, embedding_server):
    with opened(notes) as memory:
        memory.sync()
        index = memory.index_path
    embedding_server.dims += 1
    (problem,) = problems(check_memory(lambda: opened(notes)))
    assert problem.check == "vector search"
    assert f"delete {index} and {locate_cache()}, which" in problem.remedy
    index.unlink()
    locate_cache().unlink()
    with opened(notes) as memory:
        assert memory.sync().ok
    assert problems(check_memory(lambda: opened(notes))) == []


# --- the machine
def test_a_time_zone_that_does_not_exist_is_a_problem_that_names_it(notes):
    config = MemoryConfig(sessions=SessionsConfig(timezone="Mars/Olympus"))
    found = of(examined(notes, config), "time zone")
    assert (found.level, "Mars/Olympus" in found.detail) == ("problem", True)


@pytest.mark.parametrize(("free", "level"), [(10 * MB, "problem"), (100 * MB, "note"), (300 * MB, "ok")])
def test_room_is_measured_by_what_the_next_build_needs(tmp_path, monkeypatch, free, level):
    index = tmp_path / "index.sqlite"
    with index.open("wb") as file:
        file.truncate(100 * MB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    found = check_room(index)
    assert (found.level, found.detail.startswith(f"{free // MB}.0 MB free in {tmp_path}")) == (level, True)


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home {home} nfs4 rw 0 0
/dev/sdb1 {home}/local xfs rw 0 0
me@host: {home}/my\\040notes fuse.sshfs rw 0 0
a {home}/twice nfs rw 0 0
b {home}/twice tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "level", "kind"),
    [
        ("home/agent", "problem", "nfs4"),
        ("home/local/agent", "ok", "xfs"),
        ("home/my notes/a", "problem", "fuse.sshfs"),
        ("home/twice", "ok", "tmpfs"),
    ],
)
def test_the_innermost_mount_decides_whether_an_index_is_on_a_network(tmp_path, folder, level, kind):
    index = tmp_path / folder / "index.sqlite"
    (finding,) = check_file_system(index, MOUNTS.format(home=tmp_path / "home"))
    assert (finding.level, kind in finding.detail) == (level, True)
    assert list(check_file_system(index, "")) == []
