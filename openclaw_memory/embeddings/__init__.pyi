from .callables import FrameworkEmbedder as FrameworkEmbedder, from_callable as from_callable
from .remote import RemoteEmbedder as RemoteEmbedder
from .selection import EmbedderChoice as EmbedderChoice
from .service import (
    Limits as Limits,
    Service as Service,
    ServiceError as ServiceError,
)
from .vectors import check_vectors as check_vectors
