from .callables import FrameworkEmbedder as FrameworkEmbedder, from_callable as from_callable
from .remote import RemoteEmbedder as RemoteEmbedder
from .service import Limits as Limits, Service as Service
