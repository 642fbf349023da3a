"""What holds of the README of every adapter: its examples run, every public name is in it, its links lead somewhere."""

import contextlib
import io
import re

# An example, and what it prints where that is told.
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def check_examples(readme, names, *, is_left_out=lambda _code: False):
    """The examples run in their order, in one namespace that begins with `names`, and print what is said below them.

    The `memory` that they open is closed, whatever happens.
    """
    try:
        for code, expected in EXAMPLE.findall(readme):
            if is_left_out(code):
                continue
            printed = io.StringIO()
            line = readme[: readme.index(code)].count("\n")
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, "README.md", "exec"), names)  # so that a failure names its line
            assert printed.getvalue() == expected, code
    finally:
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
