"""What a notebook gets with `%load_ext openclaw_memory.jupyter`: magics to ask, append and look, and a progress bar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import MissingExtraError
from openclaw_memory.memory import Memory
from openclaw_memory.types import Excerpt, Progress, Status

try:
    from IPython.core.error import UsageError
    from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
except ImportError as error:
    raise MissingExtraError(
        "openclaw_memory.jupyter needs IPython: pip install 'openclaw-memory-index[notebooks]'"
    ) from error

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from openclaw_memory.search import SearchResults
    from openclaw_memory.search.explanation import Explanation

__all__ = ["MemoryMagics", "load_ipython_extension", "progress", "unload_ipython_extension"]

# The variable of a notebook whose memory the magics ask where no workspace is named.
VARIABLE = "memory"
# A bar that comes and goes would only flicker.
PATIENCE_SECONDS = 1.0
_OPTION = re.compile(r"(?:--(?P<long>[a-z][a-z-]*)|-(?P<short>[a-z]))(?=[\s=]|$)")
_VALUE = re.compile(r"(?:\s*=\s*|\s+)(?:(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)|(?P<plain>\S+))(?=\s|$)\s*")
_QUESTION = re.compile(r"^(?P<before>\s*(?:[\w, ]+=\s*)?)%memory\s+(?P<line>.*\?)[ \t]*$", re.MULTILINE)
_SHORT = {"w": "workspace", "n": "max-results"}


@contextmanager
def progress() -> Iterator[Callable[[Progress], None]]:
    """A progress bar of tqdm for `memory.sync(progress=...)`; work of less than a second shows none.

    >>> with progress() as bar:  # doctest: +SKIP
    ...     memory.sync(progress=bar)

    Raises:
        MissingExtraError: tqdm is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise MissingExtraError("progress() needs tqdm: pip install 'openclaw-memory-index[notebooks]'") from error
    with tqdm(total=1, delay=PATIENCE_SECONDS, leave=False, unit="") as bar:

        def show(step: Progress) -> None:
            bar.total = max(step.total, 1)
            bar.set_description(step.label, refresh=False)
            bar.update(step.completed - bar.n)

        yield show


@magics_class
class MemoryMagics(Magics):
    """`%memory`, `%%memory_append` and `%memory_status`.

    They ask the notebook's variable `memory`, or the folder that `--workspace` names, which they keep open.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell=shell)
        self._opened: dict[Path, Memory] = {}

    @line_magic
    def memory(self, line: str) -> SearchResults | Explanation:
        """Follow the files, then ask: `%memory [-w PATH] [-n N] [--explain] When is the launch?`.

        Gives `SearchResults`; with `--explain` how their scores came about, as `SearchResults.explain()` does.
        """
        options, question = _options(line, valued=("workspace", "max-results"), flags=("explain",))
        if not question:
            raise UsageError("%memory needs a question: %memory When is the launch?")
        count = options.get("max-results")
        if count is not None and not count.isdecimal():
            raise UsageError(f"--max-results takes a whole number, not {count!r}: %memory -n 3 When is the launch?")
        memory = self._memory(options.get("workspace"))
        _synced(memory)
        explain = "explain" in options
        results = memory.search(question, max_results=int(count) if count else None, explain=explain)
        return results.explain() if explain else results

    @cell_magic
    def memory_append(self, line: str, cell: str) -> Excerpt:
        """Add the cell to a day's note, once: `%%memory_append [-w PATH] [--date YYYY-MM-DD] [--title TITLE]`.

        Without a date it is today's note. Running the cell again adds nothing. Gives the lines that hold the text.
        """
        options, rest = _options(line, valued=("workspace", "date", "title"))
        if rest:
            raise UsageError(f"%%memory_append does not know {rest!r}: the text goes below that line")
        memory = self._memory(options.get("workspace"))
        written = memory.append(cell, date=options.get("date"), title=options.get("title"), skip_existing=True)
        _synced(memory)
        return written

    @line_magic
    def memory_status(self, line: str) -> Status:
        """What is indexed, with what, and what could work better: `%memory_status [-w PATH] [--deep]`."""
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
        """The memory of a folder, or the notebook's own."""
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
    """What `%load_ext openclaw_memory.jupyter` calls."""
    ipython.register_magics(MemoryMagics(ipython))
    if _questions_kept not in ipython.input_transformers_cleanup:
        ipython.input_transformers_cleanup.append(_questions_kept)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """What `%unload_ext` and `%reload_ext` call."""
    magics = ipython.magics_manager.registry.get(MemoryMagics.__name__)
    if isinstance(magics, MemoryMagics):
        magics.close()
    if _questions_kept in ipython.input_transformers_cleanup:
        ipython.input_transformers_cleanup.remove(_questions_kept)


def _questions_kept(lines: list[str]) -> list[str]:
    """`%memory ...?` as a call: IPython takes a line that ends with a question mark for a call for help."""
    return [_QUESTION.sub(_as_call, line) for line in lines]


def _as_call(match: re.Match[str]) -> str:
    return f"{match['before']}get_ipython().run_line_magic('memory', {match['line']!r})"


def _synced(memory: Memory) -> None:
    with progress() as bar:
        memory.sync(progress=bar)


def _options(line: str, valued: Sequence[str], flags: Sequence[str] = ()) -> tuple[dict[str, str], str]:
    """The options at the beginning of a line, and the rest word for word: a question may hold quotes and dashes."""
    found: dict[str, str] = {}
    rest = line.strip()
    while match := _OPTION.match(rest):
        name = match["long"] or _SHORT.get(match["short"], "")
        rest = rest[match.end() :]
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
    return found, rest.removeprefix("-- ").strip()
