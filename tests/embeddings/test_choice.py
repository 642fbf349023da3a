"""Which embedder a memory gets: what was asked for, what `auto` finds, and when the fallback stands in."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openclaw_memory import Memory, MemoryConfig, SqliteStore
from openclaw_memory.config import EmbeddingConfig
from openclaw_memory.embeddings import from_callable, load_embedder, openai
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.embeddings.selection import SILENT_SECONDS, CircuitBreakerEmbedder, EmbedderSelector, embedders_of
from openclaw_memory.errors import ConfigError, EmbedderError

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


KEY = "sk-proj-4rX9kQ7zAb12Cd34Ef56"


def holding_a_key(texts: list[str], key: str) -> list[list[float]]:
    return [[float(len(key))] for _ in texts]


@pytest.mark.parametrize("key", [KEY, "4rX9kQ7zAb12Cd34Ef56Gh78Ij90Kl12", b"4rX9kQ7z" * 4])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda notes, key: Memory.open(notes, embedder=key),
        lambda notes, key: Memory.open(notes, embedder={"openai": {"api_key": key}}),
        lambda notes, key: Memory.open(notes, embedder=partial(holding_a_key, key=key)),
        lambda notes, key: Memory.open(notes, config=MemoryConfig(embedding=EmbeddingConfig(provider=key))),
        lambda notes, key: Memory.open(notes, config=MemoryConfig(embedding=EmbeddingConfig(fallback=key))),
        lambda notes, key: Memory.open(notes, config=MemoryConfig(embedding=EmbeddingConfig(providers={key: {}}))),
        lambda _, key: load_embedder(key),
        lambda _, key: load_embedder("static", key),
        lambda _, key: load_embedder("hashing", key),
    ],
)
@pytest.mark.sampled(9)
def test_a_key_in_the_wrong_place_is_not_shown(notes, wrong, key):
    with pytest.raises((ConfigError, EmbedderError)) as told:
        wrong(notes, key)
    assert (key if isinstance(key, str) else key.decode())[8:] not in str(told.value)


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
    return Memory.open(notes, embedder=embedder, config=MemoryConfig(embedding=EmbeddingConfig(fallback="hashing")))


# --- auto
def test_auto_without_a_key_comes_to_the_model_that_ships_and_says_what_it_passed_over(notes):
    with Memory.open(notes, config=MemoryConfig.openclaw()) as memory:
        state = memory.status()
    assert (state.requested_provider, state.provider) == ("auto", "static")
    assert list(state.unavailable) == ["local", "openai", "gemini", "voyage"]
    for provider, word in (
        ("local", "model"),
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("voyage", "VOYAGE_API_KEY"),
    ):
        assert word in state.unavailable[provider]


@pytest.mark.parametrize(
    ("name", "provider"), [("OPENAI_API_KEY", "openai"), ("GEMINI_API_KEY", "gemini"), ("VOYAGE_API_KEY", "voyage")]
)
def test_auto_takes_the_first_provider_whose_key_is_there(notes, monkeypatch, name, provider):
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-0")
    monkeypatch.setenv(name, "key")
    with Memory.open(notes, embedder="auto") as memory:
        assert memory.status().provider == provider


def test_auto_takes_a_local_model_that_is_configured_before_any_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=None))
    rules = EmbeddingConfig(provider="auto", providers={"local": {"model": "/nowhere/at/all"}})
    embedders = embedders_of("default", rules)
    embedders.wanted()
    assert "/nowhere/at/all" in embedders.unavailable["local"]


def test_auto_sends_nothing_out_where_that_is_not_allowed(notes, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    config = MemoryConfig(embedding=EmbeddingConfig(provider="auto", allow_remote=False))
    with Memory.open(notes, config=config) as memory:
        state = memory.status()
    assert (state.provider, "allow_remote" in state.unavailable["openai"]) == ("static", True)


OFFLINE = MemoryConfig(embedding=EmbeddingConfig(allow_remote=False))


class Undeclared(HashingEmbedder):
    """An embedder that does not say where texts go."""

    leaves_machine = None  # type: ignore[assignment]


class Incomplete:
    provider, model, identity = "mine", "m", "mine:m"
    embed_query = embed_documents = HashingEmbedder(32).embed_documents


def plain_function(texts: list[str]) -> Any:
    return HashingEmbedder(32).embed_documents(texts)


@pytest.mark.parametrize(
    "given",
    [Undeclared(), plain_function, from_callable(plain_function, "m"), Wanted()],
    ids=lambda given: repr(given)[:20],
)
def test_what_does_not_say_that_it_sends_nothing_gets_no_text_where_nothing_may_leave_the_machine(notes, given):
    with Memory.open(notes, embedder=given, config=OFFLINE) as memory:
        report = memory.sync()
        assert {skipped.reason for skipped in report.waiting if "allow_remote is off" in skipped.reason}
        found = memory.search("boiler")
    assert found.mode == "keyword"
    assert "allow_remote is off" in (found.reason or "")


@pytest.mark.parametrize("given", [HashingEmbedder(32), from_callable(plain_function, "m", local=True)])
def test_what_says_that_it_sends_nothing_is_taken_where_nothing_may_leave_the_machine(notes, given):
    with Memory.open(notes, embedder=given, config=OFFLINE) as memory:
        assert memory.sync().ok
        assert memory.search("boiler").mode == "hybrid"


def test_an_embedder_that_lacks_parts_of_the_protocol_is_refused_with_their_names(notes):
    with pytest.raises(ConfigError, match="Incomplete, lacks leaves_machine, close"):
        Memory.open(notes, embedder=Incomplete())  # type: ignore[arg-type]


def test_the_first_sync_says_in_one_line_who_receives_the_notes(notes, caplog):
    with caplog.at_level(logging.WARNING), Memory.open(notes, embedder=Wanted()) as memory:
        memory.sync()
        assert [record.getMessage() for record in caplog.records] == [
            "the text of notes and questions is sent to https://api.example.com (wanted words)"
        ]
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        memory.sync()
        assert len(caplog.records) == 1
        assert any("https://api.example.com" in notice for notice in memory.status().notices)


# --- options
def test_the_settings_of_a_provider_reach_it(monkeypatch):
    given: dict[str, Any] = {}

    def create(model: str | None = None, **options: Any) -> HashingEmbedder:
        given.update(model=model, **options)
        return HashingEmbedder()

    monkeypatch.setattr(openai, "create", create)
    rules = EmbeddingConfig(provider="openai", model="big", providers={"openai": {"model": "small", "dimensions": 3}})
    embedders_of("default", rules).wanted()
    assert given == {"model": "big", "dimensions": 3}
    given.clear()
    embedders_of("openai", EmbeddingConfig(providers={"openai": {"model": "small"}})).wanted()
    assert given == {"model": "small"}


def test_a_key_in_the_settings_is_not_shown():
    rules = EmbeddingConfig(provider="openai", providers={"openai": {"api_key": "sk-very-secret-0123456789"}})
    assert "secret" not in repr(MemoryConfig(embedding=rules))


# --- the fallback
def test_a_first_index_is_the_fallbacks_where_the_wanted_one_is_down(notes):
    wanted = Wanted(broken=True)
    with with_fallback(notes, wanted) as memory:
        report = memory.sync()
        state = memory.status()
        assert (report.ok, state.provider, state.requested_provider) == (True, "hashing", "wanted")
        assert "the line is dead" in state.unavailable["wanted"]
        results = memory.search("boiler")
        assert (results.mode, results.provider, results[0].path) == ("hybrid", "hashing", "memory/household.md")


def test_the_wanted_embedder_takes_over_once_it_answers(notes):
    with with_fallback(notes, Wanted(broken=True)) as memory:
        memory.sync()
    with with_fallback(notes, Wanted()) as memory:
        assert memory.search("boiler").provider == "hashing"
        assert "hashing" in str(memory.sync().rebuilt)
        assert (memory.status().provider, memory.status().unavailable) == ("wanted", {})
        assert memory.search("boiler").provider == "wanted"


def test_the_fallback_never_takes_the_place_of_an_index_the_wanted_one_made(notes):
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
        assert memory.status().vector.dims == before.dims == 32
    with with_fallback(notes, Wanted()) as memory:
        assert (memory.sync().embedded, memory.status().dirty) == (1, {})


# --- the guard
def test_a_service_that_failed_is_left_alone_for_a_while():
    now = 0.0
    wanted = Wanted(broken=True)
    guarded = CircuitBreakerEmbedder(wanted, clock=lambda: now)
    for _ in range(3):
        with pytest.raises(EmbedderError, match="the line is dead"):
            guarded.embed_query("question")
    assert wanted.asked == 1
    now, wanted.broken = SILENT_SECONDS, False
    guarded.embed_query("question")
    guarded.embed_query("question")
    assert wanted.asked == 3


@pytest.mark.parametrize("hand_in", [True, False])
def test_a_memory_closes_the_embedders_it_made_and_no_other(notes, hand_in):
    wanted = Wanted()
    choice: Any = wanted
    if not hand_in:
        choice = EmbedderSelector(lambda _: wanted, "wanted", EmbeddingConfig())
    with Memory.open(notes) as opened:
        workspace = opened.workspace
    with Memory(workspace, SqliteStore.open(notes.parent / "i.sqlite"), choice) as memory:
        memory.sync()
    assert wanted.closed is not hand_in


# --- what is told
def no_key(_: dict[str, str]) -> None:
    raise EmbedderError("no key; set WANTED_API_KEY")


def with_parts(notes: Path, embedders: Any, config: MemoryConfig | None = None) -> Memory:
    """The memory of the notes, over the index that is there, with embedders that are handed in."""
    with Memory.open(notes) as opened:
        return Memory(opened.workspace, SqliteStore(str(opened.index_path)), embedders, config)


def test_a_wanted_provider_that_cannot_be_made_leaves_every_file_waiting_beside_an_index_of_another(notes):
    with Memory.open(notes) as memory:
        memory.sync()
    with with_parts(notes, EmbedderSelector(no_key, "wanted", EmbeddingConfig())) as memory:
        for force in (False, True):
            report = memory.sync(force=force)
            assert (len(report.waiting), report.ok, report.rebuilt) == (4, False, None)
        results = memory.search("boiler")
        assert (results.mode, results.stale, "WANTED_API_KEY" in str(results.reason)) == ("keyword", True, True)
    with Memory.open(notes) as memory:
        assert memory.search("boiler").mode == "hybrid"


def test_what_auto_finds_without_the_key_does_not_replace_the_index_it_made_with_it(notes):
    rules = EmbeddingConfig(provider="auto")

    def found(passed_over: dict[str, str]) -> Any:
        passed_over["wanted"] = "no key; set WANTED_API_KEY"
        return HashingEmbedder()

    with with_parts(notes, EmbedderSelector(lambda _: Wanted(), "auto", rules)) as memory:
        memory.sync()
    with with_parts(notes, EmbedderSelector(found, "auto", rules)) as memory:
        report = memory.sync()
        assert (report.ok, report.rebuilt, len(report.waiting)) == (False, None, 4)
        results = memory.search("boiler")
        assert (results.mode, "WANTED_API_KEY" in str(results.reason)) == ("keyword", True)
        assert "hashing" in str(memory.sync(force=True).rebuilt)
        assert memory.search("boiler").mode == "hybrid"


def test_a_fallback_that_stands_in_is_announced(notes, caplog):
    with caplog.at_level(logging.WARNING), with_fallback(notes, Wanted(broken=True)) as memory:
        memory.sync()
    (record,) = caplog.records
    assert record.getMessage().startswith("hashing replaces wanted: ")


def test_a_sync_that_gets_vectors_ends_the_silence(notes):
    wanted = Wanted()
    with Memory.open(notes, embedder=wanted) as memory:
        memory.sync()
        wanted.broken = True
        assert memory.search("boiler").mode == "keyword"
        wanted.broken = False
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        assert memory.sync().embedded == 1
        assert memory.search("boiler").mode == "hybrid"


# --- names and settings
class Model:
    def encode(self, texts: list[str]) -> Any:
        return HashingEmbedder().embed_documents(texts)

    def __call__(self, texts: list[str]) -> Any:
        return self.encode(texts)


@pytest.mark.parametrize(
    "anonymous",
    [lambda texts: texts, Model().encode, partial(Model().encode), Model()],
    ids=["lambda", "method", "partial", "object"],
)
def test_a_function_that_may_be_of_any_model_needs_a_name(notes, anonymous):
    with pytest.raises(ConfigError, match="from_callable"):
        Memory.open(notes, embedder=anonymous)
    with Memory.open(notes, embedder=from_callable(Model().encode, "words")) as memory:
        assert memory.sync().ok


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (EmbeddingConfig(fallback="auto"), "fallback"),
        (EmbeddingConfig(fallback="opnai"), "opnai"),
        (EmbeddingConfig(providers={"opnai": {}}), "opnai"),
        (EmbeddingConfig(provider="auto", model="big"), "providers.NAME.model"),
    ],
)
def test_a_setting_that_could_only_be_ignored_is_refused(notes, rules, words):
    with pytest.raises(ConfigError, match=words):
        Memory.open(notes, config=MemoryConfig(embedding=rules))
