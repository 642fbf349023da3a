"""One engine in place of another: it answers while that fails, says why, and gives way once that is well again."""

import threading
from dataclasses import replace

import pytest
from qmd_place import wait_for

from openclaw_memory import Memory, SearchResults, SyncReport, Workspace
from openclaw_memory.backends import Backend, FallbackBackend
from openclaw_memory.errors import BackendError, NotFoundError, NotOfferedError, QueryError, StoreError
from openclaw_memory.types import SearchRequest, SearchResult

SOON = (0.01, 0.02)
LATER = (60.0, 60.0)


class Engine:
    """An engine that answers with its name, or raises `error`."""

    def __init__(self, notes, name):
        self.notes, self.name = notes, name
        self.error, self.calls, self.found = None, [], 1

    def _answer(self, call, answer=None):
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        return answer

    def search(self, request):
        hit = SearchResult("MEMORY.md", 3, 3, 0.9, f"from {self.name}", "memory")
        return self._answer("search", SearchResults((hit,) * self.found, request.query, "keyword", self.name, ""))

    def get(self, path, *, start=None, lines=None):
        return self._answer("get", Workspace.open(self.notes).excerpt(path, start=start, lines=lines))

    def sync(self, *, force=False, **_options):
        return self._answer("sync, forced" if force else "sync", SyncReport(added=(self.name,)))

    def status(self, *, deep=False):
        self._answer("status")
        with Memory.open(self.notes, embedder=None) as memory:
            return replace(memory.status(deep=deep), backend=self.name, custom={"name": self.name})

    def close(self):
        self.calls.append("close")


@pytest.fixture
def engines(notes):
    return Engine(notes, "first"), Engine(notes, "second")


@pytest.fixture
def both(engines):
    made = []

    def put_together(probe_seconds=LATER):
        made.append(FallbackBackend(*engines, name="first", probe_seconds=probe_seconds))
        return made[-1]

    yield put_together
    for one in made:
        one.close()


def test_the_primary_engine_answers(engines, both):
    backend = both()
    assert isinstance(backend, Backend)
    found = backend.search(SearchRequest("trains"))
    assert (found.provider, found.reason) == ("first", None)
    assert engines[1].calls == []
    assert backend.get("MEMORY.md").text
    state = backend.status()
    assert (state.backend, state.fallback, state.custom) == ("first", None, {"name": "first"})


@pytest.mark.parametrize("error", [BackendError("it broke"), OSError("it broke"), RuntimeError("it broke")])
def test_while_it_fails_the_other_one_answers_and_says_why(engines, both, error):
    backend = both()
    engines[0].error = error
    for _ in range(3):
        found = backend.search(SearchRequest("trains"))
        assert (found.provider, found.reason) == ("second", "another engine answered: first failed: it broke")
    assert engines[0].calls == ["search"]  # no search waits for it again
    state = backend.status()
    assert (state.backend, state.fallback) == ("second", {"from": "first", "reason": "it broke"})
    assert "another engine answers, since first failed: it broke" in state.notices
    assert backend.get("MEMORY.md").text
    assert backend.sync().added == ("second",)
    assert "sync" not in engines[0].calls


def test_it_answers_again_once_it_is_well(engines, both):
    backend = both(SOON)
    engines[0].error = BackendError("it broke")
    assert backend.search(SearchRequest("trains")).provider == "second"
    wait_for(lambda: engines[0].calls.count("status") > 2)
    assert backend.search(SearchRequest("trains")).provider == "second"
    engines[0].error = None
    wait_for(lambda: backend.search(SearchRequest("trains")).provider == "first")
    probes = engines[0].calls.count("status")
    backend.search(SearchRequest("trains"))
    wait_for(lambda: backend._probing._later is None)  # what was due has run
    assert engines[0].calls.count("status") == probes
    assert backend.status().fallback is None


def test_the_waits_between_probes_double(engines, both):
    backend = both((0.01, 0.04))
    engines[0].error = BackendError("it broke")
    waits = []
    plain = backend._probing.request
    backend._probing.request = lambda after: waits.append(after) or plain(after)
    backend.search(SearchRequest("trains"))
    wait_for(lambda: len(waits) > 4)
    assert waits[:5] == [0.01, 0.02, 0.04, 0.04, 0.04]


def test_an_engine_with_problems_is_not_well(engines, both):
    backend = both(SOON)
    engines[0].error = BackendError("it broke")
    backend.search(SearchRequest("trains"))
    plain = engines[0].status
    engines[0].status = lambda *, deep: replace(plain(deep=deep), problems=("no vectors",))
    engines[0].error = None
    wait_for(lambda: "no vectors" in str(backend.search(SearchRequest("trains")).reason))


def test_of_many_searches_at_once_that_fail_one_begins_to_probe(engines, both):
    backend = both()
    gate, found = threading.Barrier(8), []
    engines[0].error = BackendError("it broke")

    def ask():
        gate.wait()
        found.append(backend.search(SearchRequest("trains")).provider)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["second"] * 8
    assert engines[0].calls.count("status") == 0
    assert backend.status().fallback == {"from": "first", "reason": "it broke"}


@pytest.mark.parametrize("error", [QueryError("no"), NotFoundError("no")])
def test_what_is_wrong_with_a_call_is_no_failure(engines, both, error):
    backend = both()
    engines[0].error = error
    with pytest.raises(type(error)):
        backend.search(SearchRequest("trains"))
    assert engines[1].calls == []
    engines[0].error = None
    assert backend.search(SearchRequest("trains")).provider == "first"


def test_what_it_does_not_offer_the_other_one_answers_alone(engines, both):
    backend = both()
    engines[0].error = NotOfferedError("first offers no filters")
    found = backend.search(SearchRequest("trains"))
    assert (found.provider, found.reason) == ("second", "another engine answered: first offers no filters")
    engines[0].error = None
    assert backend.search(SearchRequest("trains")).provider == "first"


def test_where_it_finds_nothing_the_other_one_is_asked(engines, both):
    backend = both()
    engines[0].found = 0
    found = backend.search(SearchRequest("trains"))
    assert (found.provider, found.reason) == ("second", "another engine answered: first found nothing")
    engines[1].found = 0
    assert backend.search(SearchRequest("trains")).provider == "first"
    engines[1].error = BackendError("it broke too")
    assert backend.search(SearchRequest("trains")).provider == "first"
    assert backend._reason is None


def test_where_both_fail_the_error_has_both_reasons(engines, both):
    backend = both()
    engines[0].error, engines[1].error = BackendError("it broke"), StoreError("no index")
    with pytest.raises(BackendError, match="first failed: it broke; and the engine in its place failed too: no index"):
        backend.search(SearchRequest("trains"))


def test_a_sync_is_of_both_and_the_failure_of_the_first_is_told(engines, both):
    backend = both()
    assert backend.sync(force=True).added == ("second",)
    assert [engine.calls for engine in engines] == [["sync, forced"]] * 2
    engines[0].error = BackendError("it broke")
    assert backend.sync().added == ("second",)
    assert backend.search(SearchRequest("trains")).reason == "another engine answered: first failed: it broke"
    engines[1].error = StoreError("no index")
    with pytest.raises(StoreError, match="no index"):
        backend.sync()


def test_a_status_that_fails_is_a_failure(engines, both):
    backend = both()
    engines[0].error = BackendError("it broke")
    assert backend.status().fallback == {"from": "first", "reason": "it broke"}


def test_both_are_closed(engines, both):
    backend = both()
    engines[0].error = BackendError("it broke")
    backend.search(SearchRequest("trains"))
    backend.close()
    backend.close()
    assert [engine.calls[-1] for engine in engines] == ["close", "close"]
    with pytest.raises(StoreError, match="closed"):
        backend.search(SearchRequest("trains"))


def test_the_built_in_engine_answers_in_place_of_qmd_until_that_is_well(qmd):
    memory = qmd.memory()
    memory._backend._first, memory._backend._longest = SOON
    qmd.fails("http", "Internal Server Error")
    found = memory.search("ferry")
    assert (found.provider, found[0].path) == ("none", "MEMORY.md")
    assert "another engine answered: qmd failed: QMD's server answered with status 500" in str(found.reason)
    state = memory.status()
    assert (state.backend, state.fallback["from"]) == ("builtin", "qmd")
    qmd.is_well()
    wait_for(lambda: memory.search("ferry").provider == "qmd")
    assert memory.status().fallback is None


def test_a_search_with_filters_is_answered_by_the_built_in_engine(qmd):
    memory = qmd.memory()
    found = memory.search("ferry", path="MEMORY.md")
    assert {hit.path for hit in found} == {"MEMORY.md"}
    assert "QMD offers no path" in str(found.reason)
    (hit,) = memory.search("ferry", phrases="the ferry", without="blue")
    assert "The ferry leaves" in hit.snippet
    assert memory.search("ferry").provider == "qmd"


def test_a_question_of_which_no_note_holds_every_word_is_answered_by_the_built_in_engine(qmd):
    found = qmd.memory().search("When does the ferry leave?")
    assert "ferry" in found[0].snippet
    assert found.reason == "another engine answered: qmd found nothing"


def test_a_missing_qmd_is_told_once_and_costs_nothing_else(qmd):
    memory = qmd.memory(command=("qmd-is-not-here",))
    assert memory.search("ferry")
    assert memory.status().fallback["reason"].startswith("there is no program 'qmd-is-not-here'")
    assert memory.sync().unchanged == 3


def test_a_note_that_is_written_is_found(qmd):
    memory = qmd.memory()
    memory.search("ferry")
    memory.append("The submarine is yellow.", date="2026-03-05")
    memory.sync()
    assert "submarine" in memory.search("submarine")[0].snippet  # the recorded QMD does not know it
