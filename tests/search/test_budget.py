"""How much of the answers is shown: a budget for all of them together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw_memory.search.results import cut_to_budget
from openclaw_memory.types import SearchResult


def hit(snippet, start=1, end=None, path="memory/a.md"):
    source = "sessions" if path.endswith(".jsonl") else "memory"
    return SearchResult(path, start, end or start + snippet.count("\n"), 0.5, snippet, source)


def test_the_last_one_is_cut_at_the_end_of_a_line_and_its_citation_says_so():
    (first, second), omitted = cut_to_budget([hit("one\ntwo"), hit("three\nfour\nfive", 7), hit("six")], 19)
    assert (first.snippet, second.snippet) == ("one\ntwo", "three\nfour")
    assert second.citation == "memory/a.md#L7-L8"
    assert omitted == 1


def test_a_transcript_that_is_cut_does_not_cite_the_places_that_are_no_longer_shown():
    snippet = "User: a\n…\nUser: b\nAssistant: c\n…\nUser: d"
    gapped = replace(hit(snippet, 2, 30, "sessions/a.jsonl"), spans=((2, 2), (9, 14), (30, 30)))
    for room, shown, spans in (
        (9, "User: a", ((2, 2),)),
        (20, "User: a\n…\nUser: b", ((2, 2), (9, 14))),
        (32, "User: a\n…\nUser: b\nAssistant: c", ((2, 2), (9, 14))),
    ):
        ((only,), _) = cut_to_budget([gapped], room)
        assert (only.snippet, only.spans, only.end_line) == (shown, spans, spans[-1][1])


@pytest.mark.parametrize(
    ("most", "snippet", "spans"),
    [(13, "one\n…\nthree", ((3, 3), (5, 5))), (9, "one", ((3, 3),)), (5, "one", ((3, 3),)), (2, "on", ((3, 3),))],
)
def test_one_that_is_cut_in_a_gap_cites_the_lines_it_shows(most, snippet, spans):
    gapped = replace(hit("one\n…\nthree\nfour", 3, 6), spans=((3, 3), (5, 6)))
    ((only,), _) = cut_to_budget([gapped], most)
    assert (only.snippet, only.spans, only.end_line) == (snippet, spans, spans[-1][1])


def test_code_that_does_not_fit_is_not_shown_in_part():
    (_, second), _ = cut_to_budget([hit("one"), hit("two\n```\nthree\nfour\n```", 3)], 16)
    assert (second.snippet, second.citation) == ("two", "memory/a.md#L3")


@given(
    st.lists(st.text("ab\n", min_size=1, max_size=40).filter(str.strip).map(lambda text: hit(text, 5)), max_size=6),
    st.integers(1, 120),
)
def test_the_budget_holds_and_nothing_is_shown_that_is_not_cited(hits, most):
    shown, omitted = cut_to_budget(hits, most)
    assert sum(len(result.snippet) for result in shown) <= most
    assert len(shown) + omitted == len(hits)
    assert bool(shown) == bool(hits)
    for result, whole in zip(shown, hits, strict=False):
        assert whole.snippet.startswith(result.snippet)
        assert result.end_line == result.start_line + result.snippet.count("\n")
    assert shown[:-1] == tuple(hits[: len(shown)][:-1])
