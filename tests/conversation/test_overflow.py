"""A full window is known by the error of a model."""

from pathlib import Path

import pytest

from openclaw_memory.conversation import is_overflow

FULL, OTHER = (
    part.strip().splitlines()[1:]
    for part in Path(__file__).with_name("messages.txt").read_text(encoding="utf-8").split("\n\n")
)


class ContextOverflowError(ValueError):
    """Named as LangChain's."""


class CodedError(Exception):
    code = "context_length_exceeded"


def caused(error):
    try:
        raise RuntimeError("the agent failed") from error
    except RuntimeError as outer:
        return outer


CAUSED = caused(ValueError(FULL[0]))


@pytest.mark.parametrize("error", [*FULL, ContextOverflowError("whatever"), CodedError("Bad Request"), CAUSED])
def test_a_full_window_is_known_by_what_the_services_say(error):
    assert is_overflow(error if isinstance(error, Exception) else RuntimeError(error))


@pytest.mark.parametrize("text", [*OTHER, ""])
def test_other_failures_are_none(text):
    assert not is_overflow(RuntimeError(text))
