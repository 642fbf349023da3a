"""Define the command that searches while a question is typed, and opens what is chosen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.options import Place, placed, synced
from openclaw_memory.cli.output import say, say_json
from openclaw_memory.errors import MissingExtraError, OpenClawMemoryError

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.layout import Layout

    from openclaw_memory.memory import Memory
    from openclaw_memory.types import SearchResult

RESULTS = 20  # a screen of them
_PAUSE_SECONDS = 0.12  # without a key, before a search begins
_HELP = " ↑ ↓ choose   Enter opens   Ctrl-Y prints the citation   Esc ends "


@dataclass(slots=True)
class Picker:
    """What the screen shows: the results of the latest question, which one is chosen, and what went wrong."""

    search: Callable[[str], Sequence[SearchResult]]
    results: Sequence[SearchResult] = ()
    chosen: int = 0
    question: str = ""
    trouble: str = ""
    wanted: str = ""  # what is typed now

    def look_up(self, typed: str) -> None:
        """Search for what is typed."""
        try:
            found, trouble = (self.search(typed) if typed.strip() else ()), ""
        except OpenClawMemoryError as error:
            found, trouble = (), str(error)
        self.results, self.chosen, self.question, self.trouble = found, 0, typed, trouble

    def move(self, step: int) -> None:
        """Choose another result; there is none before the first and behind the last."""
        self.chosen = max(0, min(self.chosen + step, len(self.results) - 1))

    @property
    def result(self) -> SearchResult | None:
        return self.results[self.chosen] if self.results else None


@click.command()
@click.argument("query", nargs=-1)
@placed
def find(place: Place, query: tuple[str, ...]) -> int:
    """Search as you type; open what you choose.

    QUERY is what the search begins with. Arrows choose, Enter opens the file in your editor at the line, Ctrl-Y prints
    the citation, Esc ends. Quotation marks and a minus are read as `search` reads them. It needs a terminal, and the
    extra `find`; without a terminal, or with --json, it prints what is found for QUERY.

    Example: openclaw-memory find --workspace notes "spare key"
    """
    typed = " ".join(query)
    with place.open() as memory:
        synced(memory, hidden=place.as_json)
        if place.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return _print_found(memory, typed, as_json=place.as_json)
        picked = _picked(Picker(lambda words: _found(memory, words)), typed)
        if picked is None:
            return 1
        result, is_to_open = picked
        if is_to_open:
            from openclaw_memory.cli.search_command import open_result

            open_result(memory, result)
        else:
            say(clean_line(result.citation))
    return 0


def _found(memory: Memory, typed: str) -> Sequence[SearchResult]:
    from openclaw_memory.search.syntax import read_query

    asked = read_query(typed)
    if not asked.text.strip():
        return ()
    return memory.search(asked.text, max_results=RESULTS, phrases=asked.phrases, without=asked.without).results


def _print_found(memory: Memory, typed: str, *, as_json: bool) -> int:
    if not typed.strip():
        raise click.UsageError("without a terminal, QUERY is needed: write what to look for")
    results = _found(memory, typed)
    if as_json:
        say_json({"query": typed, "results": list(results)})
    else:
        for result in results:
            say(clean_line(result.citation))
    return 0 if results else 1


def _picked(picker: Picker, typed: str) -> tuple[SearchResult, bool] | None:
    """Show the picker; return what was chosen and whether to open it, or None."""
    try:
        import prompt_toolkit  # noqa: F401 - the extra is there, or not
    except ImportError as error:
        from openclaw_memory.embeddings.vectors import installing

        raise MissingExtraError(f"find needs prompt_toolkit: {installing('find')}; `search` needs none") from error
    result: tuple[SearchResult, bool] | None = _application(picker, typed).run()
    return result


def _application(picker: Picker, typed: str) -> Application[Any]:
    import asyncio

    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.output import ColorDepth

    from openclaw_memory.config.config import colours

    async def search_soon() -> None:
        """Search for the latest words once no key was pressed for a moment: one search at a time, none of old words."""
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            words = buffer.text
            if words == picker.question or words != picker.wanted:
                picker.wanted = words
                continue
            await asyncio.get_running_loop().run_in_executor(None, picker.look_up, words)
            application.invalidate()

    buffer = Buffer(multiline=False)
    buffer.text = typed
    buffer.cursor_position = len(typed)
    picker.look_up(typed)
    application: Application[Any] = Application(
        layout=_layout(picker, buffer),
        key_bindings=_keys(picker),
        full_screen=True,
        color_depth=ColorDepth.DEPTH_1_BIT if colours() is False else None,
    )

    def begin() -> None:
        application.create_background_task(search_soon())

    application.pre_run_callables.append(begin)
    return application


def _layout(picker: Picker, buffer: Any) -> Layout:
    from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VSplit, Window

    asked = Window(BufferControl(buffer), height=1)
    prompt = Window(FormattedTextControl([("bold", "? ")]), width=2, height=1)
    listed = Window(FormattedTextControl(lambda: _rows(picker), focusable=False), wrap_lines=False)
    line = Window(char="─", height=1, style="class:line")
    preview = Window(FormattedTextControl(lambda: _preview(picker)), wrap_lines=True)
    below = Window(FormattedTextControl(lambda: [("reverse", picker.trouble or _HELP)]), height=1)
    return Layout(HSplit([VSplit([prompt, asked]), listed, line, preview, below]), focused_element=asked)


def _rows(picker: Picker) -> StyleAndTextTuples:
    rows: StyleAndTextTuples = []
    for number, result in enumerate(picker.results):
        style = "reverse" if number == picker.chosen else "fg:ansibrightblack" if result.confidence == "weak" else ""
        weak = " weak" if result.confidence == "weak" else ""
        # The window follows the cursor: to the chosen row.
        rows += [("[SetCursorPosition]", "")] if number == picker.chosen else []
        rows.append((style, f" {result.score:.2f}{weak}  {clean_line(result.citation)}\n"))
    if not rows and picker.question.strip():
        rows.append(("", " nothing found\n"))
    return rows


def _preview(picker: Picker) -> StyleAndTextTuples:
    from openclaw_memory.text.terms import content_words, word_spans, word_stem

    if (result := picker.result) is None:
        return []
    stems = frozenset(map(word_stem, content_words(picker.question)))
    text, end = clean(result.snippet), 0
    parts: StyleAndTextTuples = []
    for start, stop, word in word_spans(text):
        if word_stem(word) in stems and start >= end:
            parts += [("", text[end:start]), ("bold fg:ansired", text[start:stop])]
            end = stop
    return [*parts, ("", text[end:])]


def _keys(picker: Picker) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    def bind(names: Sequence[str], act: Callable[[Any], None]) -> None:
        for name in names:
            keys.add(name)(act)

    def leave(event: Any, *, is_to_open: bool) -> None:
        if picker.result is not None:
            event.app.exit(result=(picker.result, is_to_open))

    def interrupt(event: Any) -> None:
        event.app.exit(exception=KeyboardInterrupt())

    bind(("down", "c-n"), lambda _event: picker.move(1))
    bind(("up", "c-p"), lambda _event: picker.move(-1))
    bind(("enter",), lambda event: leave(event, is_to_open=True))
    bind(("c-y",), lambda event: leave(event, is_to_open=False))
    bind(("escape", "c-d", "c-g"), lambda event: event.app.exit(result=None))
    bind(("c-c",), interrupt)
    return keys
