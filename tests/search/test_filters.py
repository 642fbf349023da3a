"""What a search is confined to: it finds what a plain scan of the files lets pass, and says what it cannot read."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.documents import Documents
from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document
from openclaw_memory.types.records import HALF_LIFE_DAYS

QUERY = "Where is the spare key?"
TODAY = datetime.now().astimezone().date()
GLOBS = {
    "memory/2026-*": lambda path: path.startswith("memory/2026-"),
    "projects/": lambda path: "/projects/" in path,
    "MEMORY.md": lambda path: path == "MEMORY.md",
    "*.jsonl": lambda path: path.endswith(".jsonl"),
    "memory/**": lambda path: path.startswith("memory/"),
    "memory/records/*/k0.md": lambda path: path.startswith("memory/records/") and path.endswith("/k0.md"),
    "elsewhere/*": lambda path: not path,
}
KEYS = {
    "k?": lambda key: key.startswith("k"),
    "door.*": lambda key: key.startswith("door."),
    "*k": lambda key: key.endswith("k"),
    "k[12]": lambda key: key in {"k1", "k2"},
    "*": lambda key: key,
    "any line": lambda key: key is not None,
}


class Fact(NamedTuple):
    """A line, with what it can be found by."""

    path: str
    words: str
    day: date
    tags: frozenset[str] = frozenset()
    type: str | None = None
    confidence: float = 1.0
    key: str = ""
    user_id: str | None = None


def is_in_time(day, since, until):
    if since is None and until is None:
        return True
    return day is not None and (since or date.min) <= day <= (until or date.max)


def write(root, path, text, day=None):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    if day is not None:
        noon = datetime.fromisoformat(f"{day}T12:00").astimezone().timestamp()
        os.utime(file, (noon, noon))


def filled(root):
    """Write files of every kind, and return their lines."""
    facts = [Fact("MEMORY.md", "hangs in the hall", None)]
    write(root, "MEMORY.md", f"The spare key {facts[0].words}.\n", date(2025, 11, 3))
    for at in range(8):
        day = date(2026, 1, 1) + timedelta(days=9 * at)
        facts.append(Fact(f"memory/{day}.md", f"was seen at number {at}", day))
        write(root, facts[-1].path, f"The spare key {facts[-1].words}.\n")
        tags = [tag for bit, tag in enumerate(("work", "sea", "deep thought")) if at >> bit & 1]
        spelled = ("tags: [{}]", "tags: {}", "Tags:\n{}")[at % 3].format(
            (", ".join(tags), json.dumps(tags), "\n".join(f"- '#{tag.title()}'" for tag in tags))[at % 3]
        )
        dated = f"date: {day}\n" if at % 2 else ""
        changed = date(2025, 6, 1) + timedelta(days=30 * at)
        facts.append(Fact(f"memory/projects/p{at}.md", f"opens shed {at}", day if dated else None, frozenset(tags)))
        write(root, facts[-1].path, f"---\n{dated}{spelled}\n---\nThe spare key {facts[-1].words}.\n", changed)
    talk = []
    for at in range(3):
        day = date(2026, 2, 1) + timedelta(days=at)
        facts.append(Fact("sessions/talk.jsonl", f"is said to be with person {at}", day))
        message = {"role": "user", "content": f"The spare key {facts[-1].words}."}
        talk.append(json.dumps({"type": "message", "timestamp": f"{day}T10:00:00Z", "message": message}))
    write(root, "sessions/talk.jsonl", "\n".join(talk) + "\n")
    return facts


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("agent")
    facts = filled(root)
    with Memory.open(root, embedder="hashing") as memory:
        kinds = ["preference", "fact", "decision", "preference", "preference", "fact"]
        for at, (kind, key) in enumerate(zip(kinds, ["k0", "k1", "k2", "k3", "door.K", "door.lock"], strict=True)):
            found = memory.records.remember(
                kind,
                key,
                f"the spare key hides in place {at}",
                confidence=0.3 + 0.2 * (at % 4),
                user_id=[None, "ann", "bo"][at % 3],
            ).record
            words, said_of_it = f"hides in place {at}", (kind, found.confidence, key, found.user_id)
            facts.append(Fact(found.path, words, TODAY, frozenset(), *said_of_it))
        memory.documents.add([Document("d", "The spare key is a document.", {"tags": ["Work"], "date": "2026-03-01"})])
        (path,) = [one.path for one in memory.documents.iterate()]
        facts.append(Fact(path, "is a document", date(2026, 3, 1), frozenset({"work"})))
        memory.sync()
        yield memory, facts


def passes(fact, wanted, later):
    confidence = fact.confidence * (2 ** (-later / HALF_LIFE_DAYS) if fact.type == "preference" else 1)
    least = wanted.get("min_confidence")
    assume(
        fact.type is None or least is None or abs(confidence - least) > 0.002 or later == 0
    )  # it is known to the hour
    return (
        any(GLOBS[glob](fact.path) for glob in wanted.get("path") or GLOBS.keys() - {"elsewhere/*"})
        and is_in_time(fact.day, wanted.get("since"), wanted.get("until"))
        and fact.type in (wanted.get("type") or [fact.type])
        and any(KEYS[glob](fact.key) for glob in wanted.get("key") or ["any line"])
        and ("user_id" not in wanted or fact.user_id in wanted["user_id"])
        and fact.tags >= set(wanted.get("tags", []))
        and (fact.type is None or least is None or confidence >= least)
    )


def said(results, facts):
    """The facts that results show."""
    return {fact for fact in facts for one in results if one.path == fact.path and fact.words in one.snippet}


days = st.dates(date(2025, 5, 1), date(2026, 4, 1)) | st.just(TODAY)
filters = st.fixed_dictionaries(
    {},
    optional={
        "path": st.lists(st.sampled_from(list(GLOBS)), min_size=1, max_size=2),
        "since": days,
        "until": days,
        "type": st.lists(st.sampled_from(["preference", "fact", "decision", "entity"]), min_size=1, max_size=2),
        "key": st.lists(st.sampled_from(sorted(KEYS.keys() - {"any line"})), min_size=1, max_size=2),
        "user_id": st.lists(st.sampled_from(["ann", "bo", "Ann"]), min_size=1, max_size=2),
        "tags": st.lists(st.sampled_from(["work", "sea", "deep thought", "none"]), min_size=1, max_size=2),
        "min_confidence": st.sampled_from([0.0, 0.25, 0.45, 0.6, 0.85, 1.0]),
    },
)


def finds_what_a_plain_scan_lets_pass(place, wanted, later):
    memory, facts = place
    assume(wanted.get("since", date.min) <= wanted.get("until", date.max))
    right = {fact for fact in facts if not wanted or passes(fact, wanted, later)}
    now = datetime.now(UTC) + timedelta(days=later)
    results = memory.search(QUERY, filter=wanted, now=now, max_results=1000, min_score=0)
    assert said(results, facts) == right
    assert {one.path for one in results} == {fact.path for fact in right}


@given(filters, st.sampled_from([0, 20, 90]))
def test_a_search_finds_what_a_plain_scan_lets_pass(place, wanted, later):
    finds_what_a_plain_scan_lets_pass(place, wanted, later)


def test_one_text_may_stand_for_a_list_and_for_a_day(place):
    memory, facts = place
    one = memory.search(
        QUERY,
        filter={"path": "projects/", "since": "2026-01-10", "until": "2026-01-10T08:00", "tags": "#Work"},
        min_score=0,
    )
    assert said(one, facts) == {fact for fact in facts if fact.path == "memory/projects/p1.md"}
    of_ann = memory.search(QUERY, filter={"type": "fact", "key": "k*", "user_id": "ann"}, min_score=0)
    assert [one.path for one in of_ann] == ["memory/records/fact/ann/k1.md"]


def test_filters_that_say_nothing_change_nothing(place):
    memory, _ = place
    assert memory.search(QUERY, filter={"path": [], "tags": (), "type": ()}) == memory.search(QUERY)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"path": 3}, "path is 3"),
        ({"source": "notes"}, "source 'notes' is unknown"),
        ({"source": ["memory"]}, "source ['memory'] is unknown"),
        ({"path": ""}, "path is ''"),
        ({"path": "[a"}, "cannot be read as a glob"),
        ({"path": "# all"}, "names no file"),
        ({"since": "yesterday"}, "since is 'yesterday': give a date"),
        ({"until": 20260101}, "until is 20260101"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "later than until"),
        ({"type": "opinion"}, "type is 'opinion', not one of preference"),
        ({"key": ""}, "key is ''"),
        ({"user_id": [None]}, "user_id is"),
        ({"tags": [1]}, "tags is"),
        ({"tags": "#"}, "tags is '#', which holds no word"),
        ({"min_confidence": 1.5}, "min_confidence must be a number from 0 to 1"),
        ({"min_confidence": True}, "min_confidence must be"),
    ],
)
def test_what_cannot_be_filtered_by_is_named(place, wrong, words):
    with pytest.raises(QueryError, match=words.replace("[", r"\[")):
        place[0].search(QUERY, filter=wrong)


def paths(memory, now=None, **wanted):
    return sorted({one.path for one in memory.search(QUERY, min_score=0, filter=wanted, now=now)})


def test_what_a_person_changes_passes_as_it_is_after_the_next_sync(memory):
    root = memory.workspace.root
    write(root, "memory/a.md", "---\ntags: [work]\n---\nThe spare key is here.\n")
    write(root, "memory/b.md", "The spare key is there.\n")
    memory.sync()
    assert paths(memory, tags="work") == ["memory/a.md"]
    write(root, "memory/b.md", "---\ntags: [work]\n---\nThe spare key is there.\n")
    (root / "memory/b.md").rename(root / "memory/c.md")
    (root / "memory/a.md").unlink()
    memory.sync()
    assert paths(memory, tags="work") == ["memory/c.md"]


def test_an_edit_by_hand_makes_a_record_as_sure_as_it_says(memory):
    record = memory.records.remember("preference", "key", "the spare key is red", confidence=0.8).record
    file = memory.workspace.root / record.path
    long_ago = "2026-01-01T00:00:00Z"
    text = file.read_text()
    for name in ("decayed_at", "last_confirmed_at", "created_at", "updated_at"):
        was = next(line for line in text.splitlines() if line.startswith(f"{name}:"))
        text = text.replace(was, f'{name}: "{long_ago}"')
    file.write_text(text)
    memory.sync()
    now = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    assert paths(memory, min_confidence=0.7, now=now) == []
    file.write_text(text.replace("key: the spare key is red\n", "key: the spare key is blue\n"))
    memory.sync()
    assert paths(memory, min_confidence=0.7, now=now) == [record.path]


@pytest.mark.parametrize(
    ("path", "text", "has_day"),
    [
        ("memory/a.md", "The spare key is here.\n", False),
        ("memory/a.md", "---\ndate: 2026-02-03\n---\nThe spare key is here.\n", True),
        ("memory/a.md", "---\ncreated: 3 February 2026\n---\nThe spare key is here.\n", True),
        ("memory/log.md", "# Log\n\n## 2026-02-03 Wed\n\nThe spare key is here.\n", True),
        ("memory/2026_02_03.md", "The spare key is here.\n", True),
        ("memory/journal/2026/02/03.md", "The spare key is here.\n", True),
        ("memory/2026-05-09.md", "## 3 February 2026\n\nThe spare key is here.\n", True),
    ],
)
def test_a_line_is_of_the_day_that_its_note_says_and_never_of_the_last_change(memory, path, text, has_day):
    write(memory.workspace.root, path, text, date(2026, 1, 1))
    memory.sync()
    assert paths(memory, since="2026-02-03", until="2026-02-03") == ([path] if has_day else [])
    assert paths(memory, until="2026-02-02") == []


def test_metadata_of_a_document_that_is_named_like_the_librarys_own_is_still_filtered_by(memory):
    memory.documents.add([Document("a", "the spare key", {":day": "x"}), Document("b", "the spare key", {":day": "y"})])
    for _ in range(2):
        found = memory.documents.search(QUERY, 5, where=Documents.Filter({":day": "y"}))
        assert [one.id for one, _ in found] == ["b"]


def test_among_many_other_files_those_at_a_path_are_found(tmp_path):
    for at in range(300):
        write(tmp_path, f"memory/others/{at}.md", "The spare key hangs in the hall.\n")
    for at in range(3):
        write(tmp_path, f"memory/me/{at}.md", f"The spare key lies below pot {at}.\n")
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.sync()
        mine = [f"memory/me/{at}.md" for at in range(3)]
        for path in ("memory/me/*", mine, [*mine, *(f"memory/nobody/{at}.md" for at in range(30))], "/memory/me/"):
            for _ in range(5):
                found = memory.search(QUERY, filter={"path": path})
                assert sorted(hit.path for hit in found) == mine
