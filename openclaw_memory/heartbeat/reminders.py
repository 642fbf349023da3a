"""Open tasks and reminders whose day is over (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import Any

_OPEN_TASK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+(.*)")
_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")


def overdue_tasks(text: str, today: date) -> Iterator[tuple[int, date, str]]:
    """Yield line number (from 1), day and words of each `- [ ]` with a date in the past."""
    for number, line in enumerate(text.split("\n"), 1):
        if "[ ]" in line and (task := _OPEN_TASK.match(line)) and (day := day_in(task[1])) and day < today:
            yield number, day, task[1].strip()


def due_of(value: Any) -> date | None:
    """Return the day of a reminder: that in its text, or in its field `due`."""
    return day_in(str(value.get("due", "")) if isinstance(value, dict) else str(value))


def day_in(text: str) -> date | None:
    """Return the last day that a text names as YYYY-MM-DD, or None."""
    days = []
    for year, month, day in _DAY.findall(text):
        with suppress(ValueError):  # 2026-02-30 is no day
            days.append(date(int(year), int(month), int(day)))
    return max(days, default=None)
