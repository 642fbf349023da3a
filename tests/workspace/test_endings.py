"""Which endings the name of a note may have: those of the settings, for whoever scans, reads, searches and watches."""

import json

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError, PathNotAllowedError

NAMES = ("memory/a.md", "memory/b.MD", "memory/c.markdown", "memory/d.txt", "memory/2026-03-01.txt")
MORE = ("vault/e.markdown", "vault/f.txt", "vault/h.mdx", "vault/i.org")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "vault").mkdir()
    for name in (*NAMES, *MORE, "memory/g.rst"):
        (tmp_path / name).write_text(f"The anchor of {name} is heavy.\n", encoding="utf-8")
    return tmp_path


def test_notes_of_each_ending_are_found_and_can_be_read_and_changed(folder):
    config = MemoryConfig().replace({"files": {"extra_paths": ("vault",)}})
    with Memory.open(folder, config=config) as memory:
        memory.sync()
        found = {result.path for result in memory.search("heavy anchor", max_results=20, min_score=0)}
        assert found == {*NAMES, *MORE}
        seen = memory.get("memory/d.txt")
        memory.edit("memory/d.txt", 1, 1, "It is light.", expected=seen)
        assert memory.get("memory/d.txt#L1").text == "It is light."


def test_a_canvas_is_read_by_its_texts_and_org_by_its_headings(tmp_path):
    nodes = [
        {"id": "a", "type": "text", "text": 'The anchor\nis "heavy".', "x": 1},
        {"id": "b", "type": "group", "label": "Harbour"},
        {"id": "c", "type": "file", "file": "boats.md"},
    ]
    lines = ",\n".join(map(json.dumps, nodes))
    (tmp_path / "plan.canvas").write_text('{"nodes":[\n' + lines + '\n],"edges":[]}')
    (tmp_path / "short.canvas").write_text(json.dumps({"nodes": nodes[:1]}))
    (tmp_path / "boat.org").write_text("* Boat\nIt is blue.\n** Mast\nIt is *oak*.\n")
    with Memory.open(tmp_path, config=MemoryConfig().replace({"files": {"extra_paths": (".",)}})) as memory:
        assert memory.get("plan.canvas").text == '\nThe anchor is "heavy".\nHarbour\n'
        assert memory.get("short.canvas").text == 'The anchor is "heavy".'
        assert memory.get("boat.org").text == "# Boat\nIt is blue.\n## Mast\nIt is *oak*."
        with pytest.raises(PathNotAllowedError, match="is a canvas, which is only read"):
            memory.edit("plan.canvas", 3, 3, "Port", expected=memory.get("plan.canvas"))
        assert memory.search("harbour")[0].citation.startswith("plan.canvas")


def test_what_is_not_read_is_named_by_its_ending(tmp_path):
    for name in ("a.rst", "b.rst", "c.MKD", "notes.py"):
        (tmp_path / name).write_text("The anchor is heavy.\n")
    with Memory.open(tmp_path) as memory:
        assert "files that end 2 in .rst, 1 in .MKD are not read" in memory.workspace.suggest_setup(1)


def test_the_day_in_the_name_of_a_note_counts_whatever_its_ending_is(folder):
    with Memory.open(folder) as memory:
        memory.sync()
        of_march = {"since": "2026-03-01", "until": "2026-03-01"}
        assert [one.path for one in memory.search("anchor", filter=of_march)] == ["memory/2026-03-01.txt"]
        assert memory.search("What was on 1 March 2026?")[0].path == "memory/2026-03-01.txt"


def test_a_question_that_names_a_file_is_answered_by_it(folder):
    with Memory.open(folder) as memory:
        memory.sync()
        assert memory.search("what is in d.txt")[0].path == "memory/d.txt"


def test_openclaws_own_numbers_read_what_openclaw_reads(folder):
    with Memory.open(folder, config=MemoryConfig.openclaw()) as memory:
        assert [file.path for file in memory.workspace.scan().files] == ["memory/a.md"]
        with pytest.raises(PathNotAllowedError):
            memory.get("memory/d.txt")


@pytest.mark.parametrize("ending", ["", "md", ".", ".a/b", "*"])
def test_an_ending_is_a_dot_and_letters(ending):
    with pytest.raises(ConfigError, match="an ending is a dot and letters"):
        MemoryConfig().replace({"files": {"endings": (ending,)}})
