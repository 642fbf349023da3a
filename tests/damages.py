"""Ways in which the file of an index can be damaged: each changes its bytes by the throws of dice."""

from __future__ import annotations

import random

from openclaw_memory.store import connection

PAGE = connection.PAGE_SIZE


def garbage(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data) // PAGE) * PAGE
    data[start : start + PAGE] = dice.randbytes(PAGE)


def zeros(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data) // PAGE) * PAGE
    data[start : start + PAGE] = bytes(PAGE)


def truncation(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(1, len(data)) :]


def bad_header(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(0, 90)
    data[start : start + 10] = dice.randbytes(10)


def bit_flip(data: bytearray, dice: random.Random) -> None:
    bit = dice.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8


DAMAGES = {damage.__name__: damage for damage in (garbage, zeros, truncation, bad_header, bit_flip)}
