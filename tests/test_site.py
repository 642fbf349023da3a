"""The documentation: what it keeps of the code is up to date, it builds without a warning, its links hold, it shows."""

import html.parser
import importlib.util
import inspect
import pkgutil
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from contrast import POOR

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLIC = [
    *(f"openclaw_memory{name}" for name in ("", ".config", ".embeddings", ".errors")),
    *(f"openclaw_memory{name}" for name in (".flush", ".testing", ".tools", ".types")),
    "openclaw_memory_jupyter",
    "openclaw_memory_lab",
    "langchain_openclaw_memory",
    "llama_index_openclaw_memory",
]
BUILD_SECONDS = 300
# What Chromium asks the network for by itself is switched off; its sandbox is not for the root user of a container.
WIDTHS = {"wide": 1280, "narrow": 390}

# A note whose text, name and heading would do something if any of them were taken for markup.
HOSTILE = """
from pathlib import Path
from openclaw_memory import Memory

notes = Path("notes")
(notes / "memory").mkdir(parents=True)
(notes / "memory" / "<img src=x onerror=document.title='owned'>.md").write_text(
    "# Ferry\\n\\nThe ferry leaves at noon. <script>document.title='owned'</script> </div></td></table>"
    "<img src=x onerror=\\"document.title='owned'\\"> <a href=javascript:alert(1)>more</a>\\n"
)
memory = Memory.open(notes)
results = memory.search("When does the ferry leave? <script>alert('owned')</script>", options={"explain": True})
"""


def made():
    """The script that writes what the documentation keeps of the code."""
    spec = importlib.util.spec_from_file_location("docs_make", DOCS / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "text"), [("reference/settings.md", "settings"), ("images/search-result.html", "search_result")]
)
def test_what_is_kept_is_what_the_code_makes(page, text):
    assert (DOCS / page).read_text(encoding="utf-8") == getattr(made(), text)(), "run: python docs/make.py"


# --- the built pages
class Site(NamedTuple):
    folder: Path
    code: int
    said: str


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, and what its builder said."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html", "-d", folder / "trees"]
    done = subprocess.run(
        [*command, DOCS, folder / "html"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    return Site(folder / "html", done.returncode, done.stderr)


@pytest.fixture(scope="module")
def site(built):
    """The folder of the pages."""
    return built.folder


@pytest.mark.site
def test_it_builds_without_a_warning(built):
    assert (built.code, built.said) == (0, "")


class Page(html.parser.HTMLParser):
    """What a page links to, and what in it can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag, attributes):
        for name, value in attributes:
            if name in {"href", "src"} and value is not None:
                self.links.append(value)
            elif name in {"id", "name"}:
                self.anchors.add(value)


@pytest.mark.site
def test_every_link_leads_somewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    lost = defaultdict(list)
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = target.exists() and (target not in pages or unquote(parts.fragment) in pages[target].anchors)
            if not found:
                lost[path.relative_to(site).as_posix()].append(link)
    assert len(pages) > 20
    assert not lost


@pytest.mark.site
@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(site, module):
    listed = inventory(site)
    documented = {id(thing) for name in listed if callable(thing := found(name))}
    home = import_module(module)
    errors = [name for name, thing in vars(home).items() if inspect.isclass(thing) and thing.__module__ == module]
    names = getattr(home, "__all__", errors)
    assert names
    missing = [name for name in names if f"{module}.{name}" not in listed]
    assert [name for name in missing if id(getattr(home, name)) not in documented] == []


@pytest.mark.site
def test_every_command_is_in_the_reference_with_an_example_to_copy(site):
    import click

    from openclaw_memory.cli.commands import commands

    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    context = click.Context(commands)
    names = [name for name in commands.list_commands(context) if not commands.get_command(context, name).hidden]
    anchors = Page(site / "reference" / "command-line.html").anchors
    assert len(names) > 20
    assert [name for name in names if f"openclaw-memory-{name}" not in anchors] == []
    assert "Example: openclaw-memory" not in page


def inventory(site):
    """The names of Python that the pages describe."""
    from sphinx.util.inventory import InventoryFile

    data = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    return [name for kind, names in data.items() if kind.startswith("py:") for name in names]


def found(name):
    """What a name stands for; None for what only instances have."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


@pytest.mark.site
def test_every_page_can_be_reached_from_the_front_page(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    seen, ahead = set(), [site / "index.html"]
    while ahead:
        path = ahead.pop()
        if path in seen or path not in pages:
            continue
        seen.add(path)
        ahead += [(path.parent / unquote(urlsplit(link).path)).resolve() for link in pages[path].links]
    assert {path.name for path in set(pages) - seen} <= {"py-modindex.html"}


# --- in a browser
class Watched:
    """A page that tells what went wrong, and that no request of leaves this machine."""

    def __init__(self, context):
        self.errors, self.blocked, self.dialogs = [], [], []
        self.page = context.new_page()
        self.page.route("**/*", self._route)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("dialog", self._dialog)

    def _route(self, route):
        if urlsplit(route.request.url).scheme in {"file", "data", "blob"}:
            route.continue_()
        else:
            self.blocked.append(route.request.url)
            route.abort()

    def _said(self, message):
        if message.type == "error" and "net::ERR_FAILED" not in message.text:  # what was blocked is listed as such
            self.errors.append(message.text)

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@pytest.fixture(params=WIDTHS)
def watched(chromium, request):
    context = chromium.new_context(viewport={"width": WIDTHS[request.param], "height": 900})
    yield Watched(context)
    context.close()


@pytest.mark.site
def test_the_front_page_shows_in_a_browser(site, watched):
    page = watched.page
    page.goto((site / "index.html").as_uri())
    assert page.locator("h1").first.inner_text().startswith("openclaw_memory")
    narrow = "-narrow" if page.viewport_size["width"] < 640 else ""
    for scheme, file in (("light", f"search-result{narrow}.png"), ("dark", f"search-result{narrow}-dark.png")):
        page.emulate_media(color_scheme=scheme)
        (picture,) = [one for one in page.locator("article img").all() if one.is_visible()]
        # As large as it was drawn, or a little smaller: letters that can be read.
        assert picture.evaluate("picture => picture.complete && picture.width / picture.naturalWidth") > 0.4
        assert picture.get_attribute("src").endswith(f"/{file}")
    assert page.locator("pre", has_text="memory.search").is_visible()
    menu = page.locator(".sidebar-tree").get_by_role("link", name="Reference", exact=True)
    if not menu.is_visible() or page.viewport_size["width"] < 1000:
        page.locator("label.nav-overlay-icon").first.click()
    menu.click()
    assert page.locator("h1").first.inner_text().startswith("Reference")
    assert (watched.errors, watched.blocked, watched.dialogs) == ([], [], [])


@pytest.mark.site
@pytest.mark.parametrize("name", ["index", "tutorial", "how-to/langchain", "reference/python", "reference/settings"])
def test_a_page_is_never_wider_than_the_screen(site, watched, name):
    watched.page.goto((site / f"{name}.html").as_uri())
    wide = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    assert (watched.errors, watched.blocked) == ([], [])


# A page of each kind, and one of which a part was linked to.
KINDS = """
    index tutorial changelog how-to/langchain reference/python reference/python#openclaw_memory.SearchResults
    reference/settings reference/command-line explanation/benchmarks notebooks/quickstart notebooks/ranking_lab
""".split()


@pytest.mark.site
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(site, chromium, scheme):
    with chromium.new_context(color_scheme=scheme) as context:
        page, poor = context.new_page(), {}
        for name in KINDS:
            file, _, anchor = name.partition("#")
            page.goto(f"{(site / file).as_uri()}.html#{anchor}")
            if found := page.evaluate(POOR):
                poor[name] = found
        assert poor == {}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A notebook that searches hostile notes, executed and exported to HTML."""
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    folder = tmp_path_factory.mktemp("notebook")
    cells = [HOSTILE, "results", "results.explain()", "memory.status()", "memory.close()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    ExecutePreprocessor(timeout=120).preprocess(notebook, {"metadata": {"path": str(folder)}})
    page = folder / "notebook.html"
    page.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    return page


@pytest.mark.site
def test_an_exported_notebook_shows_the_citation_and_runs_nothing_of_a_note(exported, watched):
    page = watched.page
    page.goto(exported.as_uri())
    tables = page.locator(".openclaw-memory")
    assert tables.count() >= 3
    assert tables.first.is_visible()
    assert (
        tables.first.locator("code").first.inner_text() == "memory/<img src=x onerror=document.title='owned'>.md#L1-L3"
    )
    assert "<script>document.title='owned'</script> </div></td></table>" in tables.first.inner_text()
    assert "<script>alert('owned')</script>" in tables.first.inner_text()
    assert tables.locator("script, img, a, iframe").count() == 0
    assert page.title() == "Notebook"
    assert (watched.errors, watched.dialogs) == ([], [])
    # The exporter asks for libraries that draw formulas; what a note names is not asked for.
    assert {urlsplit(url).hostname for url in watched.blocked} <= {"cdnjs.cloudflare.com"}
