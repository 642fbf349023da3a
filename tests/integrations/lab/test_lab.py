"""The labelled workspace that ships: enough notes, true labels, questions that tell settings apart."""

import json
import re
from pathlib import Path

from openclaw_memory_lab import copy_lab, read_questions
from openclaw_memory_lab.evaluation import LAB, QUESTIONS

from openclaw_memory.text.redaction import redact
from openclaw_memory.text.terms import select_content_words, stem_word

ROOT = Path(__file__).parents[3]
NOTES = {path.relative_to(LAB).as_posix(): path.read_text(encoding="utf-8") for path in sorted(LAB.rglob("*.md"))}
LABELLED = read_questions(LAB / QUESTIONS)
GUIDE = (ROOT / "docs" / "how-to" / "answers.md").read_text(encoding="utf-8")
ANSWERABLE = [question for question in LABELLED if question.evidence]


def folded(text: str) -> str:
    return " ".join(text.split())


def places(quote: str) -> list[str]:
    """The notes that hold a quote, each as often as it does."""
    return [path for path, text in NOTES.items() for _ in range(folded(text).count(folded(quote)))]


def stems(text: str) -> set[str]:
    return {stem_word(word) for word in select_content_words(text)}


def test_each_quote_stands_once_and_in_one_note():
    for question in ANSWERABLE:
        assert [len(places(quote)) for quote in question.evidence] == [1] * len(question.evidence), question.text


def test_a_paraphrase_shares_no_word_with_the_line_that_answers_it():
    asked = [(one.text, quote) for one in ANSWERABLE if one.kind == "paraphrase" for quote in one.evidence]
    assert len(asked) >= 14
    for text, quote in asked:
        (path,) = places(quote)
        line = next(line for line in NOTES[path].splitlines() if folded(quote) in folded(line))
        assert stems(text) & stems(line) == set(), text


def test_a_note_holds_no_secret_and_no_address():
    for path, text in NOTES.items():
        assert redact(text) == text, path
        assert re.search(r"@|https?:|www\.|\d{6,}|\+\d", text) is None, path


def test_a_copy_keeps_what_is_there_and_gives_the_questions(tmp_path):
    (tmp_path / "USER.md").write_text("mine\n", encoding="utf-8")
    assert copy_lab(tmp_path) == LABELLED
    assert copy_lab(tmp_path) == LABELLED
    copied = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md")
    }
    assert copied == {**NOTES, "USER.md": "mine\n"}


def test_the_guide_tells_of_what_the_lab_has():
    assert f"{len(NOTES)} notes of an invented team" in GUIDE
    assert f"{len(LABELLED)} questions,\n{len(LABELLED) - len(ANSWERABLE)} of them without an answer" in GUIDE


def told(header: str) -> list[list[str]]:
    """The cells of a table of the guide, without its header."""
    table = GUIDE.split(f"\n| {header} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def kept(mark: str) -> dict[str, list[str]]:
    """The rows, by their first cell, of the last table with such a text in it that the notebook has put out."""
    cells = json.loads((ROOT / "notebooks" / "ranking_lab.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}).get("text/html", []) for cell in cells for output in cell.get("outputs", [])]
    table = [text for text in map("".join, outputs) if mark in text][-1]
    lines = [re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL) for row in table.split("</tr>")]
    texts = [[folded(re.sub(r"<[^>]+>", " ", cell)) for cell in line] for line in lines]
    return {first: rest for first, *rest in filter(None, texts)}


def test_the_guide_tells_the_figures_of_the_notebook():
    """The notebook is executed by tests of its own; what it keeps is what the guide may quote."""
    measured = kept("candidates = 100")
    rows = told("Settings")
    assert len(rows) >= 4
    for name, *figures in rows:
        columns = iter(measured[name])
        assert all(figure in columns for figure in figures), (name, figures, measured[name])
