"""How a flush turn is driven: in one attempt, in parts, and what calls of tools are answered with."""

import asyncio
import contextlib
import enum
import json
import threading
from types import SimpleNamespace

import pytest
from index_files import read_days

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.flush import FlushModel, ModelReply, arun_flush, run_flush
from openclaw_memory.flush.driver import SMALLEST_PART, read_finish_reason

FACT = "The boiler code is 4711."
TOO_LONG = ValueError("maximum context length exceeded")


@pytest.fixture
def flush(memory):
    return memory.sessions.flush("talk")


def say(*texts):
    return [{"role": "user", "content": text} for text in texts]


def model_of(reply, seen, **options):
    """A model that `reply` speaks for, given what it is shown of the conversation, and how often it was asked.

    What it was shown is added to `seen`.
    """

    def ask(messages):
        seen.append(messages[0]["content"].partition("or a part of it, as text:\n\n")[2].rpartition("\n\nPre-")[0])
        said = reply(seen[-1], len(seen))
        if isinstance(said, BaseException):
            raise said
        return said if isinstance(said, ModelReply) else ModelReply(said, said)

    return FlushModel(ask=ask, count=len, **options)


def drive(flush, messages, reply, **options):
    """Flush messages with a model that `reply` speaks for; returns the outcome and what the model was shown."""
    seen = []
    turn = run_flush(flush, messages, lambda _tool: model_of(reply, seen, **options), compacting=True, flushed=False)
    return turn.outcome, seen


def calling(*calls, finish_reason=""):
    return ModelReply("call", "", calls, [{"finish_reason": finish_reason}])


def saying(text, finish_reason):
    return ModelReply(text, text, (), [{"finish_reason": finish_reason}])


def writing(text):
    return ("c", "memory_append", {"text": text})


def test_what_is_too_long_is_shown_in_parts_that_are_the_whole(flush):
    messages = say(*(f"line {number}" for number in range(150)))
    outcome, seen = drive(flush, messages, lambda *_: "NO_REPLY", room=500)
    assert "".join(seen) == "\n".join(f"User: line {number}" for number in range(150))
    assert all(len(part) <= 500 for part in seen)
    assert outcome == "nothing"


def test_a_model_that_takes_not_even_a_small_part_is_given_up(flush):
    outcome, seen = drive(flush, say("x" * 2_000), lambda *_: TOO_LONG)
    assert outcome == "kept"
    assert min(map(len, seen)) >= SMALLEST_PART // 2


def test_what_the_calls_do_not_cover_is_kept_and_what_was_covered_is_saved(memory, flush):
    note = calling(writing("The boiler code is 4711."))
    outcome, seen = drive(
        flush, say(*(name * 300 for name in "abcdefghi")), lambda _, asked: note if asked == 1 else "NO_REPLY", room=301
    )
    assert (outcome, len(seen)) == ("kept", 8)
    assert "4711" in read_days(memory.workspace.root)
    assert len(flush.log.read_messages()) == 9
    assert "8 times" in memory.status().flush["talk"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_that_hangs_does_not_hold_up_the_user(tmp_path, is_async):
    may_end, asked = threading.Event(), []

    def hangs(*_):
        asked.append(1)
        may_end.wait(60)
        return calling(writing("too late"))

    async def ask(_messages):
        asked.append(1)
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    async def awaited(flush):
        turn = await arun_flush(flush, say(FACT), lambda _tool: FlushModel(ask=ask), compacting=True)
        may_end.set()
        return turn.outcome

    config = MemoryConfig().replace({"compaction": {"flush_timeout_seconds": 0.05}, "embedding": {"provider": "none"}})
    with Memory.open(tmp_path, config=config) as memory:
        flush = memory.sessions.flush("talk")
        outcome = asyncio.run(awaited(flush)) if is_async else drive(flush, say(FACT), hangs)[0]
        may_end.set()
        assert (len(asked), outcome) == (1, "kept")
        assert FACT in (memory.workspace.root / flush.log.path).read_text()
        assert "compaction.flush_timeout_seconds" in memory.status().flush["talk"]
        assert not read_days(memory.workspace.root)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), LookupError("no such model")])
async def test_an_awaited_model_that_gives_up_its_task_fails_the_turn(flush, error):
    async def ask(_messages):
        raise error

    turn = await arun_flush(flush, say(FACT), lambda _tool: FlushModel(ask=ask), compacting=True)
    assert turn.outcome == "kept"
    assert type(error).__name__ in flush.state.flush_error


async def test_a_task_that_is_cancelled_stops_asking(flush):
    began, stopped = asyncio.Event(), asyncio.Event()

    async def ask(_messages):
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    task = asyncio.create_task(arun_flush(flush, say(FACT), lambda _tool: FlushModel(ask=ask), compacting=True))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await stopped.wait()
    assert flush.state.memory_flush_at is None


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("memory_append", {"text": "The boiler code is 4711."}, "ok"),
        ("memory_append", {"text": 3}, "invalid"),
        ("memory_append", "text", "invalid"),
        (None, {}, "invalid"),
        ("rm", {"path": "/"}, "invalid"),
    ],
    ids=str,
)
def test_a_call_is_answered_and_no_other_tool_is_there(flush, name, arguments, status):
    requests = []

    def ask(messages):
        requests.append(messages)
        last = "NO_REPLY" if status == "ok" else "Hm."
        return calling(("c1", name, arguments)) if len(requests) == 1 else ModelReply(last, last)

    run_flush(flush, say("one"), lambda _tool: FlushModel(ask=ask), compacting=True)
    assert len(requests) == 2
    assert requests[1][:-1] == [*requests[0], "call"]
    assert requests[1][-1].items() >= {"role": "tool", "tool_call_id": "c1", "name": name or ""}.items()
    assert json.loads(requests[1][-1]["content"])["status"] == status


def one_by_one(*replies):
    """Reply with these, one after the other, and with NO_REPLY after them."""
    left = iter(replies)
    return lambda *_: next(left, "NO_REPLY")


REFUSED = {
    "arguments that end early": ("c", "memory_append", '{"text": "The boiler co'),
    "another field": ("c", "memory_append", {"txt": "The boiler code is 4711."}),
    "a file of its own": ("c", "memory_append", {"content": "4711", "path": "memory/boiler.md"}),
    "another tool": ("c", "write_file", {"text": "The boiler code is 4711."}),
}
CUT_OFF = ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "content_filter", "SAFETY", "refusal", "error"]
TWO_FACTS = [{"role": "user", "content": "The boiler code is 4711."}, {"role": "user", "content": "Anna likes tea."}]


@pytest.fixture
def held(flush):
    """Holds a turn over two facts; returns how it ended, and what is kept of them word for word."""

    def hold(reply, messages=TWO_FACTS, **options):
        outcome, _ = drive(flush, messages, reply, **options)
        return outcome, [message["content"] for message in flush.log.read_messages()]

    return hold


KEPT = ("kept", [message["content"] for message in TWO_FACTS])


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_that_was_refused_and_is_followed_by_silence_is_a_failure(memory, held, call):
    for last in ("NO_REPLY", "Nothing to store: NO_REPLY"):
        assert held(one_by_one(calling(call), last)) == KEPT
        assert "was not written" in memory.status().flush["talk"]
        assert "4711" not in memory.status().flush["talk"], "it may be a secret"
    replies = one_by_one(calling(call), "NO_REPLY", calling(writing("Anna likes tea.")))
    assert held(replies, say("a" * 300, "b" * 300), room=301)[0] == "kept", "that was about another part"


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_that_was_refused_is_made_good_by_a_later_one(memory, held, call):
    assert held(one_by_one(calling(call), calling(writing("The boiler code is 4711.")))) == ("saved", [])
    assert "4711" in read_days(memory.workspace.root)
    assert memory.status().flush == {}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_that_was_refused_is_not_made_good_by_another_one_beside_it(memory, held, call):
    for both in ((call, writing("Anna likes tea.")), (writing("Bo likes rye."), call)):
        assert held(one_by_one(calling(*both))) == KEPT
    assert "Anna likes tea." in read_days(memory.workspace.root)
    assert "Bo likes rye." in read_days(memory.workspace.root)


@pytest.mark.parametrize("reason", CUT_OFF)
def test_what_was_cut_off_is_a_failure_of_which_no_half_of_a_fact_is_written(memory, held, reason):
    half = calling(writing("The boiler code is 47"), finish_reason=reason)
    for can_call in (True, False):
        assert held(one_by_one(saying("NO_REPLY", reason)), can_call=can_call) == KEPT
        assert reason in memory.status().flush["talk"]
    assert held(one_by_one(half)) == KEPT
    assert held(one_by_one(saying("The boiler code is 47", reason)), can_call=False) == KEPT
    assert read_days(memory.workspace.root) == ""
    assert held(one_by_one(calling(writing("Anna likes tea.")), saying("Now the boi", reason))) == KEPT
    assert held(one_by_one(half, calling(writing("The boiler code is 4711."))))[0] == "saved"


class Finished(enum.Enum):
    MAX_TOKENS = 2


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"finish_reason": "length"}, "length"),
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"stopReason": "content_filtered"}, "content_filtered"),
        ({"done_reason": "length"}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"finish_reason": Finished.MAX_TOKENS}, "MAX_TOKENS"),
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        ({"choices": []}, ""),
        (SimpleNamespace(choices=[SimpleNamespace(finish_reason="length")]), "length"),
        (SimpleNamespace(candidates=[SimpleNamespace(finish_reason=Finished.MAX_TOKENS)]), "MAX_TOKENS"),
        ({"finish_reason": None, "stop_reason": 3, "incomplete_details": None}, ""),
        (None, ""),
        ("length", ""),
    ],
    ids=repr,
)
def test_the_finish_reason_is_read_from_what_providers_return(about, reason):
    assert read_finish_reason([about]) == reason
    assert read_finish_reason([None, {}, about]) == reason


def broken(*_):
    raise OSError("the disk is gone")


def test_a_turn_is_held_to_its_end_and_where_none_is_due_none_begins(flush, caplog):
    turn = run_flush(flush, say("one"), lambda _tool: model_of(lambda *_: "NO_REPLY", []), compacting=True)
    assert turn.outcome == "nothing"
    assert not run_flush(flush, say("one"), broken, tokens=1)
    assert not caplog.records


def test_what_the_memory_itself_answered_is_nothing_to_save(flush):
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "work_memory_search"}}]}
    recalled = [call, {"role": "tool", "tool_call_id": "a", "content": FACT}]
    outcome, (seen,) = drive(flush, [*say("Hm?"), *recalled], lambda *_: "NO_REPLY")
    assert (outcome, seen) == ("nothing", "User: Hm?\nAssistant: [calls work_memory_search {}]")
    assert drive(flush, [{**recalled[1], "name": "memory_get"}], broken) == ("nothing", [])


def test_of_a_turn_that_breaks_off_the_messages_are_kept(memory, flush, caplog):
    assert run_flush(flush, say(FACT), broken, compacting=True).outcome == "kept"
    assert FACT in (memory.workspace.root / flush.log.path).read_text()
    assert "the disk is gone" in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_held_up(flush, error):
    def ends(_):
        raise error

    with pytest.raises(error):
        run_flush(flush, say(FACT), ends, compacting=True)
