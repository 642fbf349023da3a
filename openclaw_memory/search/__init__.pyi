from .request import SearchRequest as SearchRequest
from .results import Explanation as Explanation
from .syntax import read_query as read_query
