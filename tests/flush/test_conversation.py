"""A conversation in a loop of one's own is logged, flushed, compacted and resumed, and loses nothing."""

import json
import re
from collections import Counter

import pytest
from index_files import read_days

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.conversation import get_text
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.flush import Session
from openclaw_memory.tools import memory_tools

SMALL = MemoryConfig().replace(
    {"compaction": {"keep_recent_tokens": 60, "soft_threshold_tokens": 60}, "embedding": {"provider": "none"}}
)
TOO_LONG = ValueError("maximum context length exceeded")
TURNS = 30
FACT = re.compile(r"Fact (\d+): [^.]*\.")


class Model:
    """Notes every fact that it is shown, in other words each time, repeats facts in summaries, and fails as `script` says.

    Each entry of the script is for one kind of request: "flush", "summary" or "reply".
    """

    def __init__(self, script=()):
        self.script, self.flushes, self.summaries, self.replies = list(script), [], [], []

    def __call__(self, messages, tools):
        text = "\n".join(map(get_text, messages))
        names = [tool.name for tool in tools]
        kind = "flush" if names == ["memory_append"] else "summary" if "Summarise this" in text else "reply"
        if self.script and self.script[0][0] == kind and (failure := self.script.pop(0)[1]):
            raise failure
        if kind == "summary":
            self.summaries.append(text)
            return "They spoke of " + " ".join(match[0] for match in list(FACT.finditer(text))[-2:])
        if kind == "reply":
            self.replies.append(messages)
            return self.reply(messages, names)
        if messages[-1]["role"] == "tool":
            return "NO_REPLY"
        self.flushes.append(text)
        facts = "\n".join(f"- {match[0]} (noted in turn {len(self.flushes)})" for match in FACT.finditer(text))
        return call("memory_append", text=facts) if facts else "NO_REPLY"

    def reply(self, messages, names):
        last = messages[-1]
        if last["role"] == "user" and "memory_search" in names and get_text(last).endswith("?"):
            return call("memory_search", query=get_text(last))
        return f"I see {len(messages)} messages."


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, config=SMALL) as opened:
        yield opened


def transcript(memory):
    return (memory.workspace.root / "sessions/main.jsonl").read_text()


def tell(memory, model, count, **options):
    """Tell facts, each in a conversation that is opened again as after a restart, with some questions about them."""
    for number in range(count):
        talk = memory.sessions.open_conversation(model, window=1_200, tools=memory_tools(memory), **options)
        talk.send(f"Fact {number}: the key of box {number} hangs on hook {number * 7}." + " So it goes." * 8)
        if number % 6 == 5:
            memory.sync()
            talk.send(f"Where hangs the key of box {number - 5}?")
    return talk


@pytest.mark.parametrize(
    "script",
    [
        [],
        [("flush", RuntimeError("no credit"))] * 2,
        [*[("reply", None)] * 9, ("reply", TOO_LONG)],
        [("summary", RuntimeError("down"))] * 3,
    ],
    ids=["steady", "refused flushes", "a full window", "no summary"],
)
def test_whatever_fails_no_fact_is_lost_and_none_is_noted_twice(memory, script):
    model = Model(script)
    talk = tell(memory, model, TURNS)
    assert talk.flush.state.compaction_count >= 2
    assert len(model.flushes) > 1
    noted, kept = Counter(FACT.findall(read_days(memory.workspace.root))), FACT.findall(transcript(memory))
    view = " ".join(map(get_text, talk.messages))
    in_words = {number for number in map(str, range(TURNS)) if noted[number] or f"Fact {number}:" in view}
    assert in_words == {str(number) for number in range(TURNS)} or any(kind == "flush" for kind, _ in script)
    assert {*kept} >= {str(number) for number in range(TURNS)}
    assert [number for number, times in noted.items() if times > 1] == []
    assert all(text.count("hangs on hook 7.") == 1 for text in model.flushes if "Fact 1:" in text)


def test_after_a_restart_it_goes_on_with_the_summary_and_what_followed(memory):
    model = Model()
    tell(memory, model, 12)
    talk = memory.sessions.open_conversation(model, window=1_200)
    assert "They spoke of" in get_text(talk.messages[0])
    before = len(talk.messages)
    assert talk.send("Well?") == f"I see {before + 1} messages."
    fields = json.loads((memory.workspace.root / "sessions/sessions.json").read_text())["main"]
    names = "sessionId updatedAt chatType compactionCount memoryFlushAt memoryFlushCompactionCount inputTokens"
    assert fields.keys() >= {*names.split(), "outputTokens", "contextTokens"}
    assert all({*message} <= {"role", "content", "tool_calls", "tool_call_id", "name"} for message in model.replies[-1])


def test_a_second_full_window_and_one_that_cannot_be_shortened_are_heard(memory):
    talk = memory.sessions.open_conversation(Model([("reply", TOO_LONG)] * 3))
    with pytest.raises(ValueError, match="maximum context") as raised:
        talk.send("Hello.")
    assert "nothing to summarise" in raised.value.__notes__[0]
    talk = memory.sessions.open_conversation(Model([("reply", TOO_LONG)] * 2), "other")
    for text in ("one " * 99, "two " * 99):
        talk.log.append_message({"role": "user", "content": text})
    with pytest.raises(ValueError, match="maximum context"):
        talk.send("Hello.")
    assert talk.flush.state.compaction_count == 1


def test_a_call_of_a_tool_that_is_not_there_is_answered(memory):
    replies = iter([call("rm"), "Then not."])
    talk = memory.sessions.open_conversation(lambda *_: next(replies))
    assert talk.send("Delete it.") == "Then not."
    assert [get_text(message) for message in talk.messages][-2:] == ["there is no tool 'rm'", "Then not."]
    talk.log.append_message(call("rm"))  # and then the process was killed
    memory.sessions.open_conversation(model := Model()).send("Well?")
    assert [message["role"] for message in model.replies[0]] == ["user", "assistant", "tool", "assistant", "user"]


def test_tools_made_without_a_session_show_what_that_of_the_conversation_may_be_shown(memory):
    (memory.workspace.root / "MEMORY.md").write_text("The zebra is called Otto.\n")
    for session, is_shown in (("agent:main:telegram:group:7", False), ("main", True)):
        replies = iter([call("memory_get", path="MEMORY.md"), "Yes."])
        talk = memory.sessions.open_conversation(lambda *_, own=replies: next(own), session, tools=memory_tools(memory))
        talk.send("What of the zebra?")
        assert ("Otto" in str(talk.messages)) is is_shown


def test_a_fact_that_is_remembered_in_a_conversation_is_of_its_session_and_its_user(memory):
    replies = iter([call("memory_remember", type="preference", key="editor.theme", value="dark"), "Yes."])
    tools, anna = memory_tools(memory, include=["remember"]), Session("evening", user="anna")
    memory.sessions.open_conversation(lambda *_: next(replies), anna, tools=tools).send("Dark, please.")
    assert memory.records.get("preference", "editor.theme", user_id="anna").source.ref == "evening"


def test_a_model_that_calls_without_end_or_wrongly_is_told_so_and_one_without_a_reply_is_an_error(memory):
    broken = call("memory_append")
    broken["tool_calls"][0]["function"]["arguments"] = '{"text": "- half a f'
    replies = iter([broken, "Then not.", None])
    talk = memory.sessions.open_conversation(lambda *_: next(replies), tools=memory_tools(memory))
    assert talk.send("Note it.") == "Then not."
    assert "not a JSON object" in str(talk.messages)
    with pytest.raises(InvalidInputError, match="the model returned None"):
        talk.send("And now?")
    talk = memory.sessions.open_conversation(lambda *_: call("rm"), "endless")
    with pytest.raises(RecursionError, match="asked 20 times and still calls tools"):
        talk.send("Delete it.")
    assert memory.sessions.open_conversation(lambda *_: "Well.", "endless").send("Stop.") == "Well."
