from .embeddings import LlamaIndexEmbedder as LlamaIndexEmbedder, OpenClawEmbedding as OpenClawEmbedding
from .event_handler import MemoryFlushEventHandler as MemoryFlushEventHandler
from .intent import IntentBlock as IntentBlock
from .memory_block import OpenClawMemoryBlock as OpenClawMemoryBlock
from .resuming import resume_messages as resume_messages, save_snapshot as save_snapshot
from .retriever import OpenClawRetriever as OpenClawRetriever
from .session_start import SessionStartBlock as SessionStartBlock
from .tools import memory_tools as memory_tools, OpenClawToolSpec as OpenClawToolSpec
from .vectorstore import OpenClawVectorStore as OpenClawVectorStore
