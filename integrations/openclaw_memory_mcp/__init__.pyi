from .server import MemoryServer as MemoryServer
from .transports import serve_http as serve_http, serve_stdio as serve_stdio
