"""What the environment says of the terminal: hyperlinks, and the editor."""

from __future__ import annotations

import os
import shlex

# What terminals that take hyperlinks (OSC 8) say of themselves: https://github.com/Alhadis/OSC8-Adoption
_BY_VARIABLE = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")
_BY_PROGRAM = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio", "zed"})
_BY_TERM = ("xterm-kitty", "foot", "alacritty", "xterm-ghostty", "contour", "wezterm")
_VTE = 5000  # version 0.50
_TMUX = (3, 4)


def takes_hyperlinks() -> bool:
    """Return whether the terminal takes hyperlinks, as far as it says so, unless FORCE_HYPERLINK or NO_COLOR do."""
    get = os.environ.get
    if get("NO_COLOR") or get("TERM", "") in {"", "dumb"}:
        return False
    if (forced := get("FORCE_HYPERLINK")) is not None:
        return forced not in {"", "0"}
    if get("TERM_PROGRAM") == "tmux":  # it is what tmux passes on that counts
        return _version(get("TERM_PROGRAM_VERSION", "")) >= _TMUX
    vte = get("VTE_VERSION", "")
    return (
        (vte.isdecimal() and int(vte) >= _VTE)
        or any(map(get, _BY_VARIABLE))
        or get("TERM_PROGRAM", "") in _BY_PROGRAM
        or get("TERM", "").startswith(_BY_TERM)
    )


def editor() -> list[str] | None:
    """Return the command of the editor that VISUAL or EDITOR names, in words; None where neither does."""
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    return shlex.split(given) or None


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    digits = "".join(sign for sign in minor if sign.isdecimal())
    return (int(major) if major.isdecimal() else 0, int(digits or 0))
