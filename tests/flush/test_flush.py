"""The flush of a session: one silent turn a cycle, whose notes are safe, and whose failure breaks nothing."""

import datetime
import gc
import json
import os
import threading
from functools import partial

import pytest
from moving_clock import Clock

from openclaw_memory.config.sections import CompactionConfig, SessionsConfig
from openclaw_memory.conversation import get_text
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.flush import ConversationDetector, Flush, Session
from openclaw_memory.flush.note_writer import MAX_CHARS
from openclaw_memory.flush.state import FlushCycle, FlushRegistry, read_states
from openclaw_memory.text.fence import fence_text
from openclaw_memory.text.redaction import redact
from openclaw_memory.workspace import Workspace, atomic
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.notes import Notes
from openclaw_memory.workspace.paths import locate_transcripts


def change_state(folder, key, session_id=None, chat_type=None, **fields):
    assert FlushCycle(folder, Session(key, session_id, chat_type), is_new=True).save(**fields)


NOON = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
NOTE = "memory/2026-11-21.md"
CONVERSATION = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Anna's birthday is on 3 May.", "id": "m1"},
    {"role": "assistant", "content": [{"type": "text", "text": "Noted. password=hunter2hunter2hunter2"}], "id": "m2"},
    {"role": "toolResult", "toolCallId": "c", "toolName": "look", "content": [{"type": "text", "text": "42"}]},
]


@pytest.fixture
def clock():
    return Clock(NOON)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(WorkspaceFiles(tmp_path), sessions=SessionsConfig(timezone="UTC"))


@pytest.fixture
def flush_of(workspace, clock):
    def make(key="main", session_id=None, chat_type=None, rules=None, **options) -> Flush:
        session = Session(key, session_id, chat_type)
        return Flush(workspace, session, rules, clock=clock, **{"window": 200_000, **options})

    return make


@pytest.fixture
def flush(flush_of):
    return flush_of()


def note(workspace) -> str:
    return (workspace.root / NOTE).read_text(encoding="utf-8")


def save(turn, *texts: str):
    for text in texts:
        assert turn.tool.run({"text": text}).ok
    turn.finish("NO_REPLY")


def fail(turn) -> None:
    turn.fail(TimeoutError("the model is away"))


# --- the cycle
@pytest.mark.fault(27)
def test_a_flush_is_due_at_176_000_of_200_000_tokens_and_once_a_cycle(flush):
    assert flush.begin(175_999) is None
    save(flush.begin(176_000), "- a fact")
    assert flush.begin(179_000) is None
    assert flush.begin(190_000, compacting=True) is None
    flush.record_compaction(20_000)
    assert flush.begin(30_000) is None
    assert flush.begin(176_000).reason == "threshold"


@pytest.mark.fault(27)
def test_what_is_marked_is_the_count_before_the_compaction(flush):
    turn = flush.begin(176_000)
    assert flush.state.memory_flush_compaction_count is None
    save(turn, "- a")
    state = flush.state
    assert (state.compaction_count, state.memory_flush_compaction_count) == (0, 0)
    assert (state.memory_flush_at, state.context_tokens) == ("2026-11-21T12:00:00.000Z", 176_000)
    flush.record_compaction(9_000)
    state = flush.state
    assert (state.compaction_count, state.memory_flush_compaction_count, state.context_tokens) == (1, 0, 9_000)


def test_what_is_written_while_a_turn_is_held_belongs_to_the_next_cycle(flush):
    flush.log.append("user", "One.")
    cut = flush.log.size
    flush.log.append("user", "Two.")
    flush.record_compaction(log_bytes=cut)
    assert flush.state.compacted_bytes == cut
    flush.record_compaction()
    flush.record_compaction(log_bytes=cut)  # another program has come further
    assert flush.state.compacted_bytes == flush.log.size
    flush.cycle.save(compacted_bytes=1_000_000)  # the transcript was made again
    flush.record_compaction(log_bytes=flush.log.size)
    assert flush.state.compacted_bytes == flush.log.size


def test_while_a_turn_is_held_no_other_is_due_by_the_threshold(flush):
    assert not flush.cycle.is_busy
    turn = flush.begin(176_000)
    assert flush.cycle.is_busy
    assert flush.begin(180_000) is None
    turn.tool.run({"text": "- a"})
    del turn  # its driver let go of it
    gc.collect()
    one, two = (flush.begin(None, compacting=True, flushed=False) for _ in range(2))
    one.finish("NO_REPLY")
    assert (one.outcome, flush.cycle.is_busy) == ("nothing", True)
    two.finish("NO_REPLY")
    assert not flush.cycle.is_busy


def test_a_new_transcript_of_a_key_begins_again(flush_of):
    first = flush_of(session_id="one")
    first.record_compaction()
    save(first.begin(176_000), "- a")
    second = flush_of(session_id="two")
    assert (second.state.compaction_count, second.state.memory_flush_compaction_count) == (0, None)
    save(second.begin(176_000), "- b")
    assert (second.state.compaction_count, second.state.memory_flush_compaction_count) == (0, 0)
    assert flush_of().session.id == "two"


def test_a_transcript_that_has_grown_is_a_reason(flush_of):
    flush = flush_of(rules=CompactionConfig(force_flush_bytes=2_000))
    flush.log.append("user", "x" * 1_000)
    assert flush.begin(10) is None
    flush.log.append("user", "x" * 1_000)
    save(flush.begin(10), "- a")
    flush.record_compaction()
    assert flush.begin(10) is None
    flush.log.append("user", "x" * 2_000)
    assert flush.begin(10).reason == "transcript"


# --- what the model is told, and may do
def test_the_prompts_are_openclaws_or_own_ones_with_the_day_and_the_word_for_nothing(flush, flush_of):
    turn = flush.begin(176_000)
    assert turn.prompt.startswith(
        f"Pre-compaction memory flush. Store durable memories now (use {NOTE}; create memory/ if needed). "
        "If nothing to store, reply with NO_REPLY."
    )
    assert "MEMORY.md" in turn.prompt
    assert "YYYY" not in turn.prompt
    assert turn.system_prompt == "Session nearing compaction. Store durable memories now."
    flush = flush_of("own", rules=CompactionConfig(prompt="Write to memory/YYYY-MM-DD.md.", system_prompt="Be brief."))
    turn = flush.begin(176_000)
    assert turn.prompt == f"Write to {NOTE}. If nothing to store, reply with NO_REPLY."
    assert turn.system_prompt == "Be brief."
    assert flush_of("b", rules=CompactionConfig(prompt="Say NO_REPLY.")).begin(176_000).prompt == "Say NO_REPLY."


def test_the_tool_adds_to_the_note_of_the_day_and_says_so(flush_of, workspace):
    Notes(workspace).append("My own words", date="2026-11-21")
    written = []
    turn = flush_of(on_write=lambda: written.append(1)).begin(176_000)
    answer = json.loads(turn.tool({"text": "- Anna likes tea", "path": NOTE}))
    assert answer == {"status": "ok", "path": NOTE, "lines": "4-4", "existed": False}
    assert note(workspace) == "# 2026-11-21\n\nMy own words\n- Anna likes tea\n"
    assert json.loads(turn.tool({"text": "- Anna likes tea"})) == {"status": "ok", "path": NOTE, "existed": True}
    assert written == [1]
    turn.finish("All saved!")
    turn.fail(RuntimeError())  # what is over changes no more
    assert turn.outcome == "saved"
    assert flush_of().state.flush_error is None
    assert turn.tool.run({"text": "- late"}).data["status"] == "not_allowed"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"text": "- x", "path": "MEMORY.md"}, "not_allowed"),
        ({"text": "- x", "path": "memory/2026-11-21-1200.md"}, "not_allowed"),
        ({"text": "- x", "date": "2020-01-01"}, "not_allowed"),
        (None, "invalid"),
        ([], "invalid"),
        ("- x", "invalid"),
        ({1: 2}, "not_allowed"),
        ({"text": "- x", "path": ["a"]}, "not_allowed"),
        ({}, "invalid"),
        ({"text": ["- x"]}, "invalid"),
        ({"text": "\ud800"}, "invalid"),
        ({"text": "x" * (MAX_CHARS + 1)}, "invalid"),
        ({"text": " \n"}, "nothing"),
        ({"text": "NO_REPLY"}, "nothing"),
        ({"text": fence_text("recalled", "MEMORY.md#L1")}, "nothing"),
    ],
)
def test_a_call_that_cannot_be_is_answered_in_words_and_writes_nothing(flush, workspace, arguments, status):
    answer = flush.begin(176_000).tool.run(arguments)
    assert answer.data["status"] == status
    assert answer.data["error"]
    assert not (workspace.root / "memory").exists()


@pytest.mark.fault(32, 33)
def test_secrets_and_recalled_memory_are_not_written(flush, workspace):
    key = "sk-" + "a1" * 20
    text = f"- key {key}\n- password=hunter2hunter2hunter2\n{fence_text('old words', 'MEMORY.md#L1')}\n- new </recalled-memory>"
    save(flush.begin(176_000), text)
    assert key not in note(workspace)
    assert redact(key) in note(workspace)
    assert "hunter2hunter2" not in note(workspace)
    assert "old words" not in note(workspace)
    assert "- new </recalled memory>" in note(workspace)


def test_after_midnight_the_new_day_is_written_and_nothing_twice(flush, workspace, clock):
    turn = flush.begin(176_000)
    turn.tool.run({"text": "- before"})
    clock.now = NOON + datetime.timedelta(hours=12)
    assert "memory/2026-11-22.md" in turn.prompt
    assert turn.tool.run({"text": "- before"}).data["existed"]
    assert turn.tool.run({"text": "- after"}).data["path"] == "memory/2026-11-22.md"
    assert note(workspace) == "# 2026-11-21\n\n- before\n"
    assert (workspace.root / "memory/2026-11-22.md").read_text() == "# 2026-11-22\n\n- after\n"
    tokyo = Workspace(
        workspace.files, sessions=SessionsConfig(timezone="Asia/Tokyo")
    )  # the day is that of the user's zone
    clock.later(hours=16)
    assert "memory/2026-11-23.md" in Flush(tokyo, "tokyo", window=200_000, clock=clock).begin(176_000).prompt


# --- failures
def test_after_a_failure_the_messages_are_kept_word_for_word_without_secrets(flush, workspace):
    turn = flush.begin(176_000, messages=lambda: CONVERSATION)
    turn.fail(TimeoutError("the model is away"))
    assert turn.outcome == "kept"
    assert "TimeoutError: the model is away" in flush.state.flush_error
    assert flush.begin(180_000) is None
    kept = flush.log.read_messages()
    assert kept[0] == {"role": "user", "content": "Anna's birthday is on 3 May."}
    assert kept[2] == {key: CONVERSATION[3][key] for key in kept[2]}
    assert [entry["id"] for entry in flush.log.read_entries()][:3] == ["main", "m1", "m2"]
    assert "User: Anna's birthday is on 3 May.\nAssistant: Noted. password=" in workspace.read(flush.log.path)
    assert "hunter2hunter2" not in (workspace.root / "sessions/main.jsonl").read_text()


def call(number: int, **more: object) -> dict[str, object]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "function": {"name": "book"}}],
        **more,
    }


ALIKE = {
    "answers": [
        {"role": "assistant", "content": "Shall I book the flight?"},
        {"role": "user", "content": "Yes."},
        {"role": "assistant", "content": "Shall I cancel the lease?"},
        {"role": "user", "content": "Yes."},
    ],
    "calls without words": [call(1), call(2)],
    "calls with the same words": [call(1, content="Booking."), call(2, content="Booking.")],
    "images": [
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image", "data": data}]}
        for data in ("AAA", "BBB")
    ],
    "items of OpenAI's": [
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "gate code 4711"},
    ],
}


@pytest.mark.parametrize("messages", ALIKE.values(), ids=ALIKE.keys())
def test_messages_that_are_alike_are_all_kept_and_once(flush, messages):
    for _ in range(2):
        fail(flush.begin(176_000, messages=lambda: messages))
        flush.record_compaction()
    assert [entry["message"] for entry in flush.log.read_entries() if entry["type"] == "message"] == messages
    fail(flush.begin(176_000, messages=lambda: [*messages, messages[-1]]))
    assert len(list(flush.log.read_entries())) == 1 + len(messages) + 1


@pytest.mark.parametrize(
    "reply",
    [
        "", None, "Everything is saved.", "I cannot do that.",
        "- Anna moved the launch to Friday.\n- The venue is the old mill.\n\nNO_REPLY",
        "I will remember: the key hangs behind the clock. NO_REPLY", "The key hangs there. NO_REPLY",
        "NO_REPLY is not right here: the key hangs behind the clock",
    ],
)  # fmt: skip
def test_a_reply_that_is_neither_a_note_nor_silent_is_a_failure(flush, reply):
    turn = flush.begin(176_000, messages=lambda: CONVERSATION)
    turn.finish(reply)
    assert turn.outcome == "kept"
    assert "NO_REPLY" in flush.state.flush_error


def test_a_failure_is_not_followed_by_another_attempt(flush, workspace):
    turn = flush.begin(176_000, messages=lambda: CONVERSATION)
    turn.tool.run({"text": "- a"})
    turn.fail(RuntimeError())
    assert turn.tool.run({"text": "- b"}).data["status"] == "not_allowed"
    turn.finish("NO_REPLY")
    turn.fail(TimeoutError("once more"))
    assert turn.outcome == "kept"
    assert flush.state.flush_error.startswith("RuntimeError")
    assert "- a" in note(workspace)
    assert flush.begin(180_000) is None
    flush.record_compaction()
    assert flush.state.flush_error
    save(flush.begin(176_000), "- c")
    assert flush.state.flush_error is None, "the next one went well"


def test_a_text_that_could_not_be_written_is_no_success_until_it_is_in_whatever_pieces(flush):
    turn = flush.begin(176_000, messages=lambda: CONVERSATION)
    long = [f"- fact {number} " + "x" * (MAX_CHARS // 2) for number in range(2)]
    turn.tool.run({"text": "- a"})
    assert turn.tool.run({"text": "\n".join(long)}).data["status"] == "invalid"
    turn.tool.run({"text": long[0]})
    turn.tool.run({"text": long[1]})
    turn.finish("NO_REPLY")
    assert turn.outcome == "saved"


def broken():
    raise KeyError("no messages")


@pytest.mark.parametrize("messages", [None, broken, lambda: ["no object"]], ids=["none", "raise", "odd"])
def test_messages_that_cannot_be_kept_are_reported_and_never_raised(flush, messages):
    turn = flush.begin(176_000, messages=messages)
    fail(turn)
    assert turn.outcome == "lost"
    assert flush.state.flush_error.startswith("TimeoutError")


def test_one_message_that_cannot_be_written_costs_no_other(flush):
    parts = [{"type": "text", "text": "The code is 4711."}, {"value": object()}]
    made = {"role": "user", "content": "a summary", "type": "compaction"}  # by a program: it is not kept
    odd = ["no object", made, {"role": "user", "content": "and this"}, {"role": "user", "content": parts}]
    fail(flush.begin(176_000, messages=lambda: odd))
    whole, in_part = flush.log.read_messages()
    assert whole["content"] == "and this"
    assert get_text(in_part).startswith("The code is 4711.")
    assert "not all is kept" in get_text(in_part)
    assert "1 of the messages could not be kept" in flush.state.flush_error
    flush.record_compaction()
    fail(flush.begin(176_000, messages=lambda: odd[3:]))
    assert "of 1 of them not all words" in flush.state.flush_error


# --- a disk that refuses
@pytest.mark.fault(29)
def test_a_workspace_that_cannot_be_written_is_not_flushed(flush, workspace, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    assert flush.begin(199_000, compacting=True) is None
    assert list(workspace.root.iterdir()) == []


def test_a_full_disk_costs_the_user_nothing_and_is_reported(flush, workspace, monkeypatch, caplog):
    turn = flush.begin(176_000, messages=lambda: CONVERSATION)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "write", full)
        while turn.outcome is None:
            assert turn.tool.run({"text": "- a"}).data["status"] == "failed"
            turn.finish("NO_REPLY")
    assert turn.outcome == "lost"
    assert "No space left" in flush.state.flush_error
    assert "No space left" in caplog.text
    assert flush.begin(180_000) is None, "the mark that the disk did not take is kept in memory"
    flush.record_compaction()
    states = read_states(locate_transcripts(workspace.root, SessionsConfig()))
    assert (states["main"].compaction_count, states["main"].memory_flush_compaction_count) == (1, 0)


# --- at the same time
def in_threads(works) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.fault(30)
def test_flushes_at_the_same_time_lose_nothing_and_write_nothing_twice(flush_of, workspace):
    # Before a compaction nobody waits for the turn of another process.
    flushes = [flush_of() for _ in range(4)]
    turns = [flush.begin(176_000, compacting=True) for flush in flushes]
    ready = threading.Barrier(4)

    def work(number: int) -> None:
        ready.wait()
        save(turns[number], "- the same for all", *(f"- fact {number} {part}" for part in range(4)))
        for _ in range(10):
            flushes[number].record_compaction()
            flushes[number].add_tokens(2, 1)

    in_threads(partial(work, number) for number in range(4))
    lines = note(workspace).splitlines()[2:]
    assert sorted(lines) == sorted(["- the same for all", *(f"- fact {n} {p}" for n in range(4) for p in range(4))])
    state = flush_of().state
    assert (state.compaction_count, state.input_tokens, state.output_tokens) == (40, 80, 40)


@pytest.mark.fault(27)
def test_a_state_that_cannot_be_read_is_known_to_all_flushes_of_a_program_and_reported_once(
    flush_of, workspace, caplog
):
    file = workspace.root / "sessions/sessions.json"
    file.parent.mkdir()
    file.write_text('{"main": {"sessionId": "ma')
    registry = FlushRegistry()
    turns = [flush_of(registry=registry).begin(176_000) for _ in range(3)]
    assert [turn is not None for turn in turns] == [True, False, False]
    turns[0].finish("NO_REPLY")
    assert flush_of(registry=registry).begin(176_000) is None
    flush_of(registry=registry).record_compaction()
    assert flush_of(registry=registry).begin(176_000) is not None
    assert file.read_text() == '{"main": {"sessionId": "ma'
    assert caplog.text.count("is damaged") == 1
    file.unlink()
    flush_of(registry=registry).record_compaction()
    assert read_states(locate_transcripts(workspace.root, SessionsConfig()))["main"].compaction_count == 2


@pytest.mark.fault(30)
def test_a_crash_before_midnight_writes_no_line_twice_after_it(flush_of, workspace, clock):
    clock.later(hours=11.9)
    flush_of().begin(176_000).tool.run({"text": "- a\n- b"})
    clock.later(minutes=12)
    save(flush_of().begin(176_000), "- a\n- b")
    assert sorted(os.listdir(workspace.root / "memory")) == [".lock", "2026-11-21.md"]
    save(flush_of().begin(None, compacting=True, flushed=False), "- a\n- b", "- c")
    assert note(workspace) == "# 2026-11-21\n\n- a\n- b\n"
    assert (workspace.root / "memory/2026-11-22.md").read_text() == "# 2026-11-22\n\n- c\n"


def test_a_session_that_another_program_replaced_leaves_the_key_to_the_new_one(flush_of, workspace):
    folder = locate_transcripts(workspace.root, SessionsConfig())
    change_state(folder, "main", session_id="old", compaction_count=3, memory_flush_compaction_count=2)
    flush = flush_of()
    turn = flush.begin(176_000)
    change_state(folder, "main", session_id="new", compaction_count=7, memory_flush_compaction_count=7, input_tokens=5)
    there = read_states(folder)
    save(turn, "- a")
    flush.record_compaction()
    assert read_states(folder) == there
    assert (flush.state.compaction_count, flush.state.memory_flush_compaction_count) == (4, 3)
    assert flush_of().session.id == "new"


def test_what_kind_of_chat_a_session_is_stays_or_is_said_by_its_key(flush_of, workspace):
    folder = locate_transcripts(workspace.root, SessionsConfig())
    change_state(folder, "given", chat_type="room", session_id="given", context_tokens=200_000, input_tokens=5)
    change_state(folder, "blank", session_id=" ")
    assert flush_of("blank").session.id == "blank"
    for key in ("given", "agent:main:telegram:group:7", "agent:main:main", "blank"):
        flush_of(key).record_compaction()
    states = read_states(folder)
    assert [state.chat_type for state in states.values()] == ["room", None, "group", "direct"]
    assert (states["given"].context_tokens, states["given"].input_tokens) == (200_000, 5)


def test_what_is_given_wrongly_is_refused_with_what_to_give(workspace, tmp_path):
    for window in (0, -1, 0.5, 200_000.0, "200k", True):
        with pytest.raises(ConfigError, match="is not a number of tokens: pass a whole number above 0"):
            Flush(workspace, "main", window=window)
        with pytest.raises(ConfigError, match="is not a number of tokens"):
            ConversationDetector(str.split, rules=lambda _: CompactionConfig(), window=window)
    for key in ("", " ", None):
        with pytest.raises(InvalidInputError):
            Flush(workspace, key)
    with pytest.raises(ConfigError, match="Atlantis"):
        Flush(Workspace(WorkspaceFiles(tmp_path), sessions=SessionsConfig(timezone="Europe/Atlantis")), "main")
