"""What one call of a search may ask for, checked."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from openclaw_memory.config import Search
from openclaw_memory.config.parts import RANGES
from openclaw_memory.errors import QueryError
from openclaw_memory.types import SOURCES


def rules_for_one(rules: Search, query: object, max_results: object, min_score: object, source: object) -> Search:
    """`rules` with the wishes of one call.

    Raises:
        QueryError: a wish that cannot be met; the message names it.
    """
    if not isinstance(query, str):
        raise QueryError(f"query must be a string, not {type(query).__name__}")
    if source is not None and source not in SOURCES:
        raise QueryError(f"source {source!r} is unknown; use {', '.join(map(repr, SOURCES))}, or None for all")
    if max_results is not None:
        if not isinstance(max_results, int) or isinstance(max_results, bool) or max_results < 1:
            raise QueryError(f"max_results must be a whole number of at least 1, not {max_results!r}")
        rules = replace(rules, max_results=min(max_results, int(RANGES["search.max_results"][1])))
    if min_score is not None:
        if not isinstance(min_score, int | float) or isinstance(min_score, bool) or not 0 <= min_score <= 1:
            raise QueryError(f"min_score must be a number from 0 to 1, not {min_score!r}")
        rules = replace(rules, min_score=float(min_score))
    return rules


def with_time_zone(now: object) -> datetime | None:
    """A moment as one that can be compared; without a time zone it is of the machine's.

    Raises:
        QueryError: it is no `datetime`, or none that the machine's time zone can tell.
    """
    if now is None:
        return None
    if not isinstance(now, datetime):
        raise QueryError(f"now must be a datetime, not {now!r}")
    try:
        return now if now.tzinfo else now.astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise QueryError(
            f"now cannot be {now!r} ({error}): give a moment with a time zone, such as datetime.now(UTC)"
        ) from error
