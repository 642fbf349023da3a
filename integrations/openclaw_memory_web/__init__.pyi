from .app import create_app as create_app
from .server import serve as serve
