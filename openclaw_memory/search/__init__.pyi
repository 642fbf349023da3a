from .query_dates import mentioned_dates as mentioned_dates
from .request import SearchRequest as SearchRequest
from .results import Explanation as Explanation, SearchResults as SearchResults
from .syntax import read_query as read_query
