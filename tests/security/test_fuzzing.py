"""Whatever others have written, each parser reads it or raises an error of ours, in a time that grows with its length."""

import gc
import random
from contextlib import suppress

import pytest
from cpu_time import least_seconds
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from parsers import PARSERS

from openclaw_memory.errors import OpenClawMemoryError

BY_DAY = 20
NIGHTLY, PARTS = 84_000, 12  # of each parser, in so many parts: a million in all
SIZES = [8_000, pytest.param(100_000, marks=pytest.mark.nightly)]  # characters
SECONDS = 1e-6  # of a processor for one: 0.1 s for the longest
SMALLER = 4  # so much shorter is the text that they are compared with


def check(name, text):
    with suppress(OpenClawMemoryError):
        PARSERS[name].read(text)


def texts(name):
    """Texts of the pieces that mean something to a parser, of any characters, and of both."""
    pieces = st.sampled_from(PARSERS[name].pieces)
    anything = st.text(max_size=12) | st.text(alphabet=st.characters(codec=None), max_size=6)
    return st.lists(pieces | pieces | pieces | anything, max_size=14).map("".join)


@pytest.mark.fault(65)
@pytest.mark.parametrize("part", [None, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(PARTS))])
@pytest.mark.parametrize("name", PARSERS)
def test_any_text_is_read_or_refused_by_an_error_of_ours(name, part):
    @seed(part)
    @settings(
        max_examples=BY_DAY if part is None else NIGHTLY // PARTS,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(texts(name))
    def run(text):
        check(name, text)

    run()


def stretched(name, size):
    """Long texts that are made to keep a parser busy: each piece again and again, between beginnings and ends."""
    parser = PARSERS[name]
    chance = random.Random(1)
    for piece in parser.stretch:
        yield piece, (piece * size)[:size]
    mixed = ""
    while len(mixed) < size:
        mixed += chance.choice(parser.pieces)
    yield "mixed", mixed[:size]
    yield "one line", mixed.replace("\n", " ")[:size]


@pytest.mark.fault(65)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.sampled(1)
def test_a_long_text_takes_a_microsecond_a_character_and_four_times_as_long_as_a_quarter_of_it(name, size):
    enough = size * SECONDS
    gc.collect()
    gc.freeze()  # what this process of tests holds besides is not a parser's
    try:
        for (piece, long), (_, short) in zip(stretched(name, size), stretched(name, size // SMALLER), strict=True):
            check(name, short[:100])  # compiles patterns
            took = least_seconds(lambda text=long: check(name, text), enough=enough)
            if took < enough:
                continue
            # A slow or busy machine: what grows with the length alone takes four times as long, squares sixteen times.
            quarter = least_seconds(lambda text=short: check(name, text), enough=0.0)
            assert took <= enough * 10, f"{took:.2f} s for {size:,} characters of {piece!r}"
            assert took <= quarter * SMALLER * 2, f"{piece!r}: {quarter:.3f} s for a quarter, {took:.3f} s for all"
    finally:
        gc.unfreeze()
