"""Define the magics, and register them with IPython."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand

from openclaw_memory import Memory, OpenClawMemoryError
from openclaw_memory.types import Excerpt, Status
from openclaw_memory_jupyter.progress_bar import show_progress

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from openclaw_memory import SearchResults
    from openclaw_memory.search import Explanation

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
# The variable of a notebook whose memory the magics ask where no workspace is named.
VARIABLE = "memory"
_OPTION = re.compile(r"(?:--(?P<long>[a-z][a-z-]*)|-(?P<short>[a-z]))(?=[\s=]|$)")
_VALUE = re.compile(r"(?:\s*=\s*|\s+)(?:(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)|(?P<plain>\S+))(?=\s|$)\s*")
_QUOTED = re.compile(r"^([\"'])(?P<question>(?:(?!\1).)*)\1$", re.DOTALL)
_SHORT = {"w": "workspace", "n": "max-results"}


def _report_errors(magic: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """Wrap a magic so that IPython shows this library's errors like wrong usage: the message, and no traceback."""

    @wraps(magic)
    def report(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Answer:
        try:
            return magic(*arguments, **options)
        except OpenClawMemoryError as error:
            raise UsageError(str(error)) from error

    return report


@magics_class
class MemoryMagics(Magics):
    """`%memory`, `%%memory_append` and `%memory_status`.

    They ask the notebook's variable `memory`, or the folder that `--workspace` names, which they keep open.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell=shell)
        self._opened: dict[Path, Memory] = {}

    @no_var_expand
    @line_magic
    @_report_errors
    def memory(self, line: str) -> SearchResults | Explanation:
        """Sync, then search: `%memory [-w PATH] [-n N] [--min-score X] [--explain] "When is the launch?"`.

        Returns `SearchResults`; with `--explain` how their scores came about, as `SearchResults.explain()` does. A
        question that ends with a question mark is in quotes: IPython takes a line with that ending for a call for help.
        Apart from quotes around it, it is taken as it is typed; one that begins with a dash goes after `--`.

        Args:
            line: The text after the name of the magic.
        """
        options, question = _split_options(line, valued=("workspace", "max-results", "min-score"), flags=("explain",))
        question = _QUOTED.sub(r"\g<question>", question)
        if not question:
            raise UsageError('%memory needs a question: %memory "When is the launch?"')
        count, least = options.get("max-results"), options.get("min-score")
        if count is not None and not count.isdecimal():
            raise UsageError(f'--max-results takes a whole number, not {count!r}: %memory -n 3 "When is the launch?"')
        try:
            min_score = None if least is None else float(least)
        except ValueError:
            raise UsageError(f"--min-score takes a number from 0 to 1, not {least!r}") from None
        memory = self._get_memory(options.get("workspace"))
        _sync(memory)
        explain = "explain" in options
        limit = int(count) if count else None
        results = memory.search(question, max_results=limit, min_score=min_score, options={"explain": explain})
        return results.explain() if explain else results

    @no_var_expand
    @cell_magic
    @_report_errors
    def memory_append(self, line: str, cell: str) -> Excerpt:
        """Add the cell to a day's note, once: `%%memory_append [-w PATH] [--date YYYY-MM-DD] [--title TITLE]`.

        Without a date it is today's note. Running the cell again adds nothing. Returns the lines that hold the text.

        Args:
            line: The text after the name of the magic.
            cell: The text to add.
        """
        options, unknown = _split_options(line, valued=("workspace", "date", "title"))
        if unknown:
            raise UsageError(f"%%memory_append does not know {unknown!r}: the text goes below that line")
        memory = self._get_memory(options.get("workspace"))
        written = memory.append(cell, date=options.get("date"), title=options.get("title"), skip_existing=True)
        _sync(memory)
        return written

    @no_var_expand
    @line_magic
    @_report_errors
    def memory_status(self, line: str) -> Status:
        """Show the state of the index, and how to improve it: `%memory_status [-w PATH] [--deep]`.

        Args:
            line: The text after the name of the magic.
        """
        options, unknown = _split_options(line, valued=("workspace",), flags=("deep",))
        if unknown:
            raise UsageError(f"%memory_status does not know {unknown!r}; its options are --workspace PATH and --deep")
        return self._get_memory(options.get("workspace")).status(deep="deep" in options)

    def close(self) -> None:
        """Close the memories opened for `--workspace`; the notebook's own memory stays open."""
        for memory in self._opened.values():
            memory.close()
        self._opened.clear()

    def _get_memory(self, workspace: str | None) -> Memory:
        """Return the memory of a folder, or the notebook's own."""
        if workspace is None:
            own = self.shell.user_ns.get(VARIABLE) if self.shell else None
            if not isinstance(own, Memory):
                raise UsageError(
                    f"there is no memory to ask: run {VARIABLE} = Memory.open(PATH) first, or name a folder of notes "
                    "with --workspace PATH"
                )
            return own
        place = Path(workspace).expanduser().resolve()
        if place not in self._opened:
            self._opened[place] = Memory.open(place)
        return self._opened[place]


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register the magics; called by `%load_ext openclaw_memory_jupyter`.

    Args:
        ipython: The shell of the notebook.
    """
    ipython.register_magics(MemoryMagics(ipython))


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Remove the magics; called by `%unload_ext` and `%reload_ext`.

    Args:
        ipython: The shell of the notebook.
    """
    magics = ipython.magics_manager.registry.get(MemoryMagics.__name__)
    if isinstance(magics, MemoryMagics):
        magics.close()


def _sync(memory: Memory) -> None:
    with show_progress() as bar:
        memory.sync(progress=bar)


def _split_options(line: str, valued: Sequence[str], flags: Sequence[str] = ()) -> tuple[dict[str, str], str]:
    """Return the options at the beginning of a line, and the rest verbatim: a question may hold quotes and dashes."""
    options: dict[str, str] = {}
    text = line.strip()
    while match := _OPTION.match(text):
        name = match["long"] or _SHORT.get(match["short"], "")
        text = text[match.end() :]
        if name in flags and text.startswith("="):
            raise UsageError(f"--{name} takes no value")
        if name in flags:
            options[name], text = "", text.lstrip()
        elif name in valued and (value := _VALUE.match(text)):
            options[name] = value["quoted"] if value["quoted"] is not None else value["plain"]
            text = text[value.end() :]
        elif name in valued:
            raise UsageError(f"{match[0].strip()} needs a value")
        else:
            options_list = ", ".join(f"--{name}" for name in (*valued, *flags))
            raise UsageError(f"{match[0].strip()} is unknown; the options are {options_list}")
    if text.startswith("-") and text.split()[0] != "--":
        raise UsageError(f"{text.split()[0]} is unknown; a question that begins with a dash goes behind --")
    return options, text.removeprefix("--").strip() if text.split()[:1] == ["--"] else text
