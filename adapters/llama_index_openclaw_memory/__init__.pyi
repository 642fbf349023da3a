from .embeddings import LlamaIndexEmbedder as LlamaIndexEmbedder, OpenClawEmbedding as OpenClawEmbedding
from .event_handler import MemoryFlushEventHandler as MemoryFlushEventHandler
from .memory_block import OpenClawMemoryBlock as OpenClawMemoryBlock
from .retriever import OpenClawRetriever as OpenClawRetriever
from .tools import OpenClawToolSpec as OpenClawToolSpec
from .vector_store import OpenClawVectorStore as OpenClawVectorStore
