"""A clock that a test moves."""

import datetime


class Clock:
    """Says the moment that it was set to, and moves `later` when it is told to."""

    def __init__(self, now: datetime.datetime) -> None:
        self.now = now

    def __call__(self) -> datetime.datetime:
        return self.now

    def later(self, **by: float) -> None:
        self.now += datetime.timedelta(**by)
