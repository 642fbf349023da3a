"""Entries with importance and category: Markdown documents whose vectors LanceDB keeps."""

import datetime
import json
import multiprocessing
import os
import secrets
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lancedb", reason="lancedb is not installed: pip install '.[lancedb]'")

import lancedb
from openclaw_memory_lancedb import CATEGORIES, LanceEntries, MemoryEntry

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import EmbeddingConfig, PolicyRule
from openclaw_memory.errors import ConfigError, EmbedderError, InvalidInputError, PolicyError, QueryError, StoreError
from openclaw_memory.testing import RecordingEmbedder

HOSTILE = ("x' OR '1'='1", "'; DROP TABLE entries; --", "a'b\"c\\d", "fact') OR ('1'='1", "\x00'", "日本'")


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "notes").mkdir()
    with Memory.open(tmp_path / "notes", embedder=None) as memory:
        yield memory


@pytest.fixture
def embedder():
    return RecordingEmbedder()


@pytest.fixture
def entries(memory, embedder):
    with LanceEntries(memory, embedder) as entries:
        yield entries


def stored(entries):
    """The rows of the table, as LanceDB itself sees them, by id."""
    table = lancedb.connect(entries._table.uri).open_table("entries")
    return {row["id"]: row for row in table.search().limit(None).to_list()}


def files(root):
    return sorted((root / "memory" / "notes" / "entries").glob("*.md"))


def texts(found):
    return [entry.text for entry, _ in found]


# --- what an entry is ------------------------------------------------------------------------------------------------
def test_an_entry_is_found_by_its_words_and_has_all_that_was_given(entries):
    entries.add("the ferry leaves at nine", importance=0.9, category="fact")
    entries.add("tea without sugar", category="preference", id="tea", created_at=1_700_000_000_000)
    [(found, score), (_, lower)] = entries.search("tea without milk")
    assert found == MemoryEntry("tea without sugar", 0.5, "preference", "tea", 1_700_000_000_000)
    assert found.vector.shape == (64,)
    assert 1 >= score > lower


def test_a_vector_is_a_question_too(entries, embedder):
    tea = entries.add("tea without sugar")
    entries.add("the ferry leaves at nine")
    assert texts(entries.search(tea.vector, 1)) == ["tea without sugar"]
    assert entries.search(list(map(float, tea.vector)), 1)[0][1] == pytest.approx(1)
    assert embedder.queries == []


def test_get_list_and_delete(entries):
    first = entries.add("one", created_at=1)
    second = entries.add("two", created_at=2)
    assert entries.list() == [second, first]
    assert entries.list(limit=1) == [second]
    assert entries.get(first.id) == first
    assert entries.get(first.id).vector.shape == (64,)
    assert len(entries) == 2
    assert entries.delete(first.id, "unknown")
    assert not entries.delete(first.id)
    assert entries.get(first.id) is None
    assert texts(entries.search("one")) == ["two"]


def test_an_entry_with_a_known_id_is_replaced(entries):
    entries.add("tea", id="drink", importance=0.1)
    entries.add("coffee", id="drink", importance=0.2)
    assert [(one.text, one.importance) for one in entries.list()] == [("coffee", 0.2)]
    assert texts(entries.search("tea")) == ["coffee"]


def test_nothing_is_found_where_nothing_is_or_nothing_is_asked(entries):
    assert entries.search("tea") == []
    entries.add("tea")
    assert entries.search("  ") == []
    assert entries.add_many([]) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": " "},
        {"text": "a", "id": ""},
        {"text": "a", "importance": 1.1},
        {"text": "a", "importance": float("nan")},
        {"text": "a", "category": "preferences"},
        {"text": "a", "created_at": -1},
    ],
)
def test_a_wrong_value_is_refused_and_named(entries, memory, wrong):
    with pytest.raises(InvalidInputError, match=r"text|id|importance|did you mean 'preference'|created_at"):
        entries.add(**wrong)
    assert not files(memory.workspace.root)


# --- which entries ---------------------------------------------------------------------------------------------------
@pytest.fixture
def several(entries):
    for n, category in enumerate(CATEGORIES):
        entries.add(f"word {category}", category=category, importance=n / 4, created_at=n * 86_400_000)
    return entries


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"category": "fact"}, {"fact"}),
        ({"category": ["fact", "other"]}, {"fact", "other"}),
        ({"min_importance": 0.75}, {"entity", "other"}),
        ({"since": datetime.date(1970, 1, 4)}, {"entity", "other"}),
        ({"since": datetime.datetime(1970, 1, 3, 12)}, {"entity", "other"}),  # noqa: DTZ001 - no zone is UTC
        (
            {"since": datetime.datetime(1970, 1, 4, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))},
            {"entity", "other"},
        ),
        ({"category": ("preference", "entity"), "min_importance": 0.5}, {"entity"}),
    ],
)
@pytest.mark.sampled(2)
def test_filters_hold_for_search_and_list_alike(several, asked, expected):
    assert {one.category for one, _ in several.search("word", 10, **asked)} == expected
    assert {one.category for one in several.list(**asked)} == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"category": "facts"},
        {"category": ["fact", "'"]},
        {"min_importance": "0 OR 1=1"},
        {"since": "0 OR 1=1"},
        {"since": -1},
        {"k": True},
        *({"category": text} for text in HOSTILE),
    ],
)
@pytest.mark.sampled(2)
def test_a_wrong_filter_is_refused(several, wrong):
    with pytest.raises(QueryError):
        several.search("word", **wrong)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.sampled(2)
def test_an_id_is_never_read_as_sql(entries, hostile):
    kept = entries.add("stays")
    assert entries.get(hostile) is None
    assert not entries.delete(hostile)
    assert entries.list() == [kept]
    assert set(stored(entries)) == {kept.id}
    entries.add("goes", id=hostile)
    assert entries.get(hostile).text == "goes"
    assert entries.get(hostile).vector is not None
    assert entries.delete(hostile)
    assert set(stored(entries)) == {kept.id}


# --- Markdown is the truth -------------------------------------------------------------------------------------------
def test_an_entry_is_a_document_that_the_memory_finds(entries, memory):
    entries.add("tea without sugar", importance=0.8, category="preference", id="tea")
    (file,) = files(memory.workspace.root)
    written = file.read_text(encoding="utf-8")
    assert "tea without sugar" in written
    assert "preference" in written
    assert memory.search("sugar")[0].path == file.relative_to(memory.workspace.root).as_posix()


def test_the_table_has_the_documented_columns_and_no_text(entries):
    entries.add("tea without sugar", importance=0.8, category="preference", id="tea", created_at=5)
    row = stored(entries)["tea"]
    assert row.keys() == {"id", "digest", "vector", "importance", "category", "createdAt"}
    assert (row["importance"], row["category"], row["createdAt"]) == (0.8, "preference", 5)


def test_what_a_person_deletes_is_not_found(entries, memory):
    entries.add("tea one")
    entries.add("tea two")
    next(file for file in files(memory.workspace.root) if "tea one" in file.read_text(encoding="utf-8")).unlink()
    assert texts(entries.search("tea one", 1)) == ["tea two"]
    assert len(stored(entries)) == 1


def test_what_the_memory_forgets_is_not_found(entries, memory):
    tea = entries.add("tea without sugar")
    entries.add("the ferry")
    memory.control.forget(query="tea without sugar", dry_run=False)
    assert texts(entries.search("tea")) == ["the ferry"]
    assert entries.get(tea.id) is None
    assert tea.id not in stored(entries)


def test_what_a_person_writes_anew_is_found_by_its_new_words(entries, memory):
    entries.add("tea without sugar", id="tea")
    (file,) = files(memory.workspace.root)
    file.write_text(file.read_text(encoding="utf-8").replace("tea without sugar", "coffee with milk"), encoding="utf-8")
    [(found, score)] = entries.search("coffee with milk")
    assert (found.text, score) == ("coffee with milk", pytest.approx(1))


def test_a_lost_table_is_made_again(memory, embedder):
    with LanceEntries(memory, embedder) as entries:
        entries.add_many([MemoryEntry(f"number {n}") for n in range(30)])
        shutil.rmtree(entries._table.uri)
        assert texts(entries.search("number 7", 1)) == ["number 7"]
        shutil.rmtree(entries._table.uri)
    with LanceEntries(memory, embedder) as entries:
        assert texts(entries.search("number 9", 1)) == ["number 9"]
        assert len(stored(entries)) == 30


def test_a_document_whose_vector_failed_is_found_at_the_next_use(memory, embedder):
    with LanceEntries(memory, embedder) as entries:
        entries.add("ferry")
        embedder.failure = EmbedderError("the service is down")
        with pytest.raises(EmbedderError, match="down"):
            entries.add("tea", id="tea")
        embedder.failure = None
        assert texts(entries.search("tea", 1)) == ["tea"]


# --- embedders -------------------------------------------------------------------------------------------------------
def test_openai_is_the_usual_embedder_and_wants_a_key(memory, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with LanceEntries(memory) as entries, pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
        entries.add("tea")
    assert not files(memory.workspace.root)


@pytest.mark.parametrize("none", [None, "none", 3])
def test_entries_need_an_embedder(memory, none):
    with pytest.raises(ConfigError, match="embedder"):
        LanceEntries(memory, none)


def test_no_text_leaves_the_machine_where_that_is_off(tmp_path, embedder):
    embedder.leaves_machine = True
    rules = MemoryConfig(embedding=EmbeddingConfig(allow_remote=False))
    with (
        Memory.open(tmp_path, embedder=None, config=rules) as memory,
        LanceEntries(memory, embedder) as entries,
        pytest.raises(EmbedderError, match="allow_remote"),
    ):
        entries.add("tea")
    assert embedder.documents == []


def test_another_embedder_is_refused_until_the_table_is_made_by_it(memory, embedder):
    other = RecordingEmbedder(32, name="other")
    with LanceEntries(memory, embedder) as entries:
        entries.add("tea")
    with LanceEntries(memory, other) as entries:
        for call in (lambda: entries.search("tea"), lambda: entries.add("ferry"), entries.sync):
            with pytest.raises(EmbedderError, match=r"recording:64.*64 dimensions.*other:32.*rebuild"):
                call()
        assert [one.text for one in entries.list()] == ["tea"]
        assert entries.rebuild() == 1
        assert texts(entries.search("tea")) == ["tea"]
        assert entries.get(entries.list()[0].id).vector.shape == (32,)


def test_a_vector_of_other_dimensions_is_refused(entries):
    entries.add("tea")
    with pytest.raises(EmbedderError, match=r"\(3,\).*64 dimensions"):
        entries.search([1.0, 2.0, 3.0])
    with pytest.raises(EmbedderError, match="not finite"):
        entries.search([float("nan")] * 64)
    with pytest.raises(QueryError, match="vector of numbers"):
        entries.search(["a"])


# --- what may be stored ----------------------------------------------------------------------------------------------
def test_what_a_rule_forbids_is_neither_written_nor_embedded(tmp_path, embedder):
    rules = (PolicyRule("codename", "never-store", pattern="(?i)falcon"),)
    with (
        Memory.open(tmp_path, embedder=None, config=MemoryConfig(policies=rules)) as memory,
        LanceEntries(memory, embedder) as entries,
    ):
        with pytest.raises(PolicyError, match="codename"):
            entries.add_many([MemoryEntry("tea"), MemoryEntry("Project Falcon lands in May")])
        assert entries.list() == []
    assert embedder.documents == []


def test_a_secret_is_masked_before_it_is_embedded_and_in_what_is_found(entries, embedder):
    key = "sk-" + "a1B2c3D4" * 5
    entries.add(f"the key is {key}")
    assert key not in str([*embedder.documents, entries.search("key"), entries.list()])


def test_the_bytes_of_a_deleted_entry_go_when_entries_are_closed(memory, embedder):
    with LanceEntries(memory, embedder) as entries:
        entries.add_many([MemoryEntry(f"number {n}", id=f"{n:032x}") for n in range(50)])
        entries.delete(f"{7:032x}")
        stats = lancedb.connect(entries._table.uri).open_table("entries").stats()
        assert stats["fragment_stats"]["lengths"]["max"] == 50  # marked as removed, and still there
    table = lancedb.connect(entries._table.uri).open_table("entries")
    assert table.stats()["fragment_stats"]["lengths"]["max"] == 49
    assert table.count_rows() == 49
    assert len([*Path(entries._table.uri).rglob("data/*.lance")]) == 1  # no older version has them either


def test_the_bytes_of_what_the_memory_forgets_go_with_the_next_sync(memory, embedder):
    with LanceEntries(memory, embedder) as entries:
        entries.add_many([MemoryEntry(f"number {n}") for n in range(50)])
    memory.control.forget(query="number 7", dry_run=False)
    with LanceEntries(memory, embedder) as entries:
        assert entries.sync() == 1
    assert lancedb.connect(entries._table.uri).open_table("entries").count_rows() == 49
    (data,) = Path(entries._table.uri).rglob("data/*.lance")
    assert data.is_file()


def test_what_is_closed_says_so(memory, embedder):
    entries = LanceEntries(memory, embedder)
    entries.close()
    entries.close()
    for call in (lambda: entries.add("tea"), lambda: entries.search("tea"), entries.list, lambda: len(entries)):
        with pytest.raises(StoreError, match="closed"):
            call()


def _adds(root, process, count):
    with Memory.open(root, embedder=None) as memory, LanceEntries(memory, RecordingEmbedder()) as entries:
        for n in range(count):
            entries.add(f"note{process}x{n} of a process", id=f"{process}-{n}")
            entries.add(f"number {n}, said by all", id=f"all-{n}")
            found = entries.search(f"note{process}x{n} of a process", 50, min_score=0.99)
            assert f"{process}-{n}" in {one.id for one, _ in found}
        entries.delete(f"{process}-0")


@pytest.mark.nightly
def test_processes_write_and_search_at_once(memory):
    root, processes, count = memory.workspace.root, 4, 10
    spawn = multiprocessing.get_context("spawn")
    running = [spawn.Process(target=_adds, args=(root, number, count)) for number in range(processes)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert [one.exitcode for one in running] == [0] * processes
    ids = {f"{process}-{n}" for process in range(processes) for n in range(1, count)} | {
        f"all-{n}" for n in range(count)
    }
    with Memory.open(root, embedder=None) as memory, LanceEntries(memory, RecordingEmbedder()) as entries:
        assert {one.id for one in entries.list()} == ids
        assert stored(entries).keys() == ids
        assert entries._table.rows().keys() == ids
        assert lancedb.connect(entries._table.uri).open_table("entries").count_rows() == len(ids)  # none twice
        assert entries.sync() == 0


# --- the files of the table ------------------------------------------------------------------------------------------
def test_the_files_of_the_table_are_their_owners_alone(tmp_path, embedder):
    umask = os.umask(0)
    try:
        with Memory.open(tmp_path, embedder=None) as memory, LanceEntries(memory, embedder) as entries:
            entries._table.compact()  # the first that makes a folder
            entries.add("tea without sugar")
    finally:
        os.umask(umask)
    modes = {
        name: stat.S_IMODE(os.stat(tmp_path / ".memory" / name).st_mode) for name in ("", "lancedb", "lancedb.lock")
    }
    assert modes == {"": 0o700, "lancedb": 0o700, "lancedb.lock": 0o600}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", "soft"),
        ("lancedb", "soft"),
        ("lancedb.lock", "soft"),
        ("lancedb.lock", "hard"),
        ("lancedb/entries.lance", "soft"),
        ("lancedb/entries.lance/_versions", "soft"),
    ],
)
@pytest.mark.sampled(3)
def test_nothing_is_written_through_a_link_in_a_folder_of_someone_else(tmp_path, embedder, name, kind):
    outside, planted = tmp_path / "outside", tmp_path / "notes" / ".memory" / name
    outside.mkdir()
    (outside / "kept").write_text("precious")
    planted.parent.mkdir(parents=True)
    if kind == "hard":
        os.link(outside / "kept", planted)
    else:
        planted.symlink_to(outside / ("kept" if name == "lancedb.lock" else ""))
    with (
        Memory.open(tmp_path / "notes", embedder=None, index_path=tmp_path / "index.sqlite") as memory,
        LanceEntries(memory, embedder) as entries,
    ):
        for use in (lambda: entries.add("tea"), lambda: entries.search("tea"), entries.sync, entries.compact):
            with pytest.raises(StoreError, match=f"{planted.name} .*link"):
                use()
    assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("kept", "precious")]


@pytest.mark.parametrize("is_set", [True, False])
def test_an_encrypted_memory_has_no_vectors_and_checksums_in_the_open(tmp_path, embedder, monkeypatch, is_set):
    monkeypatch.setenv("OPENCLAW_MEMORY_KEY", secrets.token_hex(32))
    encrypted = MemoryConfig(plugins={"encryption": {"enabled": True}})
    with Memory.open(tmp_path, embedder=None, config=encrypted) as memory:
        memory.sync()
    with Memory.open(tmp_path, embedder=None, config=encrypted if is_set else None) as memory:
        entries = LanceEntries(memory, embedder)
        for use in (lambda: entries.add("tea"), lambda: entries.search("tea"), entries.sync, entries.rebuild):
            with pytest.raises(ConfigError, match="encrypt"):
                use()
        entries.close()
    assert not (tmp_path / ".memory" / "lancedb").exists()
    assert list(tmp_path.glob("memory/**/*.md")) == []


def test_nothing_of_lancedb_is_loaded_before_it_is_needed(tmp_path):
    code = (
        "import json, sys, openclaw_memory_lancedb as package\n"
        "loaded = [name in sys.modules for name in ('lancedb', 'pyarrow', 'numpy')]\n"
        "from openclaw_memory import Memory\n"
        f"entries = package.LanceEntries(Memory.open({str(tmp_path)!r}, embedder=None))\n"
        "print(json.dumps([loaded, 'lancedb' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[False, False, False], False]
