"""What holds of the README of every adapter: its examples run, every public name is in it, its links lead somewhere.

Its table of arguments is what the signatures say; `python tests/adapter_readmes.py` writes it.
"""

import contextlib
import importlib
import inspect
import io
import re
from pathlib import Path

# An example, and what it prints where that is told.
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def check_examples(readme, names):
    """The examples run in their order, in one namespace that begins with `names`, and print what is said below them.

    The `memory` that they open is closed, whatever happens.
    """
    try:
        for code, expected in EXAMPLE.findall(readme):
            printed = io.StringIO()
            line = readme[: readme.index(code)].count("\n")
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, "README.md", "exec"), names)  # so that a failure names its line
            assert printed.getvalue() == expected, code
    finally:
        if "memory" in names:
            names["memory"].close()


def check_names(readme, public):
    """Every public name is shown."""
    assert not [name for name in public if f"`{name}" not in readme and f"{name}(" not in readme]


def check_links(readme):
    """Every link within leads to a heading."""
    headings = {
        re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-")
        for line in re.findall(r"^#+ (.+)$", readme, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", readme)) <= headings


TABLE = re.compile(r"(?<=^\| class or function \| arguments \|\n\|---\|---\|\n)(?:\|.*\n)*", re.MULTILINE)


def arguments_of(made):
    """The arguments of a class or function of ours; of a pydantic class without an `__init__`, its own fields."""
    fields = getattr(made, "model_fields", {})
    if not fields or made.__init__.__module__ == made.__module__:
        given = inspect.signature(made.__init__ if inspect.isclass(made) else made).parameters
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        known = [(name, each.default) for name, each in given.items() if name != "self" and each.kind not in several]
    else:
        own = [vars(each)["__annotations__"] for each in made.__mro__ if each.__module__ == made.__module__]
        ours = {name for annotations in own for name in annotations}
        known = [(name, fields[name].default) for name in fields if name in ours]
    return [f"{name}={default!r}" if len(repr(default)) < 24 and is_plain(default) else name for name, default in known]


def is_plain(value):
    return value is None or isinstance(value, bool | int | float | str)


def table_of(package):
    """The rows of the table that a package's README should have."""
    made = importlib.import_module(package)
    rows = [(name, [f"`{each}`" for each in arguments_of(getattr(made, name))]) for name in sorted(made.__all__)]
    return "".join(f"| `{name}` | {', '.join(arguments) or 'none'} |\n" for name, arguments in rows)


def check_arguments(package, readme):
    """The table of classes and their arguments is what the signatures say."""
    assert TABLE.findall(readme) == [table_of(package)], "run: python tests/adapter_readmes.py"


if __name__ == "__main__":
    for readme in Path(__file__).parents[1].glob("adapters/*/README.md"):
        parted = TABLE.split(readme.read_text(encoding="utf-8"))
        readme.write_text(table_of(readme.parent.name).join(parted), encoding="utf-8")
