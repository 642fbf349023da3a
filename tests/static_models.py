"""Small static models, written by hand as the description of their format says."""

import hashlib
import json
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

import numpy as np


def small_model(
    path: Path, costs: Mapping[str, float], *, scale: float = 0.01, seed: int = 1, bits: int = 8, **header: object
) -> Path:
    """Write a model of 4 dimensions with pieces of these costs in nats; `header` overrides what its header says."""
    pieces = sorted(costs, key=str.encode)
    encoded = [piece.encode() for piece in pieces]
    body = b"".join(encoded)
    body += bytes(-len(body) % 4) + np.array([0, *accumulate(map(len, encoded))], "<u4").tobytes()
    body += np.round(np.array([costs[piece] for piece in pieces]) * 1024).astype("<u2").tobytes()
    body += np.full(len(pieces), scale, "<f2").tobytes()
    rows = np.random.default_rng(seed).integers(0, 256, (len(pieces), bits // 2), dtype=np.uint8)
    body += bytes(-len(body) % 64) + rows.tobytes()
    fields = {
        "magic": "oms2",
        "n": len(pieces),
        "dim": 4,
        "bits": bits,
        "pieces": len(b"".join(encoded)),
        "digest": hashlib.blake2b(body, digest_size=8).hexdigest(),
        **header,
    }
    path.write_bytes(json.dumps(fields).encode().ljust(127) + b"\n" + body)
    return path
