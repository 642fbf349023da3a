"""Make text that comes from anywhere safe to show: in a terminal, a notebook, a log, an error, an answer of a tool."""

from __future__ import annotations

import re

# C0 and C1 controls could drive a terminal, bidirectional controls could make it show another text than the one that is
# there, and lone surrogates cannot be written at all.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CONTROLS}]")
# What ends a line, to some reader or other.
_LINE_ENDS = "\t\n\u2028\u2029"
_UNSAFE_IN_A_LINE = re.compile(f"[{_CONTROLS}{_LINE_ENDS}]")
_ENDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def clean(text: str) -> str:
    """Return `text` with all controls and direction marks as U+FFFD; tabs and line feeds stay."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def clean_line(text: str) -> str:
    """Return a name, or another text of one line, as `clean` does, and without tabs and ends of lines.

    Args:
        text: The name.
    """
    return _UNSAFE_IN_A_LINE.sub("\ufffd", text)


def warn(message: str) -> None:
    """Log one line to the user of a program; Python shows it on stderr where logging is not set up."""
    import logging

    logging.getLogger("openclaw_memory").warning("%s", clean(message))


def mask_controls(text: str) -> str:
    """Return `text` with a U+FFFD for each control character and each end of a line; marks of direction stay."""
    return _ENDS.sub("\ufffd", text)


def has_controls(name: str) -> bool:
    """Return whether a name holds a control character or ends a line: a citation cannot hold it in one piece."""
    return _ENDS.search(name) is not None


def escape_json(json_text: str) -> str:
    """Escape all that is not safe to show in JSON; a reader of JSON gets the same values."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)
