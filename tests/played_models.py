"""Models that take the place of hosted ones in the documentation: they answer from what they are shown."""

import json
import re
from types import ModuleType, SimpleNamespace

import langchain_openclaw_memory.testing as langchain
import llama_index_openclaw_memory.testing as llama_index

from openclaw_memory.conversation import get_text

CITATION = re.compile(r"\[(\S+#\S+)(?: \w+)?\]$")


def split_words(text):
    return set(re.findall(r"\w{4,}", text.lower()))


def find_line(question, text):
    """Return the line that shares most words with a question, with the citation above it; "" if none does."""
    best, most, citation = "", 0, ""
    for line in text.splitlines():
        cited = CITATION.match(line)
        citation = f" [{cited[1]}]" if cited else citation
        shared = len(split_words(line) & split_words(question))
        if question not in line and shared > most:
            best, most = line + citation, shared
    return best


def reply(messages, tools):
    """Return a text or a call; messages are pairs of a role and a text."""
    role, text = messages[-1]
    if tools == ["memory_append"]:
        facts = re.findall(r"^User: Remember: (.*)", text, re.MULTILINE)
        return ("memory_append", {"text": "\n".join(facts)}) if facts and role != "tool" else "NO_REPLY"
    said = "\n".join(text for role, text in messages if role != "tool")
    question = (re.findall(r"[^\n:]*\?$", said, re.MULTILINE) or [""])[-1].strip()
    if role != "tool" and (noted := re.match("Please note that (.*)", text)) and "memory_append" in tools:
        return ("memory_append", {"text": noted[1]})
    if role == "tool" and "results" in text:
        text = "\n".join(f"[{row['citation']}]\n{row['snippet']}" for row in json.loads(text)["results"])
    elif not re.search(r"\?\s*(Answer: )?$", text):
        return "Noted."
    shown = find_line(question, text)
    if "Never directly reference" in messages[0][1]:  # LlamaIndex's prompt for query engines
        shown = shown.partition(" [")[0]
    return shown or (("memory_search", {"query": question}) if "memory_search" in tools and role != "tool" else "?")


def reply_in_langchain(request):
    said = reply([(message.type, message.text) for message in request.messages], request.tools)
    return said if isinstance(said, str) else langchain.make_call(said[0], **said[1])


def reply_in_llama_index(messages, tools):
    said = reply([(message.role.value, message.content or "") for message in messages], list(tools))
    return said if isinstance(said, str) else llama_index.make_call(said[0], **said[1])


def reply_in_openai(messages, tools=None, **_):
    said = reply(
        [(each["role"], get_text(each)) for each in messages], [each["function"]["name"] for each in tools or ()]
    )
    answer = {"role": "assistant", "content": said}
    if not isinstance(said, str):
        called = {"name": said[0], "arguments": json.dumps(said[1])}
        answer = {"role": "assistant", "tool_calls": [{"id": "call", "type": "function", "function": called}]}
    return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(to_dict=lambda: answer))])


played = langchain.ScriptedChatModel(script=reply_in_langchain, profile={"max_input_tokens": 200_000})
client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=reply_in_openai)))
SERVICES = {name: ModuleType(name) for name in ("openai", "llama_index.llms.openai")}
SERVICES["openai"].OpenAI = lambda: client
SERVICES["llama_index.llms.openai"].OpenAI = lambda **_: llama_index.ScriptedLLM(script=reply_in_llama_index)
