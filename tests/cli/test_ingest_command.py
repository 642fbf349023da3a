"""PDF, HTML, DOCX and Org as Markdown of the memory, each with its source."""

import json
import re
import sys
import zipfile
from types import SimpleNamespace

import pytest

from openclaw_memory import Memory
from openclaw_memory.cli import ingest_command
from openclaw_memory.errors import OriginError

HTML = "<html><head><title>T</title></head><body><h1>Ferry</h1><p>It leaves at <b>eight</b>.</p><script>evil()</script>"


def write_docx(file):
    """A document of Word in its fewest parts."""
    names = "http://schemas.openxmlformats.org"
    document = (
        f'<w:document xmlns:w="{names}/wordprocessingml/2006/main"><w:body>'
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Harbour</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>The crane is out of order until May.</w:t></w:r></w:p></w:body></w:document>"
    )
    types = (
        f'<Types xmlns="{names}/package/2006/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    relations = (
        f'<Relationships xmlns="{names}/package/2006/relationships"><Relationship Id="a" Target="word/document.xml" '
        f'Type="{names}/officeDocument/2006/relationships/officeDocument"/></Relationships>'
    )
    with zipfile.ZipFile(file, "w") as parts:
        parts.writestr("[Content_Types].xml", types)
        parts.writestr("_rels/.rels", relations)
        parts.writestr("word/document.xml", document)


def write_pdf(file):
    """A page of PDF with one line of text."""
    stream = b"BT /F1 18 Tf 72 700 Td (The lighthouse keeper is called Wim.) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    file.write_bytes(data + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start))


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("markitdown", reason="markitdown is not installed: pip install -e '.[ingest]'")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "page.html").write_text(HTML, encoding="utf-8")
    write_docx(folder / "letter.DOCX")
    write_pdf(folder / "paper.pdf")
    return folder


def test_files_become_documents_that_are_found_and_name_their_source(run, notes, files):
    outcome = run("ingest", "-w", notes, *sorted(files.iterdir()))
    assert outcome.code == 0, outcome.err
    assert len(outcome.out.splitlines()) == 3
    with Memory.open(notes) as memory:
        for question, name in (
            ("When does the ferry leave?", "page.html"),
            ("crane", "letter.DOCX"),
            ("Wim", "paper.pdf"),
        ):
            path = memory.search(question)[0].path
            document = memory.documents.read(path)
            assert document.metadata["source"] == str(files / name)
            assert path.startswith("memory/notes/")
    (page,) = (notes / "memory/notes").glob("page-*.md")
    text = page.read_text(encoding="utf-8")
    assert "# Ferry\n\nIt leaves at **eight**." in text
    assert "evil" not in text


def test_the_same_file_again_takes_the_place_of_its_document(run, notes, files):
    for hour in ("eight", "nine"):
        (files / "page.html").write_text(HTML.replace("eight", hour), encoding="utf-8")
        assert run("ingest", "-w", notes, files / "page.html").code == 0
    (page,) = (notes / "memory/notes").glob("page-*.md")
    assert "**nine**" in page.read_text(encoding="utf-8")


def test_what_is_not_taken_is_named_with_the_reason_and_the_rest_is_kept(run, notes, files):
    (files / "broken.pdf").write_bytes(b"%PDF-1.4 nothing of the kind")
    (files / "broken.docx").write_bytes(b"no zip")
    (files / "empty.html").write_text("<html></html>", encoding="utf-8")
    (files / "table.xyz").write_text("x", encoding="utf-8")
    names = ["broken.pdf", "broken.docx", "empty.html", "table.xyz", "page.html"]
    outcome = run("ingest", "-w", notes, "--json", *[files / name for name in names])
    assert outcome.code == 1
    answer = json.loads(outcome.out)
    assert [one["file"] for one in answer["ingested"]] == [str(files / "page.html")]
    reasons = {one["file"].rpartition("/")[2]: one["reason"] for one in answer["left_out"]}
    assert set(reasons) == set(names) - {"page.html"}
    assert "holds no text" in reasons["empty.html"]
    assert "'.xyz' are not read: .pdf, .html" in reasons["table.xyz"]


def test_org_is_read_by_pandoc_or_left_out_with_a_word(run, notes, tmp_path, monkeypatch):
    org = tmp_path / "todo.org"
    org.write_text("* Boats\n- paint the /hull/\n", encoding="utf-8")
    monkeypatch.setattr(ingest_command.shutil, "which", lambda _name: None)
    monkeypatch.setitem(sys.modules, "pypandoc", None)
    outcome = run("ingest", "-w", notes, org)
    assert outcome.code == 1
    assert "Org files are read by pandoc, which is not installed" in outcome.err
    script = tmp_path / "pandoc"
    script.write_text('#!/bin/sh\n[ "$1" = --sandbox ] && [ "$2" = --from=org ] && sed "s/^[*] /# /"\n')
    script.chmod(0o755)
    monkeypatch.setattr(ingest_command.shutil, "which", lambda _name: str(script))
    assert run("ingest", "-w", notes, org).code == 0
    (page,) = (notes / "memory/notes").glob("todo-*.md")
    assert "# Boats\n- paint" in page.read_text(encoding="utf-8")


ORG = r"""#+TITLE: Refit of the Heron
#+DATE: 2026-05-03
* TODO Hull                                      :boat:yard:
  DEADLINE: <2026-06-01 Mon>
  :PROPERTIES:
  :CUSTOM_ID: hull
  :END:
  - [X] sand the /hull/ of draft_2
  - [ ] paint it with *two coats*
** Costs
   | Item  | Euro |
   |-------+------|
   | Paint |   80 |
* Engine
  See [[https://example.org/volvo][the manual]].
  #+BEGIN_SRC python
  print("oil")
  #+END_SRC
  #+INCLUDE: "SECRET"
"""


@pytest.mark.skipif(ingest_command._pandoc() is None, reason="neither pandoc nor pypandoc_binary is installed")
def test_pandoc_itself_reads_org(tmp_path):
    (tmp_path / "secret.txt").write_text("the password of somebody")
    org = tmp_path / "todo.org"
    org.write_text(ORG.replace("SECRET", str(tmp_path / "secret.txt")), encoding="utf-8")
    text, title = ingest_command.as_markdown(org)
    assert title == "Refit of the Heron"
    assert text.startswith("# TODO Hull\n\n**DEADLINE:** *<2026-06-01 Mon>*\n")
    assert re.search(r"^-\s+\[x\] sand the \*hull\* of draft_2$", text, re.MULTILINE)
    assert "| Paint | 80   |" in text
    assert "[the manual](https://example.org/volvo)" in text
    assert "```" in text
    assert not re.search("<[a-z]|password|CUSTOM_ID|yard", text)


def test_what_is_ingested_comes_from_outside_unless_the_user_says_it_is_his_own(run, notes, files):
    assert run("ingest", "-w", notes, files / "page.html").code == 0
    assert run("ingest", "-w", notes, "--own", files / "letter.DOCX").code == 0
    with Memory.open(notes) as memory:
        [page] = memory.inspect(kind="document", source="external")
        [letter] = memory.inspect(kind="document", source="tool")
        for item, word in ((page, "eight"), (letter, "crane")):
            lines = memory.workspace.read(item.path).split("\n")
            at = next(number for number, line in enumerate(lines, 1) if word in line)
            if item is page:
                with pytest.raises(OriginError, match="come from outside"):
                    memory.promote(item.path, at, at)
            else:
                assert "crane" in memory.promote(item.path, at, at).text
        assert memory.documents.read(page.path).metadata["title"] == "T"


def test_signs_of_a_pdf_without_a_letter_and_its_ends_of_pages_are_no_text(files, monkeypatch):
    from markitdown import converters

    made = SimpleNamespace(markdown="(cid:127) Wim\fTides", title=None)
    monkeypatch.setattr(converters.PdfConverter, "convert", lambda *_: made)
    assert ingest_command.as_markdown(files / "paper.pdf").text == "Wim\n\nTides\n"
