"""The scripted model of `lives.py`, by one rule for every agent that it serves.

It reads a fact where one of the sentences of `life_script.py` stands whole in what it is shown, and does what it is asked:

- **to sum up**: it keeps the KEPT latest sentences with a fact that it is shown, the latest first, and forgets the rest;
- **to note or extract**: it copies each sentence with a fact that it is shown, once, in the form it is asked for; where it
  is shown what is known already, it leaves that out; where the known facts are to be made fewer, it keeps the last;
- **a message that begins with "Please remember"**: it copies the sentence with the tool that saves, if there is one;
- **a question about a fact**: it answers the value in the sentence it takes for the newest: of the latest day; of those, one
  that says that it is a change; of those, in the latest message; of those, the first, or the last of the `<fact>`s that it
  extracted, which it knows to be in their order. What the user or the model itself says in the conversation is of today.
  The day of any other sentence is the one that stands nearest above it in the same paragraph or JSON object, or else
  below it there; one without is older than all days. If no sentence is about the fact, the model asks the tool that
  searches, once, with the question; after that it does not know;
- **anything else**: it says "I see.".

So an agent that is shown an old value alone, or above a new one of the same day, answers wrongly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from life_script import REMEMBER, Statement, find_statements, find_topic

KEPT = 6  # sentences in a summary
UNKNOWN, HEARD = "I do not know.", "I see."
SEARCH, SAVE = ("memory_search", "search_memory"), ("memory_append",)
DAY = re.compile(r"\b(20\d\d-\d\d-\d\d)\b")
NO_DAY, TODAY = "", "9999"
ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


class Message(NamedTuple):
    """One message as it is shown: its role is `system`, `user`, `assistant` or `tool`."""

    role: str
    text: str


class Call(NamedTuple):
    """A call of a tool, with the arguments of each time that it is called."""

    name: str
    arguments: list[dict[str, str]]


def reply(messages: Sequence[Message], tools: Sequence[str]) -> str | Call:
    """Return what the model says to these messages, or the tool that it calls."""
    messages = [
        message._replace(text=ESCAPED.sub(lambda code: chr(int(code[1], 16)), message.text)) for message in messages
    ]
    everything = "\n".join(message.text for message in messages)
    if "Context Extraction Assistant" in everything:
        return sum_up(everything)
    if "## New Messages" in everything:
        return json.dumps({"memory": [{"text": text} for text in sentences(everything.split("## New Messages")[-1])]})
    if "<existing_facts>" in everything:
        return extract_facts(everything)
    if "Memory" in tools:
        before, _, after = everything.partition("<session")
        new = [text for text in sentences(after or before) if text not in before]
        return Call("Memory", [{"content": text} for text in new]) if new else "Nothing new."
    if list(tools) == ["memory_append"]:
        facts = sentences(everything)
        is_done = messages[-1].role == "tool" or not facts
        return "NO_REPLY" if is_done else Call("memory_append", [{"text": "\n".join(f"- {text}." for text in facts)}])
    return chat(messages, tools)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that state a fact, each once."""
    return list(dict.fromkeys(statement.text for statement in find_statements(text)))


def sum_up(text: str) -> str:
    """Sum up in the latest sentences, the latest first. An earlier summary is such a list itself."""
    earlier, found = [], []
    for line in text.splitlines():
        (earlier if "Facts, the latest first:" in line else found).extend(sentences(line))
    latest = list(dict.fromkeys([*reversed(found), *earlier]))[:KEPT]
    return "Facts, the latest first: " + " ".join(f"{sentence}." for sentence in latest)


def extract_facts(text: str) -> str:
    """Return the new facts of a conversation, or the last of too many known ones."""
    shown, _, known = text.partition("<existing_facts>")
    if limit := re.search(r"fewer than (\d+) facts", text):
        facts = sentences(known)[-int(limit[1]) + 1 :]
    else:
        facts = [sentence for sentence in sentences(shown) if sentence not in known]
    return "<facts>\n" + "\n".join(f"<fact>{fact}</fact>" for fact in facts) + "\n</facts>"


def chat(messages: Sequence[Message], tools: Sequence[str]) -> str | Call:
    """Reply to the latest message of the user."""
    at = max(number for number, message in enumerate(messages) if message.role == "user")
    said = messages[at].text.strip().splitlines()[-1]
    has_called = any(message.role == "tool" for message in messages[at:])
    search = next((name for name in tools if name in SEARCH), None)
    save = next((name for name in tools if name in SAVE), None)
    if topic := find_topic(said):
        if newest := find_newest(messages, topic):
            return f"{newest.value}."
        return Call(search, [{"query": said}]) if search and not has_called else UNKNOWN
    if save and not has_called and said.startswith(tuple(REMEMBER.values())):
        return Call(save, [{"text": "\n".join(f"{text}." for text in sentences(said))}])
    return HEARD


def find_newest(messages: Sequence[Message], topic: str) -> Statement | None:
    """Find the sentence about a topic that the model takes for the newest."""
    found = []
    for number, message in enumerate(messages):
        shown, said = split_message(message)
        for at, part in enumerate([*shown, said]):
            for statement in find_statements(part):
                if statement.topic == topic:
                    day = TODAY if at == len(shown) else find_day(part, statement.start)
                    place = at * len(message.text) + statement.start
                    found.append(((day, statement.is_change, number, place if "<fact>" in part else -place), statement))
    return max(found)[1] if found else None


def split_message(message: Message) -> tuple[list[str], str]:
    """Return the paragraphs and JSON objects that a message shows, and the line that the user or the model says itself."""
    before, _, said = message.text.strip().rpartition("\n")
    if message.role not in ("user", "assistant"):
        before, said = message.text, ""
    return re.split(r"\},\s*\{|\n\n", before), said


def find_day(text: str, place: int) -> str:
    """Return the day that stands nearest above a place of a text, or else below it."""
    above, below = DAY.findall(text[:place]), DAY.findall(text[place:])
    return above[-1] if above else below[0] if below else NO_DAY
