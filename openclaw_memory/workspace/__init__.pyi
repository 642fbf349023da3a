from .days import get_local_now as get_local_now
from .safe_folder import SafeFolder as SafeFolder
from .encodings import decode as decode
from .transcripts import MAX_LINE_BYTES as MAX_LINE_BYTES
from .workspace import Workspace as Workspace
