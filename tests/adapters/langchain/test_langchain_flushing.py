"""One flush, as whatever calls for it: what it comes to where more than the model fails."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openclaw_memory._flushing import Wanted, asave, compacted, log_bytes, save


class Unreadable:
    """A model that cannot even be asked how much it reads."""

    @property
    def profile(self):
        raise RuntimeError("no profile today")


@pytest.fixture
def run():
    async def run(is_async, memory, model=None):
        messages = [HumanMessage("Please remember: the boiler code is 4711.", id="m-1")]
        wanted = Wanted(memory, "tuesday", model or Unreadable(), messages, None, 10, count_tokens_approximately)
        return await asave(wanted) if is_async else save(wanted)

    return run


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_fails_beside_the_model_keeps_the_messages_verbatim(memory, run, caplog, is_async):
    assert await run(is_async, memory)
    assert "4711" in str(list(memory.session_log("tuesday").messages()))
    assert "no profile today" in memory.flush("tuesday").state.flush_error
    assert "its messages were kept" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_flush_that_could_not_begin_counts_for_none(memory, run, caplog, is_async):
    memory.close()
    assert not await run(is_async, memory)
    compacted(memory, "tuesday")
    assert "the flush of session 'tuesday' failed" in caplog.text
    assert "could not be noted" in caplog.text


def test_a_transcript_that_is_not_there_has_no_bytes(memory):
    assert log_bytes(memory, "tuesday") == 0
    memory.session_log("tuesday").append_entry("note", text="x")
    assert log_bytes(memory, "tuesday") == (memory.workspace.root / "sessions" / "tuesday.jsonl").stat().st_size
