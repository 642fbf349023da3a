"""`docs/explanation/differences.md` lists each deliberate difference that the golden tests know, in their words."""

import importlib.util
import json
import re
from pathlib import Path

import apsw
import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SECTIONS

HERE = Path(__file__).parent
DOC = HERE.parents[1] / "docs" / "explanation" / "differences.md"
# What the documents define: the columns of each table.
DOCUMENTED = {
    "meta": "key value",
    "files": "path source hash mtime size",
    "chunks": "id path source start_line end_line hash model text embedding updated_at",
    "embedding_cache": "provider model provider_key hash embedding dims updated_at",
    "chunks_fts": "text id path source model start_line end_line",
    "chunks_vec": "id embedding",
}


def cells(heading: str) -> list[list[str]]:
    """The rows below a heading that begin with a name."""
    section = DOC.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]


def rows(heading: str) -> dict[str, str]:
    """The table below a heading: each name in its first column, and what its last one says."""
    return {name: reason for named, reason in cells(heading) for name in re.findall(r"`(\w+)`", named)}


def names(cell: str) -> set[str]:
    """What a cell names: `table`, or `table.column`."""
    return set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", cell))


@pytest.fixture(scope="module")
def golden():
    spec = importlib.util.spec_from_file_location("golden_functions", HERE / "test_functions_golden.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_table_has_every_difference_of_a_function(golden):
    assert rows("Same function, other answer") == {known.group: known.reason for known in golden.DIFFERENCES}


def test_the_second_table_has_every_function_without_one_of_ours(golden):
    assert rows("No such function here") == dict(golden.NOT_MAPPED)


def test_the_third_table_has_every_difference_of_a_function_from_2026_2(golden):
    told = {known.group: known.reason for known in golden.DIFFERENCES_FROM_2026_2}
    assert rows("Same function, other answer than in 2026.2") == told


def test_the_two_presets_differ_in_what_is_listed_and_in_nothing_else():
    now, before = MemoryConfig.openclaw("2026.9"), MemoryConfig.openclaw("2026.2")
    settings = {
        f"{part}.{name}": [getattr(getattr(preset, part), name) for preset in (now, before)]
        for part, kind in SECTIONS.items()
        for name in kind.__struct_fields__
    }
    changed = {name: [json.dumps(value) for value in both] for name, both in settings.items() if both[0] != both[1]}
    told = {name.strip("`"): [now, before] for name, now, before, _ in cells("The two presets")}
    assert {
        name: [cell.replace("not set", "null").strip("`") for cell in both] for name, both in told.items()
    } == changed


def test_the_preset_of_opencode_differs_from_that_of_2026_2_in_what_is_said():
    (told,) = re.findall(r"is the preset of 2026\.2 with (.+)\.", DOC.read_text(encoding="utf-8"))
    changed = {tuple(name.split(".")): int(value) for name, value in re.findall(r"`([a-z_.]+) = (\d+)`", told)}
    tables = {part: {key: value} for (part, key), value in changed.items()}
    assert MemoryConfig.opencode() == MemoryConfig.openclaw("2026.2").replace(tables)


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The tables of an index, each with its columns."""
    notes = tmp_path_factory.mktemp("notes")
    (notes / "MEMORY.md").write_text("The ferry is booked.\n", encoding="utf-8")
    with Memory.open(notes, embedder="static") as memory:
        memory.sync()
        place = memory.status().index_path
    db = apsw.Connection(place, flags=apsw.SQLITE_OPEN_READONLY)
    tables = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    # The module of a table of vectors is not loaded here.
    found = {
        name: set() if "USING vec0" in sql else {row[1] for row in db.execute(f"PRAGMA table_info({name})")}
        for name, sql in tables
    }
    db.close()
    return found


def test_every_column_that_the_documents_define_is_there_or_in_the_table(schema):
    told = {first.strip("`"): difference for first, _, difference in cells("The schema")}
    assert told.keys() == DOCUMENTED.keys()
    for table, columns in DOCUMENTED.items():
        assert set(columns.split()) <= schema.get(table, set()) | names(told[table]), table


def test_what_takes_its_place_is_in_the_index(schema):
    for first, here, difference in cells("The schema"):
        assert names(here) <= schema.keys(), first
        for table, column in (name.split(".") for name in names(difference) if "." in name and "sqlite" not in name):
            assert column in schema[table], f"{first}: {table} has no column {column}"
