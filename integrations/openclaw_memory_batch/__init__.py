"""Batch APIs of embedding services: large amounts of text for less money, within a day."""

from openclaw_memory_batch.embedder import BatchEmbedder, create

__all__ = ["BatchEmbedder", "create"]
