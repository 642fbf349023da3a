from .callbacks import OpenClawFlushCallback as OpenClawFlushCallback
from .embeddings import OpenClawEmbeddings as OpenClawEmbeddings
from .store import OpenClawStore as OpenClawStore
from .middleware import (
    OpenClawIntentMiddleware as OpenClawIntentMiddleware,
    OpenClawRecallMiddleware as OpenClawRecallMiddleware,
    OpenClawSessionStartMiddleware as OpenClawSessionStartMiddleware,
    OpenClawSummarizationMiddleware as OpenClawSummarizationMiddleware,
    OpenClawTranscriptMiddleware as OpenClawTranscriptMiddleware,
)
from .retrievers import OpenClawRetriever as OpenClawRetriever
from .tools import memory_tools as memory_tools
from .vectorstores import OpenClawVectorStore as OpenClawVectorStore
