"""Extend a notebook with `%load_ext openclaw_memory.jupyter`: magics to ask, append and look, and a progress bar."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from openclaw_memory.errors import MissingExtraError, OpenClawMemoryError
from openclaw_memory.memory import Memory
from openclaw_memory.types import Excerpt, Progress, Status

try:
    from IPython.core.error import UsageError
    from IPython.core.inputtransformer2 import MagicAssign
    from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
except ImportError as error:
    raise MissingExtraError("openclaw_memory.jupyter needs IPython: pip install ipython") from error

if TYPE_CHECKING:
    from tokenize import TokenInfo

    from IPython.core.interactiveshell import InteractiveShell

    from openclaw_memory.search import SearchResults
    from openclaw_memory.search.results import Explanation

__all__ = ["progress"]

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
# The variable of a notebook whose memory the magics ask where no workspace is named.
VARIABLE = "memory"
# A bar that comes and goes would only flicker.
PATIENCE_SECONDS = 1.0
_OPTION = re.compile(r"(?:--(?P<long>[a-z][a-z-]*)|-(?P<short>[a-z]))(?=[\s=]|$)")
_VALUE = re.compile(r"(?:\s*=\s*|\s+)(?:(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)|(?P<plain>\S+))(?=\s|$)\s*")
_NO_CODE = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER})
_SHORT = {"w": "workspace", "n": "max-results"}


@contextmanager
def progress() -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar of tqdm, except for work of less than a second.

    `with progress() as bar: memory.sync(progress=bar)` draws it while a sync runs.

    Raises:
        MissingExtraError: tqdm is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise MissingExtraError("progress() needs tqdm: pip install tqdm") from error
    with tqdm(total=1, delay=PATIENCE_SECONDS, leave=False, unit="") as bar:

        def show(step: Progress) -> None:
            bar.total = max(step.total, 1)
            bar.set_description(step.label, refresh=False)
            bar.update(step.completed - bar.n)

        yield show


def _in_one_line(magic: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Wrap a magic so that IPython shows this library's errors like wrong usage: the message, and no traceback."""

    @wraps(magic)
    def reported(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
        try:
            return magic(*given, **named)
        except OpenClawMemoryError as error:
            raise UsageError(str(error)) from error

    return reported


class AskedLine(MagicAssign):
    """`%memory ...?` is a call, also in an assignment: IPython takes a line with that ending for a call for help."""

    priority = 4  # before HelpEnd, which has 5, at the same place: the beginning of the statement
    sign: tuple[int, int]

    @classmethod
    def find(cls, tokens_by_line: Sequence[Sequence[TokenInfo]]) -> AskedLine | None:
        """Return the first line that asks; strings, comments and the bodies of cell magics do not ask."""
        for line in tokens_by_line:
            code = [token for token in line if token.type not in _NO_CODE]
            for at, (sign, name) in enumerate(pairwise(code)):
                begins = at == 0 or code[at - 1].string == "="
                asks = any(token.string != "?" for token in code[at + 2 :])  # `%memory?` is a call for help
                if begins and (sign.string, name.string) == ("%", "memory") and asks:
                    asked = cls(code[0].start)
                    asked.sign = sign.start
                    return asked
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Return the lines, with the call in place of the magic."""
        line, column = self.sign
        self.start_line, self.start_col = line - 1, column
        called: list[str] = super().transform(lines)
        return called


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
    @_in_one_line
    def memory(self, line: str) -> SearchResults | Explanation:
        """Sync, then search: `%memory [-w PATH] [-n N] [--min-score X] [--explain] When is the launch?`.

        Returns `SearchResults`; with `--explain` how their scores came about, as `SearchResults.explain()` does. The
        question is taken as it is typed; one that begins with a dash goes after `--`.

        Args:
            line: What follows the name of the magic.
        """
        options, question = _options(line, valued=("workspace", "max-results", "min-score"), flags=("explain",))
        if not question:
            raise UsageError("%memory needs a question: %memory When is the launch?")
        count, least = options.get("max-results"), options.get("min-score")
        if count is not None and not count.isdecimal():
            raise UsageError(f"--max-results takes a whole number, not {count!r}: %memory -n 3 When is the launch?")
        try:
            min_score = None if least is None else float(least)
        except ValueError:
            raise UsageError(f"--min-score takes a number from 0 to 1, not {least!r}") from None
        memory = self._memory(options.get("workspace"))
        _synced(memory)
        explain = "explain" in options
        limit = int(count) if count else None
        results = memory.search(question, max_results=limit, min_score=min_score, explain=explain)
        return results.explain() if explain else results

    @no_var_expand
    @cell_magic
    @_in_one_line
    def memory_append(self, line: str, cell: str) -> Excerpt:
        """Add the cell to a day's note, once: `%%memory_append [-w PATH] [--date YYYY-MM-DD] [--title TITLE]`.

        Without a date it is today's note. Running the cell again adds nothing. Returns the lines that hold the text.

        Args:
            line: What follows the name of the magic.
            cell: The text to add.
        """
        options, rest = _options(line, valued=("workspace", "date", "title"))
        if rest:
            raise UsageError(f"%%memory_append does not know {rest!r}: the text goes below that line")
        memory = self._memory(options.get("workspace"))
        written = memory.append(cell, date=options.get("date"), title=options.get("title"), skip_existing=True)
        _synced(memory)
        return written

    @no_var_expand
    @line_magic
    @_in_one_line
    def memory_status(self, line: str) -> Status:
        """Show what is indexed, with what, and what could work better: `%memory_status [-w PATH] [--deep]`.

        Args:
            line: What follows the name of the magic.
        """
        options, rest = _options(line, valued=("workspace",), flags=("deep",))
        if rest:
            raise UsageError(f"%memory_status does not know {rest!r}; its options are --workspace PATH and --deep")
        return self._memory(options.get("workspace")).status(deep="deep" in options)

    def close(self) -> None:
        """Close what `--workspace` has opened; the notebook's own memory stays open."""
        for memory in self._opened.values():
            memory.close()
        self._opened.clear()

    def _memory(self, workspace: str | None) -> Memory:
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
    """Register the magics; called by `%load_ext openclaw_memory.jupyter`.

    Args:
        ipython: The shell of the notebook.
    """
    ipython.register_magics(MemoryMagics(ipython))
    transformers = ipython.input_transformer_manager.token_transformers
    if AskedLine not in transformers:
        transformers.append(AskedLine)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Remove the magics; called by `%unload_ext` and `%reload_ext`.

    Args:
        ipython: The shell of the notebook.
    """
    magics = ipython.magics_manager.registry.get(MemoryMagics.__name__)
    if isinstance(magics, MemoryMagics):
        magics.close()
    transformers = ipython.input_transformer_manager.token_transformers
    if AskedLine in transformers:
        transformers.remove(AskedLine)


def _synced(memory: Memory) -> None:
    with progress() as bar:
        memory.sync(progress=bar)


def _options(line: str, valued: Sequence[str], flags: Sequence[str] = ()) -> tuple[dict[str, str], str]:
    """Return the options at the beginning of a line, and the rest verbatim: a question may hold quotes and dashes."""
    found: dict[str, str] = {}
    rest = line.strip()
    while match := _OPTION.match(rest):
        name = match["long"] or _SHORT.get(match["short"], "")
        rest = rest[match.end() :]
        if name in flags and rest.startswith("="):
            raise UsageError(f"--{name} takes no value")
        if name in flags:
            found[name], rest = "", rest.lstrip()
        elif name in valued and (value := _VALUE.match(rest)):
            found[name] = value["quoted"] if value["quoted"] is not None else value["plain"]
            rest = rest[value.end() :]
        elif name in valued:
            raise UsageError(f"{match[0].strip()} needs a value")
        else:
            known = ", ".join(f"--{option}" for option in (*valued, *flags))
            raise UsageError(f"{match[0].strip()} is unknown; the options are {known}")
    if rest.startswith("-") and rest.split()[0] != "--":
        raise UsageError(f"{rest.split()[0]} is unknown; a question that begins with a dash goes behind --")
    return found, rest.removeprefix("--").strip() if rest.split()[:1] == ["--"] else rest
