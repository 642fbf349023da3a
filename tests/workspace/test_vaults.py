"""A vault of another program is at home: its journal, its templates, and the names of its notes."""

import datetime
import json
from pathlib import Path

import pytest
from index_files import write_files

from openclaw_memory import Memory
from openclaw_memory.errors import PathNotAllowedError
from openclaw_memory.flush import Session
from openclaw_memory.tools import memory_tools

DAY = datetime.date(2026, 5, 21)
VAULTS = json.loads(Path(__file__).with_name("vaults.json").read_text("utf-8"))  # each with the note of `DAY`
PIET = "---\ntitle: Janssen, Piet\naliases: [Boiler man, 'Heating']\n---\n\n# Piet\n\nRepairs the heating.\n"


@pytest.mark.parametrize("vault", VAULTS, ids=[vault["name"] for vault in VAULTS])
def test_notes_of_days_go_where_a_vault_has_them_and_templates_are_left_out(tmp_path, run, vault):
    path = vault["path"]
    write_files(tmp_path, {**vault["files"], "Pages/a.md": "# A page\n"})
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    outcome = run("init", "-w", tmp_path)
    assert (outcome.code, "a vault of" in outcome.out, outcome.err) == (0, True, "")
    with Memory.open(tmp_path, embedder=None) as memory:
        assert memory.append("The fuse box is behind the clock.", date=DAY).path == path
        tool = next(tool for tool in memory_tools(memory) if tool.name == "memory_append")
        today = memory.workspace.files.find_day(memory.workspace.get_time().date())
        assert tool.run({"text": "The key is in the shed."}).data["path"] == today
        turn = memory.sessions.flush(Session("agent:main:main", "s1"), window=8_000).begin(7_000, messages=list)
        assert (today in turn.prompt, "memory/2" in turn.prompt) == (True, False)
        memory.sync()
        assert [result.path for result in memory.search("fuse")] == [path]
        assert memory.search("what did I do on May 21 2026")[0].path == path
        assert {item.path for item in memory.control.inspect() if item.kind == "day"} == {path, today}
        assert path in [file.path for file in memory.notes.bootstrap(now=DAY).files]
        memory.sessions.snapshot("s1", [{"role": "user", "content": "tea"}])
        assert "](../../.." in memory.get(today).text if today.count("/") > 2 else ".memory" in memory.get(today).text
    assert {file: file.read_bytes() for file in before} == before
    assert not any((tmp_path / name).exists() for name in ("memory", "MEMORY.md"))
    assert run("init", "-w", tmp_path).out.startswith(f"{tmp_path} is a workspace already; nothing was changed")


def test_an_agents_own_workspace_stays_one_and_a_vault_becomes_one_if_asked(tmp_path, run):
    write_files(tmp_path, {".obsidian/app.json": "{}", "MEMORY.md": "# Long\n", "a.md": "apart"})
    assert run("init", "-w", tmp_path, "--json").code == 0
    assert not (tmp_path / ".memory").exists()
    (tmp_path / "MEMORY.md").unlink()
    (tmp_path / "memory").rmdir()
    assert '"MEMORY.md"' in run("init", "--new-notes", "-w", tmp_path, "--json").out


def test_a_journal_by_weeks_is_not_followed_and_named(tmp_path, run):
    write_files(tmp_path, {".obsidian/daily-notes.json": '{"format": "gggg-[W]ww"}', "a.md": "tea"})
    outcome = run("init", "-w", tmp_path)
    assert "notes of days are YYYY-MM-DD.md" in outcome.out
    assert "journal.name is 'gggg-[W]ww'" in outcome.err


@pytest.mark.parametrize(
    "name",
    ["Piet Janssen", "people/piet janssen", "Boiler man", "heating", "Janssen, Piet", "[[Piet Janssen|the plumber]]",
     "[[Boiler man#Prices]]", "[[the plumber|Piet Janssen]]"],
)  # fmt: skip
@pytest.mark.parametrize("embedder", [None, "static"])
def test_a_note_is_found_and_opened_by_its_names(tmp_path, run, name, embedder):
    write_files(
        tmp_path, {".obsidian/x": "", "People/Piet Janssen.md": PIET, "a.md": "See [[Boiler man]], a heating man.\n"}
    )
    run("init", "-w", tmp_path)
    with Memory.open(tmp_path, embedder=embedder) as memory:
        memory.sync()
        assert memory.get(name).path == "People/Piet Janssen.md"
        assert memory.search(name)[0].path == "People/Piet Janssen.md"
        get = next(tool for tool in memory_tools(memory) if tool.name == "memory_get")
        assert "Repairs" in get.run({"path": name}).text
        with pytest.raises(PathNotAllowedError):
            memory.get("Nobody")


def test_a_page_of_logseq_has_names_too_and_what_is_private_stays_so_under_each(tmp_path, run):
    write_files(tmp_path, {"logseq/config.edn": "{}", "pages/surveyor.md": "alias:: [[Stone woman]], Ilse\n\n- Tall\n"})
    run("init", "-w", tmp_path)
    (tmp_path / "MEMORY.md").write_text("---\naliases: [Secrets]\n---\n\nThe safe is open.\n")
    with Memory.open(tmp_path, embedder=None) as memory:
        assert memory.get("stone woman").path == memory.get("Ilse").path == "pages/surveyor.md"
        get = next(
            tool for tool in memory_tools(memory, session_key="agent:main:x:group:1") if tool.name == "memory_get"
        )
        assert get.run({"path": "Secrets"}).data["status"] == "not_allowed"
