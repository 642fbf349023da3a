from .safe_folder import SafeFolder as SafeFolder
from .encodings import decode as decode
from .verbatim import fit_entry as fit_entry
from .workspace import Workspace as Workspace
