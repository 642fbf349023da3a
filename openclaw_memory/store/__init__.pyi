from .fts import clean_terms as clean_terms
from .hits import gather_hits as gather_hits
from .sqlite import SqliteStore as SqliteStore
