"""The contract of an embedder, as a check."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openclaw_memory.types import Embedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openclaw_memory.types import Matrix

SAMPLE_TEXTS = (
    "The database index is rebuilt every night at three.",
    "Caroline went to the pottery class on Thursday.",
    "Het recept vraagt om twee eieren en een kop bloem.",
)
ODD_TEXTS = ("", " \n\t", "🦄🎉", "a\x00b", "\ud800 lone surrogate", "ab " * 3334, "x" * 10_000)
# What keys of well-known services begin with, and what stands before one in a header.
SECRET = re.compile(r"(?:\bsk-|\bAIza|\bpa-|\bhf_|Bearer\s+)[\w-]{12,}")


def check_embedder(embedder: Embedder) -> None:
    """Check that an embedder keeps the contract of `types.Embedder`. About twenty texts are embedded.

    Vectors are float32 of one length for questions and documents alike, of unit length (a text without words may have
    the zero vector), the same for the same text in any company, and different for different texts.

    Args:
        embedder: The embedder.

    Raises:
        AssertionError: It breaks the contract; the message says where.
    """
    assert isinstance(embedder, Embedder), f"{embedder!r} lacks a name or a method of the Embedder protocol"
    _check_names(embedder)
    documents = embedder.embed_documents(list(SAMPLE_TEXTS))
    _check_rows(documents, SAMPLE_TEXTS)
    for text, row in zip(SAMPLE_TEXTS, documents, strict=True):
        query = embedder.embed_query(text)
        assert query.shape == row.shape, f"a question has shape {query.shape}, a document {row.shape}; they must agree"
        _check_rows(query[None], [text])
        alone, again = embedder.embed_documents([text])[0], embedder.embed_documents(list(SAMPLE_TEXTS))
        assert alone @ row > 0.999, f"{text!r} has another vector alone than in company"
        assert (again * documents).sum(axis=1).min() > 0.999, "the same texts had other vectors the second time"
        nearest = int((documents @ query).argmax())
        assert SAMPLE_TEXTS[nearest] == text, f"{text!r} as a question is nearer to {SAMPLE_TEXTS[nearest]!r}"
    likeness = documents @ documents.T
    assert likeness[0, 1] < 0.999, "different texts have the same vector"
    nothing = embedder.embed_documents([])
    assert nothing.ndim == 2, f"no texts must give shape (0, dims), not {nothing.shape}"
    assert len(nothing) == 0, f"no texts must give no vectors, not {len(nothing)}"
    odd = embedder.embed_documents(list(ODD_TEXTS))
    assert odd.shape == (len(ODD_TEXTS), documents.shape[1]), f"odd texts gave shape {odd.shape}"
    _check_rows(odd, ODD_TEXTS, may_be_zero=True)
    for text in ODD_TEXTS:
        _check_rows(embedder.embed_query(text)[None], [text], may_be_zero=True)


def _check_names(embedder: Embedder) -> None:
    for name in ("provider", "model", "identity"):
        value = getattr(embedder, name)
        assert isinstance(value, str), f"{name} must be a string, not {value!r}"
        assert value, f"{name} must not be empty"
        assert not SECRET.search(value), f"{name} holds what looks like a key; leave secrets out of it"
    leaves = embedder.leaves_machine
    assert isinstance(leaves, bool), f"leaves_machine must be True or False, not {leaves!r}"


def _check_rows(rows: Matrix, texts: Sequence[str], *, may_be_zero: bool = False) -> None:
    """Assert shape (len(texts), dims), float32, and rows of length 1 (or 0 where that is allowed)."""
    assert rows.ndim == 2, f"vectors must have shape (n, dims), not {rows.shape}"
    assert len(rows) == len(texts), f"{len(texts)} texts gave {len(rows)} vectors"
    assert rows.dtype == "float32", f"vectors must be float32, not {rows.dtype}"
    for text, length in zip(texts, (rows.astype("float64") ** 2).sum(axis=1) ** 0.5, strict=True):
        unit_or_zero = abs(length - 1) < 1e-3 or (may_be_zero and length == 0)
        assert unit_or_zero, f"{text[:40]!r} has a vector of length {length}; normalise it"
