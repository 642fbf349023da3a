"""What is printed: cleaned of controls, folded to the terminal, turned into JSON."""

import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.cli.output import fold_line, make_link
from openclaw_memory.display import clean


@given(st.text(st.characters(codec=None), max_size=50))
def test_clean_text_holds_no_control_but_tab_and_line_feed(text):
    cleaned = clean(text)
    assert all(unicodedata.category(character) not in {"Cc", "Cs"} or character in "\t\n" for character in cleaned)
    cleaned.encode("utf-8")


@given(st.text(st.sampled_from("ab 北é\t"), max_size=60), st.integers(8, 20))
def test_folding_keeps_every_letter_and_the_width(line, columns):
    rows = fold_line(line, columns)
    assert "".join("".join(rows).split()) == "".join(line.split())
    assert all(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in row) <= columns for row in rows)


@pytest.mark.parametrize(("program", "is_vault"), [("vscode", False), ("xterm", False), ("vscode", True)])
def test_a_citation_links_to_its_line_in_vs_code_and_to_its_note_in_obsidian(tmp_path, monkeypatch, program, is_vault):
    monkeypatch.setenv("TERM_PROGRAM", program)
    note = tmp_path / "a b.md"
    if is_vault:
        (tmp_path / ".obsidian").mkdir()
    expected = {"vscode": f"vscode://file{tmp_path}/a%20b.md:3", "xterm": f"file://{tmp_path}/a%20b.md"}[program]
    assert make_link(note, 3) == (f"obsidian://open?path={quote(str(note), safe='')}" if is_vault else expected)
