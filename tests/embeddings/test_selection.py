"""The embedder of a memory: the requested one, the one that `auto` finds, and the fallback."""

from __future__ import annotations

import logging
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from watching import eventually

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory.config.sections import EmbeddingConfig
from openclaw_memory.embeddings import CustomEmbedder, openai, selection
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.embeddings.registry import load_configured
from openclaw_memory.embeddings.selection import CircuitBreakerEmbedder, EmbedderSelector, make_selector
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.store import SqliteStore
from openclaw_memory.types.documents import Document

KEY = "sk-proj-4rX9kQ7zAb12Cd34Ef56"
pytestmark = pytest.mark.usefixtures("no_keys")


def make_vectors(texts: list[str], key: str = "") -> Any:
    return HashingEmbedder(32).embed_documents([key + text for text in texts])


class Service:
    """An embedder behind an endpoint; it fails while `broken`, and after so many `answers` of documents."""

    provider, model, identity, endpoint = "wanted", "words", "wanted:words", "https://api.example.com"
    leaves_machine = True

    def __init__(self, *, broken: bool = False, answers: int = 99) -> None:
        self.broken, self.asked, self.closed, self.answers = broken, 0, False, answers
        self.embedded, self.may_answer = list[str](), threading.Event()
        self.may_answer.set()

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: Any) -> Any:
        self.asked += 1
        self.may_answer.wait()
        if self.broken or len(self.embedded) >= self.answers:
            raise ConnectionResetError("the line is dead")
        self.embedded += texts
        return HashingEmbedder(32).embed_documents(texts)

    def close(self) -> None:
        self.closed = True


class Model:
    """An embedding model of a framework."""

    def __init__(self, model: str = "small", api_key: str = KEY, **settings: Any) -> None:
        self.model, self.api_key, self.settings = model, api_key, settings

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [list(map(float, row)) for row in HashingEmbedder(32).embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return self.embed_documents(texts)


class LlamaModel:
    """An embedding model with the methods of LlamaIndex."""

    model_name = "llama"

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return Model().embed_documents(texts)

    def get_query_embedding(self, text: str) -> list[float]:
        return Model().embed_query(text)


def open_with_fallback(notes: Path, embedder: Any) -> Memory:
    return Memory.open(notes, embedder=embedder, config=MemoryConfig(embedding=EmbeddingConfig(fallback="hashing")))


def open_parts(notes: Path, embedders: Any) -> Memory:
    """Open the memory of the notes, over the index that is there, with other embedders."""
    with Memory.open(notes) as opened:
        return Memory(opened.workspace, SqliteStore(str(opened.index_path)), embedders)


# --- a choice
@pytest.mark.parametrize("choice", [Model(), LlamaModel(), make_vectors])
def test_models_of_frameworks_and_functions_are_taken(notes, choice):
    with Memory.open(notes, embedder=choice) as memory:
        assert memory.sync().ok
        assert (memory.search("boiler").mode, memory.search("boiler")[0].path) == ("hybrid", "memory/household.md")


def test_the_identity_of_a_model_tells_apart_what_changes_its_vectors_and_holds_no_key():
    models = [Model(), Model("large"), Model(prefix="q: "), Model(api_key="sk-another"), Model(timeout=3)]
    identities = [make_selector(model, EmbeddingConfig()).load().identity for model in models]  # type: ignore[union-attr]
    assert [identities.index(identity) for identity in identities] == [0, 1, 2, 0, 0]
    assert KEY[8:] not in str(identities)


@pytest.mark.parametrize(
    "choice", [lambda texts: texts, Model().embed_documents, partial(make_vectors)], ids=["lambda", "method", "partial"]
)
def test_a_function_that_may_be_of_any_model_needs_a_name(notes, choice):
    with pytest.raises(ConfigError, match="CustomEmbedder"):
        Memory.open(notes, embedder=choice)
    with Memory.open(notes, embedder=CustomEmbedder(make_vectors, model="words")) as memory:
        assert memory.sync().ok


@pytest.mark.parametrize("key", [KEY, "4rX9kQ7zAb12Cd34Ef56Gh78Ij90Kl12", b"4rX9kQ7z" * 4])
@pytest.mark.parametrize(
    "misplace",
    [
        lambda notes, key: Memory.open(notes, embedder=key),
        lambda notes, key: Memory.open(notes, embedder={"openai": {"api_key": key}}),
        lambda notes, key: Memory.open(notes, embedder=partial(make_vectors, key=key)),
        lambda notes, key: Memory.open(notes, config=MemoryConfig(embedding=EmbeddingConfig(provider=key))),
        lambda notes, key: Memory.open(notes, config=MemoryConfig(embedding=EmbeddingConfig(providers={key: {}}))),
        lambda _, key: load_embedder(key),
        lambda _, key: load_embedder("static", key),
        lambda _, key: load_embedder("hashing", key),
    ],
)
@pytest.mark.sampled(6)
def test_a_key_in_the_wrong_place_is_not_shown(notes, misplace, key):
    with pytest.raises((ConfigError, EmbedderError)) as raised:
        misplace(notes, key)
    assert (key if isinstance(key, str) else key.decode())[8:] not in str(raised.value)


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


def test_the_settings_of_a_provider_reach_it(monkeypatch):
    calls: list[dict[str, Any]] = []

    def create(model: str | None = None, *, max_items: int = 9, **options: Any) -> HashingEmbedder:
        calls.append({"model": model, "max_items": max_items, **options})
        return HashingEmbedder()

    monkeypatch.setattr(openai, "create", create)
    providers = {"openai": {"model": "small", "dimensions": 3}}
    make_selector("default", EmbeddingConfig(provider="openai", model="big", providers=providers)).load()
    make_selector("openai", EmbeddingConfig(providers=providers, batch_size=5)).load()
    expected = [("big", 9), ("small", 5)]
    assert calls == [{"model": model, "max_items": items, "dimensions": 3} for model, items in expected]


def test_how_many_requests_run_at_once_is_an_option_of_the_provider():
    rules = EmbeddingConfig(providers={"voyage": {"api_key": "key-0123456789", "concurrency": 2}})
    assert load_configured("voyage", rules).policy.concurrency == 2


def test_a_key_in_the_settings_is_not_shown():
    rules = EmbeddingConfig(provider="openai", providers={"openai": {"api_key": "sk-very-secret-0123456789"}})
    assert "secret" not in repr(MemoryConfig(embedding=rules))


# --- auto
def test_auto_without_a_key_comes_to_the_model_that_ships_and_says_what_it_passed_over(notes):
    with Memory.open(notes, config=MemoryConfig.openclaw()) as memory:
        state = memory.status()
    assert (state.requested_provider, state.provider) == ("auto", "static")
    assert list(state.unavailable) == ["local", "openai", "gemini", "voyage"]
    words = ("model", "OPENAI_API_KEY", "GEMINI_API_KEY", "VOYAGE_API_KEY")
    assert all(word in reason for word, reason in zip(words, state.unavailable.values(), strict=True))


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
    embedders = make_selector("default", rules)
    embedders.load()
    assert "/nowhere/at/all" in embedders.unavailable["local"]


def test_auto_without_the_key_does_not_replace_the_index_it_made_with_it(notes):
    rules = EmbeddingConfig(provider="auto")

    def pass_over(unavailable: dict[str, str]) -> Any:
        unavailable["wanted"] = "no key; set WANTED_API_KEY"
        return HashingEmbedder()

    with open_parts(notes, EmbedderSelector(lambda _: Service(), "auto", rules)) as memory:
        memory.sync()
    with open_parts(notes, EmbedderSelector(pass_over, "auto", rules)) as memory:
        report = memory.sync()
        assert (report.ok, report.rebuilt, len(report.waiting)) == (False, None, 4)
        results = memory.search("boiler")
        assert (results.mode, "WANTED_API_KEY" in str(results.reason)) == ("keyword", True)
        assert "hashing" in str(memory.sync(force=True).rebuilt)
        assert memory.search("boiler").mode == "hybrid"


# --- texts that leave the machine
OFFLINE = MemoryConfig(embedding=EmbeddingConfig(provider="auto", allow_remote=False))


class Undeclared(HashingEmbedder):
    """An embedder that does not say where texts go."""

    leaves_machine = None  # type: ignore[assignment]


def test_auto_sends_nothing_out_where_that_is_not_allowed(notes, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with Memory.open(notes, config=OFFLINE) as memory:
        state = memory.status()
    assert (state.provider, "allow_remote" in state.unavailable["openai"]) == ("static", True)


@pytest.mark.parametrize("choice", [Undeclared(), Model(), make_vectors, CustomEmbedder(make_vectors), Service()])
def test_what_does_not_say_that_it_sends_nothing_gets_no_text_where_nothing_may_leave_the_machine(notes, choice):
    with Memory.open(notes, embedder=choice, config=OFFLINE) as memory:
        assert any("allow_remote is off" in skipped.reason for skipped in memory.sync().waiting)
        results = memory.search("boiler")
    assert (results.mode, "allow_remote is off" in str(results.reason)) == ("keyword", True)


@pytest.mark.parametrize("choice", [HashingEmbedder(32), CustomEmbedder(make_vectors, model="m", local=True)])
def test_what_says_that_it_sends_nothing_is_taken_where_nothing_may_leave_the_machine(notes, choice):
    with Memory.open(notes, embedder=choice, config=OFFLINE) as memory:
        assert (memory.sync().ok, memory.search("boiler").mode) == (True, "hybrid")


def test_the_first_sync_says_in_one_line_who_receives_the_notes(notes, caplog):
    with caplog.at_level(logging.WARNING), Memory.open(notes, embedder=Service()) as memory:
        memory.sync()
        assert [record.getMessage() for record in caplog.records] == [
            "the text of notes and questions is sent to https://api.example.com (wanted words)"
        ]
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        memory.sync()
        assert len(caplog.records) == 1
        assert any("https://api.example.com" in notice for notice in memory.status().notices)


# --- the fallback
def test_a_first_index_is_the_fallbacks_where_the_wanted_one_is_down(notes, caplog):
    with caplog.at_level(logging.WARNING), open_with_fallback(notes, Service(broken=True)) as memory:
        report = memory.sync()
        state = memory.status()
        assert (report.ok, state.provider, state.requested_provider) == (True, "hashing", "wanted")
        assert "the line is dead" in state.unavailable["wanted"]
        results = memory.search("boiler")
        assert (results.mode, results.provider, results[0].path) == ("hybrid", "hashing", "memory/household.md")
    assert [record.getMessage()[:24] for record in caplog.records] == ["hashing replaces wanted:"]
    with open_with_fallback(notes, Service()) as memory:
        assert memory.search("boiler").provider == "hashing"
        assert "hashing" in str(memory.sync().rebuilt)
        assert (memory.status().provider, memory.status().unavailable) == ("wanted", {})
        assert memory.search("boiler").provider == "wanted"


def test_the_fallback_never_takes_the_place_of_an_index_the_wanted_one_made(notes):
    service = Service()
    with open_with_fallback(notes, service) as memory:
        memory.sync()
        service.broken = True
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        report = memory.sync()
        assert (report.rebuilt, [file.path for file in report.waiting]) == (None, ["memory/new.md"])
        assert memory.search("zeppelin")[0].path == "memory/new.md"
    with open_with_fallback(notes, Service(broken=True)) as memory:
        memory.sync()
        assert (memory.status().provider, memory.status().vector.dims) == ("wanted", 32)
    with open_with_fallback(notes, Service()) as memory:
        assert (memory.sync().embedded, memory.status().dirty) == (1, {})


def test_a_provider_that_cannot_be_made_leaves_the_index_of_another(notes):
    def fail(_: dict[str, str]) -> None:
        raise EmbedderError("no key; set WANTED_API_KEY")

    with Memory.open(notes) as memory:
        memory.sync()
    with open_parts(notes, EmbedderSelector(fail, "wanted", EmbeddingConfig())) as memory:
        for force in (False, True):
            report = memory.sync(force=force)
            assert (len(report.waiting), report.ok, report.rebuilt) == (4, False, None)
        results = memory.search("boiler")
        assert (results.mode, results.stale, "WANTED_API_KEY" in str(results.reason)) == ("keyword", True, True)
    with Memory.open(notes) as memory:
        assert memory.search("boiler").mode == "hybrid"


# --- the interim
@pytest.fixture
def open_slow(notes, monkeypatch):
    monkeypatch.setattr("openclaw_memory.indexing.service.EMBED_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("openclaw_memory.indexing.service.EMBED_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr("openclaw_memory.indexing.service.IndexService.make_cache", lambda _: None)
    monkeypatch.setattr("openclaw_memory.embeddings.stream.TEXTS_PER_CALL", 1)
    return lambda service: open_parts(notes, EmbedderSelector(lambda _: service, "wanted", EmbeddingConfig(), True))


def test_the_static_model_answers_until_the_vectors_of_a_slow_one_exist(notes, open_slow):
    service = Service()
    service.may_answer.clear()
    with open_slow(service) as memory:
        memory._builtin._embedders.make = lambda _: service.may_answer.wait() and service
        first = memory.search("boiler")
        assert (first.provider, first.mode, first.stale) == ("static", "hybrid", False)
        assert first.reason == "static answers until the vectors of wanted exist (not begun)"
        assert memory.status().fallback == {"from": "wanted", "reason": first.reason}
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        eventually(lambda: memory.search("zeppelin")[0].path == "memory/new.md")
        service.may_answer.set()
        eventually(lambda: memory.search("boiler").provider == "wanted")
        assert (memory.search("zeppelin")[0].path, memory.status().fallback) == ("memory/new.md", None)


def test_a_slow_model_that_fails_is_asked_again_for_the_vectors_that_it_did_not_make(notes, open_slow, caplog):
    with open_slow(service := Service(answers=2)) as memory:
        memory.search("boiler")
        eventually(lambda: "the line is dead" in str(memory.search("boiler").reason))
        assert "the line is dead" in memory.status().fallback["reason"]
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        eventually(lambda: memory.search("zeppelin")[0].path == "memory/new.md")
        memory.documents.add([Document("z", "A zebra was seen.")])
        memory.documents.delete(["z"])
        eventually(lambda: service.asked > 5)
    assert caplog.text.count("is sent to") == 1
    service.answers = 99
    with open_slow(service) as memory:
        assert memory.search("boiler").provider == "static"
        eventually(lambda: memory.status().provider == "wanted")
        assert len(service.embedded) == len({*service.embedded}) == 5


@pytest.mark.parametrize("call", [Memory.close, Memory.sync, partial(Memory.sync, wait=0)])
def test_vectors_under_way_are_made_once_when_a_memory_is_closed_or_synced_meanwhile(open_slow, call):
    service = Service()
    service.may_answer.clear()
    with open_slow(service) as second:
        with open_slow(service) as memory:
            memory.search("boiler")
            eventually(lambda: service.asked)
            second.search("boiler")
            threading.Timer(0.2, service.may_answer.set).start()
            call(memory)
        eventually(lambda: second.search("boiler").provider == "wanted")
    assert len(service.embedded) == len({*service.embedded}) == 5


# --- the circuit breaker
def test_a_service_that_failed_is_left_alone_for_a_while():
    now = 0.0
    service = Service(broken=True)
    guarded = CircuitBreakerEmbedder(service, clock=lambda: now)
    for _ in range(3):
        with pytest.raises(EmbedderError, match="the line is dead"):
            guarded.embed_query("question")
    assert service.asked == 1
    now, service.broken = selection.CIRCUIT_OPEN_SECONDS, False
    guarded.embed_query("question")
    guarded.embed_query("question")
    assert service.asked == 3


def test_a_sync_that_gets_vectors_ends_the_silence(notes):
    service = Service()
    with Memory.open(notes, embedder=service) as memory:
        memory.sync()
        service.broken = True
        assert memory.search("boiler").mode == "keyword"
        service.broken = False
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        assert memory.sync().embedded == 1
        assert memory.search("boiler").mode == "hybrid"


@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_memory_closes_the_embedders_it_made_and_no_other(notes, is_foreign):
    service = Service()
    choice: Any = service if is_foreign else EmbedderSelector(lambda _: service, "wanted", EmbeddingConfig())
    with Memory.open(notes) as opened:
        workspace = opened.workspace
    with Memory(workspace, SqliteStore.open(notes.parent / "i.sqlite"), choice) as memory:
        memory.sync()
    assert service.closed is not is_foreign
