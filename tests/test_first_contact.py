"""What somebody meets who uses this for the first time and goes wrong: each message leads to what helps."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from threading import Event

import apsw
import pytest
from every_command import COMMANDS
from index_files import index_file, write_files
from uninstalled import run_without

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory._limited import Limited
from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import ConfigError, EmbedderError, PathNotAllowedError, StoreError, WorkspaceError
from openclaw_memory.store import connection

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY")


@pytest.fixture
def vault(tmp_path):
    """A folder of notes as Obsidian has them: nothing in it is where OpenClaw would look."""
    files = {
        "Welcome.md": "# Welcome\n\nThis vault belongs to Ines.\n",
        "Projects/Mill.md": "# Mill\n\nThe sails are mended in March.\n",
        "Daily/2026-11-21.md": "Anna moved the launch to Friday.\n",
        ".trash/old.md": "Anna moved the launch to Monday.\n",
    }
    return write_files(tmp_path / "my vault", files)


def command_in(words: str) -> list[str]:
    """The command that a message names, as a shell would read it."""
    found = re.search(r"`openclaw-memory (.+?)`", words)
    assert found, words
    return shlex.split(found[1])


# --- a folder whose notes lie elsewhere
@pytest.mark.parametrize("first", ["search", "index", "status", "doctor", "init"])
@pytest.mark.sampled(2)
def test_the_command_that_any_other_one_names_makes_a_vault_answer(run, vault, first):
    outcome = run(first, "--workspace", vault, *(["launch"] if first == "search" else []))
    assert "3 Markdown files lie in" in outcome.out + outcome.err
    assert run(*command_in(outcome.out + outcome.err)).code == 0
    found = run("search", "--workspace", vault, "When is the launch?")
    assert (found.code, "Daily/2026-11-21.md#L1" in found.out, ".trash" in found.out) == (0, True, False)
    assert run("show", "--workspace", vault, "Daily/2026-11-21.md").out.startswith("Anna moved")
    assert run("doctor", "--workspace", vault).code == 0


def test_settings_that_a_folder_has_already_are_not_overwritten(run, vault):
    settings = vault / ".memory" / "config.toml"
    settings.parent.mkdir()
    settings.write_text("[chunking]\nmax_chars = 300\n")
    outcome = run("init", "--all-markdown", "--workspace", vault)
    assert (outcome.code, 'extra_paths = ["."]' in outcome.err) == (2, True)
    settings.write_text(settings.read_text() + '[files]\nextra_paths = ["."]\n')
    assert run("init", "--all-markdown", "--workspace", vault).code == 0


def test_a_workspace_undoes_no_exclusion_of_its_caller(vault):
    write_files(vault, {"private/x.md": "The code of the safe is 4711.\n"})
    (vault / ".memory").mkdir()
    settings = 'extra_paths = [".", "private", ".trash", "\\u0000"]\nexclude = ["!private/x.md", "Daily/"]\n'
    (vault / ".memory/config.toml").write_text(f"[files]\n{settings}")
    with Memory.open(vault, config=MemoryConfig(files=FilesConfig(exclude=("private/",)))) as memory:
        assert sorted(memory.sync().added) == ["Projects/Mill.md", "Welcome.md"]
        for path in ("private/x.md", ".trash/old.md"):
            with pytest.raises(PathNotAllowedError):
                memory.get(path)
        assert sum("may not be set from inside" in notice for notice in memory.status().notices) == 3


# --- a folder that is none
def test_the_folder_with_the_most_similar_name_is_named(tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(WorkspaceError, match=r"did you mean 'notes'\?"):
        Memory.open(tmp_path / "ntoes")


def test_an_empty_workspace_option_is_not_the_current_folder(run, notes, monkeypatch):
    monkeypatch.chdir(notes)
    outcome = run("search", "--workspace", "", "boiler")
    assert (outcome.code, "--workspace is empty" in outcome.err) == (2, True)


# --- a slip of the pen
@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda folder: Memory.open(folder, embedder="opanai"), ConfigError, "did you mean 'openai'"),
        (lambda _: load_embedder("statc"), EmbedderError, "did you mean 'static'"),
        (lambda _: MemoryConfig().replace({"serach": {}}), ConfigError, "did you mean 'search'"),
        (lambda _: MemoryConfig().replace({"search": {"max_result": 3}}), ConfigError, "did you mean 'max_results'"),
        (lambda folder: Memory.open(folder, config={"search": {}}), ConfigError, "must be a MemoryConfig"),
        (lambda folder: Memory.open(folder, config="settings.toml"), ConfigError, "MemoryConfig.from_toml"),
        (lambda folder: Memory.open(folder).get(Path("MEMORY.md")), PathNotAllowedError, "must be a string"),
    ],
)
def test_a_slip_in_python_is_told_with_what_was_meant(notes, wrong, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        wrong(notes)


OPTIONS = sorted({name for command in COMMANDS.values() for option in command.params for name in option.opts})
OPTIONS = [name for name in OPTIONS if name.startswith("-")]


@pytest.mark.parametrize("typed", ["index", "add", "search", "demo", ""])
@pytest.mark.sampled(1)
def test_an_option_before_its_command_is_told_where_it_belongs(run, typed):
    for option in OPTIONS:
        outcome = run(option, *([typed] if typed else []))
        named, *rest = command_in(outcome.err)
        assert (outcome.code, named, rest[0]) == (2, typed or "search", option)


# --- no package, no key ---


PACKAGES = [("openai", "openai"), ("gemini", "httpx"), ("voyage", "httpx")]


@pytest.mark.parametrize(
    ("provider", "package", "key"), [(*names, key) for names in PACKAGES for key in ("", "sk-any")]
)
@pytest.mark.sampled(1)
def test_a_provider_without_its_package_names_what_to_install(provider, package, key):
    script = f"""
import os
for name in {KEYS}:
    os.environ.pop(name, None)
from openclaw_memory import load_embedder
from openclaw_memory.errors import EmbedderError
try:
    load_embedder("{provider}", **({{"api_key": "{key}"}} if "{key}" else {{}}))
except EmbedderError as error:
    print(error)
"""
    told = run_without(script, package)
    assert f'pip install ".[{provider}]"' in told
    assert ("has no key" in told) is (not key)


@pytest.mark.parametrize("provider", ["openai", "gemini", "voyage"])
@pytest.mark.sampled(1)
def test_a_missing_key_is_told_by_each_command_in_one_place(run, notes, monkeypatch, provider):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    settings = notes.parent / "settings.toml"
    settings.write_text(f'[defaults]\nembedding.provider = "{provider}"\n')
    for command in (["search", "boiler"], ["status"], ["doctor"]):
        outcome = run(*command, "--workspace", notes, "--config", settings)
        told = outcome.out + outcome.err
        assert f"{provider.upper()}_API_KEY" in told
        assert "Traceback" not in told
        if command != ["status"]:  # it tells of the embedder, and of the files that wait for it
            assert told.count("has no key") <= 1 + (command == ["doctor"])
    assert run("search", "boiler", "--workspace", notes, "--config", settings).code == 0


# --- a disk that refuses
def refusing(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """As if nobody might write below these folders; for the superuser, whom no rights keep from it."""
    really = os.access

    def access(path, mode, **options):
        inside = any(Path(os.fspath(path)).is_relative_to(folder) for folder in folders)
        return False if inside and mode & os.W_OK else really(path, mode, **options)

    monkeypatch.setattr(os, "access", access)


def test_an_index_that_can_be_made_nowhere_is_a_problem_with_its_cure(run, notes, tmp_path, monkeypatch):
    refusing(monkeypatch, tmp_path)
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "cache"))
    outcome = run("doctor", "--workspace", notes)
    assert outcome.code == 1
    assert re.search(rf"problem +index: {re.escape(str(tmp_path))}/cache\S+ cannot be written", outcome.out)
    assert "OPENCLAW_MEMORY_HOME" in outcome.out


# --- no extension of SQLite
@pytest.mark.parametrize("ill", ["not installed", "no library", "apsw loads none", "hangs"])
@pytest.mark.sampled(2)
def test_without_sqlite_vec_vectors_are_compared_one_by_one_and_it_is_told(
    run, notes, tmp_path, monkeypatch, request, ill
):
    if ill == "apsw loads none":

        def refuse(*_):
            raise AttributeError("'Connection' object has no attribute 'enable_load_extension'")

        monkeypatch.setattr(connection, "load_extension", refuse)
    elif ill == "hangs":
        go_on = Event()
        request.addfinalizer(go_on.set)
        monkeypatch.setattr(connection, "load_extension", lambda *_: go_on.wait())
        monkeypatch.setattr(connection, "LOAD_SECONDS", 0.01)
        monkeypatch.setattr(connection, "_loading", Limited("sqlite-vec-of-a-test"))
    else:
        (tmp_path / "vec0.so").write_bytes(b"no library")

        class Spec:
            submodule_search_locations = (str(tmp_path),)

        monkeypatch.setattr(connection.importlib.util, "find_spec", lambda _: Spec if ill == "no library" else None)
    assert "boiler" in run("search", "--workspace", notes, "Who services the boiler?").out
    assert re.search(r"vector +.*path scan, error .*sqlite-vec", run("status", "--workspace", notes).out)
    doctor = run("doctor", "--workspace", notes)
    assert doctor.code == 0
    assert re.search(
        r"note +vector search: works by scan: .*sqlite-vec.*\n +Results are the same.*pip install", doctor.out
    )


# --- an index that is not for us
def test_an_index_of_a_newer_version_is_told_by_each_command_with_what_to_do(run, notes):
    run("index", "--workspace", notes)
    db = apsw.Connection(str(index_file(notes)))
    db.execute("UPDATE meta SET value = json_set(value, '$.schema_version', 1000) WHERE key LIKE '%meta%'")
    db.close()
    before = index_file(notes).read_bytes()
    with Memory.open(notes, embedder=None) as memory, pytest.raises(StoreError, match="update openclaw_memory"):
        memory.search("boiler")
    for command in (["search", "boiler"], ["index"], ["index", "--force"], ["status"]):
        outcome = run(*command, "--workspace", notes)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
        assert "update openclaw_memory, or delete the index" in outcome.err
    examined = run("doctor", "--workspace", notes)
    assert (examined.code, "or delete the index" in examined.out, "force" in examined.out) == (1, True, False)
    assert index_file(notes).read_bytes() == before


def test_a_mistyped_folder_is_not_made_a_workspace_of_its_notes(run, tmp_path):
    (tmp_path / "vault").mkdir()
    outcome = run("init", "--all-markdown", "--workspace", tmp_path / "valut")
    assert outcome.code == 2
    assert "did you mean 'vault'" in outcome.err
    assert not (tmp_path / "valut").exists()


@pytest.mark.parametrize("glob", ["[z-a]", "!"])
@pytest.mark.parametrize("command", ["status", "doctor"])
@pytest.mark.sampled(1)
def test_a_glob_that_cannot_be_read_is_named_with_the_remedy(run, notes, command, glob):
    (notes / ".memory").mkdir(exist_ok=True)
    (notes / ".memory" / "config.toml").write_text(f'[files]\nexclude = ["{glob}"]\n')
    assert run("search", "--workspace", notes, "key").code == 0
    outcome = run(command, "--workspace", notes)
    assert "files.exclude holds a pattern that cannot be read" in outcome.out + outcome.err
    assert ".memory/config.toml" in outcome.out + outcome.err
