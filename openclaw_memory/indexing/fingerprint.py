"""What an index was built with, and whether that still fits: if not, it is built again."""

from __future__ import annotations

from dataclasses import asdict

from openclaw_memory.config import ChunkingConfig
from openclaw_memory.config.config import masks_listed_secrets
from openclaw_memory.embeddings.selection import get_inner
from openclaw_memory.embeddings.token_codes import CODES_VERSION
from openclaw_memory.store.schema import SCHEMA_VERSION
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.types import Embedder, IndexMeta
from openclaw_memory.types.protocols import TokenEmbedder

# Raise it when chunking/, text.py, redaction.py, policies.py or fence.py begin to give other rows for the same
# file: every index is then built again, as it is where the user's policies change.
ROWS_VERSION = 14


def describe(
    embedder: Embedder | None, chunking: ChunkingConfig, dims: int | None = None, *, policies: Policies = NONE
) -> IndexMeta:
    """Return the meta of an index built now with these parts; `dims` only where they are known."""
    rules = {"policies": policies.digest} if policies else {}
    codes = {"token_codes": CODES_VERSION} if isinstance(get_inner(embedder), TokenEmbedder) else {}
    return IndexMeta(
        provider=embedder.provider if embedder else "none",
        model=embedder.model if embedder else "",
        identity=embedder.identity if embedder else "none",
        dims=dims,
        chunking={"rows": ROWS_VERSION, "masks": masks_listed_secrets(), **codes, **rules, **asdict(chunking)},
        schema_version=SCHEMA_VERSION,
    )


def outdated(stored: IndexMeta, wanted: IndexMeta) -> str | None:
    """Return why an index must be built again, in words; None when it need not be."""
    if stored.identity != wanted.identity:
        return f"the embedder was {_name(stored)} and is now {_name(wanted)}"
    if stored.schema_version != wanted.schema_version:
        return f"the index had schema {stored.schema_version}, this version writes {wanted.schema_version}"
    old, new = stored.chunking, wanted.chunking
    if old.get("policies") != new.get("policies"):
        return "the policies have changed"
    changes = [
        f"{key} was {old.get(key)} and is now {new.get(key)}" for key in {**old, **new} if old.get(key) != new.get(key)
    ]
    return f"chunking: {', '.join(changes)}" if changes else None


def is_of_rules(stored: IndexMeta, policies: Policies) -> bool:
    """Return whether an index was built by this version, and what it says of its files by these policies."""
    said = stored.schema_version, stored.chunking.get("rows"), stored.chunking.get("policies", "")
    return said == (SCHEMA_VERSION, ROWS_VERSION, policies.digest)


def _name(meta: IndexMeta) -> str:
    name = f"{meta.provider} {meta.model}".strip()
    return name if name != "none" else "none (keywords only)"
