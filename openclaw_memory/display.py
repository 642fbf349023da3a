"""Render tables as HTML for a notebook, where text is never markup; build data frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas

# Okabe and Ito chose them so that everybody can distinguish them; the plots have the same two.
KEYWORD_COLOUR, VECTOR_COLOUR, TASK_COLOUR = "#0072b2", "#e69f00", "#009e73"
_CELL = "text-align:left;vertical-align:top;padding:4px 10px"
_BAR_WIDTH = 72  # pixels for a value of 1


class Markup(str):
    """Text that is HTML already: `table` shows it as it is."""

    __slots__ = ()


def render_table(caption: str | Markup, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Render an HTML table below its caption, or the caption alone without rows; all but `Markup` is escaped.

    Args:
        caption: The text above the table.
        columns: The names of the columns.
        rows: The cells of each row: texts, numbers, or a tuple of a number and the coloured bars that show it, each the
            share of the width, 0..1, and a colour.
    """
    head = _render_row("th", columns)
    body = "".join(_render_row("td", row) for row in rows)
    above = f'<div style="text-align:left;padding:4px 10px">{_render_cell(caption)}</div>'
    below = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>" if body else ""
    return f'<div class="openclaw-memory">{above}{below}</div>'


def render_code(text: str) -> Markup:
    """Render a place or a name, in one piece."""
    return Markup(f'<code style="white-space:nowrap">{escape(clean_line(text))}</code>')


def render_lines(text: str) -> Markup:
    """Render text with its line breaks and spaces."""
    return Markup(f'<div style="white-space:pre-wrap;unicode-bidi:isolate;max-width:46em">{_escape(text)}</div>')


def render_bold(text: str) -> Markup:
    """Render a text in bold."""
    return Markup(f"<b>{_escape(text)}</b>")


def render_faint(cell: str | Markup) -> Markup:
    """Render a cell that does not count."""
    return Markup(f'<span style="opacity:.55">{_render_cell(cell)}</span>')


def draw_bars(value: float, *parts: tuple[float, str]) -> Markup:
    """Draw a number, and below it a bar of coloured parts; a part of 1 is as wide as bars become.

    Args:
        value: The number.
        parts: The share of each part, 0..1, and its colour.
    """
    drawn = "".join(
        f'<div style="height:4px;width:{round(min(max(share, 0.0), 1.0) * _BAR_WIDTH)}px;background:{colour}"></div>'
        for share, colour in parts
    )
    track = f"display:flex;margin-top:3px;width:{_BAR_WIDTH}px;background:rgba(128,128,128,.2)"
    return Markup(f'<div style="min-width:{_BAR_WIDTH}px">{value:.2f}<div style="{track}">{drawn}</div></div>')


def build_frame(of: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> pandas.DataFrame:
    """Build a data frame.

    Args:
        of: The call that wants it, for the error.
        columns: The names of the columns.
        rows: The cells of each row.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError(f"{of} needs pandas: pip install pandas") from error
    return pandas.DataFrame([list(row) for row in rows], columns=list(columns))


def _render_row(tag: str, cells: Iterable[object]) -> str:
    return "<tr>" + "".join(f'<{tag} style="{_CELL}">{_render_cell(cell)}</{tag}>' for cell in cells) + "</tr>"


def _render_cell(value: object) -> str:
    if isinstance(value, tuple):
        return draw_bars(*value)
    return value if isinstance(value, Markup) else _escape(str(value))


def _escape(text: str) -> str:
    return escape(clean(text))
