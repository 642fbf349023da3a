from .fts import usable_terms as usable_terms
from .sqlite import SqliteStore as SqliteStore
