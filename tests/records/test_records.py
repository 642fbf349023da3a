"""Records in files: what is written, what a person may edit, and what happens when several write."""

import json
import multiprocessing
import operator
import os
import random
import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from index_files import index_folder
from moving_clock import Clock

from openclaw_memory import Memory, MemoryConfig, errors
from openclaw_memory.config.sections import RecordsConfig
from openclaw_memory.records import RecordSource
from openclaw_memory.records.files import make_path

START = datetime(2026, 11, 23, 12, tzinfo=UTC)
THEME = "memory/records/preference/editor.theme.md"


@pytest.fixture
def clock():
    return Clock(START)


@pytest.fixture
def memory(tmp_path, clock):
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.records._clock = clock
        yield memory


@pytest.fixture
def records(memory):
    return memory.records


def turn(ref, moment=START):
    return RecordSource("chat_turn", ref, moment)


def test_a_record_has_the_fourteen_fields(records):
    source = {"kind": "chat_turn", "ref": "msg_9981", "observed_at": "2026-11-23T13:00:00.5+01:00"}
    record = records.remember("preference", "editor.theme", "dark", confidence=0.91, source=source).record
    assert record.to_dict() == {
        "memory_id": record.memory_id, "user_id": None, "type": "preference", "key": "editor.theme", "value": "dark",
        "confidence": 0.91, "source": {"kind": "chat_turn", "ref": "msg_9981", "observed_at": "2026-11-23T12:00:00Z"},
        "sensitivity": "low", "ttl": 365 * 86_400, "last_confirmed_at": "2026-11-23T12:00:00Z", "version": 1,
        "embedding_ref": "vec_4ee7b409c5460955", "created_at": "2026-11-23T12:00:00Z",
        "updated_at": "2026-11-23T12:00:00Z",
    }  # fmt: skip
    assert re.fullmatch("mem_[0-9a-f]{16}", record.memory_id)


@pytest.mark.parametrize(
    "key", ["a", "a.b", "Über.größe", "A", "con", "..", "a/b", "../../etc/passwd", "k" * 300, "a b", ".x"]
)
def test_every_key_has_a_file_of_its_own(records, tmp_path, key):
    records.remember("fact", key, 1)
    records.remember("fact", key + "2", 2)
    assert (records.get("fact", key).key, records.get("fact", key).value) == (key, 1)
    assert (tmp_path / make_path("fact", key, None)).resolve().is_relative_to(tmp_path / "memory" / "records" / "fact")
    assert make_path("fact", key, None) != make_path("fact", key.upper() + "_", None)


@pytest.mark.parametrize(
    "glob", ["k.*", "k.1*", "k.1", "*", "*1", "k.[12]*", "K.*", "a.b*", "é*", "con*", "k k*", "?.1"]
)
@pytest.mark.sampled(3)
def test_find_by_a_glob_of_keys_finds_what_a_look_at_all_of_them_does(records, glob):
    keys = ["k.1", "k.10", "k.2", "K.1", "k1", "a.b.c", "a", "été", "con.x", "k k", ".k", "k." + "1" * 90, "a..b"]
    for number, key in enumerate(keys):
        records.remember("fact", key, number, user_id="usr_1" if number % 3 else None)
    found = {record.key for record in records.find(key=glob)}
    assert found == {key for key in keys if fnmatchcase(key, glob)}


def test_a_record_is_found_by_what_it_means(tmp_path):
    with Memory.open(tmp_path) as memory:
        for key, value in (("food.dislikes", "nuts"), ("editor.font", "Fira"), ("editor.theme", "dark")):
            memory.records.remember("preference", key, value)
        assert memory.records.find("what colour scheme does the user like")[0].key == "editor.theme"


def test_a_search_that_meets_expired_records_shows_the_others(memory, records, clock):
    for number in range(30):
        records.remember("other", f"parking.{number}", "level two of the garage", ttl=3600 if number % 2 else None)
    memory.sync()
    clock.later(seconds=3601)
    shown = memory.search("Where is parking in the garage?", now=clock.now, max_results=10)
    assert len(shown) == 10
    assert all(int(result.path.split(".")[1]) % 2 == 0 for result in shown)


def test_a_stable_value_waits_for_a_second_source(records, clock):
    records.remember("preference", "editor.theme", "dark", source=turn("m1"))
    clock.later(days=8)
    first = records.remember("preference", "editor.theme", "light", source=turn("m2", clock.now))
    assert (first.outcome, first.record.value) == ("waiting", "dark")
    assert [one.value for one in first.record.waiting] == ["light"]
    assert "another source" in first.reason
    second = records.remember("preference", "editor.theme", "light", source=turn("m3", clock.now))
    assert (second.outcome, second.record.value, second.record.waiting) == ("replaced", "light", ())
    history = records.get("preference", "editor.theme").history
    assert [(one.version, one.value) for one in history] == [(1, "dark"), (3, "light")]


def test_noise_does_not_make_the_answer_flip(records, clock):
    """One observation a day for 60 days, one in ten wrong: settled answers change far less often than the latest one."""
    random.seed(7)
    naive = settled = 0
    for key in "abcdef":
        values = ["light" if random.random() < 0.1 else "dark" for _ in range(60)]
        answers = []
        for value in values:
            answers.append(records.remember("preference", key, value).record.value)
            clock.later(days=1)
        naive += sum(map(operator.ne, values, values[1:]))
        settled += sum(map(operator.ne, answers, answers[1:]))
    assert settled < naive / 5


def test_a_value_that_comes_back_is_one_value_of_the_history_in_the_file_too(records, clock):
    for number, value in enumerate(["dark", "light", "dark", "light"], 1):
        records.remember("preference", "editor.theme", value, source=turn(f"m{number}", clock.now))
        clock.later(hours=1)
    kept = records.get("preference", "editor.theme").history
    assert [(one.version, one.value) for one in kept] == [(3, "dark"), (4, "light")]


def test_the_file_of_a_record_stops_growing(records, clock, tmp_path):
    """Whatever is observed of it, and however often: one block of most disks, 4,096 bytes, holds it."""
    sizes = []
    for number in range(120):
        value = f"value {number % 40} " + "x" * 60
        source = turn(f"message-{number:04}", clock.now)
        records.remember("preference", "editor.theme", value, source=source, confidence=0.8 - 0.3 * (number % 3 == 0))
        clock.later(hours=7)
        sizes.append((tmp_path / THEME).stat().st_size)
    assert max(sizes) < 4096
    assert max(sizes[60:]) <= max(sizes[:60]) * 1.02


def test_confidence_of_a_preference_falls_until_it_is_confirmed(records, clock):
    records.remember("preference", "editor.theme", "dark", confidence=0.8)
    records.remember("fact", "home.city", "Utrecht", confidence=0.8)
    clock.later(days=30)
    assert records.get("preference", "editor.theme").confidence == pytest.approx(0.4)
    assert records.get("fact", "home.city").confidence == 0.8
    assert records.confirm("preference", "editor.theme").confidence == 1.0


def test_an_expired_record_is_never_returned(memory, records, clock):
    clock.now = datetime.now(UTC) - timedelta(days=1)
    path = records.remember("other", "parking", "level two of the garage", ttl=3600).record.path
    memory.append("The garage has three levels.", date="2026-11-22")
    memory.sync()
    clock.later(seconds=3601)
    assert (records.get("other", "parking"), records.find()) == (None, [])
    for now in (clock.now, None):
        assert [result.path for result in memory.search("garage level", now=now)] == ["memory/2026-11-22.md"]
    with pytest.raises(errors.NotFoundError, match="expired"):
        memory.get(path)
    again = records.remember("other", "parking", "level one")
    assert (again.outcome, again.record.version) == ("new", 1)


@pytest.mark.parametrize("ttl", [10**12, 10**30])
def test_a_record_that_outlasts_the_calendar_never_expires(records, ttl):
    records.remember("fact", "office", "Lisbon", ttl=ttl)
    assert [(record.value, record.ttl, record.expires_at) for record in records] == [("Lisbon", ttl, None)]
    assert records.expire() == []


def open_with(tmp_path, *days):
    return Memory.open(tmp_path, embedder=None, config=MemoryConfig(records=RecordsConfig(ttl_days=days)))


def test_types_and_sensitivities_have_days_of_their_own(tmp_path):
    with open_with(tmp_path, "other=0.5", "high=2", "fact=5", "fact.high=7") as memory:
        expected = {"other": 0.5, "other.high": 0.5, "decision": None, "decision.high": 2, "fact": 5, "fact.high": 7}
        for name, days in expected.items():
            kind, _, level = name.partition(".")
            ttl = memory.records.remember(kind, name, 1, sensitivity=level or None).record.ttl
            assert ttl == (days and days * 86_400), name
        assert memory.records.remember("other", "k2", 1, ttl=None).record.ttl is None


@pytest.mark.parametrize(
    "entry", ["odd=1", "fact.odd=1", "high.fact=1", "other", "other=soon", "other=inf", "other=-1"]
)
def test_days_of_nothing_and_no_days_are_refused(tmp_path, entry):
    with open_with(tmp_path, entry) as memory, pytest.raises(errors.ConfigError, match=re.escape(entry)):
        _ = memory.records


@pytest.mark.parametrize(
    "source",
    ["user", {"kind": "file", "ref": "a"}, {"kind": "file", "ref": "a", "observed_at": "2099-01-01T00:00:00Z"}],
)
def test_a_source_without_a_moment_or_of_the_future_is_observed_now(records, clock, source):
    clock.later(days=2)
    assert records.remember("fact", "k", 1, source=source).record.source.observed_at == clock.now


def test_fields_that_a_person_adds_stay(records, tmp_path):
    file = tmp_path / records.remember("preference", "editor.theme", "dark").record.path
    file.write_text(file.read_text().replace("version: 1\n", "version: 1\ntags:\n  - home\nLast Größe-2: 2026-11-01\n"))
    records.confirm("preference", "editor.theme", value="light")
    record = records.remember("preference", "editor.theme", "light", source=turn("m2")).record
    assert record == records.get("preference", "editor.theme")
    assert (record.value, record.version) == ("light", 4)
    assert 'tags: ["home"]\nLast Größe-2: "2026-11-01"\n' in file.read_text()


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("editor.theme: dark\n", "editor.theme: sepia\n", "sepia"), ("editor.theme: dark\n", "sepia\n", "sepia"),
        ('value: "dark"\n', 'value: "sepia"\n', "sepia"), ('value: "dark"\n', "value: sepia\n", "sepia"),
        ("confidence: 0.8\n", "confidence: 0.5\n", "dark"),
    ],
)  # fmt: skip
def test_an_edit_by_hand_is_a_version_of_its_own(records, tmp_path, old, new, value):
    records.remember("preference", "editor.theme", "dark")
    file = tmp_path / THEME
    file.write_text(file.read_text().replace(old, new))
    record = records.get("preference", "editor.theme")
    assert (record.value, record.version) == (value, 2)
    assert record.is_confirmed == (value == "sepia")
    assert records.get("preference", "editor.theme").version == 2
    after = records.remember("preference", "editor.theme", value, source=turn("m2", datetime.now(UTC)))
    assert (after.outcome, after.record.version, after.record.value) == ("supported", 3, value)
    assert [one.value for one in after.record.history] == list(dict.fromkeys(["dark", value]))


def test_the_version_that_was_seen_must_still_be_there(records):
    first = records.remember("fact", "k", 1).record
    records.remember("fact", "k", 2)
    with pytest.raises(errors.ConflictError, match="version 2, not version 1") as raised:
        records.remember("fact", "k", 3, expected_version=1)
    assert json.loads(raised.value.current)["value"] == 2
    assert raised.value.proposed == "3"
    with pytest.raises(errors.ConflictError):
        records.confirm("fact", "k", expected_version=first)
    with pytest.raises(errors.ConflictError):
        records.forget("fact", "k", expected_version=1)
    with pytest.raises(errors.ConflictError, match="missing"):
        records.remember("fact", "other", 1, expected_version=4)
    assert records.remember("fact", "other", 1, expected_version=0).outcome == "new"
    assert records.get("fact", "k").value == 2


def test_a_token_makes_a_call_once(memory, records, tmp_path):
    for _ in range(3):
        records.remember("fact", "k", 1, token="call-1")
    assert records.get("fact", "k").version == 1
    memory.sync()
    memory.close()
    for file in index_folder(tmp_path).glob("index.*"):
        file.unlink()
    with Memory.open(tmp_path, embedder=None) as again:
        repeated = again.records.remember("fact", "k", 2, token="call-1")
        assert (repeated.outcome, repeated.record.value) == ("same", 1)


def test_forget_removes_the_file(records, tmp_path):
    records.remember("preference", "editor.theme", "dark")
    assert records.forget("preference", "editor.theme")
    assert not (tmp_path / THEME).exists()
    assert not records.forget("preference", "editor.theme")
    assert records.get("preference", "editor.theme") is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"type": "wish"}, "type is 'wish'"), ({"key": ""}, "key is ''"), ({"key": "a\nb"}, "key is"),
        ({"value": {1, 2}}, "cannot be written as JSON"), ({"value": float("nan")}, "cannot be written as JSON"),
        ({"value": "sk-proj-" + "a1B2c3D4" * 6}, "holds a secret"),
        ({"confidence": 1.5}, "confidence must be a number from 0 to 1, not 1.5"),
        ({"confidence": True}, "confidence must be a number from 0 to 1, not True"),
        ({"confidence": 0.1}, "is below 0.3"), ({"sensitivity": "secret"}, "sensitivity is 'secret'"),
        ({"ttl": 0}, "ttl is 0"), ({"ttl": "1h"}, "ttl is '1h'"), ({"user_id": " "}, "user_id is ' '"),
        ({"token": ""}, "token is ''"), ({"expected_version": "1"}, "expected_version is '1'"),
        ({"source": "me"}, "source is 'me'"), ({"source": 5}, "source is 5"),
        ({"source": {"kind": "dream", "ref": "m1"}}, "Invalid enum value 'dream'"),
        ({"source": {"kind": "file"}}, "required field `ref`"),
        ({"source": {"kind": "file", "ref": " "}}, "required field `ref`"),
        ({"source": RecordSource("chat_turn", "", START)}, "required field `ref`"),
        ({"source": {"kind": "file", "ref": "a", "reff": "b", "at": 1}}, "unknown fields, at, reff"),
        ({"source": {"kind": "file", "ref": 5}}, "Expected `str`, got `int`"),
        ({"source": {"kind": "file", "ref": "a", "observed_at": 5}}, "Expected `datetime`, got `int`"),
        ({"source": RecordSource("chat_turn", "m1", "noon")}, "Invalid RFC3339"),
        ({"source": RecordSource("chat_turn", "m1", START.replace(tzinfo=None))}, "timezone"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named_and_nothing_is_written(records, tmp_path, arguments, words):
    with pytest.raises(errors.InvalidInputError, match=re.escape(words)):
        records.remember(**{"type": "fact", "key": "k", "value": 1, **arguments})
    assert not list((tmp_path / "memory").rglob("*.md"))


def conflict(text: str) -> str:
    return text.replace('value: "dark"\n', '<<<<<<< HEAD\nvalue: "dark"\n=======\nvalue: "light"\n>>>>>>> other\n')


@pytest.mark.parametrize(
    "damage",
    [
        conflict, lambda text: text.replace("editor.theme: dark\n", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n"),
        lambda text: text.replace("confidence: 0.8", "confidence: 2"),
        lambda text: text.replace("version: 1", "version: none"), lambda text: re.sub("created_at: .*\n", "", text),
        lambda text: text.replace('type: "preference"', 'type: "wish"'),
        lambda text: text.replace("history: [{", "history: [{{"), lambda _: "# A note of a person\n",
    ],
)  # fmt: skip
@pytest.mark.sampled(5)
def test_a_damaged_record_is_reported_and_never_overwritten(memory, records, tmp_path, damage):
    records.remember("preference", "editor.theme", "dark")
    records.remember("fact", "k", 1)
    file = tmp_path / THEME
    broken = damage(file.read_text())
    file.write_text(broken)
    with pytest.raises(errors.RecordError, match=re.escape(THEME)):
        records.get("preference", "editor.theme")
    with pytest.raises((errors.RecordError, errors.PathNotAllowedError), match=re.escape(THEME)):
        records.remember("preference", "editor.theme", "light")
    assert file.read_text() == broken
    assert [record.key for record in records.find()] == ["k"]
    (line,) = records.list_problems()
    assert THEME in line
    assert line in memory.status().notices


def test_two_files_of_one_record_are_reported(records, tmp_path):
    records.remember("preference", "editor.theme", "dark")
    (tmp_path / "memory/records/preference/copy.md").write_bytes((tmp_path / THEME).read_bytes())
    assert "holds the same record as memory/records/preference/copy.md" in "".join(records.list_problems())


def _remember(root: Path, keys: int, times: int) -> None:
    with Memory.open(root, embedder=None) as memory:
        for number in range(times):
            source = RecordSource("tool", f"{os.getpid()}-{number}", datetime.now(UTC))
            memory.records.remember("fact", f"k{number % keys}", "same", source=source)


@pytest.mark.nightly
def test_eight_processes_lose_no_update(tmp_path):
    """Each call is one version: as many versions as calls, and every file whole."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_remember, args=(tmp_path, 3, 15)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    with Memory.open(tmp_path, embedder=None) as memory:
        assert memory.records.list_problems() == []
        assert sum(record.version for record in memory.records) == 8 * 15


VALUES = ["dark", "a\nb", 7, 0.5, True, None, ["a", 1], {"a": {"b": None}}, {"a": "\0"}, "a\0b", "", " blanks "]
VALUES += ["<<<<<<< a\n=======\n>>>>>>> b", "one\r\ntwo", "\ufeffa\x85\u2028\x1e"]


def test_a_value_is_read_as_it_was_remembered(records):
    for at, value in enumerate(VALUES):
        records.remember("fact", f"k{at}", value)
        record = records.get("fact", f"k{at}")
        assert json.dumps(record.value) == json.dumps(value)
        assert (record.version, record.is_confirmed) == (1, False)
    assert records.list_problems() == []


def test_ends_of_lines_that_git_has_changed_are_no_edit(records, tmp_path):
    for key, value in (("one", "line"), ("two", "line\nline")):
        file = tmp_path / records.remember("fact", key, value).record.path
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        record = records.get("fact", key)
        assert (record.value, record.version, record.is_confirmed) == (value, 1, False)
        file.write_bytes(file.read_bytes().replace(b": line\r", b": boat\r"))
        edited = records.get("fact", key)
        assert (edited.value, edited.version, edited.is_confirmed) == (value.replace("line", "boat", 1), 2, True)


LATE, EARLY = "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ttl", "x"), ("confidence", "NaN"), ("confidence", "9" * 400), ("sensitivity", "[1]"), ("type", "[1]"),
        ("history", "5"), ("waiting", '{"a": 1}'), ("source", "5"), ("source", "{}"), ("decayed_at", "[5]"),
        ("decayed_at", LATE), ("created_at", EARLY), ("updated_at", EARLY), ("last_confirmed_at", LATE), ("version", "0"),
    ],
)  # fmt: skip
@pytest.mark.sampled(7)
def test_whatever_is_written_into_a_field_breaks_that_record_alone(memory, records, tmp_path, field, value):
    records.remember("fact", "whole", "the mill")
    file = tmp_path / records.remember("fact", "broken", "the mill").record.path
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(rf"^{field}: .*", f"{field}: {value}", text, flags=re.MULTILINE), encoding="utf-8")
    with pytest.raises(errors.RecordError, match="correct it by hand"):
        records.get("fact", "broken")
    assert [one.key for one in records.find()] == ["whole"]
    assert len(records.list_problems()) == 1
    assert memory.heartbeat(budget_seconds=60).left == ()
    assert len(memory.search("mill", filter={"type": "fact"}, max_results=5, min_score=0)) >= 1


def test_a_key_is_the_same_however_its_accents_are_written(memory, records):
    composed, parted = "caf\u00e9.plan", "cafe\u0301.plan"
    records.remember("fact", parted, "tea", user_id="Rene\u0301")
    assert records.remember("fact", composed, "tea", user_id="Ren\u00e9").outcome == "supported"
    memory.sync()
    for key, user in ((composed, "Ren\u00e9"), (parted, "Rene\u0301")):
        assert records.get("fact", key, user_id=user).key == composed
        assert len(records.find(key=key, user_id=user)) == len(records.find(key=f"{key[:-4]}*")) == 1
        assert len(memory.search("tea", filter={"key": key, "user_id": user})) == 1
        assert len(memory.control.forget(key=key).plan.steps) == 1
    assert records.forget("fact", parted, user_id="Rene\u0301")
