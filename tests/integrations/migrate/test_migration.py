"""Migration: what each format becomes, that nothing is lost or doubled, and that the old file is never changed."""

import json
import os
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from openclaw_memory_migrate import migrate

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.commands import commands
from openclaw_memory.config.sections import FilesConfig, PolicyRule
from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError, UndecodableError

SAMPLES = Path(__file__).parent / "samples"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
SEEN = [*sorted(path for path in SAMPLES.iterdir() if path.name not in {"damaged.json", "snapshot.json"})]


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    with Memory.open(folder) as memory:
        yield memory


@pytest.fixture
def old(tmp_path):
    """Returns a copy of a sample, in a folder of its own."""

    def copied(name):
        target = tmp_path / "old" / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((SAMPLES / name).read_bytes())
        return target

    return copied


def files_of(memory):
    """Every memory file with its bytes."""
    root = memory.workspace.root
    found = [path for path in root.rglob("*") if path.suffix in {".md", ".jsonl"} and ".memory/" not in str(path)]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def written(memory):
    """Everything that the memory's files say: notes as they are, the texts of transcripts."""
    files = files_of(memory)
    notes = [data.decode() for path, data in files.items() if path.endswith(".md")]
    return "\n".join(
        [*notes, *(text for path in files if path.endswith(".jsonl") for text in strings(messages(memory, path)))]
    )


def strings(value):
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in strings(one)]


def messages(memory, path):
    return [json.loads(line) for line in files_of(memory)[path].decode().splitlines()]


# --- all formats -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sample", SEEN, ids=lambda path: path.name)
def test_a_sample_is_migrated_whole_as_a_dry_run_foretells_and_once(memory, old, sample):
    file = old(sample.name)
    around = {path for path in memory.workspace.root.parent.rglob("*") if path.is_file()}
    shown = migrate(memory, file, dry_run=True, now=NOW)
    assert {path for path in memory.workspace.root.parent.rglob("*") if path.is_file()} == around
    first = migrate(memory, file, now=NOW)
    assert first.added > 0
    assert (shown.files, shown.left_out, shown.notices) == (first.files, first.left_out, first.notices)
    assert (shown.is_dry_run, shown.backups) == (True, ())
    before, there = files_of(memory), written(memory)
    again = migrate(memory, file, now=NOW)
    assert (again.added, again.existed) == (0, first.added + first.existed)
    assert again.left_out == first.left_out
    assert files_of(memory) == before
    assert file.read_bytes() == sample.read_bytes()
    if sample.suffix == ".md":
        said = [line.rstrip("\r") for line in sample.read_text(encoding="utf-8-sig").split("\n") if line.strip()]
    else:
        said = list(texts_in(json.loads(sample.read_text(encoding="utf-8"))))
    lost = [text for text in said if text not in there]
    expected = {"mem0-list.json": {"no object", "Jörg wohnt in Bonn"}}
    assert set(lost) <= expected.get(sample.name, set())
    assert len(lost) <= len(first.left_out)


def texts_in(value):
    """The texts of a sample that a person or a model wrote."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and name in {"text", "memory", "content", "result", "title", "thinking", "naam"}:
                yield from [inner] if inner.strip() and inner not in {"damaged", "Empty"} else []
            elif name == "parts":
                yield from [part for part in inner if isinstance(part, str) and part.strip()]
            else:
                yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from [inner] if isinstance(inner, str) and inner == "no object" else texts_in(inner)


def test_the_file_is_copied_beside_itself_once(memory, old):
    file = old("memory.en.md")
    report = migrate(memory, file, now=NOW)
    copy = file.with_name("memory.en.md.bak-2026-11-23")
    assert report.backups == (str(copy),)
    assert copy.read_bytes() == file.read_bytes()
    assert migrate(memory, file, now=NOW.replace(day=24)).backups == (str(copy),)
    file.write_bytes(file.read_bytes() + b"\nMore.\n")
    assert migrate(memory, file, now=NOW).backups == (f"{copy}-2",)
    assert len(list(file.parent.iterdir())) == 3


def test_a_transcript_that_was_cut_off_goes_on_where_it_ended(memory, old):
    file = old("chatgpt-conversations.json")
    migrate(memory, file, now=NOW)
    whole = files_of(memory)
    path = next(path for path in whole if path.endswith("0001.jsonl"))
    lines = whole[path].splitlines(keepends=True)
    (memory.workspace.root / path).write_bytes(b"".join(lines[:5]) + lines[5][:20])
    migrate(memory, file, now=NOW)
    readable = [line for line in (memory.workspace.root / path).read_bytes().splitlines() if line.endswith(b"}")]
    assert [line.strip() for line in lines] == readable


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b'[{"memory": "cut off', "line 1, column"),
        ("a.json", b"[]", "an empty list"),
        ("a.json", b'{"answer": 42}', "an object with the names 'answer'"),
        ("a.json", b"[1, 2]", "a list of 2, the first of which is a int"),
        ("a.json", b"[" * 100_000, "cannot be read as JSON"),
        ("a.zip", b"PK\x03\x04rest", "unpack it"),
        ("a.db", b"SQLite format 3\0" + b"x" * 4096, "is a database"),
    ],
)
def test_a_file_that_is_damaged_or_unknown_is_named_with_the_place(memory, tmp_path, name, content, says):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InvalidInputError) as caught:
        migrate(memory, file, now=NOW)
    assert name in str(caught.value)
    assert says in str(caught.value)
    assert files_of(memory) == {}
    assert [path.name for path in tmp_path.iterdir() if "bak" in path.name] == []


def test_text_that_is_no_unicode_is_named_with_the_byte(memory, tmp_path):
    (tmp_path / "old.md").write_bytes(b"# Caf\xff\x81\x8d\n")
    with pytest.raises(UndecodableError, match=r"old\.md .*byte 5"):
        migrate(memory, tmp_path / "old.md")


def test_what_is_missing_or_of_another_format_is_said(memory, old, tmp_path):
    with pytest.raises(NotFoundError, match=r"\.memory\.md does not exist"):
        migrate(memory)
    with pytest.raises(NotFoundError, match=r"no conversations\.json"):
        migrate(memory, tmp_path)
    with pytest.raises(InvalidInputError, match="looks like mem0, not claude"):
        migrate(memory, old("mem0-list.json"), file_format="claude")
    with pytest.raises(InvalidInputError, match="use one of markdown, mem0, chatgpt"):
        migrate(memory, old("mem0-list.json"), file_format="chatgtp")
    assert files_of(memory) == {}


def test_a_symlink_in_the_workspace_is_not_followed(memory, tmp_path):
    (tmp_path / "secret").write_text("of another user")
    (memory.workspace.root / ".memory.md").symlink_to(tmp_path / "secret")
    with pytest.raises(PathNotAllowedError, match="symlink"):
        migrate(memory)


# --- Markdown --------------------------------------------------------------------------------------------------
def test_sections_go_to_their_days_and_the_rest_to_one_note(memory, old):
    migrate(memory, old("memory.en.md"), now=NOW)
    notes = {path: data.decode() for path, data in files_of(memory).items()}
    assert sorted(notes) == [
        "memory/2026-02-16.md", "memory/2026-02-18.md", "memory/2026-02-19.md", "memory/2026-03-03.md", "memory/legacy.md",
    ]  # fmt: skip
    assert notes["memory/2026-02-16.md"] == (
        "# 2026-02-16\n\n## 2026-02-16 - Release\n\n- Anna moved the launch to Friday.\n- The [plan](docs/plan.md) is signed.\n\n"
        "### Follow-up\n\nCall the printer about 500 leaflets.\n"
    )
    assert "# 2026-02-17\nnot: a heading" in notes["memory/legacy.md"]
    assert "Neither of these is a day." in notes["memory/legacy.md"]
    assert "(.memory/snapshots/2026-02-18T12:00:00.000Z-ses_1.json)" in notes["memory/2026-02-18.md"]
    memory.sync()
    assert memory.search("Who changed the launch date?")[0].path == "memory/2026-02-16.md"


def test_line_ends_a_byte_order_mark_and_headings_of_other_languages(memory, old):
    for name in ("memory.nl.md", "memory.de.md", "memory.fr.md"):
        migrate(memory, old(name), now=NOW)
    notes = {path: data.decode() for path, data in files_of(memory).items()}
    assert sorted(notes) == ["memory/2026-02-17.md", "memory/2026-02-18.md", "memory/2026-03-03.md", "memory/legacy.md"]
    # Two entries that differ in the time alone are two entries.
    assert "## 9:05 - Overleg\n" in notes["memory/2026-02-17.md"]
    assert "## 10:05 - Overleg\n" in notes["memory/2026-02-17.md"]
    assert "\r" not in "".join(notes.values())
    assert "\ufeff" not in "".join(notes.values())
    assert "## 2026-02-20 in einem Zaun" in notes["memory/2026-03-03.md"]  # below a dated heading


def test_what_a_person_has_in_a_note_is_kept_and_not_said_twice(memory, old):
    note = memory.workspace.root / "memory" / "2026-02-18.md"
    note.parent.mkdir()
    note.write_text("# 2026-02-18\n\n## 2026/02/18 – suite\n\nCafé à 15 h, sans sucre.\n\nMine.", encoding="utf-8")
    report = migrate(memory, old("memory.fr.md"), now=NOW)
    assert (report.added, report.existed) == (1, 1)
    assert note.read_text(encoding="utf-8").endswith(
        "Mine.\n\n## Réunion du 18 février 2026\n\nL'équipe préfère le train ; Zoé réserve.\n"
    )


def test_what_cannot_be_written_is_listed_with_its_lines(tmp_path, old):
    folder = tmp_path / "notes"
    (folder / "memory" / "legacy.md").mkdir(parents=True)
    config = MemoryConfig(files=FilesConfig(exclude=("memory/2026-03-*.md",)))
    with Memory.open(folder, config=config) as memory:
        report = migrate(memory, old("memory.en.md"), now=NOW)
    reasons = {one.place: one.reason for one in report.left_out}
    assert "files.exclude" in reasons["lines 24 to 26"]
    assert "lines 1 to 3" in reasons
    assert report.added == 3


line = st.one_of(
    st.sampled_from(["# 2026-02-18", "## Tools", "### 2026-02-19 x", "```", "~~~", "---", "===", "", "- a", "a: b", "## Session Snapshot",
                     "- [2026-02-20T10:00:00Z](.memory/snapshots/x.json)", "| a | b |", "|---|---|", "a [b](c/d.md) ![e](f.png#g)", "[r]: x.md", "`[a](b.md)`", "[a](<b c.md>)", "\t", "## 3 mars 2026", "#", "## 9:05 - x", "## 9:06 - x"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=12),
)  # fmt: skip


def unlinked(line):
    """A line without the targets of its links."""
    return re.sub(r"(\]\(|^ {0,3}\[[^\]]+\]:[ \t]+)[^\s)]+", r"\1", line)


def test_relative_links_lead_to_the_same_files_from_the_notes(tmp_path):
    for path in ("docs/plan.md", "a b.png", "x(1).md", "memory/2026-02-18.md", ".memory/old/s.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("there")
    lines = [
        ("[plan](docs/plan.md#when), ![shot](a%20b.png \"A shot\")", "[plan](../docs/plan.md#when), ![shot](../a%20b.png \"A shot\")"),
        ("[![shot](<a b.png>)](x(1).md)", "[![shot](<../a b.png>)](../x(1).md)"),
        ("- [day](./memory/2026-02-18.md) and [all](docs/)", "- [day](2026-02-18.md) and [all](../docs/)"),
        ("[ref]: docs/plan.md 'title'", "[ref]: ../docs/plan.md 'title'"),
        ("- [2026-02-18T12:00:00.000Z](.memory/old/s.json)", "- [2026-02-18T12:00:00.000Z](../.memory/old/s.json)"),
    ]  # fmt: skip
    same = ["[[docs/plan.md]], [w](https://e.org/a.md), [m](mailto:a@b.de), [h](#here), [r](/etc/a.md), f[i](x)",
            "`[code](docs/plan.md)` and ``a ` [b](docs/plan.md)``", "```", "[code](docs/plan.md)", "```",
            "[^1]: docs/plan.md is a footnote", "C:\\[x](C:\\a.md)"]  # fmt: skip
    (tmp_path / ".memory.md").write_text("\n".join([*(old for old, _ in lines), *same]))
    with Memory.open(tmp_path, embedder=None) as memory:
        report = migrate(memory, now=NOW)
        assert (report.left_out, report.notices) == ((), ())
        note = (tmp_path / "memory/legacy.md").read_text().splitlines()
        assert note[2:] == [*(new for _, new in lines), *same]
        assert migrate(memory, now=NOW).added == 0


def test_a_link_to_a_file_that_stays_behind_is_listed_and_a_dead_one_is_said(memory, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "plan.md").write_text("there")
    text = "# Old\n\n[plan](plan.md)\n[gone](gone.md) and [gone](gone/too.md)\n"
    (tmp_path / "old" / "a.md").write_text(text)
    report = migrate(memory, tmp_path / "old" / "a.md", now=NOW)
    assert [one.place for one in report.left_out] == ["line 3"]
    assert "'plan.md', outside the workspace" in report.left_out[0].reason
    assert report.notices == ("2 links led to files that are not there already: line 4",)
    assert (memory.workspace.root / "memory/legacy.md").read_text().endswith(text)


@given(st.lists(line, max_size=12))
@settings(max_examples=12, deadline=None)
def test_any_markdown_is_found_again_to_the_line_and_never_doubled(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("any")
    (folder / ".memory.md").write_text("\n".join(lines), encoding="utf-8", newline="")
    with Memory.open(folder) as memory:
        report = migrate(memory, now=NOW)
        notes = files_of(memory)
        there = {unlinked(line.rstrip("\r")) for data in notes.values() for line in data.decode().split("\n")}
        assert not report.left_out
        wanted = {
            unlinked(one.rstrip("\r")) for one in "\n".join(lines).removeprefix("\ufeff").split("\n") if one.strip()
        }
        assert wanted <= there
        assert migrate(memory, now=NOW).added == 0
        assert files_of(memory) == notes


# --- items -----------------------------------------------------------------------------------------------------
def test_memories_of_mem0_become_documents(memory, old):
    report = migrate(memory, old("mem0-list.json"), now=NOW)
    (first,) = memory.documents.get(["892db2ae-06d9-49e5-8b3e-585ef9b85b8e"])
    assert first.text == "Prefers aisle seats on trains"
    assert first.metadata["source"] == "chat"  # the user's own metadata come first
    assert first.metadata["user_id"] == "zoe"
    assert first.metadata["created_at"] == "2026-02-10T09:15:00.000000-08:00"
    assert report.added == 5
    assert {one.place: one.reason for one in report.left_out} == {
        "[5]": "it has no text as `memory`", "[6]": "it is no object",
        "[7]": "an item before it has the same id, and another text",
    }  # fmt: skip
    assert memory.search("nuts allergy Zoé noix")[0].snippet


def test_a_document_that_a_person_changed_is_left_and_listed(memory, old):
    file = old("mem0-list.json")
    migrate(memory, file, now=NOW)
    note = next(path for path in (memory.workspace.root / "memory/notes").iterdir() if "Köln" in path.read_text())
    note.write_text(note.read_text().replace("Köln", "Bonn"))
    report = migrate(memory, file, now=NOW)
    assert "Bonn" in note.read_text()
    assert any(one.place == "[2]" and "was left" in one.reason for one in report.left_out)


# --- conversations ---------------------------------------------------------------------------------------------
def test_a_conversation_of_chatgpt_keeps_its_branches_and_ends_in_the_one_shown(memory, old):
    report = migrate(memory, old("chatgpt-conversations.json"), now=NOW)
    log = memory.sessions.log("chatgpt-6993a1c0-aaaa-8001-9d7e-000000000001")
    shown = [(message["role"], [block.get("text") for block in message["content"]]) for message in log.read_messages()]
    assert shown == [
        ("user", ["[image: file-service://file-abc]", "Where is this tower?", "[file: tower.jpg]"]),
        ("assistant", ["The belfry of Ghent, from 1380."]),
        ("user", ["Wanneer is hij open?"]),
        ("assistant", ['search("belfort openingsuren")']),
        ("toolResult", ["Open 10:00-18:00"]),
        ("assistant", [None]),
        ("assistant", ["Van 10 tot 18 uur."]),
    ]
    other = [message["content"][-1]["text"] for message in log.read_messages("u2")]
    assert other[1:] == ["That is the belfry of Ghent.", "How high is it? (asked on the first branch)"]
    entries = messages(memory, log.path)
    assert entries[1]["name"] == "Trip to Ghent"
    assert datetime.fromisoformat(entries[2]["timestamp"]).astimezone(UTC).date() == date(2026, 2, 16)
    assert {one.place: one.reason for one in report.left_out} == {
        "[1].mapping['z']": "content of the type 'hologram' is unknown", "[2]": "no message of it says anything",
        "[3]": "it has no `mapping` of messages",
    }  # fmt: skip
    assert "2 images, files or sounds" in report.notices[0]
    memory.sync()
    assert memory.search("Wann koche ich mit Salz?", filter={"source": "sessions"})[0].path.endswith("0002.jsonl")


@pytest.mark.parametrize("sample", ["chatgpt-conversations.json", "claude-conversations.json"])
def test_an_export_in_numbered_files_is_one_export(memory, old, sample):
    whole = old(sample)
    conversations = json.loads(whole.read_text())
    folder = whole.parent / "parts"
    folder.mkdir()
    for number, some in enumerate((conversations[:1], conversations[1:])):
        (folder / f"conversations-{number:03}.json").write_text(json.dumps(some))
    report = migrate(memory, folder, now=NOW)
    assert [Path(one).name for one in report.backups] == [
        f"conversations-00{number}.json.bak-{NOW.date()}" for number in (0, 1)
    ]
    assert all(one.place.startswith("conversations-00") for one in report.left_out)
    again = migrate(memory, whole, now=NOW)
    assert (again.added, again.existed) == (0, report.added)
    assert len(again.left_out) == len(report.left_out)


def test_of_an_export_in_numbered_files_nothing_is_written_where_one_is_damaged_or_anothers(memory, old):
    whole = old("chatgpt-conversations.json")
    folder = whole.rename(whole.with_name("conversations-000.json")).parent
    (folder / "conversations-001.json").write_text("[{")
    with pytest.raises(InvalidInputError, match=r"conversations-001\.json is damaged at line 1"):
        migrate(memory, folder)
    (folder / "conversations-001.json").write_bytes((SAMPLES / "claude-conversations.json").read_bytes())
    with pytest.raises(InvalidInputError, match="chatgpt and of claude"):
        migrate(memory, folder)
    assert files_of(memory) == {}


def test_sources_of_chatgpt_are_links_as_they_were_shown(memory, tmp_path):
    cite, hidden = "\ue200cite\ue202turn0search1\ue201", "\ue200cite\ue202turn0search1\ue202turn0search2\ue201"
    said = {
        "author": {"role": "assistant"},
        "content": {"content_type": "text", "parts": [f"Texel is high at 4 {cite} and at 5{hidden}, in May."]},
        "metadata": {
            "content_references": [
                {"matched_text": cite, "alt": "([Tides](https://example.com/t))"},
                {"matched_text": hidden, "alt": None},
                {"matched_text": "May", "alt": "June"},
                "damaged",
            ]
        },
    }
    source = tmp_path / "conversations.json"
    tree = {"a": {"id": "a", "parent": None, "message": said}}
    source.write_text(json.dumps([{"id": "c1", "title": "Tides", "mapping": tree, "current_node": "a"}]))
    report = migrate(memory, source)
    assert not report.left_out
    (log,) = (memory.workspace.root / "sessions").glob("chatgpt-*.jsonl")
    assert "Texel is high at 4 ([Tides](https://example.com/t)) and at 5, in May." in log.read_text()


def test_a_conversation_of_claude_keeps_tools_and_files(memory, old):
    report = migrate(memory, old("claude-conversations.json"), now=NOW)
    log = memory.sessions.log("claude-5c0ffee0-0000-4000-8000-000000000001")
    assert [message["role"] for message in log.read_messages()] == [
        "user",
        "assistant",
        "toolResult",
        "assistant",
        "user",
    ]
    assert log.read_messages()[0]["content"][0]["text"] == "[file: jardin.txt]\nLe jardin est au sud."
    assert log.read_messages()[2]["toolCallId"] == "tu1"
    assert log.read_messages()[-1]["content"][0]["text"] == "Et les haricots ?"
    assert log.read_messages("h2")[-1]["content"][0]["text"] == "And the beans? (edited away)"
    assert [one.place for one in report.left_out] == ["[1].chat_messages[1].content[0]", "[2]"]


def test_a_tree_with_a_circle_or_of_great_depth_is_read_whole(memory, tmp_path):
    def said(one, parent):
        content = {"content_type": "text", "parts": [f"word {one}"]}
        return {
            "id": one,
            "parent": parent,
            "children": [],
            "message": {"author": {"role": "user"}, "content": content},
        }

    deep = {str(at): said(str(at), str(at - 1) if at else None) for at in range(1200)}
    tree = {**deep, "a": said("a", "b"), "b": said("b", "a"), "c": said("c", "gone")}
    (tmp_path / "conversations.json").write_text(
        json.dumps([{"conversation_id": "x", "mapping": tree, "current_node": "1199"}])
    )
    assert migrate(memory, tmp_path, now=NOW).added == 1203
    log = memory.sessions.log("chatgpt-x")
    assert len(log.read_messages()) == 1200


# --- policies, command, script ---------------------------------------------------------------------------------
def test_what_policies_forbid_is_left_out_and_listed_without_its_words(tmp_path, old):
    folder = tmp_path / "notes"
    folder.mkdir()
    config = MemoryConfig(policies=(PolicyRule("town", "never-store", pattern="(?i)leaflets|köln|ghent"),))
    with Memory.open(folder, config=config) as memory:
        reports = [
            migrate(memory, old(name), now=NOW)
            for name in ("memory.en.md", "mem0-list.json", "chatgpt-conversations.json")
        ]
        assert reports[0].left_out[0].place == "line 12"
        assert "'town'" in reports[0].left_out[0].reason
        assert any(one.place == "[2]" for one in reports[1].left_out)
        assert any("the title" in one.place for one in reports[2].left_out)
        there = written(memory).lower()
        assert not any(word in f"{there}{reports}".lower() for word in ("leaflets", "köln", "ghent"))
        assert "anna moved the launch" in there
        log = memory.sessions.log("chatgpt-6993a1c0-aaaa-8001-9d7e-000000000001")
        assert log.read_messages()[0]["content"][1]["text"] == "Where is this tower?"
        assert log.read_messages()[1]["content"][0]["text"] == "Wanneer is hij open?"
        assert migrate(memory, old("memory.en.md"), now=NOW).added == 0


def test_a_place_that_is_listed_says_no_name_that_policies_forbid(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["tea"]}}
    mapping = {"a": {"message": message, "parent": None}, "falcon": {"message": 7, "parent": "a"}}
    (tmp_path / "talks.json").write_text(json.dumps([{"id": "c", "mapping": mapping, "current_node": "a"}]))
    rule = PolicyRule("town", "never-store", pattern="falcon")
    with Memory.open(folder, config=MemoryConfig(policies=(rule,))) as memory:
        report = migrate(memory, tmp_path / "talks.json", now=NOW)
    assert report.added == 1
    assert [one.place for one in report.left_out] == ["[0].mapping['***']"]


def run(*arguments):
    return CliRunner().invoke(commands, ["migrate", *map(str, arguments)], standalone_mode=False)


def test_the_command_migrates_the_old_notes_of_a_project_and_indexes_them(tmp_path):
    (tmp_path / ".memory.md").write_bytes((SAMPLES / "memory.en.md").read_bytes())
    shown = run("--workspace", tmp_path, "--dry-run")
    assert (shown.return_value, "would be added" in shown.output) == (0, True)
    assert sorted(os.listdir(tmp_path)) == [".memory.md"]
    done = run("--workspace", tmp_path)
    assert done.return_value == 0
    assert "backup  " in done.output
    assert not (tmp_path / "MEMORY.md").exists()
    with Memory.open(tmp_path) as memory:
        assert memory.status().files == 5
    assert "0 added, 7 there already" in run("--workspace", tmp_path).output


def test_the_command_exits_with_1_where_something_was_left_out(tmp_path, old):
    done = run("--workspace", tmp_path, "--from", old("mem0-list.json"), "--json")
    assert done.return_value == 1
    said = json.loads(done.output)
    assert (said["added"], len(said["report"]["left_out"])) == (5, 3)
