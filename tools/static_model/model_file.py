"""Writes and reads the file of a static model, in the format that `openclaw_memory.embeddings.static_file` names."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from operator import lt
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.embeddings.static_file import (
    BITS,
    HEADER_BYTES,
    MAGIC,
    REMEDY,
    ModelFile,
    make_layout,
    map_rows,
    open_model,
    read_costs,
    read_scales,
    unpack,
)
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# The loader takes every piece for text: "<unk>" in a note would be the tokenizer's own piece.
CONTROL_PIECES = {"<unk>", "<s>", "</s>", "<pad>", "<mask>"}
LOWEST, HIGHEST = {8: -127, 4: -8}, {8: 127, 4: 7}
# With 4 bits, rows have few values near their largest: cutting those off leaves finer steps for the many.
SCALE_FACTORS = np.linspace(0.5, 1.0, 11)
LARGEST_SCALE = 65504  # of a float16
# Rows that are quantised at a time: their temporaries take some 30 MB with 256 dimensions.
BLOCK_ROWS = 8192


def write_model(
    path: str | Path,
    pieces: Sequence[str],
    costs: NDArray[np.uint16],
    vectors: NDArray[np.float32],
    bits: int,
) -> None:
    """Write a model, its rows quantised one by one; `path` is replaced at once or left alone.

    `pieces` come in any order, U+2581 for a word's start, no control pieces such as `<unk>`. `costs`, shape (n,), are
    -1024 times the natural logarithms of their unigram probabilities; `vectors` have shape (n, dims). `bits` is 8, or
    4, where each row's scale is the one of several with the least squared error. A scale is a float16, in steps of
    6e-8: a row whose largest absolute value is below 1e-4 comes out coarser than its bits allow.

    Raises:
        ValueError: the parts do not fit each other or the format; the message says which.
    """
    if bits not in BITS:
        raise ValueError(f"bits must be 8 or 4, not {bits}")
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError("vectors must be finite numbers of shape (n, dims)")
    if np.abs(vectors).max(initial=0) > LARGEST_SCALE * HIGHEST[bits]:
        raise ValueError(
            f"with {bits} bits a value may be {LARGEST_SCALE * HIGHEST[bits]} at most; make the vectors shorter"
        )
    scales, rows = _quantised(vectors, bits)
    write_rows(path, pieces, costs, scales, rows, bits)


def write_rows(
    path: str | Path,
    pieces: Sequence[str],
    costs: NDArray[np.uint16],
    scales: NDArray[np.float16],
    rows: NDArray[np.int8],
    bits: int,
) -> None:
    """Write a model of rows that are quantised already: `rows` (n, dims) times `scales` (n,) are the vectors.

    Raises:
        ValueError: the parts do not fit each other or the format; the message says which.
    """
    _check(pieces, costs, scales, rows, bits)
    order = sorted(range(len(pieces)), key=pieces.__getitem__)
    encoded = [pieces[at].encode() for at in order]
    body = _body(encoded, costs[order], scales[order], rows[order], bits)
    header = {
        "magic": MAGIC,
        "n": len(pieces),
        "dim": rows.shape[1],
        "bits": bits,
        "pieces": sum(map(len, encoded)),
        "digest": _digest(body),
    }
    _replace(Path(path), json.dumps(header).encode().ljust(HEADER_BYTES - 1) + b"\n" + body)


def read_model(path: str | Path) -> tuple[list[str], NDArray[np.uint16], NDArray[np.float32]]:
    """The pieces of a model in the order of their bytes, their costs (n,), and their vectors (n, dims).

    Raises:
        EmbedderError: the file is no model, or a byte of it is not what was written.
    """
    model = open_model(Path(path))
    check_digest(model)
    rows = unpack(map_rows(model), model.layout.bits)
    vectors = rows.astype(np.float32) * read_scales(model)[:, None]
    return _read_pieces(model), np.array(read_costs(model), dtype=np.uint16), vectors


def _read_pieces(model: ModelFile) -> list[str]:
    """Return every piece, in the order of the rows; raise EmbedderError if the file is damaged."""
    path, data, layout = model.path, model.data, model.layout
    offsets = np.frombuffer(data, "<u4", layout.pieces + 1, layout.offsets_at).tolist()
    if offsets[0] != 0 or offsets[-1] != layout.pieces_bytes or not all(map(lt, offsets, offsets[1:])):
        raise EmbedderError(f"{path} has pieces that do not follow each other; {REMEDY}")
    block = data[HEADER_BYTES : HEADER_BYTES + layout.pieces_bytes]
    try:
        pieces = [str(block[start:end], "utf-8") for start, end in pairwise(offsets)]
    except UnicodeDecodeError as error:
        raise EmbedderError(f"{path} has pieces that are not UTF-8: {error}; {REMEDY}") from error
    # The order of code points is that of the bytes of UTF-8.
    if not all(map(lt, pieces, pieces[1:])):
        raise EmbedderError(f"{path} has pieces that are not in the order of their bytes; {REMEDY}")
    return pieces


def _check(
    pieces: Sequence[str],
    costs: NDArray[np.uint16],
    scales: NDArray[np.float16],
    rows: NDArray[np.int8],
    bits: int,
) -> None:
    count = len(pieces)
    if bits not in BITS:
        raise ValueError(f"bits must be 8 or 4, not {bits}")
    if not count or costs.shape != (count,) or scales.shape != (count,) or rows.ndim != 2 or len(rows) != count:
        shapes = f"costs {costs.shape}, scales {scales.shape}, rows {rows.shape}"
        raise ValueError(f"one or more pieces need as many costs, scales and rows; there are {count} and {shapes}")
    if costs.dtype != np.uint16 or scales.dtype != np.float16 or rows.dtype != np.int8:
        raise ValueError(
            f"costs are uint16, scales float16, rows int8; not {costs.dtype}, {scales.dtype}, {rows.dtype}"
        )
    if not rows.shape[1] or rows.shape[1] * bits % 8:
        raise ValueError(f"with {bits} bits a row of {rows.shape[1]} dimensions does not fill whole bytes")
    if not np.isfinite(scales).all():
        raise ValueError("a scale is no finite number")
    if rows.min() < LOWEST[bits] - (bits == 8) or rows.max() > HIGHEST[bits]:
        raise ValueError(f"a value in the rows does not fit into {bits} bits")
    if len(set(pieces)) != count or "" in pieces or not CONTROL_PIECES.isdisjoint(pieces):
        raise ValueError("pieces must be different, not empty, and no control pieces such as '<unk>'; drop those")


def _quantised(vectors: NDArray[np.float32], bits: int) -> tuple[NDArray[np.float16], NDArray[np.int8]]:
    """Scales (n,) and rows (n, dims) whose product is near `vectors`."""
    scales = np.zeros(len(vectors), np.float16)
    rows = np.zeros(vectors.shape, np.int8)
    for start in range(0, len(vectors), BLOCK_ROWS):
        block = vectors[start : start + BLOCK_ROWS].astype(np.float32)
        widest = np.abs(block).max(axis=1, initial=0) / HIGHEST[bits]
        least = np.full(len(block), np.inf, np.float32)
        for factor in SCALE_FACTORS if bits == 4 else (1.0,):
            scale = _no_smaller(widest * np.float32(factor))
            row = _divided(block, scale, bits)
            error = np.square(row * scale[:, None].astype(np.float32) - block).sum(axis=1)
            better = error < least
            least[better] = error[better]
            scales[start : start + BLOCK_ROWS][better] = scale[better]
            rows[start : start + BLOCK_ROWS][better] = row[better]
    return scales, rows


def _no_smaller(scales: NDArray[np.float32]) -> NDArray[np.float16]:
    """The float16 at or above each number, so that the largest value of a row is not cut off."""
    near = scales.astype(np.float16)
    too_small = near.astype(np.float32) < scales
    return np.where(too_small, np.nextafter(near, np.float16(np.inf)), near)


def _divided(vectors: NDArray[np.float32], scales: NDArray[np.float16], bits: int) -> NDArray[np.int8]:
    steps = scales.astype(np.float32)[:, None]
    values = np.divide(vectors, steps, out=np.zeros_like(vectors), where=steps > 0)
    clipped: NDArray[np.int8] = np.clip(np.rint(values), LOWEST[bits], HIGHEST[bits]).astype(np.int8)
    return clipped


def check_digest(model: ModelFile) -> None:
    """Check every byte after the header against the digest in it.

    Raises:
        EmbedderError: the bytes are not those that were written.
    """
    found = _digest(memoryview(model.data)[HEADER_BYTES:])
    if found != model.layout.digest:
        raise EmbedderError(
            f"{model.path} is damaged: its digest is {found} where its header says {model.layout.digest}; {REMEDY}"
        )


def _digest(body: bytes | memoryview) -> str:
    return blake2b(body, digest_size=8).hexdigest()


def _body(
    encoded: Sequence[bytes],
    costs: NDArray[np.uint16],
    scales: NDArray[np.float16],
    rows: NDArray[np.int8],
    bits: int,
) -> bytes:
    """Everything after the header, of pieces in the order of their bytes."""
    count, dims = rows.shape
    block = b"".join(encoded)
    layout = make_layout(pieces=count, dims=dims, bits=bits, pieces_bytes=len(block), digest="")
    offsets = np.cumsum([0, *map(len, encoded)], dtype="<u4")
    if bits == 4:
        raised = (rows + 8).astype(np.uint8)
        packed = raised[:, 0::2] | raised[:, 1::2] << 4
    else:
        packed = rows.view(np.uint8)
    body = bytearray(layout.size - HEADER_BYTES)
    parts = (
        (HEADER_BYTES, block),
        (layout.offsets_at, offsets.tobytes()),
        (layout.costs_at, costs.astype("<u2").tobytes()),
        (layout.scales_at, scales.astype("<f2").tobytes()),
        (layout.rows_at, packed.tobytes()),
    )
    for at, part in parts:
        body[at - HEADER_BYTES : at - HEADER_BYTES + len(part)] = part
    return bytes(body)


def _replace(path: Path, content: bytes) -> None:
    """Write beside `path` and rename: whoever has the old file mapped keeps it whole."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)  # that of a temporary file lets nobody else read it
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise
