"""Whatever a model sends, it gets an answer: with a status, in JSON that can be sent on, and with words to mend it."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openclaw_memory.tools import memory_tools
from openclaw_memory.tools.handlers import STATUSES, TOOLS

# A model's JSON may hold "\ud800" and "\u0000", and paths that lead anywhere.
TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
PATH = TEXT | st.sampled_from(
    ["MEMORY.md", "memory/household.md", "memory/../MEMORY.md#L1-L9999", "memory/", "..", "/"]
)
VALUE = {
    "string": TEXT | st.sampled_from(["0123456789ab", "preference", "fact"]),
    "integer": st.integers(-2, 10**20) | st.just(1e300),
    "number": st.floats() | st.integers(),
}


@st.composite
def calls(draw, tools):
    tool = draw(st.sampled_from(tools))
    properties = tool.parameters["properties"]
    names = [*tool.parameters["required"], *draw(st.sets(st.sampled_from(sorted(properties))))]
    return tool, {
        name: draw(PATH if name == "path" else st.none() | VALUE[properties[name]["type"]]) for name in set(names)
    }


@pytest.mark.parametrize("key", ["agent:main:main", "agent:main:telegram:group:1"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_call_is_answered(memory, key, data):
    tool, arguments = data.draw(
        calls(memory_tools(memory, session_key=key, include=[name.removeprefix("memory_") for name in TOOLS]))
    )
    answer = tool.run(arguments)
    said = json.loads(answer.text.encode())
    assert said["status"] in {"ok", *(status for _, status in STATUSES)}
    assert answer.ok or (said["error"] and "\n" not in said["error"])
