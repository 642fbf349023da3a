from .safe_folder import SafeFolder as SafeFolder
from .encodings import decode as decode
from .workspace import Workspace as Workspace
