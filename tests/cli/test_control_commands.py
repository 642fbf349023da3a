"""The commands that show everything and forget: the plan comes first, and nothing goes without --yes."""

import json

import pytest

from openclaw_memory import Memory
from openclaw_memory.cli import main


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    return run


@pytest.fixture
def folder(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        (tmp_path / "MEMORY.md").write_text("# Long\n\n- Anna has the key.\n")
        memory.append("Anna hid the key.", date="2026-11-20")
        memory.records.remember("fact", "tea", "green", sensitivity="high")
    return tmp_path


def test_inspect_lists_what_is_remembered(run, folder):
    code, out, _ = run("inspect", "--workspace", str(folder))
    assert code == 0
    assert "no day      note        MEMORY.md  3 lines" in out
    assert "2026-11-20  day         memory/2026-11-20.md" in out
    assert "3 files" in out
    assert "Anna" not in out
    code, out, _ = run("inspect", "--workspace", str(folder), "--sensitivity", "high", "--json")
    assert [item["path"] for item in json.loads(out)["items"]] == ["memory/records/fact/tea.md"]
    assert run("inspect", "--workspace", str(folder), "--kind", "document")[0] == 1


def test_forget_shows_a_plan_and_does_it_when_told_so(run, folder):
    wanted = ("forget", "--workspace", str(folder), "--query", "the key")
    code, out, _ = run(*wanted)
    assert code == 0
    assert "memory/2026-11-20.md#L3  these lines go: they say it" in out
    assert "look at  MEMORY.md#L3: it says it" in out
    assert (folder / "memory" / "2026-11-20.md").read_text().count("key") == 1
    seen = out.rsplit(" ", 1)[1].strip()
    code, out, err = run(*wanted, "--yes", "--seen", "0" * 12)
    assert (code, "not what the plan said" in err) == (2, True)
    code, out, err = run(*wanted, "--yes", "--seen", seen)
    assert (code, out) == (0, "forgotten memory/2026-11-20.md#L3\n")
    assert "look at MEMORY.md#L3" in err
    assert "key" not in (folder / "memory" / "2026-11-20.md").read_text()
    code, out, _ = run("forget", "--workspace", str(folder), "MEMORY.md#L3", "--yes", "--json")
    assert json.loads(out)["forgotten"] == ["MEMORY.md#L3"]
    assert (folder / "MEMORY.md").read_text() == "# Long\n\n"
    assert run(*wanted)[1] == "there is nothing to forget\n"


def test_forget_asks_what(run, folder):
    code, _, err = run("forget", "--workspace", str(folder))
    assert code == 2
    assert "name one of last_days, since, query, key, session" in err


def test_export_and_import_count_files_and_name_those_they_left(run, folder, tmp_path_factory):
    there, file = tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("exports") / "all.jsonl"
    assert run("export", "--workspace", str(folder), str(file)) == (0, "3 files exported\n", "")
    (there / "MEMORY.md").write_text("- Ben has the key.\n")
    code, out, err = run("import", "--workspace", str(there), str(file))
    assert (code, out) == (1, "2 files added, 0 there already\n")
    assert err.startswith("note: MEMORY.md: MEMORY.md is there and says something else")
    code, out, _ = run("import", "--workspace", str(there), str(file), "--json")
    assert (code, [one["path"] for one in json.loads(out)["refused"]]) == (1, ["MEMORY.md"])


def test_snapshots_are_listed_and_the_latest_of_a_session_is_shown(run, folder):
    place = ("--workspace", str(folder))
    assert run("snapshots", *place)[:2] == (0, "no snapshots\n")
    with Memory.open(folder, embedder=None) as memory:
        memory.snapshot("a", [{"role": "user", "content": "First."}])
        made = memory.snapshot("a", [{"role": "user", "content": "Then\x1b[2J."}], "About it.")
        memory.snapshot("b", [{"role": "user", "content": "Other."}])
    code, out, _ = run("snapshots", *place)
    assert (code, out.count(".json"), "First" in out) == (0, 3, False)
    code, out, _ = run("snapshots", "a", *place)
    assert (code, out.count(".json")) == (0, 2)
    assert out.split("\n\n")[1].startswith("About it.\nuser: Then")
    assert "\x1b[2J" not in out
    code, out, _ = run("snapshots", "a", *place, "--json")
    assert json.loads(out)["snapshots"][0] == {"path": made.path, **made.to_dict()}
