"""What policies hide leaves by no door, and what they forbid enters by none."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from faults.doors import KEEPING, SHOWING, WRITING, Asked, Place, broken, shown_by, told, user
from index_files import copy_workspace, index_folder
from msgspec.structs import asdict

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.conversation import snapshots
from openclaw_memory.errors import PathNotAllowedError, PolicyError, RecordError
from openclaw_memory.types import Document

RULES = (
    PolicyRule("codename", "never-store", pattern="(?i)falcon"),
    PolicyRule("pay", "masked", pattern=r"\w+one euros"),
    PolicyRule("delicate", "masked", sensitivity="high"),
    PolicyRule("health", "never-store", key="health.*"),
)
CONFIG = MemoryConfig(policies=RULES)
TOML = "".join(
    "[[defaults.policies]]\n"
    + "".join(f"{name} = {json.dumps(value)}\n" for name, value in asdict(rule).items() if value)
    for rule in RULES
)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FORBIDDEN = "Project Falcon lands in May at pier nine."
MASKED = "The salary of Bo is sixtyone euros."
NEW = "The salary of Cy is seventyone euros."
# No digits: hashes, scores and times hold any.
SECRETS = ("falcon", "fiftyone", "sixtyone", "seventyone", "bad knee", "dark cellar")
WORDS = "falcon project salary tea euros"
# The first three say all of a program; methods are asked for the others too.
ASKED = tuple(
    Asked(WORDS, path, key)
    for path, key in (
        ("MEMORY.md", "boat"),
        ("sessions/s1.jsonl", "health.knee"),
        ("memory/records/fact/door.code.md", "door.code"),
        ("memory/records/fact/boat.md", "boat"),
        ("memory/records/fact/health.knee.md", "health.knee"),
        ("memory/notes/d1.md", "none"),
        ("memory/a/k.md", "none"),
    )
)
WITHOUT_TEXT = {
    "Memory.status",
    "Control.inspect",
    "Control.forget",
    "Memory.heartbeat",
    "Records.list_problems",
    "command status",
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Notes, a document, a record and a transcript, each of which a person has given what policies hide."""
    folder = tmp_path_factory.mktemp("begun") / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "plain.md").write_text("# Plain\n\nBo likes tea.\n", encoding="utf-8")
    hidden = f"# Work\n\n{FORBIDDEN}\n\nThe salary of Anna is fiftyone euros.\n\n- [ ] falcon by 2020-01-01\n\nAnna likes tea.\n"
    (folder / "MEMORY.md").write_text(hidden, encoding="utf-8")
    with Memory.open(folder) as memory:
        memory.documents.add(
            [Document("d1", f"Tea at noon.\n{FORBIDDEN}\nIt costs fiftyone euros.", {"about": "falcon"})]
        )
        moment, said = "2026-01-01T00:00:00+00:00", f"{FORBIDDEN}\nIt costs fiftyone euros."
        item = {"namespace": ["a"], "key": "k", "value": {"text": None, "of": said}, "text_at": ["text"]}
        item |= {"created_at": moment, "updated_at": moment}
        memory.documents.files.write(("memory/a/k.md", item, f"Tea for the salary.\n{said}"))
        memory.records.remember("fact", "health.knee", "a bad knee")
        memory.records.remember("fact", "door.code", "in the dark cellar", sensitivity="high")
        memory.records.remember("fact", "boat", f"{MASKED}")
        log = memory.sessions.log("s1")
        log.append("user", f"{FORBIDDEN}\nThe salary of Anna is fiftyone euros, and tea is served.")
        memory.sessions.snapshot("s1")
        said = [user("It costs fiftyone euros."), user(f"Tea at noon.\n{FORBIDDEN}")]
        memory.sessions.snapshot("ended", said, FORBIDDEN)
    for file in index_folder(folder).rglob("index*"):
        file.unlink()
    with Memory.open(folder, config=CONFIG) as memory:
        memory.sync()
    return folder


def copied(begun, folder) -> Iterator[Place]:
    settings = folder / "settings.toml"
    copy_workspace(begun, folder / "notes")
    settings.write_text(TOML, encoding="utf-8")
    with Memory.open(folder / "notes", config=CONFIG) as memory:
        yield Place(memory, str(settings))


@pytest.fixture
def place(begun, tmp_path):
    """A workspace of its own with all that, and an index that knows the policies."""
    yield from copied(begun, tmp_path)


@pytest.fixture(scope="module")
def shared(begun, tmp_path_factory):
    """One workspace for all doors that change nothing."""
    yield from copied(begun, tmp_path_factory.mktemp("shared"))


def bytes_of(at: Place) -> bytes:
    root = at.memory.workspace.root
    return b"\n".join(file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()).lower()


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text.casefold()]


@pytest.mark.fault(35)
@pytest.mark.parametrize("door", SHOWING)
def test_nothing_that_is_shown_says_what_policies_hide(shared, door, caplog):
    caplog.set_level("DEBUG")
    said = [shown_by(door, shared, it) for it in (ASKED if "." in door else ASKED[:3])]
    assert [secrets_in(text) for text in (*said, caplog.text) if secrets_in(text)] == []
    assert door in WITHOUT_TEXT or any(word in str(said) for word in ("tea", "***"))


@pytest.mark.fault(35)
@pytest.mark.parametrize("door", WRITING)
def test_what_is_never_to_be_stored_is_refused_everywhere(shared, door):
    before = bytes_of(shared).count(b"falcon")
    with pytest.raises(PolicyError, match="codename") as caught:
        WRITING[door](shared, FORBIDDEN)
    assert "pier nine" not in str(caught.value)
    assert bytes_of(shared).count(b"falcon") == before


@pytest.mark.parametrize("door", WRITING)
@pytest.mark.sampled(8)
def test_what_is_masked_is_stored_and_not_shown(place, door):
    assert secrets_in(told(WRITING[door](place, NEW))) == []
    assert b"seventyone euros" in bytes_of(place)
    place.memory.sync()
    for other in ("Memory.search", "Records.find", "Documents.iterate"):
        assert secrets_in(shown_by(other, place, ASKED[0])) == [], other


@pytest.mark.parametrize("door", KEEPING)
def test_of_a_conversation_all_is_kept_but_what_is_never_to_be_stored(place, door):
    before = bytes_of(place)
    KEEPING[door](place, ["Anna rows to the pier.", FORBIDDEN, MASKED, "Anna rows back."])
    after = bytes_of(place)
    assert after.count(b"falcon") == before.count(b"falcon")
    for said in (b"anna rows to the pier.", b"sixtyone euros", b"anna rows back."):
        assert after.count(said) > before.count(said), said
    place.memory.sync()
    assert secrets_in(shown_by("Memory.search", place, ASKED[0])) == []


def test_an_embedder_is_given_nothing_that_is_hidden(place, tmp_path):
    given: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        given.extend(texts)
        return [[1.0, 0.0]] * len(texts)

    with Memory.open(
        place.memory.workspace.root, config=CONFIG, embedder=embed, index_path=tmp_path / "new.sqlite"
    ) as memory:
        memory.sync()
    assert "tea" in str(given)
    assert secrets_in(str(given)) == []


def test_a_heartbeat_asks_a_model_about_records_without_what_is_hidden(place):
    said: list[str] = []
    old = broken(place, "door.code", "last_confirmed_at", '"2020-01-01T00:00:00Z"')
    with old as path, broken(place, "boat", "confidence", "0.1"):
        place.memory.records.sign(path)
        report = place.memory.heartbeat(budget_seconds=60, ask=lambda question: said.append(question) or "KEEP")
    assert ["boat" in said[0], "door.code" in said[1], len(said)] == [True, True, 2]
    assert secrets_in(told([said, report])) == []


def test_a_record_is_looked_at_and_signed_without_what_is_hidden(place):
    with broken(place, "door.code", "confidence", "0.4") as path:
        said = [place.command("sign"), place.command("sign", "--json")]
        [waiting] = place.memory.records.list_unsigned()
        said += [waiting, place.memory.records.sign(path, expected=waiting)]
    assert secrets_in(told([*said, place.memory.records.sign(path)])) == []


@pytest.mark.parametrize("field", ["confidence", "sensitivity", "ttl", "version", "created_at", "source", "key"])
@pytest.mark.sampled(3)
def test_what_is_said_of_a_damaged_record_hides_it(place, field):
    with broken(place, "boat", field, '"falcon"') as path:
        for door in ("Records.list_problems", "Records.read", "Memory.status", "Memory.heartbeat", "Control.inspect"):
            assert secrets_in(shown_by(door, place, Asked(WORDS, path, "boat"))) == [], door
    with broken(place, "door.code", "confidence", "in the dark cellar") as path:
        assert place.memory.records.list_problems() == [
            f"{path} cannot be read as a record, and policies hide why: correct it by hand"
        ]


@pytest.mark.fault(35)
def test_no_byte_of_the_index_holds_what_policies_leave_out(place):
    folder = index_folder(place.memory.workspace.root)
    files = [
        file for file in folder.glob("*") if file.is_file()
    ]  # snapshots, below, are what was said before the rules
    assert any(b"tea" in file.read_bytes() for file in files)
    for file in files:
        held = file.read_bytes().lower()
        assert [secret for secret in SECRETS if secret.encode() in held] == [], file.name
    assert "Falcon" in (place.memory.workspace.root / "MEMORY.md").read_text(encoding="utf-8")


def test_an_index_of_other_rules_shows_nothing_and_is_built_again(tmp_path):
    (tmp_path / "MEMORY.md").write_text(f"{FORBIDDEN}\n\nThe salary of Anna is fiftyone euros.\n", encoding="utf-8")
    with Memory.open(tmp_path) as memory:
        assert memory.sync().rebuilt is None
        assert memory.search("salary")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        at = Place(memory, "")
        for door in ("Memory.search", "Documents.search_keywords", "Documents.search"):
            assert secrets_in(shown_by(door, at, Asked("salary project pier", "MEMORY.md"))) == []
        memory.sync()
        assert "***" in memory.search("salary")[0].snippet
        assert memory.sync().rebuilt is None
    assert secrets_in(str([file.read_bytes() for file in index_folder(tmp_path).glob("index*")])) == []
    with Memory.open(tmp_path) as memory:
        assert memory.sync().rebuilt == "the policies have changed"


def test_of_a_snapshot_all_is_kept_but_what_is_never_to_be_stored_and_nothing_masked(place):
    said = [user("Anna rows."), user(FORBIDDEN), user(MASKED), user("x" * 480 + MASKED)]
    made = place.memory.sessions.snapshot("kept", said)
    held = (place.memory.workspace.root / made.path).read_text(encoding="utf-8")
    assert [message.content for message in made.messages][:2] == ["Anna rows.", "The salary of Bo is ***."]
    assert len(made.messages) == 3
    assert not [secret for secret in ("Falcon", "pier nine", "sixty") if secret in str(json.loads(held)["messages"])]


def with_rules(*rules: PolicyRule) -> MemoryConfig:
    return MemoryConfig(policies=rules)


def test_status_names_a_rule_as_it_is_called_now(tmp_path):
    (tmp_path / "MEMORY.md").write_text(f"{FORBIDDEN}\n", encoding="utf-8")
    for name in ("first", "second"):
        with Memory.open(tmp_path, config=with_rules(PolicyRule(name, "never-store", pattern="Falcon"))) as memory:
            memory.sync()
            assert f"{name!r}" in memory.status().skipped[0].reason
    with Memory.open(tmp_path, config=with_rules(PolicyRule("third", "never-store", pattern="pier"))) as memory:
        assert "'third'" in memory.status().skipped[0].reason  # the index is of other rules: the note is read


NAMES = ("memory/project-falcon.md", "memory/Falcon/plan.md", "memory/2026-11-21-falcon.md", "sessions/falcon.jsonl")


@pytest.fixture
def named(tmp_path):
    """Files that a person has given names which policies forbid, next to others; and a record of an earlier time."""
    folder = tmp_path / "notes"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        said = (
            '{"type": "message", "message": {"role": "user", "content": "harbour"}}' if "jsonl" in name else "harbour"
        )
        (folder / name).write_text(f"{said}\n", encoding="utf-8")
    (folder / "memory" / "2026-11-21.md").write_text("The harbour is deep.\n", encoding="utf-8")
    with Memory.open(folder) as memory:
        memory.records.remember("fact", "falcon.lands", "at the harbour")
        memory.records.remember("fact", "harbour", "deep")
        memory.documents.add([Document("falcon", "harbour"), Document("d1", "harbour")])
        made = snapshots.save(memory.workspace, "project falcon", [user("harbour")], now=NOON)
        assert made is not None
        (folder / "memory" / "2026-11-22.md").unlink()  # it names the file
        memory.sync()
    with Memory.open(folder, config=CONFIG) as memory:
        yield Place(memory, "")


@pytest.mark.parametrize("is_synced", [False, True])
def test_a_file_of_a_forbidden_name_is_left_out_and_named_masked(named, is_synced):
    if is_synced:
        named.memory.sync()
        for file in index_folder(named.memory.workspace.root).rglob("index*"):
            assert b"falcon" not in file.read_bytes().lower(), file.name
    asked = Asked("harbour falcon", "memory/records/fact/harbour.md", "falcon.lands")
    without = {"Sessions.resume", "Memory.search, shown", "Records.confirm, conflict"}
    methods = [door for door in SHOWING if "." in door and door not in without]
    assert [door for door in methods if "falcon" in shown_by(door, named, asked).replace("falcon.lands", "")] == []
    assert {one.path for one in named.memory.status().skipped if "'codename'" in one.reason} >= {
        "memory/project-***.md", "memory/***/plan.md", "memory/2026-11-21-***.md", "sessions/***.jsonl"
    }  # fmt: skip
    assert {hit.path for hit in named.memory.search("harbour", max_results=50, min_score=0)} == {
        "memory/2026-11-21.md", "memory/records/fact/harbour.md", "memory/notes/d1.md"
    }  # fmt: skip
    for name in NAMES:
        with pytest.raises(PathNotAllowedError, match="codename") as caught:
            named.memory.get(name)
        assert "falcon" not in str(caught.value)
        assert (named.memory.workspace.root / name).exists()


NEW_NAMES: dict[str, Callable[[Memory], Any]] = {
    "Records.remember": lambda memory: memory.records.remember("fact", "project.falcon", "tea"),
    "Records.remember, user": lambda memory: memory.records.remember("fact", "tea", "hot", user_id="project/falcon"),
    "Documents.add": lambda memory: memory.documents.add([Document("project-falcon", "tea")]),
    "Documents.files": lambda memory: memory.documents.files.write(("memory/notes/project falcon.md", {}, "tea")),
    "Sessions.log": lambda memory: memory.sessions.log("agent:project:falcon").append("user", "tea"),
    "Sessions.log, parent": lambda memory: memory.sessions.log("s", parent_session="project falcon").append(
        "user", "tea"
    ),
    "Sessions.snapshot": lambda memory: memory.sessions.snapshot("agent:project:falcon", [user("tea")]),
}


@pytest.mark.parametrize("door", NEW_NAMES)
def test_nothing_is_written_under_a_forbidden_name(tmp_path, door):
    folder = tmp_path / "notes"
    folder.mkdir()
    rule = PolicyRule("codename", "never-store", pattern="(?i)project falcon")
    with Memory.open(folder, config=with_rules(rule)) as memory:
        with pytest.raises(PolicyError, match="codename") as caught:
            NEW_NAMES[door](memory)
        assert "falcon" not in str(caught.value).lower()
    assert list(folder.rglob("*falcon*")) == []


def test_what_the_library_itself_makes_of_a_name_is_forbidden_by_no_rule(tmp_path):
    rules = (
        PolicyRule("pin", "never-store", pattern=r"\d{4}"),
        PolicyRule("word", "never-store", pattern="(?i)memory|session|record|notes|md"),
        PolicyRule("phone", "masked", pattern="tea"),
    )
    with Memory.open(tmp_path, config=with_rules(*rules)) as memory:
        memory.append("hot", date="2026-11-21")
        memory.sessions.log("0a1b2c3d-1234-4321-8765-012345678901").append("user", "hot")
        memory.records.remember("fact", "tea: green", "hot")
        memory.sync()
        assert memory.status().files == 3
        assert [one for one in memory.status().skipped if "name" in one.reason] == []


def test_a_record_of_a_forbidden_name_can_be_deleted(named):
    assert named.memory.records.forget("fact", "falcon.lands")
    named.memory.documents.delete(["falcon"])


def test_a_record_of_a_forbidden_name_expires_and_does_not_fade(tmp_path):
    with Memory.open(tmp_path) as memory:
        memory.records.remember("preference", "falcon.lands", "at the pier", ttl=60)
        memory.records.remember("preference", "falcon.rests", "on the roof", ttl=None)
    folder = tmp_path / "memory" / "records" / "preference"
    kept = folder / "falcon.rests.md"
    before = kept.read_text(encoding="utf-8")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        kept.write_text(before.replace("1", "x", 1), encoding="utf-8")
        assert memory.records.list_problems() == []
        kept.write_text(before, encoding="utf-8")
        assert memory.records.find() == []
        memory.records._clock = lambda: datetime.now(UTC) + timedelta(days=365)
        assert memory.records.expire() == ["memory/records/preference/***.lands.md"]
    assert [file.name for file in folder.iterdir()] == ["falcon.rests.md"]
    assert kept.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("misspelled", ["hihg", "", "[high]"])
def test_a_sensitivity_that_is_none_counts_as_high(place, misspelled):
    with broken(place, "door.code", "sensitivity", misspelled) as path:
        with pytest.raises(RecordError):
            place.memory.get(path)
        place.memory.sync()
        assert "dark cellar" not in told(place.memory.search("What is in the cellar?", max_results=50, min_score=0))
        with pytest.raises(RecordError, match=r"sensitivity|policies hide"):
            place.memory.records.read(path)


def test_a_line_that_is_not_shown_can_be_deleted(place):
    seen = place.memory.get("MEMORY.md", start=3, lines=1)
    assert seen.text == ""
    place.memory.delete("MEMORY.md", 3, 3, expected=seen)
    assert "pier nine" not in (place.memory.workspace.root / "MEMORY.md").read_text(encoding="utf-8")


def test_rules_inside_a_workspace_count_for_nothing(tmp_path):
    (tmp_path / ".memory").mkdir()
    (tmp_path / ".memory" / "config.toml").write_text("[policies]\nrules = []\n", encoding="utf-8")
    with Memory.open(tmp_path, config=CONFIG) as memory:
        assert any("policies" in notice for notice in memory.status().notices)
        with pytest.raises(PolicyError):
            memory.append(FORBIDDEN)


def test_a_record_under_never_store_is_refused_by_its_key(place):
    with pytest.raises(PolicyError, match="health"):
        place.memory.records.remember("fact", "health.hip", "well")
    assert place.memory.records.forget("fact", "health.knee")
