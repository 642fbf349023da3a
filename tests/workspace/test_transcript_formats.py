"""Transcripts of other programs: known by their first record, read as OpenClaw's, cited by the lines of their files."""

import datetime
import json

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.transcript_formats import FORMATS

NAME = "sessions/talk.jsonl"
SESSION = "11111111-2222-4333-8444-555555555555"
SECRET = "sk-ant-api03-Hk29fjQ03mzLw81xP4Vb7"
REMARK = "<system-reminder>\nToday's date is 2026-11-23.\n</system-reminder>\n"


def claude(kind, content, **fields):
    """A record as Claude Code 2.1.330 writes it, without the fields that no reader needs."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": "956a8bcb-e045-46d2-ba67-8cc74fef8461",
        "timestamp": "2026-11-23T23:26:11.332Z",
        "userType": "external",
        "sessionId": SESSION,
        "version": "2.1.330",
        **fields,
    }


QUEUED = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION, "content": "When does it leave?"}
OPENCODE = {
    "info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1795476371332}},
    "parts": [{"type": "text", "text": "When does the ferry leave?"}],
}
CHATGPT = {
    "id": "a",
    "author": {"role": "user"},
    "create_time": 1795476371.332,
    "content": {"content_type": "text", "parts": ["When does the ferry leave?"]},
    "recipient": "all",
}
CODEX = {
    "timestamp": "2026-11-23T23:26:11.332Z",
    "type": "response_item",
    "payload": {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "When does the ferry leave?"}],
    },
}
OLDER_CODEX = {**CODEX["payload"], "timestamp": CODEX["timestamp"]}
STREAMED = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "text", "text": "When does the ferry leave?"}]},
    "parent_tool_use_id": None,
    "session_id": SESSION,
}
ASKED = "User: When does the ferry leave?"


def written(root, *records):
    file = root / NAME
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return Workspace.open(root)


@pytest.mark.parametrize(
    "record", [claude("user", "When does the ferry leave?"), OPENCODE, CHATGPT, CODEX, OLDER_CODEX]
)
def test_what_was_said_is_read_with_its_day(tmp_path, record):
    (part,) = written(tmp_path, record).read_parts(NAME)
    assert (part.text, part.day) == (f"{ASKED}\n", datetime.date(2026, 11, 23))


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (claude("assistant", [{"type": "text", "text": "At\nseven."}]), "Assistant: At seven."),
        (claude("user", [{"type": "text", "text": f"{REMARK}When?"}]), "User: When?"),
        (claude("user", f"My key is {SECRET}"), "User: My key is sk-ant…4Vb7"),
        (claude("user", "What does <command-name> mean?"), "User: What does <command-name> mean?"),
        (STREAMED, ASKED),
        ({"type": "user", "message": STREAMED["message"]}, ASKED),
        ({**OPENCODE, "parts": [*OPENCODE["parts"], {"type": "text", "text": "of a file", "synthetic": True}]}, ASKED),
    ],
)
def test_a_message_of_another_program_is_one_line(tmp_path, record, text):
    assert written(tmp_path, record).read(NAME) == f"{text}\n"


@pytest.mark.parametrize(
    "record",
    [
        QUEUED,
        claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": "of a tool"}]),
        claude("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]),
        claude("assistant", [{"type": "thinking", "thinking": "hm"}]),
        claude("user", "a remark", isMeta=True),
        claude("user", "This session is being continued", isCompactSummary=True),
        claude("user", "the task of a subagent", isSidechain=True),
        claude("assistant", "API Error: 529", isApiErrorMessage=True),
        claude("assistant", "no", message={"role": "assistant", "model": "<synthetic>", "content": "No response"}),
        claude("user", "<command-name>/compact</command-name>"),
        claude("user", "<local-command-stdout>Compacted</local-command-stdout>"),
        claude("user", "[Request interrupted by user]"),
        claude("user", REMARK),
        claude("user", "unseen", hidden=True),
        claude("user", "x", message="no message"),
        claude("user", None),
        claude("system", "Conversation compacted", subtype="compact_boundary"),
        {"type": "last-prompt", "lastPrompt": "When?", "sessionId": SESSION},
        {"type": "system", "subtype": "init", "session_id": SESSION, "tools": ["Bash"]},
        {"type": "result", "subtype": "success", "result": "At seven.", "session_id": SESSION},
        {**STREAMED, "parent_tool_use_id": "toolu_1"},
        {**CODEX, "type": "session_meta", "payload": {"id": SESSION, "cwd": "/x"}},
        {**CODEX, "type": "event_msg", "payload": {"type": "user_message", "message": "When does it leave?"}},
        {**CODEX, "payload": {"type": "reasoning", "summary": []}},
        {**CODEX, "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}},
        {**CODEX, "payload": {**CODEX["payload"], "role": "developer"}},
        {
            **CODEX,
            "payload": {
                **CODEX["payload"],
                "content": [{"type": "input_text", "text": "<environment_context>\n/x\n</environment_context>"}],
            },
        },
        {**OPENCODE, "info": {**OPENCODE["info"], "role": "assistant", "summary": True}},
        {**OPENCODE, "parts": [{"type": "tool", "tool": "bash"}, {"type": "text", "text": 7}, "text"]},
        {**CHATGPT, "author": {"role": "tool"}},
        {**CHATGPT, "recipient": "python"},
        {**CHATGPT, "metadata": {"is_visually_hidden_from_conversation": True}},
        {**CHATGPT, "content": {"content_type": "code", "text": "ls"}},
    ],
    ids=lambda record: json.dumps(record)[:60],
)
def test_what_neither_side_said_is_an_empty_line(tmp_path, record):
    assert written(tmp_path, record, claude("user", "next")).read(NAME) == "\nUser: next\n"


@pytest.mark.parametrize("program", [known.program for known in FORMATS[1:]])
def test_a_file_of_each_format_is_indexed_and_cited_by_its_lines(tmp_path, program):
    records = {
        "Codex": ({**CODEX, "type": "turn_context"}, CODEX),
        "Claude Code": (QUEUED, claude("user", "When does the ferry leave?")),
        "OpenCode": ({**OPENCODE, "parts": []}, OPENCODE),
        "ChatGPT": ({**CHATGPT, "recipient": "x"}, CHATGPT),
    }
    written(tmp_path, *records[program])
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        assert memory.sync().skipped == ()
        (hit,) = memory.search("ferry", filter={"source": "sessions"})
        assert (hit.path, hit.start_line, hit.end_line, hit.snippet) == (NAME, 2, 2, ASKED)
        assert memory.get(NAME, start=2, lines=1).text.strip() == ASKED


def test_policies_hold_for_other_programs_too(tmp_path):
    written(tmp_path, claude("user", "The alarm code is 1122"), claude("user", "The ferry leaves at seven"))
    policies = (PolicyRule("alarm", "never-store", pattern="alarm code"),)
    with Memory.open(tmp_path, embedder=RecordingEmbedder(), config=MemoryConfig(policies=policies)) as memory:
        memory.sync()
        assert "1122" not in "".join(hit.snippet for hit in memory.search("alarm code 1122"))
        assert memory.get(NAME).text == "\nUser: The ferry leaves at seven"


def test_a_message_that_is_forgotten_is_blank_and_keeps_its_ids(tmp_path):
    written(tmp_path, claude("user", "When does the ferry leave?"), claude("assistant", "At seven."))
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        memory.sync()
        memory.control.forget(query="ferry", dry_run=False)
        forgotten, kept = map(json.loads, (tmp_path / NAME).read_text().splitlines())
        assert (forgotten["uuid"], forgotten["sessionId"]) == (kept["uuid"], SESSION)
        assert "ferry" not in json.dumps(forgotten)
        assert memory.sync().skipped == ()
        assert memory.get(NAME).text == "\nAssistant: At seven."


@pytest.mark.parametrize("record", [OPENCODE, CHATGPT])
def test_a_file_of_which_all_was_forgotten_is_not_reported_as_a_strange_one(tmp_path, record):
    written(tmp_path, record)
    with Memory.open(tmp_path, embedder=RecordingEmbedder()) as memory:
        memory.sync()
        memory.control.forget(query="ferry", dry_run=False)
        assert "ferry" not in (tmp_path / NAME).read_text()
        assert (memory.sync().skipped, list(memory.search("ferry"))) == ((), [])
