import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.workspace.paths import note_date


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-11-01.md", "2026-11-01"),
        ("memory/2026-01-02-notes.md", "2026-01-02"),
        ("memory/2026-01-02-1530.md", "2026-01-02"),
        ("memory/2026-01-02-数据.md", "2026-01-02"),
        ("memory/work/2026/2026-01-02-x.md", "2026-01-02"),
        ("./memory/2026-01-02.md", "2026-01-02"),
        ("memory\\2026-01-02.md", "2026-01-02"),
        ("../notes/memory/2026-01-02.md", "2026-01-02"),
        ("memory/2026-13-01.md", None),
        ("memory/2026-02-29.md", None),
        ("memory/0099-01-01.md", None),
        ("memory/0000-01-01.md", None),
        ("memory/2026-01-02notes.md", None),
        ("memory/2026-01-02-.md", None),
        ("memory/x2026-01-02.md", None),
        ("memory/2026-1-2.md", None),
        ("memory/٢٠٢٦-٠١-٠٢.md", None),
        ("memory/2026-01-02.md\n", None),
        ("memory/2026-01-02.md/topic.md", None),
        ("memory/topics.md", None),
        ("MEMORY.md", None),
        ("USER.md", None),
        ("memory.md", None),
        ("2026-01-02.md", None),
        ("notes/2026-01-02.md", None),
        ("xmemory/2026-01-02.md", None),
        ("sessions/main/2026-01-02.jsonl", None),
    ],
)
def test_a_path_says_its_day(path, day):
    assert note_date(path) == (datetime.date.fromisoformat(day) if day else None)


@given(st.dates(min_value=datetime.date(100, 1, 1)), st.from_regex(r"(-[a-z0-9]+)?", fullmatch=True))
def test_every_day_is_read_back_from_its_name(day, slug):
    path = f"memory/sub/{day.isoformat()}{slug}.md"
    assert note_date(path) == day
