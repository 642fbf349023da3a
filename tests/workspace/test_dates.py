import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.workspace.dates import is_evergreen, note_date


@pytest.mark.parametrize(
    ("path", "day", "evergreen"),
    [
        ("memory/2026-11-01.md", "2026-11-01", False),
        ("memory/2026-01-02-notes.md", "2026-01-02", False),
        ("memory/2026-01-02-1530.md", "2026-01-02", False),
        ("memory/2026-01-02-数据.md", "2026-01-02", False),
        ("memory/work/2026/2026-01-02-x.md", "2026-01-02", False),
        ("./memory/2026-01-02.md", "2026-01-02", False),
        ("memory\\2026-01-02.md", "2026-01-02", False),
        ("../notes/memory/2026-01-02.md", "2026-01-02", False),
        ("memory/2026-13-01.md", None, False),
        ("memory/2026-02-29.md", None, False),
        ("memory/0099-01-01.md", None, False),
        ("memory/0000-01-01.md", None, False),
        ("memory/2026-01-02notes.md", None, True),
        ("memory/2026-01-02-.md", None, True),
        ("memory/x2026-01-02.md", None, True),
        ("memory/2026-1-2.md", None, True),
        ("memory/٢٠٢٦-٠١-٠٢.md", None, True),
        ("memory/2026-01-02.md\n", None, True),
        ("memory/2026-01-02.md/topic.md", None, True),
        ("memory/topics.md", None, True),
        ("MEMORY.md", None, True),
        ("USER.md", None, True),
        ("memory.md", None, True),
        ("2026-01-02.md", None, False),
        ("notes/2026-01-02.md", None, False),
        ("xmemory/2026-01-02.md", None, False),
        ("sessions/main/2026-01-02.jsonl", None, False),
    ],
)
def test_a_path_says_its_day_and_whether_it_never_grows_old(path, day, evergreen):
    assert note_date(path) == (datetime.date.fromisoformat(day) if day else None)
    assert is_evergreen(path) is evergreen


@given(st.dates(min_value=datetime.date(100, 1, 1)), st.from_regex(r"(-[a-z0-9]+)?", fullmatch=True))
def test_every_day_is_read_back_from_its_name(day, slug):
    path = f"memory/sub/{day.isoformat()}{slug}.md"
    assert note_date(path) == day
    assert not is_evergreen(path)
