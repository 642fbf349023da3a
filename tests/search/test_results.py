"""What a search returns: a sequence that shows itself, with whatever the notes hold escaped."""

import pytest

from openclaw_memory import SearchResults
from openclaw_memory.types import SearchResult

FOUND = tuple(
    SearchResult("memory/<b>.md", line, line + 2, 0.5, "<script>alert(1)</script>\nA & B", "memory") for line in (1, 9)
)
RESULTS = SearchResults(FOUND, "what <i>is</i> it", "hybrid", "static", "m")


def test_results_are_a_sequence():
    assert len(RESULTS) == 2
    assert list(RESULTS) == [RESULTS[0], RESULTS[1]]
    assert RESULTS[-1] is FOUND[1]
    assert RESULTS[:1] == FOUND[:1]
    assert FOUND[0] in RESULTS
    assert not SearchResults((), "q", "keyword", "none", "")


def test_the_table_of_a_notebook_holds_no_markup_of_the_notes_or_the_question():
    for shown, rows in ((RESULTS._repr_html_(), 1 + len(FOUND)), (RESULTS[0]._repr_html_(), 2)):
        assert not any(markup in shown for markup in ("<script>", "<i>", "memory/<b>"))
        assert "&lt;script&gt;alert(1)&lt;/script&gt;\nA &amp; B" in shown
        assert shown.count("<tr>") == rows


def test_a_data_frame_has_one_row_a_result():
    pytest.importorskip("pandas")
    frame = RESULTS.to_pandas()
    assert frame["citation"].tolist() == [found.citation for found in RESULTS]
    assert list(SearchResults((), "q", "keyword", "none", "").to_pandas().columns) == list(frame.columns)


def test_results_read_as_what_was_found():
    assert repr(RESULTS).splitlines() == [
        "SearchResults('what <i>is</i> it': 2 results, hybrid search, static m)",
        "  0.50 memory/<b>.md#L1-L3",
        "  0.50 memory/<b>.md#L9-L11",
    ]
    nothing = SearchResults(
        (), "q", "keyword", "none", "", filtered=3, stale=True, reason="no <embedder>", min_score=0.2
    )
    assert repr(nothing) == (
        "SearchResults('q': nothing found, keyword search, none; 3 more below the minimum score of 0.2, which min_score=0 shows; "
        "stale: the index is behind; no <embedder>)"
    )
    assert "no &lt;embedder&gt;" in nothing._repr_html_()
