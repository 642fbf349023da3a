"""`openclaw-memory watch`: a line for each sync, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from index_files import index_file

from openclaw_memory import Memory
from openclaw_memory.store import SqliteStore

COMMAND = [sys.executable, "-m", "openclaw_memory", "watch"]


@pytest.fixture
def watching(notes):
    """Starts the command on the notes, with more options; whatever still runs is killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        arguments = [*COMMAND, "--workspace", str(notes), *options]
        # A shell that started the tests in the background ignores Ctrl-C, and so would the command.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        finally:
            signal.signal(signal.SIGINT, before)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_each_change_is_a_line_and_ctrl_c_ends_it_well(watching, notes):
    process = watching()
    assert "4 added, 0 changed, 0 removed" in process.stdout.readline()
    (notes / "memory" / "new.md").write_text("A memo.\n")
    assert process.stdout.readline().endswith("s: memory/new.md\n")
    code, out, err = end(process)
    assert (code, out) == (0, "")
    assert err == "note: watching 2 folders\n"


@pytest.mark.nightly
def test_in_json_each_sync_is_an_object_on_a_line_of_its_own(watching, notes):
    process = watching("--json")
    assert len(json.loads(process.stdout.readline())["added"]) == 4
    (notes / "MEMORY.md").unlink()
    assert json.loads(process.stdout.readline())["removed"] == ["MEMORY.md"]
    assert end(process)[0] == 0


@pytest.mark.nightly
def test_it_ends_by_itself_after_the_time_that_was_given_and_says_nothing_of_a_sync_without_news(watching):
    assert watching("--for", "0.001").communicate(timeout=60)[0].count("\n") == 1
    out, err = watching("--for", "0.5").communicate(timeout=60)
    assert "0 added, 0 changed, 0 removed" in out
    assert out.count("\n") == 1
    assert "watching" in err


@pytest.mark.nightly
def test_it_says_that_it_waits_for_the_sync_of_another_process(watching, notes):
    with Memory.open(notes) as memory:
        memory.sync()
        with SqliteStore(memory.index_path).lock("sync"):
            process = watching()
            assert process.stderr.readline().startswith("note: waiting: thread ")
            assert end(process)[::2] == (0, "note: ended at once: the next sync goes on from there\n")


def test_what_goes_wrong_is_reported_and_so_is_its_end(watching, notes):
    process = watching()
    assert process.stdout.readline()
    assert process.stderr.readline() == "note: watching 2 folders\n"
    index = index_file(notes)
    for file in index.parent.glob("index.sqlite*"):
        file.unlink()
    index.mkdir()
    (notes / "MEMORY.md").write_text("changed\n")
    assert "is a folder, where the index file belongs" in process.stderr.readline()
    index.rmdir()
    assert process.stderr.readline() == "note: all is well again\n"
