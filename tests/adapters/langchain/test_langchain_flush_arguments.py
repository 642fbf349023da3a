"""What the flush for agents is made with, and what it says where that is wrong."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_openclaw_memory import MemoryFlushMiddleware, OpenClawSummarizationMiddleware
from scripted_chat import SUMMARY, says

from openclaw_memory.errors import ConfigError, InvalidInputError


def test_a_window_that_is_unknown_is_an_error_that_says_what_to_do(memory, scripted):
    with pytest.raises(ConfigError, match="window=200_000"):
        MemoryFlushMiddleware(memory, scripted("ok"))
    with pytest.raises(ConfigError, match="window=200_000"):
        MemoryFlushMiddleware(memory, scripted("ok"), trigger=("fraction", 0.5))


def test_a_window_that_turns_out_to_be_unknown_breaks_no_run_and_is_reported_once(memory, scripted, caplog):
    agent = create_agent(scripted("ok"), [], middleware=[MemoryFlushMiddleware(memory)])
    for _ in range(3):
        assert agent.invoke(says("Hello."))["messages"][-1].text == "ok"
    assert caplog.text.count("window=200_000") == 1


def test_a_summarization_that_never_summarises_is_reported(memory, scripted):
    with pytest.warns(UserWarning, match="no trigger"):
        MemoryFlushMiddleware.before(SummarizationMiddleware(scripted(SUMMARY)), memory=memory)
    with pytest.warns(UserWarning, match="OpenClawSummarizationMiddleware has no trigger"):
        OpenClawSummarizationMiddleware(scripted(SUMMARY), memory)


class OtherSummarization(AgentMiddleware):
    """It shortens what the model is shown, and has no trigger that could be read."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda memory, model: MemoryFlushMiddleware.before(OtherSummarization(), memory, model),
            "OpenClawFlushCallback",
        ),
        (MemoryFlushMiddleware.before, "is not LangChain's SummarizationMiddleware"),
        (
            lambda memory, model: MemoryFlushMiddleware.before(SummarizationMiddleware(model), model, memory),
            "Memory.open",
        ),
        (lambda memory, model: MemoryFlushMiddleware(model, memory), "Memory.open"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, window="200k"), "'200k'"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, window=0), "window=0"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, window=True), "window=True"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, trigger=("message", 50)), "is not a trigger"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, trigger=5_000), "5000 is not a trigger"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, trigger="tokens"), "is not a trigger"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, trigger=("fraction", 80)), "is not a trigger"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, trigger={"tokens": "5k"}), "is not a trigger"),
        (lambda memory, model: MemoryFlushMiddleware(memory, model, trigger=[{}]), "is not a trigger"),
        (lambda memory, model: OpenClawSummarizationMiddleware(model, memory, triger=("messages", 9)), "'trigger'"),
        (lambda _memory, model: OpenClawSummarizationMiddleware(model, "notes"), r"Memory\.open"),
        (lambda memory, model: OpenClawSummarizationMiddleware(model, memory, session_key=""), "session"),
        (lambda memory, model: OpenClawSummarizationMiddleware(model, memory, flush_model=42), "42"),
    ],
)
@pytest.mark.filterwarnings("ignore:the SummarizationMiddleware has no trigger")
def test_what_is_given_wrongly_is_refused_with_what_to_give_instead(memory, scripted, make, words):
    with pytest.raises((ConfigError, InvalidInputError, TypeError), match=words):
        make(memory, scripted("ok"))
