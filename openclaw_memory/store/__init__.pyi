from .fts import usable_terms as usable_terms
from .hits import gather_hits as gather_hits
from .sqlite import SqliteStore as SqliteStore
