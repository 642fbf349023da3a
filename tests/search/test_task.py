"""A task reranks what answers about as well, says what it brought, and changes nothing where none is given."""

from __future__ import annotations

import pytest

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import SearchConfig
from openclaw_memory.errors import EmbedderError, QueryError
from openclaw_memory.testing import RecordingEmbedder

NOTES = {
    f"memory/{name}.md": f"# {name.title()}\n\nThe appointment is on {day}.\n\n{about}\n"
    for name, day, about in (
        ("alpha", "Monday", "The dentist looks at teeth and fillings."),
        ("bravo", "Tuesday", "The garage changes tyres and the oil of the car."),
        ("carol", "Wednesday", "The school talks about homework and marks."),
        ("delta", "Thursday", "The bank lends money for the mortgage of the house."),
    )
}
QUESTION, TASK = "When is the appointment?", "changing the tyres of the car"
EVERY = pytest.mark.parametrize("embedder", ["default", None], ids=["vectors", "keywords"])


@pytest.fixture
def heavy(monkeypatch):
    """Let the task count more than it does."""
    monkeypatch.setattr("openclaw_memory.search.ranking.TASK_WEIGHT", 0.5)


@pytest.mark.usefixtures("heavy")
@EVERY
def test_of_results_that_answer_as_well_that_of_the_task_comes_first(remember, embedder):
    memory = remember(NOTES, embedder=embedder)
    assert memory.search(QUESTION)[0].path != "memory/bravo.md"
    for most in (None, 1):
        assert memory.search(QUESTION, options={"task": TASK}, max_results=most)[0].path == "memory/bravo.md"
    assert memory.search(QUESTION, options={"task": "a mortgage from the bank"})[0].path == "memory/delta.md"


@EVERY
def test_without_a_task_nothing_changes(remember, embedder):
    memory = remember(NOTES, embedder=embedder)
    for task in (None, "", " \n"):
        found = memory.search(QUESTION, options={"task": task, "explain": True})
        assert found == memory.search(QUESTION, options={"explain": True})
        assert all("task" not in one.parts for one in found)


@EVERY
@pytest.mark.parametrize("half_life", [None, 30.0])
@pytest.mark.parametrize("weight", [0.1, 1.0])
@pytest.mark.parametrize("answer", ["lines", "chunks"])
@pytest.mark.sampled(6)
def test_scores_stay_within_those_of_before_and_their_parts_add_up(
    remember, monkeypatch, embedder, half_life, weight, answer
):
    monkeypatch.setattr("openclaw_memory.search.ranking.TASK_WEIGHT", weight)
    config = MemoryConfig(search=SearchConfig(half_life_days=half_life, min_score=0.0, answer=answer))
    memory = remember(NOTES, embedder=embedder, config=config)
    before, after = memory.search(QUESTION), memory.search(QUESTION, options={"task": TASK, "explain": True})
    best, sureness = before[0].score, {one.citation: one.confidence for one in before}
    assert {one.citation: one.confidence for one in after} == sureness
    assert max(one.parts["task"] for one in after) > 0
    for one, row in zip(after, after.explain().rows, strict=True):
        assert 0 <= one.score <= best
        assert (row.keyword + row.vector + row.task) * row.decay == pytest.approx(one.score)
        assert min(row.keyword, row.vector, row.task) >= 0


@pytest.mark.usefixtures("heavy")
@EVERY
def test_a_task_does_not_make_an_answer_of_what_is_none(remember, embedder):
    memory = remember(NOTES, embedder=embedder, config=MemoryConfig())
    found = memory.search("zebra crossings in Ulan Bator", options={"task": TASK})
    assert all(one.confidence == "weak" for one in found)


def test_an_explanation_shows_the_part_of_the_task(remember):
    found = remember(NOTES, embedder="default").search(QUESTION, options={"task": TASK, "explain": True}).explain()
    assert " task) * " in repr(found)
    assert "vector + task" in found._repr_html_()
    pytest.importorskip("pandas")
    assert "task" in found.to_pandas().columns
    assert "feature_task" not in found.to_pandas().columns


def test_a_task_must_be_a_text(remember):
    with pytest.raises(QueryError, match="task must be a string, not a value of type int"):
        remember(NOTES, embedder=None).search(QUESTION, options={"task": 3})


class FailsForTask(RecordingEmbedder):
    """Has no vector for the task."""

    def embed_query(self, text):
        if text == TASK:
            raise EmbedderError("the service is away")
        return super().embed_query(text)


def test_a_task_that_the_embedder_fails_for_is_compared_by_its_words_and_the_reason_says_so(remember):
    found = remember(NOTES, embedder=FailsForTask()).search(QUESTION, options={"task": TASK})
    assert found.mode == "hybrid"
    assert found.reason is not None
    assert "the task was compared by keywords: " in found.reason
    parts = {one.path: one.parts["task"] for one in found}
    assert max(parts, key=parts.__getitem__) == "memory/bravo.md"


def test_a_named_file_keeps_its_score(remember):
    found = remember(NOTES, embedder="default").search("memory/alpha.md", options={"task": TASK})
    assert (found[0].path, found[0].score) == ("memory/alpha.md", 1.0)
