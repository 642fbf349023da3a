"""What keywords alone or vectors alone answer, hybrid search answers too: in sixteen scripts, however it is typed."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from index_files import write_files

from openclaw_memory import Memory

ROWS = Path(__file__).with_name("notes_by_script.tsv").read_text("utf-8").splitlines()
NOTES = {script: tuple(notes) for script, *notes in (row.split("\t") for row in ROWS)}
UNSPACED = {"japanese", "chinese"}
ENGLISH = (
    "The garden needs water in summer.",
    "The api of nginx was rolled back in 2026.",
    "The boiler is serviced each October by Van Dam.",
    "A carpenter repairs the old door for 350 euros.",
    "Docker 7 runs on the server in the attic.",
    "Ines prefers trains to planes.",
    "The train leaves at noon; getUserAccountById was renamed.",
)
MIXED = ("api", "nginx", "2026", "Docker 7", "boiler", "heating", "train", "350", "GEO-1000", "account")
SIGNS = ("", "?", "？", "؟", "!", "…", "।", "،", "։", "።", "。", ";", "»")
VECTORS_ALONE = {"answer": "chunks", "vector_weight": 1.0}
FAR = 0.2  # cosine
EQUAL = 0.02


@pytest.fixture(scope="module", params=["static", "hashing"])
def both(request, tmp_path_factory):
    """The notes in a memory with vectors, and in one without."""
    files = {f"memory/{script}-{at}.md": f"{text}\n" for script, own in NOTES.items() for at, text in enumerate(own)}
    files |= {f"memory/english-{at}.md": f"{text}\n" for at, text in enumerate(ENGLISH)}
    places = [write_files(tmp_path_factory.mktemp(name), files) for name in ("hybrid", "keywords")]
    with Memory.open(places[0], embedder=request.param) as hybrid, Memory.open(places[1], embedder=None) as keywords:
        hybrid.sync()
        keywords.sync()
        yield hybrid, keywords


def unaccented(text: str) -> str:
    """Return text without accents and other marks."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


@st.composite
def questions(draw):
    """Some words of a note, typed as people do, with a Latin word or a number, or none."""
    script = draw(st.sampled_from(sorted(NOTES)))
    text = draw(st.sampled_from(NOTES[script]))
    if script in UNSPACED:
        start = draw(st.integers(0, len(text) - 3))
        chosen = [text[start : start + draw(st.integers(2, 8))]]
    else:
        every = text.split()
        chosen = [every[at] for at in sorted(draw(st.sets(st.integers(0, len(every) - 1), min_size=1, max_size=5)))]
    more = draw(st.lists(st.sampled_from(MIXED), max_size=2))
    asked = " ".join(draw(st.permutations([*chosen, *more]))) + draw(st.sampled_from(SIGNS))
    return draw(st.sampled_from([str, unaccented, str.upper]))(asked)


@settings(max_examples=15)
@given(question=questions())
@example(question="团队会 boiler boiler")
def test_what_keywords_alone_answer_is_among_the_first_two(both, question):
    hybrid, keywords = both
    by_words = keywords.search(question)
    if by_words and by_words[0].score >= 0.5:
        equals = {result.path for result in by_words if result.score >= by_words[0].score - EQUAL}
        assert equals & {result.path for result in hybrid.search(question)[:2]}


@settings(max_examples=15)
@given(question=questions())
def test_what_vectors_alone_put_first_by_far_is_among_the_first_three(both, question):
    hybrid, _ = both
    by_vector = hybrid.search(question, min_score=0, options={"settings": VECTORS_ALONE})
    cosines = [result.parts["vector_score"] for result in by_vector]
    if len(cosines) > 1 and cosines[0] - cosines[1] >= FAR:
        assert by_vector[0].path in [result.path for result in hybrid.search(question)[:3]]
