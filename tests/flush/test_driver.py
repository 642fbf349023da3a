"""How a flush turn is driven: attempts, parts, and what calls of tools are answered with."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import EmbeddingConfig
from openclaw_memory.flush import answer_tool_call, as_single_prompt, drive_flush, prompt_of, run_flush
from openclaw_memory.flush.driver import SMALLEST_PART, parts

TOO_LONG = ValueError("maximum context length exceeded")


def size(conversation):
    return len(text(conversation))


def text(conversation):
    return conversation if isinstance(conversation, str) else "".join(conversation)


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, config=MemoryConfig(embedding=EmbeddingConfig(provider="none"))) as opened:
        yield opened


@pytest.fixture
def turn(memory):
    return memory.flush("talk").due(100, compacting=True, messages=list)


def drive(turn, conversation, reply, room=None):
    """Drive a turn with a model that `reply` speaks for; returns what it was shown."""
    seen = []

    def model_turn(part):
        seen.append(part)
        return (yield part)

    def ask(part):
        said = reply(part, len(seen))
        if isinstance(said, BaseException):
            raise said
        return said

    drive_flush(turn, conversation, model_turn, ask, room=room, size=size, text=text)
    return seen


def test_a_conversation_that_fits_is_shown_as_it_is_and_once(turn):
    assert drive(turn, ["one", "two"], lambda *_: "NO_REPLY", room=6) == [["one", "two"]]
    assert turn.outcome == "nothing"


@pytest.mark.parametrize(
    "said", [ValueError("no"), asyncio.CancelledError(), "Hello."], ids=["raises", "cancels", "answers"]
)
def test_an_attempt_that_fails_is_followed_by_two_with_the_text(turn, said):
    assert drive(turn, ["one", "two"], lambda *_: said) == [["one", "two"], "onetwo", "onetwo"]
    assert turn.outcome == "kept"


def test_what_is_too_long_is_shown_in_parts_that_are_the_whole(turn):
    conversation = [f"line {number}\n" for number in range(400)]
    seen = drive(turn, conversation, lambda *_: "NO_REPLY", room=500)
    assert "".join(seen) == text(conversation)
    assert all(part.endswith("\n") and len(part) <= 500 for part in seen)
    assert turn.outcome == "nothing"


def test_what_the_model_finds_too_long_is_halved_until_it_does_not(turn):
    conversation = ["x" * 4_000]
    seen = drive(turn, conversation, lambda part, _: TOO_LONG if size(part) > 1_200 else "NO_REPLY")
    assert "".join(part for part in seen if size(part) <= 1_200) == text(conversation)
    assert turn.outcome == "nothing"


def test_a_model_that_takes_not_even_a_small_part_is_given_up(turn):
    seen = drive(turn, ["x" * 4_000], lambda *_: TOO_LONG)
    assert turn.outcome == "kept"
    assert min(map(size, seen)) >= SMALLEST_PART // 2


def test_a_part_that_is_done_is_not_shown_again_by_the_next_attempt(turn):
    conversation = ["a" * 300 + "\n", "b" * 300 + "\n"]
    seen = drive(turn, conversation, lambda _, asked: "Hello." if asked == 2 else "NO_REPLY", room=301)
    assert seen == [conversation[0], conversation[1], conversation[1]]


def test_a_part_that_is_answered_with_words_and_no_note_fails_the_attempt(turn):
    conversation = ["a" * 300 + "\n", "b" * 300 + "\n"]
    seen = drive(turn, conversation, lambda _, asked: "Hello." if asked == 1 else "NO_REPLY", room=301)
    assert seen == [conversation[0], conversation[0], conversation[1]]
    assert turn.outcome == "nothing"


@settings(max_examples=60)
@given(st.text(max_size=4_000), st.integers(1, 3_000))
def test_parts_are_the_whole_text_and_none_is_longer_than_there_is_room(whole, room):
    cut = parts(whole, room, len)
    assert "".join(cut) == whole
    assert all(len(part) <= max(room, SMALLEST_PART) for part in cut)


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("memory_append", {"text": "The boiler code is 4711."}, "ok"),
        ("memory_append", {"text": 3}, "invalid"),
        ("memory_append", "text", "invalid"),
        ("rm", {"path": "/"}, "invalid"),
    ],
    ids=str,
)
def test_a_call_is_answered_and_no_other_tool_is_there(turn, name, arguments, status):
    answer = answer_tool_call(turn, name, arguments)
    assert answer.data["status"] == status
    assert answer.ok is (status == "ok")


def test_a_model_without_tools_is_asked_for_the_notes_themselves(turn):
    assert "You have no tools here" not in prompt_of(turn, can_call=True)
    assert prompt_of(turn, can_call=False).startswith(f"{turn.prompt}\n\nYou have no tools here")


def test_a_text_is_in_one_message_between_the_prompts(turn):
    whole = as_single_prompt(turn, "User: Hi.", can_call=True)
    assert whole.startswith(turn.system_prompt)
    assert whole.endswith(turn.prompt)
    assert "\n\nUser: Hi.\n\n" in whole


def broken(*_):
    raise OSError("the disk is gone")


def test_a_turn_is_driven_to_its_end(memory):
    turns = []

    def drive(turn):
        turns.append(turn)
        turn.replied("NO_REPLY")

    assert run_flush("main", lambda: memory.flush().due(1, compacting=True), drive)
    assert [turn.outcome for turn in turns] == ["nothing"]


def test_where_no_turn_begins_none_is_driven_and_an_error_is_logged(caplog):
    assert not run_flush("main", lambda: None, broken)
    assert not caplog.records
    assert not run_flush("tuesday", broken, broken)
    assert "the flush of session 'tuesday' failed: the disk is gone" in caplog.text


def test_of_a_turn_that_breaks_off_the_messages_are_kept(memory, caplog):
    said = [{"role": "user", "content": "The boiler code is 4711."}]
    assert run_flush("main", lambda: memory.flush().due(1, compacting=True, messages=lambda: said), broken)
    assert "4711" in (memory.workspace.root / memory.flush().log.path).read_text()
    assert "the disk is gone" in caplog.text


def test_a_model_that_gives_up_its_task_breaks_off_no_more_than_the_turn(memory):
    def cancelled(_):
        raise asyncio.CancelledError

    assert run_flush("main", lambda: memory.flush().due(1, compacting=True, messages=list), cancelled)
    assert "CancelledError" in memory.status().flush["main"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_held_up(memory, error):
    def ends(_):
        raise error

    with pytest.raises(error):
        run_flush("main", lambda: memory.flush().due(1, compacting=True), ends)
