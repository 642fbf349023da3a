"""Which embedder a memory gets: what was asked for, what `auto` finds, and when the fallback stands in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import Embedding
from openclaw_memory.embeddings import load_embedder, openai
from openclaw_memory.embeddings._choice import SILENT_SECONDS, Embedders, GuardedEmbedder, embedders_of
from openclaw_memory.embeddings._remote import Limits, Service
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import ConfigError, EmbedderError

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


class Wanted:
    """The embedder that is asked for, behind an endpoint; it fails while `broken`."""

    provider, model, identity, endpoint = "wanted", "words", "wanted:words", "https://api.example.com"
    leaves_machine = True

    def __init__(self, *, broken: bool = False) -> None:
        self.broken, self.asked, self.closed = broken, 0, False

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: Any) -> Any:
        self.asked += 1
        if self.broken:
            raise ConnectionResetError("the line is dead")
        return HashingEmbedder(32).embed_documents(texts)

    def close(self) -> None:
        self.closed = True


def with_fallback(notes: Path, embedder: Any) -> Memory:
    return Memory.open(notes, embedder=embedder, config=MemoryConfig(embedding=Embedding(fallback="hashing")))


# --- auto ----------------------------------------------------------------------------------------------------------


def test_auto_without_a_key_comes_to_the_model_that_ships_and_says_what_it_passed_over(notes: Path) -> None:
    with Memory.open(notes, config=MemoryConfig.openclaw()) as memory:
        state = memory.status()
    assert (state.requested_provider, state.provider) == ("auto", "static")
    assert list(state.passed_over) == ["local", "openai", "gemini", "voyage"]
    for provider, word in (
        ("local", "model"),
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("voyage", "VOYAGE_API_KEY"),
    ):
        assert word in state.passed_over[provider]


@pytest.mark.parametrize(
    ("name", "provider"), [("OPENAI_API_KEY", "openai"), ("GEMINI_API_KEY", "gemini"), ("VOYAGE_API_KEY", "voyage")]
)
def test_auto_takes_the_first_provider_whose_key_is_there(
    notes: Path, monkeypatch: pytest.MonkeyPatch, name: str, provider: str
) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-0")
    monkeypatch.setenv(name, "key")
    with Memory.open(notes, embedder="auto") as memory:
        assert memory.status().provider == provider


def test_auto_takes_a_local_model_that_is_configured_before_any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    rules = Embedding(provider="auto", providers={"local": {"model": "/nowhere/at/all"}})
    embedders = embedders_of("default", rules)
    embedders.wanted()
    assert "/nowhere/at/all" in embedders.passed_over["local"]


def test_auto_sends_nothing_out_where_that_is_not_allowed(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    config = MemoryConfig(embedding=Embedding(provider="auto", allow_remote=False))
    with Memory.open(notes, config=config) as memory:
        state = memory.status()
    assert (state.provider, "allow_remote" in state.passed_over["openai"]) == ("static", True)


def test_auto_loads_by_itself_and_takes_no_options() -> None:
    embedder = load_embedder("auto")
    assert embedder is not None
    assert embedder.provider == "static"
    with pytest.raises(EmbedderError, match="auto"):
        load_embedder("auto", dimensions=5)


# --- what leaves the machine ---------------------------------------------------------------------------------------


def test_a_provider_elsewhere_is_refused_where_nothing_may_leave_the_machine(notes: Path) -> None:
    wanted = Wanted()
    config = MemoryConfig(embedding=Embedding(allow_remote=False))
    with Memory.open(notes, embedder=wanted, config=config) as memory:
        report = memory.sync()
        assert {"allow_remote" in file.reason for file in report.waiting} == {True}
        assert memory.search("boiler")[0].path == "memory/household.md"
    assert wanted.asked == 0


def test_the_first_sync_says_in_one_line_who_receives_the_notes(notes: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Memory.open(notes, embedder=Wanted()) as memory:
        memory.sync()
        assert [record.getMessage() for record in caplog.records] == [
            "the text of notes and questions is sent to https://api.example.com (wanted words)"
        ]
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        memory.sync()
        assert len(caplog.records) == 1
        assert any("https://api.example.com" in notice for notice in memory.status().notices)


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("https://api.openai.com/v1", True),
        ("http://localhost:11434/v1", False),
        ("http://127.0.0.2:8080", False),
        ("http://[::1]:80", False),
        ("http://10.0.0.7", True),
        ("http://localhost.evil.com", True),
    ],
)
def test_only_loopback_counts_as_this_machine(url: str, leaves: bool) -> None:
    from openclaw_memory.embeddings._remote import RemoteEmbedder

    async def send(*_: Any) -> list[Any]:
        return []

    assert RemoteEmbedder(Service("x", "m", url, Limits(1, 1), send)).leaves_machine is leaves


# --- options -------------------------------------------------------------------------------------------------------


def test_the_settings_of_a_provider_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def create(model: str | None = None, **options: Any) -> HashingEmbedder:
        given.update(model=model, **options)
        return HashingEmbedder()

    monkeypatch.setattr(openai, "create", create)
    rules = Embedding(provider="openai", model="big", providers={"openai": {"model": "small", "dimensions": 3}})
    embedders_of("default", rules).wanted()
    assert given == {"model": "big", "dimensions": 3}
    given.clear()
    embedders_of("openai", Embedding(providers={"openai": {"model": "small"}})).wanted()
    assert given == {"model": "small"}


def test_a_fallback_nobody_knows_is_refused_when_the_memory_is_opened(notes: Path) -> None:
    with pytest.raises(ConfigError, match="opnai"):
        Memory.open(notes, config=MemoryConfig(embedding=Embedding(fallback="opnai")))


def test_a_key_in_the_settings_is_not_shown() -> None:
    rules = Embedding(provider="openai", providers={"openai": {"api_key": "sk-very-secret-0123456789"}})
    assert "secret" not in repr(MemoryConfig(embedding=rules))


# --- the fallback --------------------------------------------------------------------------------------------------


def test_a_first_index_is_the_fallbacks_where_the_wanted_one_is_down(notes: Path) -> None:
    wanted = Wanted(broken=True)
    with with_fallback(notes, wanted) as memory:
        report = memory.sync()
        state = memory.status()
        assert (report.ok, state.provider, state.requested_provider) == (True, "hashing", "wanted")
        assert "the line is dead" in state.passed_over["wanted"]
        results = memory.search("boiler")
        assert (results.mode, results.provider, results[0].path) == ("hybrid", "hashing", "memory/household.md")


def test_the_wanted_embedder_takes_over_once_it_answers(notes: Path) -> None:
    with with_fallback(notes, Wanted(broken=True)) as memory:
        memory.sync()
    with with_fallback(notes, Wanted()) as memory:
        assert memory.search("boiler").provider == "hashing"
        assert "hashing" in str(memory.sync().rebuilt)
        assert (memory.status().provider, memory.status().passed_over) == ("wanted", {})
        assert memory.search("boiler").provider == "wanted"


def test_the_fallback_keeps_its_own_index_true_while_the_wanted_one_is_down(notes: Path) -> None:
    with with_fallback(notes, Wanted(broken=True)) as memory:
        memory.sync()
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        report = memory.sync()
        assert (report.added, report.ok, report.rebuilt) == (("memory/new.md",), True, None)


def test_the_fallback_never_takes_the_place_of_an_index_the_wanted_one_made(notes: Path) -> None:
    wanted = Wanted()
    with with_fallback(notes, wanted) as memory:
        memory.sync()
        before = memory.status().vector
        wanted.broken = True
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        report = memory.sync()
        assert (report.rebuilt, [file.path for file in report.waiting]) == (None, ["memory/new.md"])
        assert memory.search("zeppelin")[0].path == "memory/new.md"
    with with_fallback(notes, Wanted(broken=True)) as memory:
        memory.sync()
        assert memory.status().provider == "wanted"
        assert memory.status().vector["dims"] == before["dims"] == 32
    with with_fallback(notes, Wanted()) as memory:
        assert (memory.sync().embedded, memory.status().dirty) == (1, ())


def test_a_provider_that_cannot_be_made_does_not_cost_the_index_it_made_before(notes: Path) -> None:
    with with_fallback(notes, Wanted()) as memory:
        memory.sync()

    def no_key(_: dict[str, str]) -> None:
        raise EmbedderError("no key; set WANTED_API_KEY")

    rules = Embedding(fallback="hashing")
    with Memory.open(notes) as opened:
        workspace, index = opened.workspace, opened.index_path
    from openclaw_memory import SqliteStore

    with Memory(
        workspace, SqliteStore.open(str(index)), Embedders(no_key, "wanted", rules), MemoryConfig(embedding=rules)
    ) as memory:
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        report = memory.sync()
        assert (report.rebuilt, ["WANTED_API_KEY" in file.reason for file in report.waiting]) == (None, [True])
        results = memory.search("zeppelin")
        assert (results[0].path, results.mode, "WANTED_API_KEY" in str(results.reason)) == (
            "memory/new.md",
            "keyword",
            True,
        )


# --- the guard -----------------------------------------------------------------------------------------------------


def test_a_service_that_failed_is_left_alone_for_a_while() -> None:
    now = 0.0
    wanted = Wanted(broken=True)
    guarded = GuardedEmbedder(wanted, clock=lambda: now)
    for _ in range(3):
        with pytest.raises(EmbedderError, match="the line is dead"):
            guarded.embed_query("question")
    assert wanted.asked == 1
    now, wanted.broken = SILENT_SECONDS, False
    guarded.embed_query("question")
    guarded.embed_query("question")
    assert wanted.asked == 3


def test_an_embedder_of_this_process_is_asked_each_time() -> None:
    inner = HashingEmbedder()
    inner.embed_query = lambda _: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    guarded = GuardedEmbedder(inner)
    for _ in range(2):
        with pytest.raises(EmbedderError, match="ZeroDivision"):
            guarded.embed_query("question")
    del inner.embed_query
    assert guarded.embed_query("question").any()


@pytest.mark.parametrize("hand_in", [True, False])
def test_a_memory_closes_the_embedders_it_made_and_no_other(notes: Path, hand_in: bool) -> None:
    wanted = Wanted()
    choice: Any = wanted
    if not hand_in:
        choice = Embedders(lambda _: wanted, "wanted", Embedding())
    with Memory.open(notes) as opened:
        workspace = opened.workspace
    from openclaw_memory import SqliteStore

    with Memory(workspace, SqliteStore.open(notes.parent / "i.sqlite"), choice) as memory:
        memory.sync()
    assert wanted.closed is not hand_in


def function_of(name: str) -> Callable[[list[str]], Any]:
    def embed(texts: list[str]) -> Any:
        return HashingEmbedder().embed_documents(texts)

    embed.__qualname__ = name
    return embed


def test_two_functions_have_two_identities() -> None:
    first, second = (embedders_of(function_of(name), Embedding()).wanted() for name in ("one", "two"))
    assert first is not None
    assert second is not None
    assert first.identity != second.identity
