"""A folder from strangers that a coding agent opens: the hooks write through none of its links, and keep their state elsewhere."""

import json
import os
import stat

import pytest
from click.testing import CliRunner

from openclaw_memory.cli.commands import commands
from openclaw_memory.workspace import SafeFolder

SESSION = "11111111-2222-4333-8444-555555555555"
SAID = "The ferry to Texel leaves at seven."


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The user's own folder of data."""
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def victim(tmp_path):
    """A folder of the user's, with a file that is longer than a log may get."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "precious").write_text("precious\n" * 40_000)
    return folder


def content(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def claude_code(tmp_path):
    """What a session of Claude Code sends."""
    transcript = tmp_path / "host" / "talk.jsonl"
    transcript.parent.mkdir(exist_ok=True)
    message = {"type": "user", "uuid": "u1", "sessionId": SESSION, "message": {"role": "user", "content": SAID}}
    transcript.write_text(json.dumps(message) + "\n")
    common = {"session_id": SESSION, "transcript_path": str(transcript)}
    for name in ("SessionStart", "Stop", "PreCompact", "SessionEnd"):
        yield "", json.dumps({"hook_event_name": name, **common})


def opencode(_):
    """What a session of OpenCode sends."""
    messages = [{"id": "m1", "role": "user", "text": SAID}]
    for name in ("session.created", "session.idle", "session.compacted", "session.deleted"):
        yield name, json.dumps({"sessionID": SESSION, "messages": messages})


@pytest.fixture(params=[("claude-code", claude_code), ("opencode", opencode)], ids=lambda host: host[0])
def run_session(request, tmp_path, notes):
    """Sends all events of a session, and one that fails; returns what was printed for the host."""
    host, events = request.param

    def run():
        printed = []
        for event, words in [*events(tmp_path), ("any", "{")]:
            arguments = ["hook", host, event, "--workspace", str(notes)]
            result = CliRunner().invoke(commands, arguments, input=words, standalone_mode=False)
            assert (result.exception, result.return_value) == (None, 0)
            printed.append(result.output)
        return "\n".join(printed)

    return run


def test_nothing_of_a_hook_is_below_the_opened_folder_but_what_it_keeps(run_session, notes, home):
    run_session()
    (data,) = (home / "workspaces").iterdir()
    assert "JSONDecodeError" in (data / "hooks.log").read_text()
    assert SafeFolder.locate_data(notes).base == data
    names = {path.name for path in notes.rglob("*")}
    assert not names & {"hooks.log", "claude-code.json"}
    assert SAID in (notes / "sessions" / f"{SESSION}.jsonl").read_text()


def test_what_a_hook_keeps_is_private(run_session, notes, home):
    before = os.umask(0)
    try:
        run_session()
    finally:
        os.umask(before)
    written = [home, *home.rglob("*"), *(notes / "sessions").rglob("*"), notes / "sessions"]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in written}
    assert modes == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("name", ["hooks.log", "claude-code.json", "claude-code.json.PID"])
@pytest.mark.parametrize("kind", ["soft", "hard", "dangling"])
@pytest.mark.sampled(3)
def test_a_link_where_a_hook_kept_its_state_is_not_written_through(run_session, notes, victim, name, kind):
    planted = notes / ".memory" / name.replace("PID", str(os.getpid()))
    planted.parent.mkdir()
    if kind == "hard":
        os.link(victim / "precious", planted)
    else:
        planted.symlink_to(victim / ("precious" if kind == "soft" else "new"))
    before = content(victim)
    run_session()
    assert content(victim) == before


@pytest.mark.parametrize("folder", [".memory", "sessions", "memory"])
@pytest.mark.parametrize("exists", [True, False], ids=["a folder", "nothing"])
@pytest.mark.sampled(2)
def test_a_linked_folder_is_not_written_into(run_session, notes, victim, home, folder, exists):
    target = victim if exists else victim / "new"
    (notes / folder).symlink_to(target)
    before = content(victim)
    run_session()
    assert content(victim) == before
    (data,) = (home / "workspaces").iterdir()
    assert folder == "memory" or "symlink" in (data / "hooks.log").read_text()


def test_transcripts_are_part_of_no_repository(run_session, notes):
    run_session()
    assert (notes / "sessions" / ".gitignore").read_text() == "*\n"
    assert (notes / ".memory" / ".gitignore").read_text() == "*\n"


def test_a_folder_of_transcripts_that_is_in_use_is_left_to_its_owner(run_session, notes):
    (notes / "sessions").mkdir()
    (notes / "sessions" / "older.jsonl").write_text("")
    run_session()
    assert not (notes / "sessions" / ".gitignore").exists()


def test_a_log_that_is_long_loses_its_older_half(run_session, notes):
    data = SafeFolder.locate_data(notes)
    data.append("hooks.log", b"old\n" * 100_000)
    run_session()
    log = data.read("hooks.log")
    assert 64 * 1024 < len(log) < 256 * 1024
    assert set(log.splitlines()[:-1]) >= {b"old"}
    assert b"JSONDecodeError" in log.splitlines()[-1]


def test_what_cannot_be_logged_is_said(run_session, home):
    home.write_text("this is no folder")
    assert "JSONDecodeError" in run_session()
