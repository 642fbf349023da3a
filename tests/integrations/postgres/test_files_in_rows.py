"""Notes that are rows: workers with folders of their own see each other's documents, records and notes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, ConflictError, StoreError
from openclaw_memory.types import Document
from openclaw_memory.workspace import SafeFolder

ROOT = Path(__file__).parents[3]


@pytest.fixture
def worker(database, tmp_path):
    """Opens the memory of a worker with an empty folder of its own."""
    opened = []

    def open_one(name, tenant="anna"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        memory = Memory.open(folder, store=f"{database}&tenant={tenant}&files=column", embedder=None)
        opened.append(memory)
        return memory

    yield open_one
    for memory in opened:
        memory.close()


def notes_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.md"))
        if ".memory" not in path.parts
    }


def test_workers_see_what_others_add_change_and_delete(worker, tmp_path):
    one, two = worker("one"), worker("two")
    one.documents.add([Document("ferry", "The ferry leaves at nine."), Document("train", "The train leaves at ten.")])
    assert [found.id for found in two.documents.get(["ferry", "train"])] == ["ferry", "train"]
    two.sync()
    assert two.search("ferry")[0].path == one.search("ferry")[0].path
    two.documents.add([Document("ferry", "The ferry leaves at noon.")])
    assert one.documents.get(["ferry"])[0].text == "The ferry leaves at noon."
    assert "noon" in one.search("ferry")[0].snippet
    assert one.documents.delete(["train"]) == ["train"]
    assert two.documents.get(["train"]) == []
    assert not two.search("train")
    assert notes_of(tmp_path / "one") == notes_of(tmp_path / "two")


def test_what_one_worker_has_indexed_is_not_behind_for_another(worker):
    one, two = worker("one"), worker("two")
    one.documents.add([Document(f"d{number}", f"text number{number}") for number in range(20)])
    found = two.search("number7")
    assert [result.path for result in found] == [result.path for result in one.search("number7")]
    assert not found.stale
    report = two.sync()
    assert (report.unchanged, report.added, report.changed, report.removed) == (20, (), (), ())
    assert not one.search("number3").stale


def test_records_are_settled_against_what_another_worker_has_said(worker):
    one, two = worker("one"), worker("two")
    said = one.records.remember("preference", "editor.theme", "dark")
    seen = two.records.get("preference", "editor.theme")
    assert seen.value == "dark"
    two.records.confirm("preference", "editor.theme")
    with pytest.raises(ConflictError):
        one.records.remember("preference", "editor.theme", "light", expected_version=said.record.version)
    assert one.records.get("preference", "editor.theme").version != seen.version
    assert one.records.forget("preference", "editor.theme")
    assert two.records.get("preference", "editor.theme") is None
    assert list(two.records) == []


def test_the_first_worker_brings_its_notes_and_a_later_one_may_not_hold_others(worker, tmp_path):
    (tmp_path / "one" / "memory").mkdir(parents=True)
    (tmp_path / "one" / "memory" / "a.md").write_text("The boiler is old.\n")
    one = worker("one")
    one.append("New.", date="2026-03-01")
    assert "boiler" in worker("two").get("memory/a.md").text
    (tmp_path / "three" / "memory").mkdir(parents=True)
    (tmp_path / "three" / "memory" / "b.md").write_text("Another memory.\n")
    with pytest.raises(StoreError, match=r"memory/b\.md"):
        worker("three").sync()


def test_what_an_editor_has_changed_is_set_aside_and_not_lost(worker, tmp_path):
    one, two = worker("one"), worker("two")
    one.append("The boiler is old.", date="2026-03-01")
    note = tmp_path / "one" / "memory" / "2026-03-01.md"
    before = note.read_bytes()
    note.write_bytes(before + b"By hand.\n")
    two.append("The ferry is new.", date="2026-03-02")
    assert "ferry" in one.get("memory/2026-03-02.md").text
    assert note.read_bytes() == before
    aside = SafeFolder.locate_data(tmp_path / "one")
    (kept,) = (aside.base / "not-shared" / name for name in aside.list_names("not-shared"))
    assert kept.read_bytes() == before + b"By hand.\n"


def test_another_tenant_sees_nothing(worker, tmp_path):
    worker("one").append("The boiler is old.", date="2026-03-01")
    worker("other", tenant="bob").sync()
    assert notes_of(tmp_path / "other") == {}


# Adds lines to the note of a day, then adds 1 to the number in another note, and again where someone else was first.
WRITER = """
import sys
from openclaw_memory import Memory
from openclaw_memory.errors import ConflictError
folder, store, name, lines, edits = sys.argv[1:]
with Memory.open(folder, store=store, embedder=None) as memory:
    for number in range(int(lines)):
        memory.append(f"{name} {number}.", date="2026-03-01")
        print(number, flush=True)
    left = int(edits)
    while left:
        seen = memory.get("memory/count.md", start=3)
        try:
            memory.edit("memory/count.md", 3, 3, str(int(seen.text) + 1), expected=seen)
            left -= 1
        except ConflictError:
            pass
"""


def start_process(code, folder, database, *arguments):
    folder.mkdir()
    store = f"{database}&tenant=anna&files=column"
    command = [sys.executable, "-c", code, str(folder), store, folder.name, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_three_processes_on_folders_of_their_own_lose_no_line_and_no_edit(worker, database, tmp_path):
    names = ("left", "middle", "right")
    away = worker("away")
    away.append("The zeppelin lands on Friday.", date="2026-02-28")
    away.notes.append("0", path="memory/count.md")
    before = away.get("memory/count.md", start=3)
    away.close()
    running = [start_process(WRITER, tmp_path / name, database, 30, 10) for name in names]
    answered = [len(process.communicate()[0].split()) for process in running]
    assert ([process.returncode for process in running], answered) == ([0, 0, 0], [30, 30, 30])
    workers = [worker(name) for name in names]
    plan = workers[0].control.forget(query="zeppelin", dry_run=True).plan
    workers[0].control.forget(query="zeppelin", dry_run=False, expected=plan.hash)
    for memory in (*workers, worker("away")):  # the last one has missed all of it
        assert memory.get("memory/count.md", start=3).text == "30"
        lines = memory.get("memory/2026-03-01.md").text.splitlines()
        assert sorted(line for line in lines if line.endswith(".")) == sorted(
            f"{name} {number}." for name in names for number in range(30)
        )
        memory.sync()
        assert not memory.search("zeppelin")
        with pytest.raises(ConflictError):
            memory.edit("memory/count.md", 3, 3, "1", expected=before)
    notes = notes_of(tmp_path / "away")
    assert not any(b"zeppelin" in data for data in notes.values())
    assert all(notes_of(tmp_path / name) == notes for name in names)


@pytest.mark.nightly
def test_killed_writers_lose_nothing_that_was_answered_and_tear_nothing(worker, database, tmp_path):
    running = {name: start_process(WRITER, tmp_path / name, database, 200, 0) for name in ("left", "right")}
    answered = {name: [process.stdout.readline().strip() for _ in range(6)] for name, process in running.items()}
    for process in running.values():
        os.kill(process.pid, signal.SIGKILL)
    for name, process in running.items():
        answered[name] += process.communicate()[0].split()
    fresh = worker("fresh")
    text = fresh.get("memory/2026-03-01.md").text
    assert all(f"{name} {number}." in text for name, numbers in answered.items() for number in numbers)
    again = worker("left")
    again.append("After.", date="2026-03-01")
    assert fresh.get("memory/2026-03-01.md").text == again.get("memory/2026-03-01.md").text
    assert notes_of(tmp_path / "left") == notes_of(tmp_path / "fresh")


CUT_SHORT = """
import os, signal, sys
from openclaw_memory import Memory
from openclaw_memory_postgres.notes import PostgresFiles
from openclaw_memory.types import Document
PostgresFiles._push = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with Memory.open(sys.argv[1], store=sys.argv[2], embedder=None) as memory:
    memory.documents.add([Document("ferry", "Never answered."), Document("boat", "Nor this.")])
"""


def test_a_writer_that_is_killed_before_its_rows_are_written_has_written_nothing(worker, database, tmp_path):
    one = worker("one")
    one.documents.add([Document("ferry", "The ferry leaves at nine.")])
    ended = start_process(CUT_SHORT, tmp_path / "cut", database)
    ended.communicate()
    assert ended.returncode == -signal.SIGKILL
    assert any("Nor this" in text.decode() for text in notes_of(tmp_path / "cut").values())
    assert [found.text for found in one.documents.get(["ferry", "boat"])] == ["The ferry leaves at nine."]
    again = worker("cut")
    assert [found.text for found in again.documents.get(["ferry", "boat"])] == ["The ferry leaves at nine."]
    assert notes_of(tmp_path / "cut") == notes_of(tmp_path / "one")


def test_the_address_says_column_or_folder(tmp_path):
    with pytest.raises(ConfigError, match="files=rows"):
        Memory.open(tmp_path, store="postgresql://host/x?files=rows", embedder=None)
