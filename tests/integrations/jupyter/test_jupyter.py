"""The extension for notebooks: magics that ask, append and look, in a real IPython."""

import shutil

import pytest

pytest.importorskip("IPython", reason="the extension is for IPython")

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from uninstalled import run_without

from openclaw_memory import Memory, SearchResults
from openclaw_memory.search import Explanation

EXTENSION = "openclaw_memory_jupyter"
WHERE = "Who has the spare key"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """An IPython of its own, with the extension."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(history_load_length=0)
    shell.history_manager.enabled = False
    shell.run_line_magic("load_ext", EXTENSION)
    yield shell
    shell.run_line_magic("unload_ext", EXTENSION)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def memory(shell, notes):
    """The notebook's variable `memory`."""
    with Memory.open(notes) as memory:
        shell.user_ns["memory"] = memory
        yield memory


def result_of(shell, cell):
    done = shell.run_cell(cell)
    done.raise_error()
    return done.result


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "cell",
    [
        f"%memory {WHERE}",
        f"%memory '{WHERE}?'",
        f'found = %memory "{WHERE}?"\nfound',
        f"found = %memory {WHERE}\nfound",
        "%memory -n 2 Who's got the spare key",
        "%memory --max-results=2 -- Who has the spare key",
        f"found = {{}}\nfound['a'] = %memory {WHERE}\nfound['a']",
        "%memory Who has \\\n the spare key",
        f"if True:\n    found = %memory {WHERE}\nfound",
    ],
)
@pytest.mark.sampled(5)
def test_a_question_is_asked_as_it_is_typed(shell, cell):
    results = result_of(shell, cell)
    assert isinstance(results, SearchResults)
    assert results[0].path == "MEMORY.md"
    assert len(results) <= 2 or "-n" not in cell
    assert "Who's" in results.query or "Who's" not in cell


@pytest.mark.usefixtures("memory")
def test_an_explanation_is_one_option_away(shell):
    explained = result_of(shell, f"%memory --explain {WHERE}")
    assert isinstance(explained, Explanation)
    assert explained.query == WHERE


@pytest.mark.parametrize("option", ["-w {}", "--workspace {}", '--workspace="{}"', "-w '{}'"])
def test_a_folder_can_be_named(shell, notes, tmp_path, option):
    spaced = tmp_path / "my notes" if '"' in option or "'" in option else notes
    if spaced != notes:
        shutil.copytree(notes, spaced)
    assert result_of(shell, f"%memory {option.format(spaced)} {WHERE}")[0].path == "MEMORY.md"
    assert result_of(shell, f"%memory_status {option.format(spaced)}").workspace == str(spaced)


@pytest.mark.usefixtures("memory")
def test_appending_the_same_cell_again_adds_nothing(shell, notes):
    cell = "%%memory_append --date 2026-03-02 --title 'A talk'\nThe ladder is Anna's.\nIt is red.\n"
    first, again = result_of(shell, cell), result_of(shell, cell)
    assert (first.path, first.existed, again.existed) == ("memory/2026-03-02.md", False, True)
    assert (notes / first.path).read_text().count("It is red.") == 1
    assert "## " in (notes / first.path).read_text()
    assert "A talk" in (notes / first.path).read_text()
    assert result_of(shell, "%memory Whose ladder is it")[0].path == first.path


def test_the_status_of_the_notebooks_memory(shell, memory):
    memory.sync()
    assert result_of(shell, "%memory_status").files == 4
    assert result_of(shell, "%memory_status --deep").vector.verified is True


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%memory", "needs a question"),
        ('%memory ""', "needs a question"),
        ("%memory -n many Who", "takes a whole number, not 'many'"),
        (
            "%memory --explian Who",
            "--explian is unknown; the options are --workspace, --max-results, --min-score, --explain",
        ),
        ("%memory --explain=yes Who", "--explain takes no value"),
        ("%memory --min-score low Who", "takes a number from 0 to 1, not 'low'"),
        ("%%memory_append today\ntext", "does not know 'today'"),
        ("%memory -w /nowhere-at-all Who", "workspace /nowhere-at-all does not exist"),
        ("%memory -n 0 Who", "max_results must be a whole number of at least 1"),
        ("%%memory_append --date yesterday\ntext", "yesterday"),
    ],
)
@pytest.mark.sampled(8)
def test_a_wrong_call_says_what_is_right(shell, cell, words):
    with pytest.raises(UsageError, match=words):
        shell.run_cell(cell).raise_error()


def test_without_a_memory_it_says_how_to_open_one(shell):
    with pytest.raises(UsageError, match=r"run memory = Memory.open\(PATH\) first, or name a folder"):
        shell.run_cell(f"%memory {WHERE}").raise_error()


@pytest.mark.usefixtures("memory")
def test_a_note_may_say_how_to_ask(shell, notes):
    written = result_of(shell, "%%memory_append --date 2026-02-02\nHow to ask:\n%memory When is the launch?\n")
    assert "%memory When is the launch?" in (notes / written.path).read_text()


@pytest.mark.parametrize("package", ["IPython", "tqdm"])
@pytest.mark.sampled(1)
def test_without_its_extra_the_remedy_is_named(package):
    code = "try:\n    import openclaw_memory_jupyter\nexcept MissingExtraError as error:\n    print(error)\n"
    assert f'needs {package}: pip install ".[jupyter]"' in run_without(code, package)
