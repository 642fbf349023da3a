"""The ways in which the embedding server lies: each makes a false answer out of a request and the honest answer."""
# ruff: noqa: ARG001, ARG005 - a fault and what it sends with are given everything, and take what they need.

import asyncio
import random
import socket
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from embedding_wire import BILLING, Answer, Asked, Row, error, rows, value, write

Fault = Callable[[Asked, Answer], Answer]
MEGABYTE = 1 << 20


def honest(asked: Asked, answer: Answer) -> Answer:
    """No lie: for a place in a script."""
    return answer


# --- errors
def status(code: int, *, retry_after: float | str | None = None, words: str = "") -> Fault:
    """An error of this status in the service's shape; 502, 520 and the like come as a proxy's HTML."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}

    def lie(asked: Asked, answer: Answer) -> Answer:
        said = error(asked, code, words)
        return replace(said, headers={**said.headers, **headers})

    return lie


def quota(*, retry_delay: float | None = None) -> Fault:
    """429 in the words for a quota that is used up; with `retry_delay` in seconds, Gemini says when it is refilled."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_delay}s"}
    violation = {"quotaMetric": "generativelanguage.googleapis.com/embed_content_free_tier_requests"}
    failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
    details = [failure] if retry_delay is None else [failure, info]

    def lie(asked: Asked, answer: Answer) -> Answer:
        return error(asked, 429, BILLING, code="insufficient_quota", details=details)

    return lie


def redirect(to: str = "/elsewhere", *, code: int = 302) -> Fault:
    """Send the client to another URL; the path /elsewhere is recorded as `at="elsewhere"`."""
    return lambda asked, answer: Answer(code, b"", {"location": to})


# --- the transport
def reset(asked: Asked, answer: Answer) -> Answer:
    """The connection is reset instead of an answer."""

    async def send(reader, writer, whole):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False

    return replace(answer, send=send)


def half_body(asked: Asked, answer: Answer) -> Answer:
    """The head promises the whole body, and the connection is closed in the middle of it."""

    async def send(reader, writer, whole):
        writer.write(whole[: -(len(answer.body) // 2 + 1)])
        await writer.drain()
        return False

    return replace(answer, send=send)


def drip(seconds: float = 0.05) -> Fault:
    """The head, and then one byte each `seconds`: never silent for long, and never done."""

    async def send(reader, writer, whole):
        head = whole.index(b"\r\n\r\n") + 4
        writer.write(whole[:head])
        for place in range(head, len(whole)):
            writer.write(whole[place : place + 1])
            await writer.drain()
            await asyncio.sleep(seconds)
        return True

    return lambda asked, answer: replace(answer, send=send)


def hang(asked: Asked, answer: Answer) -> Answer:
    """No answer, as long as the client waits."""

    async def send(reader, writer, whole):
        await reader.read()
        return False

    return replace(answer, send=send)


def huge_body(asked: Asked, answer: Answer) -> Answer:
    """A JSON answer that goes on for as long as the client reads it."""

    async def send(reader, writer, whole):
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"data":[')
        while True:
            writer.write(b"0.25," * 13_000)
            await writer.drain()

    return replace(answer, send=send)


def gzip_bomb(size: int = 300 * MEGABYTE) -> Fault:
    """About a thousandth of `size` bytes on the wire, that become `size` zeros, to whole megabytes."""
    return lambda asked, answer: Answer(200, gzipped_zeros(size // MEGABYTE), {"content-encoding": "gzip"})


@lru_cache(maxsize=2)
def gzipped_zeros(megabytes: int) -> bytes:
    """One gzip member. After a full flush each block is the same, so that one is made and repeated."""
    zeros, packer, crc = bytes(MEGABYTE), zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS), 0
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(megabytes):
        crc = zlib.crc32(zeros, crc)
    tail = struct.pack("<II", crc, megabytes * MEGABYTE & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + block * megabytes + b"\x03\x00" + tail


# --- the answer
def not_json(asked: Asked, answer: Answer) -> Answer:
    """200, and words."""
    return replace(answer, body=b"<!doctype html><title>Sign in to the hotel's network</title>")


def wrong_count(by: int = -1) -> Fault:
    """`by` vectors too many or too few; at least none."""
    return _changed(lambda found: found[:by] if by < 0 else found + found[:1] * by)


def wrong_dims(by: int = 1) -> Fault:
    """Vectors of `by` dimensions more or fewer than they have."""
    return _changed(lambda found: [row[:by] if by < 0 else [*row, *[0.5] * by] for row in found])


def mixed_dims(asked: Asked, answer: Answer) -> Answer:
    """The last vector has one dimension more than the others."""
    return _changed(lambda found: [*found[:-1], [*found[-1], 0.5]])(asked, answer)


def nan(asked: Asked, answer: Answer) -> Answer:
    """Vectors whose first number is no number."""
    return _changed(lambda found: [[float("nan"), *row[1:]] for row in found])(asked, answer)


def all_nan(asked: Asked, answer: Answer) -> Answer:
    """Vectors without a number."""
    return _changed(lambda found: [[float("nan")] * len(row) for row in found])(asked, answer)


def infinity(asked: Asked, answer: Answer) -> Answer:
    """Vectors whose first number is infinite."""
    return _changed(lambda found: [[float("inf"), *row[1:]] for row in found])(asked, answer)


def null(asked: Asked, answer: Answer) -> Answer:
    """null where a vector should be."""
    return _changed(lambda found: [None] * len(found))(asked, answer)


def null_number(asked: Asked, answer: Answer) -> Answer:
    """Vectors whose first number is null."""
    return _changed(lambda found: [[None, *row[1:]] for row in found])(asked, answer)


def zeros(asked: Asked, answer: Answer) -> Answer:
    """Vectors of zeros."""
    return _changed(lambda found: [[0.0] * len(row) for row in found])(asked, answer)


def shuffled(asked: Asked, answer: Answer) -> Answer:
    """Every vector with its right index, and in another order; Gemini gives no index, and this mixes them up."""
    places = list(range(len(asked.texts)))
    random.Random(7).shuffle(places)
    if places == sorted(places):
        places.reverse()
    found = rows(asked, answer.body)
    return replace(answer, body=write(asked, [value(asked, found[place]) for place in places], places))


def same_index(asked: Asked, answer: Answer) -> Answer:
    """Every vector claims to be the first."""
    found = rows(asked, answer.body)
    return replace(answer, body=write(asked, [value(asked, row) for row in found], [0] * len(found)))


def _changed(change: Callable[[list[list[float]]], list[Row]]) -> Fault:
    def lie(asked: Asked, answer: Answer) -> Answer:
        changed = change(rows(asked, answer.body))
        return replace(answer, body=write(asked, [value(asked, row) for row in changed]))

    return lie
