from .days import get_local_now as get_local_now
from .safe_folder import SafeFolder as SafeFolder
from .encodings import decode as decode
from .workspace import Workspace as Workspace
