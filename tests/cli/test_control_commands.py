"""The commands that show everything and forget: the plan comes first, and nothing goes without --yes."""

import json
import shlex

import pytest

from openclaw_memory import Memory


@pytest.fixture
def folder(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        (tmp_path / "MEMORY.md").write_text("# Long\n\n- Anna has the key.\n")
        memory.append("Anna hid the key.", date="2026-11-20")
        memory.records.remember("fact", "tea", "green", sensitivity="high")
    return tmp_path


def test_inspect_lists_what_is_remembered(run, folder):
    code, out, _ = run("status", "--files", "--workspace", str(folder))
    assert code == 0
    assert "no day      note        MEMORY.md  3 lines" in out
    assert "2026-11-20  day         memory/2026-11-20.md" in out
    assert "verified True" in run("status", "--deep", "--workspace", str(folder)).out
    assert "Anna" not in out
    code, out, _ = run("status", "--files", "--workspace", str(folder), "--json")
    assert [item["path"] for item in json.loads(out)["items"]][1:] == [
        "memory/2026-11-20.md",
        "memory/records/fact/tea.md",
    ]


def test_forget_shows_a_plan_and_does_it_when_told_so(run, folder):
    wanted = ("forget", "--workspace", str(folder), "--query", "the key")
    code, out, _ = run(*wanted)
    assert code == 1
    command = f"openclaw-memory forget --workspace {folder} 'MEMORY.md#L3'"
    assert f"to forget these lines too: {command}\n" in out
    assert "memory/2026-11-20.md#L3  these lines go: they say it" in out
    assert "look at  MEMORY.md#L3: it says it" in out
    assert (folder / "memory" / "2026-11-20.md").read_text().count("key") == 1
    seen = out.partition("--seen ")[2][:12]
    code, out, err = run(*wanted, "--yes", "--seen", "0" * 12)
    assert (code, "not what the plan said" in err) == (2, True)
    code, out, err = run(*wanted, "--yes", "--seen", seen)
    assert (code, out.splitlines()[0]) == (1, "forgotten memory/2026-11-20.md#L3")
    assert "look at MEMORY.md#L3" in err
    assert "key" not in (folder / "memory" / "2026-11-20.md").read_text()
    code, out, _ = run(*shlex.split(command)[1:], "--yes", "--json")
    assert code == 0
    assert json.loads(out)["forgotten"] == ["MEMORY.md#L3"]
    assert (folder / "MEMORY.md").read_text() == "# Long\n\n"
    assert run(*wanted)[1] == "there is nothing to forget\n"


def test_forget_asks_what(run, folder):
    code, _, err = run("forget", "--workspace", str(folder))
    assert code == 2
    assert "name one of last_days, since, query, key, session" in err
