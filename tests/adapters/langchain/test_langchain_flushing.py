"""One flush, as whatever calls for it: what it comes to where more than the model fails."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openclaw_memory._flush import Wanted, asave, save

from openclaw_memory.runs import Held


class Unreadable:
    """A model that cannot even be asked how much it reads."""

    @property
    def profile(self):
        raise RuntimeError("no profile today")


@pytest.fixture
def run():
    async def run(is_async, memory, model=None):
        messages = [HumanMessage("Please remember: the boiler code is 4711.", id="m-1")]
        count = count_tokens_approximately
        wanted = Wanted(Held(memory), "tuesday", model or Unreadable(), messages, None, 10, count, cut=True)
        return await asave(wanted) if is_async else save(wanted)

    return run


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_fails_next_to_the_model_keeps_the_messages_verbatim(memory, run, caplog, is_async):
    assert await run(is_async, memory) == "kept"
    assert "4711" in str(list(memory.session_log("tuesday").messages()))
    assert "no profile today" in memory.flush("tuesday").state.flush_error
    assert "the messages are in sessions/tuesday.jsonl" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_flush_that_could_not_begin_has_saved_nothing(memory, run, caplog, is_async):
    memory.close()
    assert await run(is_async, memory) == "lost"
    assert "the flush of session 'tuesday' failed" in caplog.text
    assert "could not be noted" in caplog.text
