"""What QMD fails at, does not offer or finds nothing for is answered by the built-in engine, which says why."""

import pytest

from openclaw_memory.errors import QueryError, StoreError


def test_while_it_fails_the_other_engine_answers_and_says_why(qmd):
    memory = qmd.memory()
    qmd.fails("http", "Internal Server Error")
    for _ in range(3):
        found = memory.search("ferry")
        assert (found.provider, found[0].path) == ("none", "MEMORY.md")
        assert "another engine answered: qmd failed: QMD's server answered with status 500" in str(found.reason)
    assert qmd.count("mcp") == 1
    state = memory.status()
    assert (state.backend, state.fallback["from"]) == ("builtin", "qmd")
    assert "another engine answers, since qmd failed: QMD's server answered" in state.notices[-1]


def test_a_deep_status_tries_it_again(qmd):
    memory = qmd.memory()
    qmd.fails("http", "Internal Server Error")
    memory.search("ferry")
    assert memory.status(deep=True).fallback["from"] == "qmd"
    qmd.is_well()
    assert memory.status(deep=True).backend == "qmd"
    assert memory.search("ferry").provider == "qmd"


def test_a_search_with_filters_is_answered_by_the_built_in_engine(qmd):
    memory = qmd.memory()
    found = memory.search("ferry", filter={"path": "MEMORY.md"})
    assert {hit.path for hit in found} == {"MEMORY.md"}
    assert "QMD offers no path" in str(found.reason)
    (hit,) = memory.search("ferry", filter={"phrases": "the ferry", "without": "blue"})
    assert "The ferry leaves" in hit.snippet
    found = memory.search("ferry", options={"task": "a journey", "settings": {"mmr": 0.7}})
    assert "QMD offers no task, settings" in str(found.reason)
    assert memory.search("ferry").provider == "qmd"


def test_a_question_of_which_no_note_holds_every_word_is_answered_by_the_built_in_engine(qmd):
    found = qmd.memory().search("When does the ferry leave?")
    assert "ferry" in found[0].snippet
    assert found.reason == "another engine answered: qmd found nothing"


def test_a_missing_qmd_is_told_and_costs_nothing_else(qmd):
    memory = qmd.memory(command=("qmd-is-not-here",))
    assert "there is no program 'qmd-is-not-here'" in memory.status().notices[-1]
    assert memory.search("ferry")
    assert "npm install -g @tobilu/qmd@2" in memory.status().fallback["reason"]
    assert memory.sync().unchanged == 3


@pytest.mark.parametrize("wrong", [{"max_results": "six"}, {"now": "today"}])
@pytest.mark.sampled(1)
def test_what_is_wrong_with_a_call_is_an_error_and_no_failure(qmd, wrong):
    memory = qmd.memory()
    with pytest.raises(QueryError):
        memory.search("ferry", **wrong)
    assert memory.search("ferry").provider == "qmd"


def test_a_note_that_is_written_is_found(qmd):
    memory = qmd.memory()
    memory.search("ferry")
    memory.append("The submarine is yellow.", date="2026-03-05")
    memory.sync()
    assert "submarine" in memory.search("submarine")[0].snippet  # the recorded QMD does not know it


def test_a_closed_memory_answers_nothing(qmd):
    memory = qmd.memory()
    memory.search("ferry")
    memory.close()
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.search("ferry")


def test_without_a_first_sync_the_built_in_engine_answers_where_searches_may_not_sync(qmd):
    memory = qmd.memory(qmd.config().replace({"sync": {"before_search": False}}))
    assert "QMD has indexed nothing yet: call sync()" in str(memory.search("ferry").reason)
    assert qmd.calls == []
