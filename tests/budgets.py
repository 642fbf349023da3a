"""Measure the size of each package; `python tests/budgets.py --lower` writes what has become smaller to budgets.toml."""

import ast
import re
import sys
import tomllib
from pathlib import Path

from source_trees import nodes

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "budgets.toml"
CORE = ROOT / "openclaw_memory"
HEADER = """\
# How large each package may be. Figures only fall: `python tests/budgets.py --lower` writes the smaller ones, in the commit
# that makes a package smaller. Code moved into another package gets its entry in the commit that takes it out of the core,
# which is smaller by as much. Code lines are lines without blanks, comments and docstrings.
"""


def packages() -> dict[str, Path]:
    """List the packages: the core, and each adapter and integration, by name."""
    edges = (path for part in ("adapters", "integrations") for path in sorted((ROOT / part).iterdir()))
    return {"openclaw_memory": CORE} | {path.name: path for path in edges if sources(path)}


def sources(folder: Path) -> list[Path]:
    """List the Python files and stubs below a folder."""
    files = (*folder.rglob("*.py"), *folder.rglob("*.pyi"))
    return sorted(path for path in files if not {"node_modules", "build"} & set(path.parts))


def count_code_lines(path: Path) -> int:
    """Count the lines of a file without blanks, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    hidden: set[int] = set()
    for node in nodes(path):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node) is not None:
            hidden.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(number not in hidden and line.strip()[:1] not in {"", "#"} for number, line in lines)


def count_public_names(package: str, folder: Path) -> int:
    """Count the names in `__all__` of a package, for the core in all of its public modules."""
    return sum(map(count_exports, public_modules() if package == "openclaw_memory" else [folder / "__init__.py"]))


def count_exports(path: Path) -> int:
    """Count the names in `__all__` of a file, or in its stub; 0 if there is no such file."""
    if (stub := path.with_suffix(".pyi")).exists():
        return sum(len(node.names) for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom))
    tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    assigned = (
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return sum(len(ast.literal_eval(node.value)) for node in assigned)


def public_modules() -> list[Path]:
    """List the files of the core's public modules, as docs/reference/public-names.md has them."""
    page = (ROOT / "docs" / "reference" / "public-names.md").read_text(encoding="utf-8")
    modules = [ROOT.joinpath(*name.split(".")) for name in re.findall(r"(?m)^## `([\w.]+)`$", page)]
    return [
        path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for path in modules
        if path.is_relative_to(CORE)
    ]


def count_settings() -> int:
    """Count the settings of the core: the fields of every section of `MemoryConfig`."""
    from openclaw_memory.config.sections import SECTIONS

    return sum(len(section.__struct_fields__) for section in SECTIONS.values())


def list_commands() -> list[tuple[str, int]]:
    """List the package that has the code of each command, with the number of its options."""
    import click

    from openclaw_memory.cli.commands import commands

    def leaves(group: click.Group) -> list[click.Command]:
        context = click.Context(group)
        members = [command for name in group.list_commands(context) if (command := group.get_command(context, name))]
        return [
            leaf for command in members for leaf in (leaves(command) if isinstance(command, click.Group) else [command])
        ]

    # functools.wraps keeps the module of the function that a command calls
    return [
        (leaf.callback.__module__.partition(".")[0], sum(isinstance(option, click.Option) for option in leaf.params))
        for leaf in leaves(commands)
    ]


def measure() -> dict[str, dict[str, int]]:
    """Measure every package, and the whole."""
    figures: dict[str, dict[str, int]] = {}
    commands = list_commands()
    for package, folder in packages().items():
        files = sources(folder)
        figures[package] = {
            "code_lines": sum(map(count_code_lines, files)),
            "files": sum(path.suffix == ".py" for path in files),
        }
        figures[package]["public_names"] = count_public_names(package, folder)
        if options := [count for owner, count in commands if owner == package]:
            figures[package] |= {"cli_commands": len(options), "cli_options": sum(options)}
    figures["openclaw_memory"]["settings"] = count_settings()
    tests = sources(ROOT / "tests")
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in tests)
    figures["tests"] = {"lines": lines, "files": len(tests)}
    shipped = [figure for package, figure in figures.items() if package != "tests"]
    figures["whole"] = {name: sum(figure[name] for figure in shipped) for name in ("code_lines", "files")}
    return figures


def read_budgets() -> dict[str, dict[str, int]]:
    """Read budgets.toml."""
    return tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def lower(budgets: dict[str, dict[str, int]], figures: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return the budgets with what has become smaller, without packages that are gone, and with new ones."""
    return {
        package: {name: min(figure, budgets.get(package, {}).get(name, figure)) for name, figure in row.items()}
        for package, row in figures.items()
    }


def write_budgets(budgets: dict[str, dict[str, int]]) -> None:
    """Write budgets.toml."""
    tables = (
        "\n".join([f"\n[{package}]", *(f"{name} = {figure}" for name, figure in row.items())])
        for package, row in budgets.items()
    )
    FILE.write_text(HEADER + "\n".join(tables) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "adapters"), str(ROOT / "integrations")]
    if "--lower" in sys.argv[1:]:
        write_budgets(lower(read_budgets(), measure()))
    for package, row in measure().items():
        print(f"{package:30}", *(f"{name} {figure:,}" for name, figure in row.items()), sep="  ")
