"""A full window costs a summary and a second question, and never the reply."""

import pytest

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation import ask_with_compaction, is_overflow
from openclaw_memory.conversation.messages import get_text

RULES = CompactionConfig(keep_recent_tokens=1)
TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def say(role, text):
    return {"role": role, "content": text}


CONVERSATION = [say("user", "one"), say("assistant", "two"), say("user", "three")]


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
        "input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input length",
        "Error code: 413 - {'error': {'type': 'request_too_large', 'message': 'Request Entity'}}",
        "Request exceeds the maximum size",
        "Request exceeds the maximum allowed number of bytes.",
        "tokens_limit_reached: Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "too many tokens: size limit exceeded by 12 tokens. Try using shorter or fewer inputs",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens",
        "Input validation error: `inputs` must have less than 1000 tokens. Given: 5000",
        "Prompt exceeds max length",
        "Range of input length should be [1, 30720]",
        "The input exceeds the model's context size of 4096",
        "Requested tokens (5000) exceed context window of 4096",
        "The prompt (8200 tokens) is longer than the model's context window",
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
        "Too many tokens, please wait before trying again.",
        "Request too large for gpt-4o on tokens per min: Limit 30000, Requested 41000. tokens_limit_reached",
        "Too many tokens per day: the request exceeds the context window of your plan",
        "the file exceeds the limit of 100 MB",
        "connection refused",
        "",
    ],
)
def test_other_failures_are_none(text):
    assert not is_overflow(RuntimeError(text))


class Model:
    """Replies with how many messages it was asked with, or fails as its script says."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []

    def __call__(self, messages):
        self.asked.append([get_text(one) for one in messages])
        if self.script and (failure := self.script.pop(0)):
            raise failure
        return say("assistant", f"reply {len(self.asked)}")


def ask(model, chat=CONVERSATION, summarise=lambda lost: f"{len(lost)} lost", **options):
    return ask_with_compaction(model, chat, summarise, **{"window": 100, "rules": RULES, "count": one_each, **options})


def test_a_reply_within_the_window_is_all_there_is():
    model = Model()
    done = ask(model)
    assert done.reply == say("assistant", "reply 1")
    assert done.messages == [*CONVERSATION, done.reply]
    assert (done.compactions, done.failure) == ((), None)
    assert len(CONVERSATION) == 3


def test_a_full_window_is_flushed_compacted_and_asked_once_more_in_that_order():
    model, order = Model(RuntimeError(TOO_LONG)), []

    def summarise(lost):
        order.append("summary")
        return f"{len(lost)} lost"

    done = ask(model, summarise=summarise, before=lambda lost: order.append(list(lost)), after=order.append)
    assert order == [CONVERSATION[:2], "summary", done.compactions[0]]
    assert [texts[-1] for texts in model.asked] == ["three", "three"]
    assert "2 lost" in model.asked[1][0]
    assert done.reply == say("assistant", "reply 2")
    assert done.messages == [*done.compactions[0].messages, done.reply]


def test_a_full_window_is_shortened_also_where_the_counter_says_that_all_may_be_kept():
    model, chat = Model(RuntimeError(TOO_LONG)), [*CONVERSATION, say("assistant", "four"), say("user", "five")]
    done = ask(model, chat, rules=CompactionConfig(), window=None, count=lambda messages: 10 * len(messages))
    assert done.compactions[0].summarised == tuple(chat[:3])
    assert done.messages[1:] == [*chat[3:], done.reply]


def test_a_second_full_window_is_heard():
    model = Model(RuntimeError(TOO_LONG), RuntimeError("prompt is too long, again"))
    with pytest.raises(RuntimeError, match="again"):
        ask(model)
    assert len(model.asked) == 2


def test_where_nothing_can_be_shortened_the_first_error_is_heard_and_says_so():
    model = Model(RuntimeError(TOO_LONG))
    with pytest.raises(RuntimeError, match="too long") as caught:
        ask(model, CONVERSATION[:1])
    assert len(model.asked) == 1
    assert "nothing to summarise" in caught.value.__notes__[0]


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
    assert done.messages == [*CONVERSATION, say("assistant", "reply 1")]
    assert str(done.failure) == "no summary"
