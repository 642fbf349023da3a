from .callbacks import OpenClawFlushCallback as OpenClawFlushCallback
from .embeddings import OpenClawEmbeddings as OpenClawEmbeddings
from .langgraph_store import OpenClawStore as OpenClawStore
from .middleware import (
    OpenClawIntentMiddleware as OpenClawIntentMiddleware,
    OpenClawRecallMiddleware as OpenClawRecallMiddleware,
    OpenClawSessionStartMiddleware as OpenClawSessionStartMiddleware,
    OpenClawSummarizationMiddleware as OpenClawSummarizationMiddleware,
    OpenClawTranscriptMiddleware as OpenClawTranscriptMiddleware,
)
from .retriever import OpenClawRetriever as OpenClawRetriever
from .tools import memory_tools as memory_tools
from .vectorstore import OpenClawVectorStore as OpenClawVectorStore
