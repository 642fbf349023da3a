"""What one call of a search may ask for: what cannot be is told with the remedy."""

from __future__ import annotations

import datetime

import pytest

from openclaw_memory.errors import QueryError
from openclaw_memory.search.query import with_time_zone

FIRST, LAST = datetime.datetime.min, datetime.datetime.max  # noqa: DTZ901


@pytest.mark.parametrize("kind", ["the first moment", "pandas.NaT"])
def test_a_moment_that_has_no_time_zone_here_is_refused_with_the_remedy(kind):
    moment = FIRST if kind == "the first moment" else pytest.importorskip("pandas").NaT
    with pytest.raises(QueryError, match="with a time zone, such as"):
        with_time_zone(moment)


@pytest.mark.parametrize("moment", [FIRST, LAST], ids=str)
def test_any_moment_with_a_time_zone_is_one(moment):
    aware = moment.replace(tzinfo=datetime.UTC)
    assert with_time_zone(aware) is aware
