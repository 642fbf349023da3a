"""How the site is built: pages of Markdown, the reference from docstrings, and links that hold on a disk and here."""

from __future__ import annotations

import json
import os
import re
import sys
from enum import EnumMeta
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(ROOT / "adapters"), str(ROOT / "integrations")]

from openclaw_memory import __version__  # noqa: E402 - the code beside these pages, wherever another is installed

project = "openclaw_memory"
author = "The openclaw_memory authors"
version = release = __version__
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
nitpicky = True

html_theme = "furo"
html_title = "openclaw_memory"
html_favicon = "../integrations/openclaw_memory_web/static/icon.svg"
# The red of names is too dark on the yellow of the one that was linked to.
html_theme_options = {"dark_css_variables": dict.fromkeys(("color-api-name", "color-api-pre-name"), "#f47a7a")}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False

myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks keep their outputs, and a test of their own executes them

smartquotes = False  # `--workspace` in the help of a command is no dash
default_role = "code"  # docstrings mark code with single backticks
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # frameworks write theirs in another markup
autodoc_typehints_format = "short"
# What has no words is a field, whose type the signature shows, or does what a protocol or a framework says of it.
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # a list of attributes, and not a second description of each
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

# Types of the standard library and of frameworks: their pages are elsewhere, and building must not need a network.
nitpick_ignore_regex = [("py:.*", r"(?!openclaw_memory|langchain_openclaw|llama_index_openclaw).*")]
# What a signature names and no program needs to: type variables, parts that are made for the caller.
nitpick_ignore = [
    ("py:class", "langchain_openclaw_memory._session.SessionRetriever"),
    ("py:class", "langchain_openclaw_memory._session._validate_choice"),
    ("py:class", "langchain_openclaw_memory.middleware.base.PromptMiddleware"),
    ("py:class", "langchain_openclaw_memory.middleware.intent.IntentState"),
    ("py:class", "langchain_openclaw_memory.retrievers._checked"),
    ("py:class", "openclaw_memory.memory.Annotated"),  # how pydantic's fields are shown
    ("py:class", "openclaw_memory.errors.UndecodableError"),  # of which a sealed file is one kind
    ("py:class", "openclaw_memory.indexing.service.IndexService"),
    ("py:class", "openclaw_memory.text.policies.Policies"),
    ("py:class", "openclaw_memory.flush.detector.M"),
    ("py:obj", "openclaw_memory.flush.detector.M"),
    ("py:class", "openclaw_memory.flush.driver.M"),
    ("py:obj", "openclaw_memory.flush.driver.M"),
    ("py:class", "openclaw_memory.flush.flush.FlushTurn"),
    ("py:class", "openclaw_memory.flush.state.FlushRegistry"),
    ("py:class", "openclaw_memory.flush.state.SessionState"),
    ("py:class", "openclaw_memory.embeddings.selection.T"),
    ("py:class", "openclaw_memory.embeddings.service.BatchApi"),
    ("py:class", "openclaw_memory.aio.T"),
    ("py:class", "openclaw_memory.config.checks.T"),
    ("py:class", "openclaw_memory.types.results.HeartbeatReport"),
    ("py:class", "openclaw_memory.testing.fakes.State"),
    ("py:class", "openclaw_memory.store.connection.Connections"),
    ("py:class", "openclaw_memory.workspace.files.WorkspaceFiles"),
    ("py:class", "openclaw_memory.workspace.paths.Place"),
    ("py:class", "openclaw_memory.records.files.RecordFiles"),
    ("py:class", "openclaw_memory.events.Events"),
    ("py:class", "openclaw_memory.search.filters.SearchFilter.read"),
    ("py:class", "openclaw_memory.search.request.SearchOptions.read"),
    ("py:class", "openclaw_memory.embeddings.remote.Embeddings"),
    ("py:class", "openclaw_memory.embeddings.remote.T"),
    ("py:class", "openclaw_memory.embeddings.service.FailureKind"),
    ("py:class", "openclaw_memory.embeddings.selection.EmbedderSelector"),
    ("py:class", "openclaw_memory.documents.filters.ChunkScope"),
    ("py:class", "openclaw_memory_audit.reading.Wrong"),
]

# Files outside this folder that are a page of the site: what is linked there leads to the page.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/setup.md",
    "SECURITY.md": "contributing/security.md",
    "notebooks/README.md": "notebooks.md",
    "benchmarks/README.md": "explanation/benchmarks.md",
    "adapters/langchain_openclaw_memory/README.md": "reference/langchain.md",
    "adapters/llama_index_openclaw_memory/README.md": "reference/llama-index.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#|<)([^)#\s]+)(#[^)\s]*)?\)")


def _on_the_site(text: str, *, file: Path, page: Path) -> str:
    """The text of `file`, a path in the repository, with its links as they are to be on `page`, a path below docs/."""

    def link(match: re.Match[str]) -> str:
        picture, words, target, anchor = match.groups(default="")
        place = Path(os.path.normpath(file.parent / target)).as_posix()
        if place.startswith("docs/"):
            here = place.removeprefix("docs/")
        elif place in PAGES:
            here = PAGES[place]
        elif place.startswith("notebooks/") and place.endswith(".ipynb"):
            here = place
        elif (ROOT / place).exists():
            return words  # a file that is no page: its name is enough
        else:
            return match[0]  # not ours, or wrong: the build says so
        return f"{picture}[{words}]({os.path.relpath(here, page.parent)}{anchor})"

    return LINK.sub(link, text)


def _page_read(app: Sphinx, docname: str, content: list[str]) -> None:
    page = Path(app.env.doc2path(docname, base=False))
    is_notebook = page.suffix == ".ipynb"
    text = _on_the_site(content[0], file=page if is_notebook else "docs" / page, page=page)
    # Anchors in Jupyter keep the capitals of their headings, here they have none.
    content[0] = re.sub(r"\]\(#[^)\s]+\)", lambda match: match[0].lower(), text) if is_notebook else text


def _file_included(app: Sphinx, path: Path, _parent: str, content: list[str]) -> None:
    file = Path(os.path.normpath("docs" / path))
    content[0] = _on_the_site(content[0], file=file, page=Path(app.env.doc2path(app.env.docname, base=False)))


def _copy_notebooks(app: Sphinx) -> None:
    """Sphinx reads below its own folder alone; copies that are as they were are left, and so not read again."""
    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    pages = {path.name: _notebook(path) for path in (ROOT / "notebooks").glob("*.ipynb")}
    for old in folder.glob("*.ipynb"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


def _notebook(path: Path) -> str:
    """A notebook whose cells are coloured as what they are: Python with magics."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["metadata"].setdefault("language_info", {"name": "python"})["pygments_lexer"] = "ipython3"
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def _load_commands(_app: Sphinx) -> None:
    """A command is loaded when it is run, and sphinx-click describes what is loaded."""
    import click

    from openclaw_memory.cli.commands import commands

    context = click.Context(commands)
    for name in commands.list_commands(context):
        commands.get_command(context, name)


def _example_as_code(_app: Sphinx, _context: object, lines: list[str]) -> None:
    """`Example: COMMAND`, as the help of a command has it, is a block of code here."""
    lines[:] = [
        part
        for line in lines
        for part in (
            ["Example:", "", ".. code-block:: shell", "", f"   {line.removeprefix('Example: ')}", ""]
            if line.startswith("Example: ")
            else [line]
        )
    ]


def _readable_signature(
    _app: Sphinx, what: str, _name: str, thing: object, _options: object, signature: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """A signature that is Python: else Sphinx cuts it at each comma, and shows no type whole."""
    if what == "class" and (getattr(thing, "_is_protocol", False) or isinstance(thing, EnumMeta)):
        return "", None  # nobody calls a protocol, or an enumeration
    if signature is None:
        return None
    made_anew = re.sub(r"= ?<(?:[^<>]|<[^<>]*>)+>", "=...", signature)
    for name in ("args", "kwargs"):
        made_anew = made_anew.replace(f"*{name}: ~typing.~P", f"*{name}: P.{name}")
    return made_anew, returned


def _dashes(_app: Sphinx, tree: nodes.document) -> None:
    """Between an argument and its words, Sphinx writes two hyphens, which `smartquotes` would join."""
    for text in list(tree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _readable_signature)
    app.connect("doctree-read", _dashes)
    app.connect("builder-inited", _load_commands)
    app.connect("sphinx-click-process-description", _example_as_code)
    app.connect("builder-inited", _copy_notebooks)
    app.connect("source-read", _page_read)
    app.connect("include-read", _file_included)
