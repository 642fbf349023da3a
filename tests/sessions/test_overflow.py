"""A full window costs a summary and a second question, and never the reply."""

import pytest

from openclaw_memory.config import Compaction
from openclaw_memory.sessions.compaction import conversation, logged
from openclaw_memory.sessions.messages import text_of
from openclaw_memory.sessions.overflow import answered, is_overflow
from openclaw_memory.workspace import Workspace

RULES = Compaction(keep_recent_tokens=1)
TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def say(role, text):
    return {"role": role, "content": text}


TALK = [say("user", "one"), say("assistant", "two"), say("user", "three")]


def one_each(messages):
    return len(messages)


class ContextOverflowError(ValueError):
    """Named as LangChain's."""


class CodedError(Exception):
    code = "context_length_exceeded"


def caused(error):
    try:
        raise RuntimeError("the agent failed") from error
    except RuntimeError as outer:
        return outer


@pytest.mark.parametrize(
    "error",
    [
        TOO_LONG,
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion.",
        "This endpoint's maximum context length is 128000 tokens. However, you requested about 200000 tokens",
        "prompt token count of 150000 exceeds the limit of 128000",
        "the request exceeds the available context size, try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 128000 (requested: 200000)",
        "prompt too long; exceeded max context length by 12 tokens",
        "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
        ContextOverflowError("whatever"),
        CodedError("Bad Request"),
        caused(ValueError(TOO_LONG)),
    ],
)
def test_a_full_window_is_known_by_what_the_services_say(error):
    assert is_overflow(error if isinstance(error, Exception) else RuntimeError(error))


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached: please reduce the length of the messages, 12000 tokens per minute (TPM)",
        "429 Too Many Requests",
        "the file exceeds the limit of 100 MB",
        "connection refused",
        "",
    ],
)
def test_other_failures_are_none(text):
    assert not is_overflow(RuntimeError(text))


def test_an_error_that_caused_itself_is_looked_at_once():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert not is_overflow(first)


class Model:
    """Replies with how many messages it was asked with, or fails as its script says."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []

    def __call__(self, messages):
        self.asked.append([text_of(one) for one in messages])
        if self.script and (failure := self.script.pop(0)):
            raise failure
        return say("assistant", f"reply {len(self.asked)}")


def ask(model, talk=TALK, summarise=lambda lost: f"{len(lost)} lost", **options):
    return answered(model, talk, summarise, **{"window": 100, "rules": RULES, "count": one_each, **options})


def test_a_reply_within_the_window_is_all_there_is():
    model = Model()
    done = ask(model)
    assert done.reply == say("assistant", "reply 1")
    assert done.messages == [*TALK, done.reply]
    assert (done.compactions, done.failure) == ((), None)
    assert len(TALK) == 3


def test_a_full_window_is_flushed_compacted_and_asked_once_more_in_that_order():
    model, order = Model(RuntimeError(TOO_LONG)), []

    def summarise(lost):
        order.append("summary")
        return f"{len(lost)} lost"

    done = ask(model, summarise=summarise, before=lambda lost: order.append(list(lost)), after=order.append)
    assert order == [TALK[:2], "summary", done.compactions[0]]
    assert [texts[-1] for texts in model.asked] == ["three", "three"]
    assert "2 lost" in model.asked[1][0]
    assert done.reply == say("assistant", "reply 2")
    assert done.messages == [*done.compactions[0].messages, done.reply]


def test_a_full_window_is_shortened_also_where_the_counter_says_that_all_may_be_kept():
    model = Model(RuntimeError(TOO_LONG))
    done = ask(model, rules=Compaction(), window=None, count=lambda messages: 10 * len(messages))
    assert done.compactions[0].summarised == tuple(TALK[:1])
    assert done.messages[1:] == [*TALK[1:], done.reply]


def test_a_second_full_window_is_heard():
    model = Model(RuntimeError(TOO_LONG), RuntimeError("prompt is too long, again"))
    with pytest.raises(RuntimeError, match="again"):
        ask(model)
    assert len(model.asked) == 2


def test_where_nothing_can_be_shortened_the_first_error_is_heard_and_says_so():
    model = Model(RuntimeError(TOO_LONG))
    with pytest.raises(RuntimeError, match="too long") as caught:
        ask(model, TALK[:1])
    assert len(model.asked) == 1
    assert "nothing to summarise" in caught.value.__notes__[0]


def test_other_errors_pass_on_at_once():
    model = Model(ConnectionError("no network"))
    with pytest.raises(ConnectionError):
        ask(model)
    assert len(model.asked) == 1


@pytest.mark.parametrize(("window", "compactions"), [(5, 0), (4, 1), (None, 0)])
def test_after_a_reply_over_the_threshold_the_conversation_is_compacted(window, compactions):
    # A quarter of the window is reserved: of 5 are 4 free, of 4 three. Four messages are there after the reply.
    done = ask(Model(), window=window)
    assert len(done.compactions) == compactions
    assert done.messages[-1] == done.reply
    assert len(done.messages) == (3 if compactions else 4)


def test_a_summary_that_fails_after_the_reply_does_not_take_it_back():
    def ill(_lost):
        raise ConnectionError("no summary")

    done = ask(Model(), window=4, summarise=ill)
    assert done.messages == [*TALK, say("assistant", "reply 1")]
    assert str(done.failure) == "no summary"


def test_after_a_restart_the_log_tells_the_same_conversation(tmp_path):
    log = Workspace.open(tmp_path).session_log("s")
    model = Model(RuntimeError(TOO_LONG))
    done = ask(lambda messages: logged(log, model(messages)), [logged(log, one) for one in TALK], log=log, window=4)
    assert len(done.compactions) == 1
    assert conversation(log) == done.messages
