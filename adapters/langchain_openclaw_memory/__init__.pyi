from .callback import OpenClawFlushCallback as OpenClawFlushCallback
from .embeddings import LangChainEmbedder as LangChainEmbedder, OpenClawEmbeddings as OpenClawEmbeddings
from .intent import OpenClawIntentMiddleware as OpenClawIntentMiddleware
from .langgraph_store import OpenClawStore as OpenClawStore
from .middleware import (
    MemoryFlushMiddleware as MemoryFlushMiddleware,
    OpenClawSummarizationMiddleware as OpenClawSummarizationMiddleware,
)
from .recall import OpenClawRecallMiddleware as OpenClawRecallMiddleware
from .resuming import resume_messages as resume_messages, save_snapshot as save_snapshot
from .retriever import OpenClawRetriever as OpenClawRetriever
from .self_query import OpenClawTranslator as OpenClawTranslator
from .session_start import OpenClawSessionStartMiddleware as OpenClawSessionStartMiddleware
from .tools import memory_tools as memory_tools, OpenClawToolkit as OpenClawToolkit
from .transcripts import OpenClawTranscriptMiddleware as OpenClawTranscriptMiddleware
from .vectorstore import OpenClawVectorStore as OpenClawVectorStore
