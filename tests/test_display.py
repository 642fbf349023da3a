"""Tables in a notebook: whatever a note holds is text there, and a bar is as long as its number says."""

import re
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import display
from openclaw_memory.errors import MissingExtraError


class Seen(HTMLParser):
    """The tags and the text that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style", "class"}

    def handle_data(self, data):
        self.text += data


def seen(html: str) -> Seen:
    parser = Seen()
    parser.feed(html)
    parser.close()
    return parser


@given(st.text())
def test_whatever_is_in_a_cell_is_shown_as_text(text):
    shown = seen(
        display.render_table(
            text,
            (text,),
            [
                (
                    text,
                    display.render_code(text),
                    display.render_lines(text),
                    display.render_bold(text),
                    display.render_faint(text),
                )
            ],
        )
    )
    assert set(shown.tags) == {"table", "thead", "tbody", "tr", "th", "td", "code", "div", "b", "span"}
    assert shown.text.count(display.clean(text)) >= 6 or not text


def test_what_would_turn_a_line_around_is_shown_as_a_mark():
    assert "memory/\ufffddm.a#L1" in display.render_code("memory/\u202edm.a#L1")


@pytest.mark.parametrize(("share", "pixels"), [(0.0, 0), (0.5, 36), (1.0, 72), (7.0, 72), (-1.0, 0)])
def test_a_bar_is_as_long_as_its_share_and_never_longer_than_its_track(share, pixels):
    widths = re.findall(r"width:(\d+)px;background:#0072b2", display.draw_bars(share, (share, "#0072b2")))
    assert widths == [str(pixels)]


def test_without_pandas_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"x\(\) needs pandas: pip install pandas"):
        display.build_frame("x()", (), [])
