"""How a flush turn is driven: in one attempt, in parts, and what calls of tools are answered with."""

import asyncio
import contextlib
import enum
import threading
from types import SimpleNamespace

import msgspec
import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import EmbeddingConfig
from openclaw_memory.flush import FlushModel, ModelReply, arun_flush, run_flush
from openclaw_memory.flush.driver import SMALLEST_PART, read_finish_reason


def drive_flush(turn, conversation, model):
    run_flush("talk", lambda: turn, lambda _turn: (conversation, model))


async def adrive_flush(turn, conversation, model):
    await arun_flush("talk", lambda: turn, lambda _turn: (conversation, model))


TOO_LONG = ValueError("maximum context length exceeded")


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, config=MemoryConfig(embedding=EmbeddingConfig(provider="none"))) as opened:
        yield opened


@pytest.fixture
def turn(memory):
    return memory.sessions.flush("talk").begin(100, compacting=True, messages=list)


def model_of(reply, seen, *, room=None, can_call=True):
    """A model that `reply` speaks for, given the conversation or part that it is shown, and how often it was asked.

    Its messages are texts; what it was shown of the conversation is added to `seen`.
    """

    def ask(messages):
        shown = messages[1:-1] or [messages[0].partition("or a part of it, as text:\n\n")[2].rpartition("\n\nPre-")[0]]
        seen.append(shown)
        said = reply("".join(shown), len(seen))
        if isinstance(said, BaseException):
            raise said
        return said if isinstance(said, ModelReply) else ModelReply(said, said)

    return FlushModel(
        ask=ask,
        system=str,
        user=str,
        answer=lambda call_id, name, text: f"{call_id} {name} {text}",
        size=lambda messages: sum(map(len, messages)),
        text="".join,
        can_call=can_call,
        room=room,
    )


def watched(model, asked):
    """The model, which adds what it is asked to `asked`."""
    return msgspec.structs.replace(model, ask=lambda messages: asked.append(messages) or model.ask(messages))


def drive(turn, conversation, reply, **options):
    """Drive a turn with a model that `reply` speaks for; returns what it was shown."""
    seen = []
    turn.max_calls = options.pop("max_calls", 1_000)
    drive_flush(turn, conversation, model_of(reply, seen, **options))
    return seen


def calling(*calls, finish_reason=""):
    return ModelReply("call", "", calls, [{"finish_reason": finish_reason}])


def saying(text, finish_reason):
    return ModelReply(text, text, (), [{"finish_reason": finish_reason}])


def writing(text):
    return ("c", "memory_append", {"text": text})


def test_what_is_too_long_is_shown_in_parts_that_are_the_whole(turn):
    conversation = [f"line {number}\n" for number in range(400)]
    seen = ["".join(shown) for shown in drive(turn, conversation, lambda *_: "NO_REPLY", room=500)]
    assert "".join(seen) == "".join(conversation)
    assert all(part.endswith("\n") and len(part) <= 500 for part in seen)
    assert turn.outcome == "nothing"


def test_a_model_that_takes_not_even_a_small_part_is_given_up(turn):
    seen = drive(turn, ["x" * 4_000], lambda *_: TOO_LONG)
    assert turn.outcome == "kept"
    assert min(len(part) for [part] in seen) >= SMALLEST_PART // 2


def test_what_the_calls_do_not_cover_is_kept_and_what_was_covered_is_saved(memory):
    said = [{"role": "user", "content": f"{name * 300}\n"} for name in "abcd"]
    turn = memory.sessions.flush("talk").begin(100, compacting=True, messages=lambda: said)
    note = calling(("1", "memory_append", {"text": "The boiler code is 4711."}))
    seen = drive(
        turn,
        [message["content"] for message in said],
        lambda part, _: note if part.startswith("a") and len(seen_notes(memory)) == 0 else "NO_REPLY",
        room=301,
        max_calls=4,
    )
    assert len(seen) == 4
    assert turn.outcome == "kept"
    assert "4711" in seen_notes(memory)
    assert len(memory.sessions.flush("talk").log.read_messages()) == 4
    assert "4 times" in memory.status().flush["talk"]


def seen_notes(memory):
    return "".join(path.read_text() for path in (memory.workspace.root / "memory").glob("*.md"))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_that_hangs_does_not_hold_up_the_user(memory, is_async):
    said = [{"role": "user", "content": "The boiler code is 4711."}]
    turn = memory.sessions.flush("talk").begin(100, compacting=True, messages=lambda: said)
    turn.timeout, may_end, asked = 0.05, threading.Event(), []

    def hangs(*_):
        asked.append(1)
        may_end.wait(60)
        return calling(("a", "memory_append", {"text": "too late"}))

    model = model_of(hangs, [])

    async def ask(_messages):
        asked.append(1)
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    async def awaited():
        await adrive_flush(turn, ["one"], msgspec.structs.replace(model, ask=ask))
        may_end.set()

    asyncio.run(awaited()) if is_async else drive_flush(turn, ["one"], model)
    may_end.set()
    assert (len(asked), turn.outcome) == (1, "kept")
    assert "4711" in (memory.workspace.root / memory.sessions.flush("talk").log.path).read_text()
    assert "compaction.flush_timeout_seconds" in memory.status().flush["talk"]
    assert not seen_notes(memory)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), LookupError("no such model")])
async def test_an_awaited_model_that_gives_up_its_task_fails_the_turn(turn, error):
    model = model_of(lambda *_: "", [])

    async def ask(_messages):
        raise error

    await adrive_flush(turn, ["one"], msgspec.structs.replace(model, ask=ask))
    assert turn.outcome == "kept"
    assert type(error).__name__ in turn._flush.state.flush_error


async def test_a_task_that_is_cancelled_stops_asking(turn):
    began, stopped = asyncio.Event(), asyncio.Event()
    model = model_of(lambda *_: "", [])

    async def ask(_messages):
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    task = asyncio.create_task(adrive_flush(turn, ["one"], msgspec.structs.replace(model, ask=ask)))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await stopped.wait()
    assert turn.open


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
def test_a_call_is_answered_and_no_other_tool_is_there(turn, name, arguments, status):
    shown = []

    def reply(_part, asked):
        return calling(("c1", name, arguments)) if asked == 1 else "NO_REPLY" if status == "ok" else "Hm."

    drive_flush(turn, ["one"], watched(model_of(reply, []), shown))
    assert len(shown) == 2
    assert shown[1][:-1] == [*shown[0], "call"]
    assert shown[1][-1].startswith(f"c1 {name or ''} ")
    assert f'"status": "{status}"' in shown[1][-1].replace('":"', '": "')


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
def held(memory):
    """Holds a turn over two facts; returns how it ended, and what is kept of them word for word."""

    def hold(reply, conversation=("one",), **options):
        turn = memory.sessions.flush("talk").begin(100, compacting=True, flushed=False, messages=lambda: TWO_FACTS)
        drive(turn, list(conversation), reply, **options)
        return turn.outcome, [message["content"] for message in memory.sessions.flush("talk").log.read_messages()]

    return hold


KEPT = ("kept", [message["content"] for message in TWO_FACTS])


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_that_was_refused_and_is_followed_by_silence_is_a_failure(memory, held, call):
    for last in ("NO_REPLY", "Nothing to store: NO_REPLY"):
        assert held(one_by_one(calling(call), last)) == KEPT
        assert "was not written" in memory.status().flush["talk"]
        assert "4711" not in memory.status().flush["talk"], "it may be a secret"
    replies = one_by_one(calling(call), "NO_REPLY", calling(writing("Anna likes tea.")))
    assert held(replies, ["a" * 300 + "\n", "b" * 300 + "\n"], room=301) == KEPT, "that was about another part"


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_that_was_refused_is_made_good_by_a_later_one(memory, held, call):
    assert held(one_by_one(calling(call), calling(writing("The boiler code is 4711.")))) == ("saved", [])
    assert "4711" in seen_notes(memory)
    assert memory.status().flush == {}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_that_was_refused_is_not_made_good_by_another_one_beside_it(memory, held, call):
    for both in ((call, writing("Anna likes tea.")), (writing("Bo likes rye."), call)):
        assert held(one_by_one(calling(*both))) == KEPT
    assert "Anna likes tea." in seen_notes(memory)
    assert "Bo likes rye." in seen_notes(memory)


@pytest.mark.parametrize("reason", CUT_OFF)
def test_what_was_cut_off_is_a_failure_of_which_no_half_of_a_fact_is_written(memory, held, reason):
    half = calling(writing("The boiler code is 47"), finish_reason=reason)
    for can_call in (True, False):
        assert held(one_by_one(saying("NO_REPLY", reason)), can_call=can_call) == KEPT
        assert reason in memory.status().flush["talk"]
    assert held(one_by_one(half)) == KEPT
    assert held(one_by_one(saying("The boiler code is 47", reason)), can_call=False) == KEPT
    assert seen_notes(memory) == ""
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


def test_a_turn_is_driven_to_its_end(memory, caplog):
    model = model_of(lambda *_: "NO_REPLY", [])
    turn = run_flush("main", lambda: memory.sessions.flush().begin(1, compacting=True), lambda _: (["one"], model))
    assert turn.outcome == "nothing"
    assert not run_flush("main", lambda: None, broken), "where no turn begins none is driven"
    assert not caplog.records
    assert not run_flush("tuesday", broken, broken)
    assert "the flush of session 'tuesday' failed: the disk is gone" in caplog.text


def test_of_a_turn_that_breaks_off_the_messages_are_kept(memory, caplog):
    said = [{"role": "user", "content": "The boiler code is 4711."}]
    assert run_flush("main", lambda: memory.sessions.flush().begin(1, compacting=True, messages=lambda: said), broken)
    assert "4711" in (memory.workspace.root / memory.sessions.flush().log.path).read_text()
    assert "the disk is gone" in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_held_up(memory, error):
    def ends(_):
        raise error

    with pytest.raises(error):
        run_flush("main", lambda: memory.sessions.flush().begin(1, compacting=True), ends)
