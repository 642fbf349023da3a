"""What made the vectors that nodes come with, and makes them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_openclaw_memory._nodes import node_of
from openclaw_memory.types import Document, Embedder, Maker

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix

# Of vectors that nobody knows the model of: they stand above the text of their nodes, and are made by no one again.
GIVEN = Maker("given", "given")
# Two vectors of one text by one model are as like as this, whatever rounding and batches do to them.
_SAME = 0.99


def maker_by(embedder: Embedder, mode: MetadataMode = MetadataMode.EMBED) -> Maker:
    """The embedder as what makes the vectors of nodes, of their texts put together in this mode."""

    def make(documents: Sequence[Document]) -> Matrix:
        return embedder.embed_documents([node_of(one).get_content(mode) for one in documents])

    return Maker(embedder.identity, embedder.model, make)


def maker_of(nodes: Sequence[BaseNode], embedder: Embedder) -> Maker:
    """The embedder, where the embeddings of nodes are what it makes of their texts, or else `GIVEN`.

    One node tells: the first that has a text.

    Raises:
        EmbedderError: the embedder failed.
    """
    import numpy as np

    node = next((one for one in nodes if one.get_content(MetadataMode.NONE).strip()), None)
    if node is None:
        return GIVEN
    modes = (MetadataMode.EMBED, MetadataMode.NONE)
    row = np.asarray(node.embedding, dtype=np.float64)
    for mode, made in zip(modes, embedder.embed_documents([node.get_content(mode) for mode in modes]), strict=True):
        length = float(np.linalg.norm(row))
        if made.shape == row.shape and length > 0 and float(made @ row) > _SAME * length:
            return maker_by(embedder, mode)
    return GIVEN
