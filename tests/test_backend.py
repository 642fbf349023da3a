"""What a memory asks of its engine, and which store it opens: the built-in ones, another one, and clear errors."""

import sys
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
from index_files import index_file
from msgspec.structs import replace

from openclaw_memory import Memory, MemoryConfig, SearchFilter, SearchOptions, SearchResults
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.errors import ConfigError, StoreError
from openclaw_memory.search import SearchRequest
from openclaw_memory.store import SqliteStore
from openclaw_memory.tools import recall
from openclaw_memory.types import SearchResult, SyncReport
from openclaw_memory.workspace import Workspace

KEY = "ghp_" + "a1B2" * 9


class Fixed:
    """An engine that gives one answer and counts its calls."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.calls = workspace, []

    def search(self, request):
        self.calls.append("search")
        found = SearchResult("MEMORY.md", 3, 3, 0.9, "- Ines prefers trains to planes.", "memory")
        return SearchResults((found,), request.query, "keyword", "fixed", "")

    def get(self, path, *, start=None, lines=None):
        self.calls.append("get")
        return self.workspace.read_excerpt(path, start=start, lines=lines)

    def sync(self, **_options):
        self.calls.append("sync")
        return SyncReport()

    def status(self, *, deep=False):
        raise NotImplementedError

    def close(self):
        self.calls.append("close")


def test_a_memory_hands_its_calls_to_the_backend_it_was_given(notes):
    backend = Fixed(Workspace.open(notes))
    with Memory(backend.workspace, backend=backend) as memory:
        memory.sync()
        hit = memory.search("trains")[0]
        assert memory.get(hit.citation).text == hit.snippet
        assert memory.append("The ferry leaves at seven.", date="2026-03-01").start_line == 3
        assert memory.index_path is None
    assert backend.calls == ["sync", "search", "get", "close"]
    with pytest.raises(StoreError, match="closed"):
        memory.append("The ferry leaves at eight.")
    assert not (notes / ".memory").exists()


def test_a_backend_is_handed_a_search_as_one_value(notes):
    class Curious(Fixed):
        def search(self, request):
            self.calls.append(request)
            return super().search(request)

    backend = Curious(Workspace.open(notes))
    memory = Memory(backend.workspace, backend=backend)
    now = datetime(2026, 3, 1, tzinfo=UTC)
    limits = {"max_results": 3, "max_chars": 500, "min_score": 0.2, "now": now}
    options = SearchOptions(explain=True, task="a journey", settings={"mmr": 0.7})
    memory.search("trains")
    memory.search("trains", filter={"path": "MEMORY.md", "without": "planes"}, options=options, **limits)
    only = SearchFilter(path=("MEMORY.md",), without=("planes",))
    narrow = SearchRequest("trains", filter=only, options=options, **limits)
    assert backend.calls[::2] == [SearchRequest("trains"), narrow]


def test_tools_mask_the_secrets_of_another_backend_and_keep_to_their_budget(notes):
    class Talkative(Fixed):
        def search(self, request):
            key = replace(super().search(request)[0], snippet=f"the key is {KEY}")
            return SearchResults(
                (key, *[replace(key, snippet="one\n" * 500)] * 4), request.query, "keyword", "fixed", ""
            )

    memory = Memory(Workspace.open(notes), backend=Talkative(Workspace.open(notes)))
    first, *others = recall(memory, "key").split("[MEMORY.md#")[1:]
    assert KEY not in first
    assert len("".join(others)) < 4_400


def test_policies_hold_for_what_another_backend_finds_and_reads(notes):
    rules = (
        PolicyRule("trips", "masked", pattern="planes"),
        PolicyRule("keys", "never-store", pattern="spare key"),
        PolicyRule("health", "never-store", key="health.*"),
    )

    class Careless(Fixed):
        def search(self, request):
            found = super().search(request)[0]
            key = replace(found, start_line=4, end_line=4, snippet="- The spare key is with Mrs. Groen.")
            knee = replace(found, path="memory/records/fact/health.knee.md", snippet="health.knee: a bad knee")
            return SearchResults((found, key, knee), request.query, "keyword", "fixed", "", rejected=(key,))

        def get(self, path, *, start=None, lines=None):
            self.calls.append("get")
            return Workspace.open(notes).read_excerpt(path, start=start, lines=lines)

    with Memory.open(notes, embedder=None) as memory:
        memory.records.remember("fact", "health.knee", "a bad knee")
    config = MemoryConfig(policies=rules)
    memory = Memory(Workspace.open(notes), backend=Careless(Workspace.open(notes)), config=config)
    found = memory.search("trains")
    assert [hit.snippet for hit in found] == ["- Ines prefers trains to ***."]
    assert found.rejected == ()
    assert memory.get("MEMORY.md").text == "# Long-term memory\n\n- Ines prefers trains to ***.\n"
    assert not memory.get("memory/records/fact/health.knee.md").text.strip()


@pytest.mark.parametrize("ask", [lambda memory: memory.watch(), lambda memory: memory.documents])
def test_what_only_the_built_in_engine_can_is_refused_with_a_word(notes, ask):
    memory = Memory(Workspace.open(notes), backend=Fixed(Workspace.open(notes)))
    with pytest.raises(ConfigError, match="open it without a backend"):
        ask(memory)


def test_a_memory_without_store_and_backend_is_an_error(notes):
    with pytest.raises(ConfigError, match="needs a store or a backend"):
        Memory(Workspace.open(notes))


@pytest.mark.parametrize(
    ("store", "where"),
    [
        ("sqlite", "index of the data folder"),
        ("sqlite:///elsewhere/other.sqlite", "elsewhere/other.sqlite"),
        ("sqlite:///notes #1?.sqlite", "notes #1?.sqlite"),
        (lambda: SqliteStore("made.sqlite"), None),
    ],
)
def test_a_store_is_chosen_by_name_url_or_function(notes, tmp_path, monkeypatch, store, where):
    monkeypatch.chdir(tmp_path)
    with Memory.open(notes, store=store, embedder=None) as memory:
        assert memory.search("gauges")
        places = {"index of the data folder": index_file(notes), None: Path("made.sqlite")}
        assert memory.index_path == places.get(where, notes / str(where))
        assert (memory.status().backend, memory.status().store) == ("builtin", "sqlite")


def test_a_store_of_another_package_is_found_by_its_scheme(notes, monkeypatch):
    opened = []

    def open_shelf(url, root):
        opened.append((url, root))
        return SqliteStore(root / "shelf.sqlite")

    point = EntryPoint("shelf", "shelf:open_shelf", "openclaw_memory.stores")
    monkeypatch.setitem(sys.modules, "shelf", SimpleNamespace(open_shelf=open_shelf))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_group: [point])
    with Memory.open(notes, store="shelf://host/name", embedder=None) as memory:
        assert memory.search("gauges")
    assert opened == [("shelf://host/name", notes)]
