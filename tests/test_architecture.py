"""The rules that keep the code easy to change: who may import whom, and where SQL and the environment may be touched."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from source_trees import nodes, tree

from openclaw_memory.types import Store

ROOT = Path(__file__).parents[1]
CORE = ROOT / "openclaw_memory"

# Lower may not import higher. Names on one line may import each other.
LAYERS = (
    {"types", "errors", "events", "_limited", "_safe", "_system", "display", "plugins"},
    {"config"},
    {"security"},
    {"text", "chunking", "workspace"},
    {"embeddings", "store"},
    {"indexing", "search"},
    {"conversation", "flush"},
    {"memory", "sessions", "backends", "retriever", "documents", "records", "control", "openclaw"},
    {"aio", "memories", "runs", "tools", "cli", "testing", "__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
PURE = {"text", "chunking"}
PUBLIC_MODULES = {f"openclaw_memory{name}" for name in ("", ".aio", ".backends", ".cli", ".config", ".embeddings", ".errors", ".events", ".conversation", ".documents", ".flush", ".plugins", ".records", ".runs", ".search", ".security", ".store", ".testing", ".text", ".tools", ".types", ".workspace",)}  # fmt: skip
ENVIRONMENT = {"config", "embeddings"}
FRAMEWORKS = {"lancedb", "langchain", "langchain_core", "langgraph", "llama_index", "mcp", "pgvector", "psycopg", "psycopg_pool"}  # fmt: skip
HEAVY = FRAMEWORKS | {
    "numpy", "apsw", "numkong", "sqlite_vec", "click", "asyncio", "filelock", "watchdog", "logging", "tenacity", "IPython",
    "matplotlib", "pandas", "py3langid", "tqdm", "sentence_transformers", "openai", "httpx", "torch", "pydantic",
}  # fmt: skip

# The doors: no other file opens one to write, or makes a folder. The exceptions, with how many places each has, only
# shrink; those who write below a workspace or the data folder take `SafeFolder`.
DOORS = {f"openclaw_memory/workspace/{name}.py" for name in ("atomic", "safe_folder")}
PASSED_BY = {
    # the user names the path
    "openclaw_memory/testing/fakes.py": 1,
    # no file: a pipe, the null device, standard output
    "integrations/openclaw_memory_qmd/program.py": 1,
    "openclaw_memory/cli/__init__.py": 1,
    "integrations/openclaw_memory_mcp/transports.py": 1,
    # the files of SQLite, which opens them itself, and their locks
    "openclaw_memory/store/connection.py": 2,
    "openclaw_memory/store/lock.py": 2,
    # keys, in files of the user's own
    "openclaw_memory/security/keys.py": 3,
    "openclaw_memory/store/rebuild.py": 1,
}
WRITING = {"copyfile", "copyfileobj", "copytree", "makedirs", "mkdir", "touch", "write_bytes", "write_text"}
OPENING = {"open", "io.open", "os.fdopen", "io.FileIO"}
READING = {"os.O_RDONLY", "NO_LINK", "_READ"}

MODULES = sorted(path for path in CORE.rglob("*.py"))
EDGES = sorted(path for folder in ("adapters", "integrations") for path in (ROOT / folder).rglob("*.py"))
TOOLS = sorted((ROOT / "tools").rglob("*.py"))  # what makes the data that ships


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def part(path: Path) -> str:
    """The stage a file of the core belongs to: the first name below the package."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> frozenset[str]:
    """Every module, and every name out of a module, that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"line {node.lineno}: imports are absolute, so that these rules can be read off them"
            )
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def broken(files: Iterable[Path], wrong: Callable[[Path], object]) -> dict[str, object]:
    """The files that break a rule, each with what is wrong with it."""
    found = {shown(path): wrong(path) for path in files}
    assert found
    return {name: said for name, said in found.items() if said}


def stages(names: frozenset[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("openclaw_memory.")} & set(LEVEL)


def test_imports_point_down():
    files = [path for path in MODULES if path != CORE / "__init__.py"]
    for mine in map(part, files):
        assert mine in LEVEL, f"{mine} has no layer: add it to LAYERS and to the layout in docs/contributing/index.md"

    def above(path: Path) -> set[str]:
        return {name for name in stages(imported(path)) if LEVEL[name] > LEVEL[part(path)]}

    assert broken(files, above) == {}, "these may not import what is beside them"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_modules_of_the_core_import_each_other_in_no_circle():
    """Imports inside functions and for type checking count too: they are dependencies all the same."""
    modules = {module_name(path): path for path in MODULES}
    graph = {name: imported(path) & modules.keys() - {name} for name, path in modules.items()}
    for name, path in modules.items():
        # `from package import module` depends on the module, not on what the package exports.
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and all(f"{node.module}.{one.name}" in modules for one in node.names):
                graph[name] -= {str(node.module)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def test_every_module_says_what_it_is_for():
    def says_nothing(path: Path) -> bool:
        return len((ast.get_docstring(tree(path)) or "").partition("\n")[0]) <= 10

    files = [*MODULES, *EDGES, *TOOLS]
    assert broken(files, says_nothing) == {}, "the first line of the docstring names the module's one responsibility"


def test_adapters_and_integrations_use_public_names_only():
    def private(path: Path) -> set[str]:
        own = path.relative_to(ROOT).parts[1]
        modules = {node.module for node in nodes(path) if isinstance(node, ast.ImportFrom) and node.module}
        modules |= {alias.name for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names}
        return {name for name in modules if "openclaw_memory" in name and not name.startswith(own)} - PUBLIC_MODULES

    assert broken(EDGES, private) == {}, "import these from openclaw_memory"


def packages(path: Path) -> set[str]:
    """The packages that a file imports anything of."""
    return {name.partition(".")[0] for name in imported(path)}


def test_the_core_knows_no_framework():
    assert broken(MODULES, lambda path: packages(path) & FRAMEWORKS) == {}


def test_nothing_that_is_installed_imports_what_is_not():
    assert broken([*MODULES, *EDGES], lambda path: packages(path) & {"tools", "tests", "benchmarks"}) == {}


SQL = re.compile(
    r"^\s*(?:SELECT\b.+\bFROM|INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(?:VIRTUAL\s+)?TABLE"
    r"|DROP\s+TABLE|PRAGMA)\b",
    re.DOTALL,
)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string; `?` stands for an interpolated value, a CONSTANT for itself."""
    inside = {id(part) for node in nodes(path) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(map(written, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def written(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    name = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
    return name if name.isupper() else "?"


STORES = {"openclaw_memory_lancedb", "openclaw_memory_postgres"}  # the plug-ins that keep an index, or a part of one


def is_store(path: Path) -> bool:
    return part(path) == "store" if path.is_relative_to(CORE) else path.relative_to(ROOT).parts[1] in STORES


def test_sql_is_written_in_stores_alone():
    def lines(path: Path) -> list[int]:
        return [line for line, text in strings(path) if SQL.match(text)]

    others = [path for path in [*MODULES, *EDGES] if not is_store(path)]
    assert broken(others, lines) == {}, "there is SQL on these lines: move it to store/"
    assert broken(others, lambda path: "apsw" in imported(path)) == {}, "only store/ talks to the database"


def test_values_are_bound_and_never_written_into_sql():
    """An f-string of SQL may hold table names and placeholders; a quote around an interpolation means a value."""

    def lines(path: Path) -> list[int]:
        found = strings(path)
        return [line for line, text in found if SQL.match(text) and re.search(r"""['"]\?['"]""", text)]

    stores = [path for path in [*MODULES, *EDGES] if is_store(path)]
    assert broken(stores, lines) == {}, "bind the values on these lines"


def test_the_environment_is_read_by_config_and_providers_alone():
    def touched(path: Path) -> set[str]:
        named = {"environ", "getenv", "environb"}
        read = [node for node in nodes(path) if isinstance(node, ast.Attribute) and node.attr in named]
        return {ast.unparse(node) for node in read} & {f"os.{name}" for name in named}

    assert broken([path for path in MODULES if part(path) not in ENVIRONMENT], touched) == {}


def test_pure_stages_do_no_input_or_output():
    def impure(path: Path) -> set[str]:
        calls = {ast.unparse(node.func) for node in nodes(path) if isinstance(node, ast.Call)}
        # A fence draws a random mark; stop words, formats of secrets and weights of characters are files of their own.
        tables = {path.with_name(f"{name}.py"): {"pathlib"} for name in ("languages", "redaction", "sliding_window")}
        allowed = ({CORE / "text/fence.py": {"os"}} | tables).get(path, set())
        touched = packages(path) & {"os", "pathlib", "io", "socket", "subprocess", "apsw"}
        return calls & {"open", "print", "input"} | touched - allowed

    assert broken([path for path in MODULES if part(path) in PURE], impure) == {}


MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def test_no_module_keeps_state():
    """A table of constants may be a dict or a list; nothing in the file may change it."""
    assert broken(MODULES, lambda path: [*changes(path)]) == {}


def changes(path: Path) -> Iterator[str]:
    """Where the code of a module changes what the module holds."""
    names = {
        target.id
        for node in tree(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, MUTABLE)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    changing = {"append", "extend", "add", "update", "setdefault", "pop", "clear", "insert", "remove"}
    for node in nodes(path):
        if isinstance(node, ast.Global):
            yield f"line {node.lineno}: a global statement"
        if (
            isinstance(node, ast.Subscript | ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names
        ):
            stored = not isinstance(node.ctx, ast.Load) or (isinstance(node, ast.Attribute) and node.attr in changing)
            if stored:
                yield f"line {node.lineno}: {node.value.id} is changed"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("from openclaw_memory import MemoryConfig, OpenClawMemoryError; from openclaw_memory.types import Embedder", HEAVY),
        ("import openclaw_memory.embeddings.local; from openclaw_memory import load_embedder; from openclaw_memory.embeddings import Service; load_embedder('hashing')", {"numpy", "asyncio", "tenacity", "logging", "torch"}),
        ("from openclaw_memory import Memories, Memory; from openclaw_memory.store import SqliteStore; from openclaw_memory.workspace import Workspace", {"numpy", "asyncio"} | FRAMEWORKS),
    ],
)  # fmt: skip
def test_importing_a_part_loads_nothing_heavy(statement, heavy):
    assert not loaded_after(statement) & heavy


def test_a_store_has_at_most_24_methods():
    methods = [name for name in vars(Store) if not name.startswith("_")]
    assert len(methods) <= 24, sorted(methods)


def find_writes(path: Path) -> Iterator[str]:
    """Where the code of a module opens a file to write, or makes a file or a folder."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and writes(node):
            yield f"line {node.lineno}: {ast.unparse(node)[:100]}"


def writes(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name == "os.open":
        return not set(re.findall(r"[\w.]+", ast.unparse(call.args[1]))) <= READING
    if name in OPENING or name.endswith(".open"):
        modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
        # `path.open(mode)` looks like `Memory.open(folder)`: there a mode is a text.
        modes += call.args[1:2] if name in OPENING else [one for one in call.args[:1] if isinstance(one, ast.Constant)]
        texts = [str(mode.value) if isinstance(mode, ast.Constant) else "w" for mode in modes]
        return any(re.fullmatch("[rbt]*[wxa+][rwxabt+]*", text) for text in texts)
    return name.rpartition(".")[2] in WRITING


def test_files_are_written_through_the_doors_alone():
    calls = {shown(path): [*find_writes(path)] for path in [*MODULES, *EDGES] if shown(path) not in DOORS}
    beyond = {name: lines for name, lines in calls.items() if len(lines) > PASSED_BY.get(name, 0)}
    assert beyond == {}, "a link may lead these anywhere: write through openclaw_memory.workspace.SafeFolder"
    fewer = {name: len(calls.get(name, ())) for name, count in PASSED_BY.items() if len(calls.get(name, ())) < count}
    assert fewer == {}, "that few are left: lower PASSED_BY"
