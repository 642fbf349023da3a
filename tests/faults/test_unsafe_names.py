"""Names of files that could drive a terminal, forge a line or turn text around: what is shown of them is harmless."""

import contextlib
import json
import logging
import re

import pytest

from openclaw_memory import Memory
from openclaw_memory.cli import main
from openclaw_memory.errors import ConflictError, OpenClawMemoryError
from openclaw_memory.tools import memory_tools, recall
from openclaw_memory.types.files import parse_citation

# Controls, ends of lines, direction marks: what no text that is shown may hold, besides its own line feeds.
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
TURNED = "memory/\u202etxt.gnp\u2066 zebra.md"
REFUSED = [
    "a\nb.md", "a\n[MEMORY.md#L3 0123abcd].md", "tab\there.md", "bell\x07.md", "esc\x1b[2J.md", "del\x7f.md", "c1\x9b31m.md",
    "next\x85line.md", "line\u2028end.md", "part\u2029end.md", "cr\r.md",
]  # fmt: skip
KEPT = [
    "ünï 日本.md",
    "a b.md",
    "\u200fעברית.md",
    "👩\u200d🚀.md",
    "می\u200cخواهم.md",
    "[draft] #L3.md",
    "a'\"`<b>&.md",
    "-x.md",
    "a\u00a0b.md",
]


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / TURNED).write_text("The zebra is called Otto.\n", encoding="utf-8")
    return folder


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None) as memory:
        memory.sync()
        yield memory


@pytest.mark.fault(56)
@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_would_tear_a_citation_apart_is_refused_with_a_word(notes, memory, name):
    (notes / "memory" / name).write_text("A zebra of the night.\n", encoding="utf-8")
    report = memory.sync()
    (skipped,) = report.skipped
    assert "control character or a line break in its name: rename it" in skipped.reason
    assert not UNSAFE.search(skipped.path)
    assert [file.path for file in memory.status().skipped] == [skipped.path]
    assert [hit.path for hit in memory.search("zebra", min_score=0)] == [TURNED]
    with pytest.raises(OpenClawMemoryError) as caught:
        memory.get(f"memory/{name}")
    assert not UNSAFE.search(str(caught.value))


@pytest.mark.fault(56)
@pytest.mark.parametrize("name", KEPT)
def test_every_other_name_has_a_citation_that_leads_back(notes, memory, name):
    (notes / "memory" / name).write_text("# Night\n\nThe okapi sleeps.\n", encoding="utf-8")
    assert memory.sync().skipped == ()
    (hit,) = memory.search("okapi", min_score=0)
    assert parse_citation(hit.citation) == (hit.path, hit.spans)
    assert memory.get(hit.citation).text == hit.snippet
    get = {tool.name: tool for tool in memory_tools(memory)}["memory_get"]
    place = recall(memory, "okapi", min_score=0).splitlines()[1]
    assert get.run({"path": place}).data["citation"] == hit.citation


def everything_shown(memory, caplog, capsys):
    """Whatever a person is shown of a memory, each as text."""
    found = memory.search("zebra", min_score=0, options={"explain": True})
    yield from (repr(found), str(found), found._repr_html_(), repr(found.explain()), found.explain()._repr_html_())
    yield from (
        repr(found[0]),
        found[0]._repr_html_(),
        repr(memory),
        repr(memory.status()),
        memory.status()._repr_html_(),
    )
    yield from (memory.get(TURNED)._repr_html_(), repr(memory.get(TURNED)), memory.sync(force=True)._repr_html_())
    tools = {tool.name: tool for tool in memory_tools(memory, include="search get append edit forget promote".split())}
    yield tools["memory_search"]({"query": "zebra", "minScore": 0})
    for arguments in ({"path": TURNED}, {"path": TURNED, "from": 99}, {"path": TURNED.replace("zebra", "no")}):
        yield tools["memory_get"](arguments)
    for call in (
        lambda: memory.get(TURNED, start=99),
        lambda: memory.get(TURNED.replace("zebra", "no")),
        lambda: memory.get("\u202e\x1b[2J"),
        lambda: memory.edit(TURNED, 1, 1, "x", expected="0" * 64),
    ):
        with pytest.raises(OpenClawMemoryError) as caught:
            call()
        yield from (str(caught.value), repr(caught.value), f"{caught.value}")
        logging.getLogger("openclaw_memory").warning("%s", caught.value)
    yield caplog.text
    for options in (["search", "zebra", "--min-score", "0"], ["status"], ["index"], ["doctor"], ["show", TURNED]):
        for more in ([], ["--json"]):
            with contextlib.suppress(SystemExit):
                main([*options, "--workspace", str(memory.workspace.root), *more])
            yield "".join(capsys.readouterr())


@pytest.mark.fault(56)
def test_nothing_that_is_shown_holds_a_control_or_turns_the_text_around(notes, memory, caplog, capsys):
    (notes / "memory" / "bad\x1b]0;x\x07\n.md").write_text("x\n")
    (notes / "memory" / "link\u202e\n.md").symlink_to(notes)
    memory.sync()
    for text in everything_shown(memory, caplog, capsys):
        assert not UNSAFE.search(text), text


def test_to_a_model_the_name_is_the_same_as_on_the_disk(memory):
    tools = {tool.name: tool for tool in memory_tools(memory)}
    text = tools["memory_search"]({"query": "zebra", "minScore": 0})
    (row,) = json.loads(text)["results"]
    assert row["path"] == TURNED
    assert json.loads(tools["memory_get"]({"path": row["citation"]}))["path"] == TURNED


def test_an_error_keeps_what_a_program_needs_of_it(memory):
    with pytest.raises(ConflictError) as caught:
        memory.edit(TURNED, 1, 1, "x", expected="0" * 64)
    assert caught.value.path == TURNED
    assert caught.value.current == "The zebra is called Otto."
