from .callback import MemoryFlushCallback as MemoryFlushCallback
from .embeddings import LangChainEmbedder as LangChainEmbedder, OpenClawEmbeddings as OpenClawEmbeddings
from .intent import IntentMiddleware as IntentMiddleware
from .langgraph_store import OpenClawStore as OpenClawStore
from .middleware import (
    MemoryFlushMiddleware as MemoryFlushMiddleware,
    OpenClawSummarizationMiddleware as OpenClawSummarizationMiddleware,
)
from .recall import RecallMiddleware as RecallMiddleware
from .resuming import resume_messages as resume_messages, save_snapshot as save_snapshot
from .retriever import OpenClawRetriever as OpenClawRetriever
from .self_query import OpenClawTranslator as OpenClawTranslator
from .session_start import SessionStartMiddleware as SessionStartMiddleware
from .tools import memory_tools as memory_tools, OpenClawToolkit as OpenClawToolkit
from .transcripts import TranscriptMiddleware as TranscriptMiddleware
from .vectorstore import OpenClawVectorStore as OpenClawVectorStore
