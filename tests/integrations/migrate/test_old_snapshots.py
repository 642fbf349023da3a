"""Snapshots of earlier plugins: what they become, what is listed, and that the old files are never changed."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from openclaw_memory_migrate import migrate
from secret_samples import KNOWN

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.commands import commands
from openclaw_memory.config.sections import PolicyRule

SAMPLES = Path(__file__).parent / "samples"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
FIRST, SECOND = "2026-02-18T12:00:00.000Z-ses_1.json", "2026-02-19T08:30:00.000Z-ses_2.json"


def project(folder):
    """Make a project of an earlier plugin: notes that link two snapshots, and the snapshots."""
    (folder / ".memory" / "snapshots").mkdir(parents=True)
    (folder / ".memory.md").write_bytes((SAMPLES / "memory.en.md").read_bytes())
    old(folder, FIRST, json.loads((SAMPLES / "snapshot.json").read_text(encoding="utf-8")))
    old(folder, SECOND, {"id": "ses_2", "timestamp": "2026-02-19T08:30:00.000Z", "messages": [said("Tea?")]})
    return folder


def old(folder, name, content):
    file = folder / ".memory" / "snapshots" / name
    text = content if isinstance(content, bytes) else json.dumps(content, indent=2).encode()
    file.write_bytes(text)
    return file


def said(text, role="user"):
    return {"role": role, "content": text}


def all_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path):
    return project(tmp_path / "project")


def test_a_session_of_an_earlier_plugin_goes_on_where_it_ended(place):
    before = all_of(place)
    with Memory.open(place, embedder=None) as memory:
        assert memory.sessions.snapshots() == ()
        report = migrate(memory, now=NOW)
        assert (report.files[0].path, report.files[0].added) == (".memory/snapshots", 2)
        second, first = memory.sessions.snapshots()
        assert (first.session_id, first.path) == ("ses_1", ".memory/snapshots/20260218T120000Z-ses_1.json")
        assert first.timestamp == datetime(2026, 2, 18, 12, tzinfo=UTC)
        assert [one.role for one in first.messages] == ["system", "user", "assistant", "tool"]
        assert first.messages[2].content == "De poort gaat open met 4711.\nZet het in de agenda."
        assert first.summary == "Codes and calendars"
        assert second.session_id == "ses_2"
        texts = [message["content"] for message in memory.sessions.resume("ses_1")]
        assert texts[1:] == ["Wat is de code?", first.messages[2].content]
    assert before.items() <= all_of(place).items()


def test_links_in_the_notes_lead_to_the_new_files(place):
    with Memory.open(place, embedder=None) as memory:
        migrate(memory, now=NOW)
        for day in ("2026-02-18", "2026-02-19"):
            note = place / "memory" / f"{day}.md"
            link = note.read_text().rpartition("](")[2].rstrip(")\n")
            assert (note.parent / link).resolve() in [
                (place / one.path).resolve() for one in memory.sessions.snapshots()
            ]
        memory.control.forget(session="ses_1", dry_run=False)
        assert "ses_1" not in (place / "memory/2026-02-18.md").read_text()


@pytest.mark.parametrize("named", [".", ".memory.md", ".memory/snapshots"])
def test_a_project_elsewhere_may_be_named_by_its_folder_its_notes_or_its_snapshots(place, tmp_path, named):
    (tmp_path / "new").mkdir()
    with Memory.open(tmp_path / "new", embedder=None) as memory:
        report = migrate(memory, place / named, now=NOW)
        assert report.format == ("snapshots" if "snapshots" in named else "markdown")
        assert [one.session_id for one in memory.sessions.snapshots()] == ["ses_2", "ses_1"]
        if report.format == "markdown":
            note = (tmp_path / "new/memory/2026-02-18.md").read_text()
            assert "](../.memory/snapshots/20260218T120000Z-ses_1.json)" in note
            assert [one.place for one in report.left_out] == []
        assert migrate(memory, place / named, now=NOW).added == 0


def test_a_dry_run_foresees_it_and_a_second_run_adds_nothing(place):
    old(place, "2026-02-20T00:00:00.000Z-ses_3.json", b'{"id": "ses_3", ')
    with Memory.open(place, embedder=None) as memory:
        before = all_of(place)
        shown = migrate(memory, now=NOW, dry_run=True)
        assert {k: v for k, v in all_of(place).items() if "index" not in k} == {
            k: v for k, v in before.items() if "index" not in k
        }
        done = migrate(memory, now=NOW)
        assert (shown.files, shown.left_out) == (done.files, done.left_out)
        after = all_of(place / "memory") | all_of(place / ".memory" / "snapshots")
        again = migrate(memory, now=NOW)
        assert (again.added, again.existed, again.left_out) == (0, done.added, done.left_out)
        assert all_of(place / "memory") | all_of(place / ".memory" / "snapshots") == after


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"id": "s", ', "damaged at line 1, column"),
        (b'{"id": "Caf\xff\x81\x8d"}', "byte 11"),
        (b"[]", "no object of JSON"),
        (b'{"id": "s", "messages": "all"}', "`messages` are no list: 'all'"),
        (
            b'{"id": "s", "messages": [{"role": "user", "content": " "}], "timestamp": "2026-02-20"}',
            "no message with words",
        ),
        (b'{"id": "s", "messages": [{"role": "user", "content": "a"}], "timestamp": "noon"}', "no time: 'noon'"),
        (b'{"id": "s", "messages": [{"role": "user", "content": "a"}], "summary": 7}', "`summary` is no text: 7"),
    ],
)
def test_a_damaged_one_is_listed_and_the_others_are_brought_in(place, content, says):
    old(place, "2026-02-20T00:00:00.000Z-s.json", content)
    with Memory.open(place, embedder=None) as memory:
        report = migrate(memory, now=NOW)
        (left,) = report.left_out
        assert left.place == "2026-02-20T00:00:00.000Z-s.json"
        assert says in left.reason
        assert len(memory.sessions.snapshots()) == 2


def test_rules_and_secrets_count(place):
    secret = KNOWN["anthropic"]
    messages = [said("The heron is blue"), said(f"Use {secret}"), said("Fine")]
    old(place, SECOND, {"id": "ses_2", "timestamp": "2026-02-19T08:30:00.000Z", "messages": messages})
    old(
        place,
        "2026-02-21T00:00:00.000Z-heron.json",
        {"id": "heron", "timestamp": "2026-02-21", "messages": [said("A")]},
    )
    rules = (PolicyRule("birds", "never-store", pattern="heron"),)
    with Memory.open(place, embedder=None, config=MemoryConfig(policies=rules)) as memory:
        report = migrate(memory, now=NOW)
        left = {one.place: one.reason for one in report.left_out}
        assert "a rule" in left[f"{SECOND}, message 1"]
        assert len(left) == 2
        assert "heron" not in " ".join((*left, *left.values()))
        (second,) = memory.sessions.snapshots("ses_2")
        assert [one.content for one in second.messages][1] == "Fine"
        assert secret not in (place / second.path).read_text()


def test_a_symlink_is_not_followed(place, tmp_path):
    old(place, SECOND, b"").unlink()
    (tmp_path / "other.json").write_text(
        json.dumps({"id": "ses_2", "timestamp": "2026-02-19T08:30:00.000Z", "messages": [said("Of another user")]})
    )
    (place / ".memory" / "snapshots" / SECOND).symlink_to(tmp_path / "other.json")
    with Memory.open(place, embedder=None) as memory:
        assert [one.place for one in migrate(memory, now=NOW).left_out] == [SECOND]
        assert len(memory.sessions.snapshots()) == 1


def test_the_command_shows_the_first_files_and_json_all(tmp_path):
    chats = [
        {"uuid": f"c{at:02}", "chat_messages": [{"uuid": f"m{at}", "sender": "human", "text": "Hi"}]}
        for at in range(25)
    ]
    (tmp_path / "conversations.json").write_text(json.dumps(chats))
    command = ["migrate", "--workspace", str(tmp_path), "--from", str(tmp_path / "conversations.json"), "--dry-run"]
    shown = CliRunner().invoke(commands, command)
    assert shown.stdout.count("1 would be added, 0 there already") == 20
    assert "5 more files: --json lists them" in shown.output
    assert "claude: 25 would be added" in shown.output
    assert len(json.loads(CliRunner().invoke(commands, [*command, "--json"]).stdout)["report"]["files"]) == 25
