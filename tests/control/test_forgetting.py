"""What is forgotten is gone from every byte; what is not meant stays; a plan changes nothing and tells the truth."""

import datetime
import json
import os
import tempfile

import filelock
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import FilesConfig, SessionsConfig
from openclaw_memory.control import forgetting
from openclaw_memory.conversation import snapshots
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import ConflictError, InvalidInputError, NotFoundError
from openclaw_memory.flush.state import read_states
from openclaw_memory.types import Document
from openclaw_memory.workspace import atomic
from openclaw_memory.workspace.paths import locate_transcripts

NOW = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
UTC = MemoryConfig(sessions=SessionsConfig(timezone="UTC"))
WORD = "quokkavine"  # its stem and its beginning are no part of any other word
TRACE = "quokkav"


def traces(*folders, word=TRACE):
    """The files below these folders whose names or bytes hold the word, in any case, in UTF-8 or UTF-16."""
    forms = [word.encode(), word.encode("utf-16-le")]
    found = []
    for folder in folders:
        for base, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(base, name)
                with open(path, "rb") as file:
                    data = file.read().lower()
                if word in path.lower() or any(form in data for form in forms):
                    found.append(os.path.relpath(path, folder))
    return sorted(found)


def say(memory, session, *messages):
    """Write messages, each a day and a text, to a transcript."""
    log = memory.sessions.log(session)
    log.append_entries(
        [
            {"type": "message", "timestamp": f"{day}T09:00:00Z", "message": {"role": "user", "content": text}}
            for day, text in messages
        ]
    )
    return memory.workspace.root / log.path


def files_of(root):
    """Each file of the notes, with its bytes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".memory" not in path.parts and path.name != ".lock"
    }


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A workspace, a cache folder and a temporary folder of their own."""
    root, cache, scratch = (tmp_path / name for name in ("notes", "cache", "scratch"))
    for folder in (root, cache, scratch):
        folder.mkdir()
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(cache))
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("SQLITE_TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return root, cache, scratch


class Slow(HashingEmbedder):
    """An embedder whose vectors cost something, so that the index keeps those out of use."""

    provider = "slow"


def fill(memory):
    """Put the word into everything that remembers, on days that are forgotten, and other words on others."""
    memory.append(f"The {WORD} grows by the shed.", date="2026-11-22")
    memory.append("The ferry leaves at seven.", date="2026-11-20")
    memory.records.remember("fact", "garden.plant", f"a {WORD}")
    memory.records.remember("fact", f"{WORD}.colour", "green", user_id=f"{WORD}-user")
    metadata = {"created_at": "2026-11-22T08:00:00+00:00"}
    memory.documents.add([Document(f"doc-{WORD}", f"All about the {WORD}.", metadata)])
    say(memory, "talk", ("2026-11-20", "When does the ferry leave?"), ("2026-11-22", f"I planted a {WORD}."))


@pytest.mark.fault(36)
@pytest.mark.parametrize("embedder", [HashingEmbedder, Slow])
def test_the_last_days_leave_no_trace_in_any_file(places, embedder):
    root = places[0]
    with Memory.open(root, embedder=embedder(), config=UTC) as memory:
        fill(memory)
        memory.sync()
        memory.search(WORD)
        memory.heartbeat()
        assert len(traces(*places)) >= 5
        since = min(datetime.date(2026, 11, 21), datetime.datetime.now(datetime.UTC).date())
        receipt = memory.control.forget(since=since, dry_run=False)
        assert receipt.remaining == ()
        assert receipt.is_erased
        assert traces(*places) == []
        assert memory.search("ferry leaves").results[0].path == "memory/2026-11-20.md"
        assert "ferry" in memory.get("sessions/talk.jsonl").text
        assert list(memory.records) == []
    assert traces(*places) == []


def test_words_leave_no_trace_in_any_file_once_the_notes_without_a_day_are_named(places):
    root = places[0]
    with Memory.open(root, embedder=HashingEmbedder(), config=UTC) as memory:
        fill(memory)
        (root / "MEMORY.md").write_text(f"# Long\n\n- A {WORD.upper()} is there.\n- Trains.\n")
        memory.sync()
        plan = memory.control.forget(query=WORD).plan
        assert [one.where for one in plan.review] == ["MEMORY.md#L3"]
        memory.control.forget(query=WORD, paths=[one.where for one in plan.review], dry_run=False)
        assert traces(*places) == []
        assert (root / "MEMORY.md").read_text() == "# Long\n\n- Trains.\n"
        assert "memory/2026-11-20.md" in {result.path for result in memory.search("ferry")}


def test_a_session_goes_with_its_transcript_and_its_entries(places):
    root = places[0]
    with Memory.open(root, embedder=None, config=UTC) as memory:
        say(memory, WORD, ("2026-11-20", f"The {WORD} is mine."))
        say(memory, "other", ("2026-11-20", "Nothing of it."))
        folder = locate_transcripts(root, memory.workspace.sessions)
        entries = {f"agent:main:{name}": {"sessionId": name} for name in (WORD, "other")}
        (root / "sessions/sessions.json").write_text(json.dumps(entries))
        memory.sync()
        receipt = memory.control.forget(session=WORD, dry_run=False)
        assert receipt.plan.sessions == (f"agent:main:{WORD}",)
        assert traces(*places) == []
        assert list(read_states(folder)) == ["agent:main:other"]


def test_a_dry_run_is_the_default_and_changes_nothing(tmp_path):
    with Memory.open(tmp_path, embedder=None, config=UTC) as memory:
        fill(memory)
        memory.sync()
        before = files_of(tmp_path)
        receipt = memory.control.forget(last_days=400, now=NOW)
        assert (receipt.is_dry_run, receipt.forgotten, receipt.is_erased) == (True, (), False)
        assert receipt.plan
        assert files_of(tmp_path) == before
        assert memory.control.forget(last_days=400, now=NOW) == receipt


ALL_DAYS = ["18", "19", "20", "21", "22", "23"]


@pytest.mark.parametrize(
    ("days", "gone"), [(1, ["23"]), (2, ["22", "23"]), (3, ["21", "22", "23"]), (740_000, ALL_DAYS), (10**20, ALL_DAYS)]
)
def test_today_is_the_first_of_the_last_days(tmp_path, days, gone):
    with Memory.open(tmp_path, embedder=None, config=UTC) as memory:
        for day in range(18, 24):
            memory.append("Something.", date=f"2026-11-{day}")
        plan = memory.control.forget(last_days=days, now=NOW).plan
        assert [step.path for step in plan.steps] == [f"memory/2026-11-{day}.md" for day in gone]


def test_today_and_the_days_of_messages_are_those_of_the_zone_of_the_journal(tmp_path):
    config = MemoryConfig(sessions=SessionsConfig(timezone="Asia/Tokyo"))
    with Memory.open(tmp_path, embedder=None, config=config) as memory:
        memory.append("Yesterday in Tokyo.", date="2026-11-23")
        memory.append("Today in Tokyo.", date="2026-11-24")
        log = memory.sessions.log("talk")
        for hour in (14, 16):  # 23:00 of the 23rd, and 1:00 of the 24th
            log.append_entry(
                "message", timestamp=f"2026-11-23T{hour}:00:00Z", message={"role": "user", "content": f"at {hour}"}
            )
        plan = memory.control.forget(last_days=1, now=NOW.replace(hour=16)).plan
        assert [step.citation for step in plan.steps] == ["memory/2026-11-24.md", "sessions/talk.jsonl#L3"]


def test_what_is_of_no_day_is_listed_and_stays(tmp_path):
    with Memory.open(tmp_path, embedder=None, config=UTC) as memory:
        (tmp_path / "MEMORY.md").write_text("# Long\n\n- Trains.\n")
        memory.append("Something.", date="2026-11-23")
        memory.documents.add([Document("one", "A document without a day.")])
        today = datetime.datetime.now(datetime.UTC).date()
        since = min(today, NOW.date())
        receipt = memory.control.forget(since=since, dry_run=False)
        assert receipt.forgotten == ("memory/2026-11-23.md",)
        assert [one.where for one in receipt.plan.review] == ["MEMORY.md", "memory/notes/one.md"]
        assert (tmp_path / "MEMORY.md").exists()
        assert memory.control.forget(paths=["MEMORY.md"], dry_run=False).forgotten == ("MEMORY.md",)
        assert not (tmp_path / "MEMORY.md").exists()


def test_a_line_is_of_the_day_of_the_nearest_dated_heading_as_it_is_to_a_search(tmp_path):
    with Memory.open(tmp_path, embedder=None, config=UTC) as memory:
        own = "# Long\n\n- The ferry is white.\n\n## 2026-11-10\n\n- Paid the ferry.\n\n## 22 November 2026\n\n### Sale\n\n- Sold the ferry.\n"
        (tmp_path / "MEMORY.md").write_text(own)
        memory.append("- The ferry is late.\n\n## 2026-11-01\n\n- Bought the ferry.", date="2026-11-23")
        memory.sync()
        note, day = memory.control.inspect()
        assert [str(one) for one in (note.kind, note.date, note.last_date)] == ["note", "2026-11-10", "2026-11-22"]
        assert [str(one) for one in (day.kind, day.date, day.last_date)] == ["day", "2026-11-01", "2026-11-23"]
        of_time = {"since": "2026-11-10", "until": "2026-11-22"}
        assert {hit.path for hit in memory.search("ferry", filter=of_time)} == {"MEMORY.md"}
        plan = memory.control.forget(since="2026-11-22").plan
        assert [step.citation for step in plan.steps] == ["MEMORY.md#L9-L13", "memory/2026-11-23.md#L1-L4"]
        plan = memory.control.forget(query="ferry").plan
        assert [step.citation for step in plan.steps] == ["MEMORY.md#L7,L13", "memory/2026-11-23.md#L3,L7"]
        assert [one.where for one in plan.review] == ["MEMORY.md#L3"]


def test_records_go_by_a_glob_of_their_keys(memory):
    for key in ("editor.theme", "editor.font", "tea"):
        memory.records.remember("preference", key, "x")
    memory.control.forget(key="editor.*", dry_run=False)
    assert [record.key for record in memory.records] == ["tea"]


def test_a_message_becomes_as_long_a_line_that_keeps_its_ids(tmp_path):
    with Memory.open(tmp_path, embedder=None, config=UTC) as memory:
        path = say(memory, "talk", *[("2026-11-20", "Keep."), ("2026-11-22", "Go."), ("2026-11-22", f"A {WORD} é.")])
        before = path.read_bytes().split(b"\n")
        memory.control.forget(since="2026-11-21", dry_run=False)
        after = path.read_bytes().split(b"\n")
        assert list(map(len, after)) == list(map(len, before))
        assert after[:2] == before[:2]
        for old, new in zip(before[2:4], map(json.loads, after[2:4]), strict=True):
            said = json.loads(old)
            assert {name: new[name] for name in ("id", "parentId", "timestamp", "type")} == {
                name: said[name] for name in ("id", "parentId", "timestamp", "type")
            }
            assert new["message"]["role"] == "user"
            assert new["message"]["content"] in {"", "[forgotten]"}
        assert "[forgotten]" not in memory.get("sessions/talk.jsonl").text
        assert not memory.control.forget(since="2026-11-21").plan


def test_a_phrase_is_found_though_a_line_ends_in_it(memory, tmp_path):
    (tmp_path / "memory").mkdir()
    note = tmp_path / "memory" / "2026-11-20.md"
    note.write_bytes(b"# Day\r\n\r\nThe spare\r\nkey hangs there.\r\nThe key is spare.\r\n")
    memory.control.forget(query="spare  KEY", dry_run=False)
    assert note.read_bytes() == b"# Day\r\n\r\nThe key is spare.\r\n"


def test_what_has_changed_since_the_plan_is_not_forgotten(memory, tmp_path):
    memory.append("One.", date="2026-11-20")
    memory.append("Two.", date="2026-11-21")
    plan = memory.control.forget(since="2026-11-20").plan
    memory.append("More.", date="2026-11-21")
    before = files_of(tmp_path)
    for seen in (plan, plan.hash, plan.hash[:12]):
        with pytest.raises(ConflictError, match="look at"):
            memory.control.forget(since="2026-11-20", dry_run=False, expected=seen)
    assert files_of(tmp_path) == before
    again = memory.control.forget(since="2026-11-20").plan
    assert memory.control.forget(since="2026-11-20", dry_run=False, expected=again.hash).remaining == ()


def test_a_conversation_may_go_on_while_its_plan_is_looked_at(memory, tmp_path):
    say(memory, "talk", ("2026-11-22", f"A {WORD}."))
    plan = memory.control.forget(query=WORD).plan
    say(memory, "talk", ("2026-11-23", "Yes, forget it."))
    memory.control.forget(query=WORD, dry_run=False, expected=plan)
    assert traces(tmp_path) == []
    assert "Yes, forget it." in memory.get("sessions/talk.jsonl").text


def test_after_a_crash_half_way_the_next_call_finishes(places, monkeypatch):
    root = places[0]
    with Memory.open(root, embedder=None, config=UTC) as memory:
        fill(memory)
        memory.sync()
        done = []

        def crash(workspace, step, seen):
            if len(done) == 2:
                raise KeyboardInterrupt
            done.append(step)
            return work(workspace, step, seen)

        work = forgetting._apply_step
        monkeypatch.setattr(forgetting, "_apply_step", crash)
        with pytest.raises(KeyboardInterrupt):
            memory.control.forget(query=WORD, dry_run=False)
        assert traces(*places)
    monkeypatch.setattr(forgetting, "_apply_step", work)
    with Memory.open(root, embedder=None, config=UTC) as memory:
        memory.control.forget(query=WORD, dry_run=False)
        assert traces(*places) == []


@pytest.mark.fault(36)
def test_the_receipt_says_what_could_not_go(tmp_path, monkeypatch):
    root, outside = tmp_path / "notes", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "memory").mkdir()
    (outside / "far.md").write_text("Far away.\n")
    (root / ".git").mkdir()
    config = MemoryConfig(files=FilesConfig(extra_paths=(str(outside),)))
    with Memory.open(root, embedder=None, config=config) as memory:
        memory.append("Near.", date="2026-11-20")
        memory.append("Refused.", date="2026-11-21")
        remove_all = atomic.OpenFolder.remove_all

        def refuse(folder, files):
            if files[0][0] == "2026-11-21.md":
                raise PermissionError(13, "Permission denied")
            remove_all(folder, files)

        monkeypatch.setattr(atomic.OpenFolder, "remove_all", refuse)
        far = next(item.path for item in memory.control.inspect() if item.path.endswith("far.md"))
        receipt = memory.control.forget(since="2026-11-20", paths=[far], dry_run=False)
        assert receipt.forgotten == ("memory/2026-11-20.md",)
        reasons = {one.path: one.reason for one in receipt.remaining}
        assert "outside of the workspace" in reasons[far]
        assert "Permission denied" in reasons["memory/2026-11-21.md"]
        assert "git" in reasons[str(root)]
        assert (outside / "far.md").exists()


def test_what_another_process_holds_is_told(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "LOCK_SECONDS", 0.05)
    memory.append("Held.", date="2026-11-20")
    with filelock.FileLock(tmp_path / "memory" / ".lock"):
        receipt = memory.control.forget(since="2026-11-20", dry_run=False)
    assert receipt.forgotten == ()
    assert "is held" in receipt.remaining[0].reason


def test_an_index_that_is_being_read_is_erased_later_and_the_receipt_says_so(memory, tmp_path):
    memory.append(f"A {WORD}.", date="2026-11-20")
    memory.sync()
    with memory._engine.service.store().snapshot() as frozen:
        assert frozen.get_files()
        receipt = memory.control.forget(query=WORD, dry_run=False)
        assert not receipt.is_erased
        assert "reads an old state" in receipt.remaining[0].reason
    assert memory.control.forget(query=WORD, dry_run=False).is_erased
    assert traces(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing says what"),
        ({"last_days": 1, "query": "x"}, "last_days, query"),
        ({"last_days": 0}, "last_days must be a whole number"),
        ({"last_days": True}, "last_days must be a whole number"),
        ({"since": "yesterday"}, "such as '2026-01-31'"),
        ({"query": " "}, "at least one character"),
        ({"paths": "MEMORY.md"}, "give a list"),
        ({"since": "2026-11-20", "expected": "abc"}, "at least 12 digits"),
    ],
)
def test_a_call_that_names_not_one_thing_is_refused(tmp_path, given, message):
    with Memory.open(tmp_path, embedder=None) as memory, pytest.raises(InvalidInputError, match=message):
        memory.control.forget(**given)


def test_lines_and_files_that_are_named_have_to_be_there(memory):
    memory.append("One.", date="2026-11-20")
    memory.records.remember("fact", "tea", "green")
    for path in ("memory/2026-11-19.md", "memory/2026-11-20.md#L9"):
        with pytest.raises(NotFoundError):
            memory.control.forget(paths=[path])
    with pytest.raises(InvalidInputError, match="as a whole"):
        memory.control.forget(paths=["memory/records/fact/tea.md#L3"])


days = st.dates(datetime.date(2026, 11, 1), datetime.date(2026, 11, 30))


@settings(max_examples=10)
@given(st.lists(st.tuples(days, st.sampled_from(["ferry", "tea", "key ring"])), max_size=8), days, st.data())
def test_a_plan_is_the_same_twice_and_what_is_left_after_it_is_the_rest(written, since, data):
    wanted = data.draw(st.sampled_from([{"since": since}, {"query": "tea"}, {"query": "Key"}]))
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None, config=UTC) as memory:
        for day, text in written:
            memory.append(f"A {text}.", date=day)
            say(memory, "talk", (day, f"The {text}."))
        plan = memory.control.forget(**wanted).plan
        assert memory.control.forget(**wanted).plan == plan
        memory.control.forget(**wanted, dry_run=False, expected=plan.hash)
        assert memory.control.forget(**wanted).plan.steps == ()
        for day, text in written:
            goes = day >= since if "since" in wanted else str(wanted["query"]).lower() in text
            note = memory.workspace.root / "memory" / f"{day}.md"
            assert (note.exists() and f"A {text}." in note.read_text()) == (not goes)
            said = memory.get("sessions/talk.jsonl", start=1, lines=100).text
            assert goes or f"The {text}." in said


def test_everything_is_inspected_with_what_it_is(tmp_path):
    with Memory.open(tmp_path, embedder=None, config=UTC) as memory:
        (tmp_path / "MEMORY.md").write_text("# Long\n\n- Trains.\n")
        memory.append("One.", date="2026-11-20")
        memory.documents.add([Document("one", "A document.", {"created_at": "2026-11-19T08:00:00Z"})])
        memory.records._clock = lambda: NOW
        memory.records.remember("fact", "tea", "green", sensitivity="high")
        say(memory, "talk", ("2026-11-18", "First."), ("2026-11-21", "Last."))
        items = {item.kind: item for item in memory.control.inspect()}
        shown = {kind: (item.path, str(item.date), str(item.last_date), item.source) for kind, item in items.items()}
        assert shown == {
            "note": ("MEMORY.md", "None", "None", "file"),
            "day": ("memory/2026-11-20.md", "2026-11-20", "2026-11-20", "file"),
            "document": ("memory/notes/one.md", "2026-11-19", "2026-11-19", "tool"),
            "record": ("memory/records/fact/tea.md", "2026-11-23", "2026-11-23", "user"),
            "transcript": ("sessions/talk.jsonl", "2026-11-18", "2026-11-21", "chat_turn"),
        }
        assert (items["record"].type, items["record"].key, items["record"].sensitivity) == ("fact", "tea", "high")
        assert (items["note"].lines, items["note"].size) == (3, 18)
        assert [item.path for item in memory.control.inspect()] == sorted(item.path for item in items.values())


def snapshot_of(memory, session, text, day, summary=None):
    now = datetime.datetime.fromisoformat(f"{day}T09:00:00+00:00")
    return snapshots.save(memory.workspace, session, [{"role": "user", "content": text}], summary, now=now)


@pytest.mark.parametrize("wanted", [{"since": "2026-11-21"}, {"session": "vines"}, {"query": f"a {WORD}"}])
def test_a_snapshot_goes_with_what_its_note_says_of_it(places, wanted):
    root = places[0]
    with Memory.open(root, embedder=HashingEmbedder(), config=UTC) as memory:
        memory.append("The ferry leaves at seven.", date="2026-11-20")
        kept = snapshot_of(memory, "ferries", "When does the ferry leave?", "2026-11-20", "About ferries.")
        gone = snapshot_of(memory, "vines", f"I planted a {WORD}.", "2026-11-22", f"The {WORD} grows.")
        memory.sync()
        receipt = memory.control.forget(**wanted, dry_run=False)
        assert (receipt.remaining, receipt.is_erased) == ((), True)
        assert gone.path in receipt.forgotten
        assert traces(*places) == []
        assert memory.sessions.snapshots() == (kept,)
        assert kept.path in memory.get("memory/2026-11-20.md").text


def test_a_session_goes_with_the_snapshots_under_its_key_and_its_id(places):
    with Memory.open(places[0], embedder=None, config=UTC) as memory:
        (places[0] / "sessions").mkdir(exist_ok=True)
        (places[0] / "sessions/sessions.json").write_text('{"agent:main:main": {"sessionId": "s-1"}}')
        for session in ("agent:main:main", "s-1", "s-2"):
            snapshot_of(memory, session, f"Tea with {session}.", "2026-11-22")
        memory.control.forget(session="agent:main:main", dry_run=False)
        assert [one.session_id for one in memory.sessions.snapshots()] == ["s-2"]
