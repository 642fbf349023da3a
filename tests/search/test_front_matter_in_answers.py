"""Front matter is context: it leads no answer, unless the question names a field, or the note says nothing else."""

from __future__ import annotations

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig

QUIET = MemoryConfig(sync=SyncConfig(on_search=False))
REVIEW = """---
title: Typography review
tags: [meeting, design]
attendees:
  - Sanne
  - Noor
---
# Typography review

Water names go in italics, as on the sea charts.

The minimum size of a street name in print is 5.5 points.
"""
BREAD = """---
tags: [recipe, bread]
---
# Loaf of the week

Feed the starter the evening before, with flour and water.

Bake it for 25 minutes at 240 degrees.
"""
CARD = """---
name: Piet Janssen
phone: 06 5555 0101
---
"""
EMBEDDERS = pytest.mark.parametrize("embedder", ["static", None], ids=["static", "keywords"])


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    place = tmp_path_factory.mktemp("vault")
    (place / "memory").mkdir(parents=True)
    for name, text in {"review": REVIEW, "bread": BREAD, "card": CARD, "windows": BREAD.replace("\n", "\r\n")}.items():
        (place / f"memory/{name}.md").write_bytes(text.encode())
    (place / "memory/rule.md").write_text("---\n\nThe ferry leaves at seven.\n\n---\n\nThe gate is green.\n")
    return place


def first(vault, question, embedder):
    with Memory.open(vault, embedder=embedder, config=QUIET) as memory:
        memory.sync()
        return memory.search(question, max_chars=400)[0]


def is_matter(result, stop):
    return result.end_line <= stop


@EMBEDDERS
@pytest.mark.parametrize("question", ["bread recipe", "Which recipe for bread is there?"])
def test_tags_are_no_answer(vault, embedder, question):
    result = first(vault, question, embedder)
    assert result.path in {"memory/bread.md", "memory/windows.md"}
    assert not is_matter(result, 3)
    assert "Loaf" in result.snippet or "Bake" in result.snippet or "starter" in result.snippet


@EMBEDDERS
def test_names_in_front_matter_are_no_answer_to_what_they_did(vault, embedder):
    result = first(vault, "What size did Noor and Sanne agree on for a street name?", embedder)
    assert (result.path, is_matter(result, 7)) == ("memory/review.md", False)
    assert "5.5 points" in result.snippet


@EMBEDDERS
@pytest.mark.parametrize("question", ["attendees of the typography review", "Who attended the typography review?"])
def test_a_field_that_the_question_names_answers_it(vault, embedder, question):
    result = first(vault, question, embedder)
    assert result.path == "memory/review.md"
    assert "Noor" in result.snippet


@EMBEDDERS
def test_a_note_that_is_all_front_matter_answers_by_it(vault, embedder):
    assert "06 5555 0101" in first(vault, "Piet Janssen", embedder).snippet


@EMBEDDERS
def test_a_rule_at_the_top_of_a_note_is_no_front_matter(vault, embedder):
    assert "seven" in first(vault, "When does the ferry leave?", embedder).snippet
