"""`openclaw-memory audit` shows the access log, and with --verify proves it by its exit code."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from openclaw_memory.cli.commands import commands
from openclaw_memory.config.environment import locate_workspace_data


@pytest.fixture
def run(tmp_path):
    """A command on a workspace whose settings turn the log on."""
    (tmp_path / "notes").mkdir()
    settings = tmp_path / "settings.toml"
    settings.write_text("[defaults.plugins.audit]\nenabled = true\n", encoding="utf-8")

    def run(command, *arguments):
        place = ["--workspace", str(tmp_path / "notes"), "--config", str(settings)]
        return CliRunner().invoke(commands, [command, *place, *arguments], standalone_mode=False)

    return run


@pytest.fixture
def used(run):
    run("add", "Anna moved the launch to Friday.")
    run("search", "launch")
    run("show", "memory/nothing.md")
    return run


def log(tmp_path):
    return next((locate_workspace_data(tmp_path / "notes") / "audit").glob("access.*"))


def test_entries_are_shown_newest_first(used):
    rows = used("audit").output.splitlines()
    assert [row.split()[0] for row in rows] == ["3", "2", "1"]
    assert rows[0].split()[2:] == ["cli:show", "get", "NotFoundError"]
    assert rows[1].split()[2:4] == ["cli:search", "search"]
    assert rows[1].split()[4].startswith("memory/")
    assert len(used("audit", "-n", "1").output.splitlines()) == 1


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        (("--op", "append"), [1]),
        (("--actor", "search"), [2]),
        (("--path", "memory/"), [2, 1]),
        (("--since", "2999-01-01"), []),
        (("--session", "anna"), []),
    ],
)
def test_entries_are_chosen_by_what_they_say(used, filters, shown):
    assert [one["seq"] for one in json.loads(used("audit", "--json", *filters).output)["entries"]] == shown


def test_a_day_that_is_none_is_refused(used):
    assert "since must be a day" in str(used("audit", "--since", "Friday").exception)


def test_a_whole_log_is_proven(used):
    done = used("audit", "--verify")
    assert (done.return_value, done.output) == (0, "entries 1 to 3 are as written; note the last number elsewhere\n")
    found = json.loads(used("audit", "--verify", "--json").output)
    assert (found["ok"], found["last"], found["wrong"]) == (True, 3, None)


def test_the_first_wrong_entry_is_named_and_the_exit_code_says_so(used, tmp_path):
    file = log(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'"op":"search"', b'"op":"listen"'))
    done = used("audit", "--verify")
    assert done.return_value == 1
    assert done.output.splitlines() == [
        "wrong  entry 2 (audit/access.000000000001.jsonl, line 2): it is not as it was written",
        "1 entries before it are as they were written",
    ]
    assert used("audit", "--verify", "--json").return_value == 1


def test_without_entries_it_says_how_to_turn_the_log_on(tmp_path, run):
    assert run("audit").output == "no entries\n"
    done = CliRunner().invoke(commands, ["audit", "--workspace", str(tmp_path / "notes")], standalone_mode=False)
    assert "[defaults.plugins.audit] enabled = true" in done.output
    assert run("audit", "--verify").return_value == 1  # a log that is on and has no file
