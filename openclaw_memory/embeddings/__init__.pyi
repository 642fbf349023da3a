from .callables import CustomEmbedder as CustomEmbedder
from .remote import RemoteEmbedder as RemoteEmbedder
from .service import Limits as Limits, Service as Service
