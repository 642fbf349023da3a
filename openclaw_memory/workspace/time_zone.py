"""Days and moments of a workspace: this moment in its time zone, and a day from a date, a moment or a text."""

from __future__ import annotations

import datetime

from openclaw_memory.errors import ConfigError, InvalidInputError


def get_local_now(timezone: str | None, now: datetime.datetime | None = None) -> datetime.datetime:
    """Return `now`, by default this moment, in an IANA time zone; in this machine's where `timezone` is None.

    A `now` without a zone is returned as it is.

    Raises:
        ConfigError: The time zone is unknown.
    """
    if now is not None and now.tzinfo is None:
        return now
    now = now or datetime.datetime.now(datetime.UTC)
    if timezone is None:
        return now.astimezone()
    import zoneinfo

    try:
        return now.astimezone(zoneinfo.ZoneInfo(timezone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: it names a folder of zones
        remedy = "name one of the IANA data base, such as 'Europe/Amsterdam'"
        if not zoneinfo.available_timezones():
            remedy = "this machine has no time zone data: `pip install tzdata`"
        raise ConfigError(f"sessions.timezone {timezone!r} is not a known time zone: {remedy}") from error


def to_day(
    value: datetime.date | str | None,
    name: str,
    timezone: str | None,
    *,
    error: type[InvalidInputError] = InvalidInputError,
) -> datetime.date | None:
    """Convert a date, a moment, or the text of one in ISO 8601 to its day; None for None.

    Args:
        value: The date, moment or text. A moment with a time zone has its day in `timezone`.
        name: The name of the argument, for the message.
        timezone: `sessions.timezone`: an IANA time zone, or this machine's where None.
        error: The error to raise.

    Raises:
        InvalidInputError: It is not a day.
        ConfigError: The time zone is unknown.
    """
    if value is None:
        return None
    try:
        day = datetime.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if isinstance(day, datetime.datetime):
            return get_local_now(timezone, day).date()
    except ConfigError:  # an unknown time zone
        raise
    except (ValueError, OverflowError) as cause:  # no day in this time zone
        raise error(f"{name} is {value!r}: give a date, or its text such as '2026-01-31'") from cause
    if not isinstance(day, datetime.date):
        raise error(f"{name} is {value!r}: give a date, or its text such as '2026-01-31'")
    return day
