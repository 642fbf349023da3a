"""Answer Claude Code's hooks: the start of a session, recall for a prompt, the transcript before a compaction.

Its process starts for each event and has no model: an event comes as JSON, the answer is JSON for the host, or nothing.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_memory import Memory
from openclaw_memory.conversation import get_text
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.plugins import load_plugin
from openclaw_memory.tools import compose_session_start, fence_results, recall
from openclaw_memory.workspace import SafeFolder
from openclaw_memory_hooks.events import Event, require_text, sync_or_skip

# The plugin: beside this package, where it is installed by a name that no other package has.
_BESIDE = Path(__file__).parents[1]
PLUGIN = _BESIDE / (
    "openclaw_memory_claude_code" if (_BESIDE / "openclaw_memory_claude_code").exists() else "claude_code"
)

# For each prompt, the host keeps what was recalled in its context: more would fill that in a long session.
RECALLED_CHARS = 1_500
# Of the messages that a compaction took, so many characters of the last ones are shown again.
KEPT_CHARS = 3_000
MESSAGE_CHARS = 500

# How far transcripts were read is remembered of so many sessions.
MOST_SESSIONS = 100
STATE = "claude-code.json"

_COMPACTED = """\
## After the Compaction

This conversation was just compacted. All that was said is kept word for word in {path}, in {root}; its last messages \
follow below. Now, before you go on, write what should be known in later sessions to {note}: decisions, preferences, \
open tasks, each in a line of its own, below a heading, at the end of the file. Leave out what is there already, and \
secrets. If nothing is worth keeping, write nothing. Do not speak of this to the user."""

_PLACE = """\
The memory is {root}. Where you have no tools memory_search, memory_get and memory_append, the commands \
`openclaw-memory search`, `get` and `append` do the same, each with `--workspace {place}`.
What should be known in later sessions goes into today's note, memory_append or {note}: a line for each fact. What \
lasts (preferences, decisions, who is who) goes into MEMORY.md."""


def answer(event: Event, memory: Memory) -> str:
    """Handle an event, and return the text to print for the host, or "".

    Args:
        event: The event that the host wrote to stdin.
        memory: The memory.

    Raises:
        InvalidInputError: The event has no name or no session, or its transcript cannot be read.
        OpenClawMemoryError: Whatever the memory raises.
    """
    name = require_text(event, "hook_event_name")
    act = _EVENTS.get(name)
    context = act(event, memory) if act else ""
    if not context:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}, ensure_ascii=False)


def _start(event: Event, memory: Memory) -> str:
    sync_or_skip(memory)
    if event.get("source") == "resume":  # what the session started with is in the conversation that goes on
        return ""
    root = memory.workspace.root
    words = _PLACE.format(root=root, place=shlex.quote(str(root)), note=_find_today(memory))
    parts = [words, compose_session_start(memory)]
    if event.get("source") == "compact":
        parts.append(_request_notes(event, memory))
    return "\n\n".join(filter(None, parts))


def _recall_for_prompt(event: Event, memory: Memory) -> str:
    prompt, session = require_text(event, "prompt"), require_text(event, "session_id")
    # What was said since the last compaction is in the context anyway.
    in_view = memory.sessions.log(session).read_messages_since(_read_number(memory, session, "cut"))
    recalled = recall(memory, prompt, max_chars=RECALLED_CHARS, in_view=in_view)
    return "\n\n".join(filter(None, (recalled, _suggest(prompt, memory))))


def _suggest(prompt: str, memory: Memory) -> str:
    """Return the question to the user about the memory, for the model to judge; "" for none."""
    detector = load_plugin("detectors", "intent")(memory.config)
    suggestion = detector.suggest_by_rules(prompt)
    return "" if suggestion is None or not suggestion.message else str(detector.write_instructions(suggestion))


def _keep_before_compaction(event: Event, memory: Memory) -> str:
    _log_messages(event, memory)
    size = memory.sessions.log(session := require_text(event, "session_id")).size
    _write_numbers(memory, session, cut_before=_read_number(memory, session, "cut"), cut=size)
    return ""


def _turn(event: Event, memory: Memory) -> str:
    _log_messages(event, memory)
    sync_or_skip(memory)  # now, and not while the user waits for an answer to the next prompt
    return ""


def _end(event: Event, memory: Memory) -> str:
    _log_messages(event, memory)
    memory.sessions.snapshot(require_text(event, "session_id"))
    return ""


_EVENTS: Mapping[str, Callable[[Event, Memory], str]] = {
    "SessionStart": _start,
    "UserPromptSubmit": _recall_for_prompt,
    "PreCompact": _keep_before_compaction,
    "Stop": _turn,
    "SessionEnd": _end,
}


def _log_messages(event: Event, memory: Memory) -> None:
    """Add the messages since the last event to the session's log."""
    session, file = require_text(event, "session_id"), require_text(event, "transcript_path")
    log = memory.sessions.log(session)
    if os.path.realpath(os.path.dirname(file)) == os.path.realpath(os.path.join(log.folder.base, *log.folder.parts)):
        return  # `sessions.folder` names the host's own folder: its transcripts are indexed as they are
    if os.path.exists(file):  # a session that ends without a word has none
        _write_numbers(memory, session, read=log.keep_transcript(file, _read_number(memory, session, "read")))


def _request_notes(event: Event, memory: Memory) -> str:
    """Return the request to write up a compaction, with its last messages, or "" if nothing was kept."""
    session = require_text(event, "session_id")
    log = memory.sessions.log(session)
    lost = log.read_messages_since(_read_number(memory, session, "cut_before"))
    if not lost:
        return ""
    words = _COMPACTED.format(path=log.path, root=memory.workspace.root, note=_find_today(memory))
    return f"{words}\n\n{fence_results([(log.path, _quote_last(lost, memory.workspace.policies.mask))], 'memory')}"


def _find_today(memory: Memory) -> Path:
    return memory.workspace.root / memory.workspace.files.find_day(memory.workspace.get_time().date())


def _quote_last(messages: Sequence[Mapping[str, Any]], mask: Callable[[str], str]) -> str:
    lines: list[str] = []
    room = KEPT_CHARS
    for message in reversed(messages):
        text = " ".join(mask(get_text(message)).split())
        cut = f"{text[:MESSAGE_CHARS]} [...]" if len(text) > MESSAGE_CHARS else text
        lines.append(f"{str(message.get('role')).capitalize()}: {cut}")
        room -= len(lines[-1]) + 1
        if room < 0:
            lines.pop()
            break
    return "\n".join(reversed(lines))


# --- how far the transcripts were read: numbers alone, in a file that may be deleted ---------------------------


def _read_number(memory: Memory, session: str, name: str) -> int:
    value = _read_states(SafeFolder.locate_data(memory.workspace.root)).get(session, {}).get(name, 0)
    return value if isinstance(value, int) else 0


def _write_numbers(memory: Memory, session: str, **numbers: int) -> None:
    folder = SafeFolder.locate_data(memory.workspace.root)
    with folder.lock():
        states = _read_states(folder)
        states = {**states, session: {**states.pop(session, {}), **numbers}}
        folder.replace(STATE, json.dumps(dict([*states.items()][-MOST_SESSIONS:])).encode())


def _read_states(folder: SafeFolder) -> dict[str, dict[str, Any]]:
    try:
        states = json.loads(folder.read(STATE))
    except (OpenClawMemoryError, ValueError):  # none yet, or damaged: everything is read again, nothing is added twice
        return {}
    return {key: state for key, state in states.items() if isinstance(state, dict)} if isinstance(states, dict) else {}
