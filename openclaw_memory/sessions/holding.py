"""One turn of a flush, held from its beginning to its end: whatever fails, the turn of the user goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from openclaw_memory.say import say

if TYPE_CHECKING:
    from openclaw_memory.sessions.flush import FlushTurn


def hold(key: str, begin: Callable[[], FlushTurn | None], drive: Callable[[FlushTurn], object]) -> bool:
    """Have the turn driven that `begin` gives for session `key`; True where one was held, whatever came of it.

    False where there is none to be held, or it could not begin: that is said. It raises nothing but what ends the
    program; where the turn fails, its messages are kept verbatim.
    """
    turn: FlushTurn | None = None
    try:
        turn = begin()
        if turn is not None:
            drive(turn)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a flush that fails, or a model that gives up its task, breaks nothing
        return gave_up(key, turn, error)
    return turn is not None


def gave_up(key: str, turn: FlushTurn | None, error: BaseException) -> bool:
    """End a turn that whoever drove it broke off with `error`; False where there is none, and that is said."""
    if turn is None:
        say(f"the flush of session {key!r} failed: {error}")
        return False
    while turn.open:  # what fails outside of the model fails again: the messages are kept
        turn.failed(error)
    return True
