from .framework import FrameworkEmbedder as FrameworkEmbedder
from .registry import from_callable as from_callable, load_embedder as load_embedder
from .remote.client import RemoteEmbedder as RemoteEmbedder
from .remote.errors import ServiceError as ServiceError
from .remote.http import http_client as http_client
from .remote.service import (
    BatchApi as BatchApi,
    JobState as JobState,
    Limits as Limits,
    RetryPolicy as RetryPolicy,
    Service as Service,
)
from .selection import EmbedderChoice as EmbedderChoice, embedders_of as embedders_of, unguarded as unguarded
from .vectors import checked_vectors as checked_vectors
