from .query import read_query as read_query
from .request import SearchRequest as SearchRequest
from .results import Explanation as Explanation
