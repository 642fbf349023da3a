"""Answer OpenCode's plugin: the start of a session, recall for a message, the tools, and the flush.

The plugin keeps one process, and sends it each event as a line of JSON; the answer is one too. A flush and an intent
need a model, which the plugin has and this process has not: it asks the plugin in between, a line each way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError, InvalidInputError, PolicyError
from openclaw_memory.plugins import load_plugin
from openclaw_memory.tools import compose_session_start, find_audience, memory_tools, recall
from openclaw_memory_hooks.events import Event, Exchange, require_text, sync_or_skip

# Where it is installed, and in a copy of the sources, the plugin is beside this package.
PLUGIN = Path(__file__).parents[1] / "opencode_memory" / "plugin.js"

TOOLS = ("memory_search", "memory_get", "memory_append")  # of an event without `tools`

WRITING = """\
## Where Facts Go
What comes up goes to today's note, with memory_append. What lasts, such as preferences, people and decisions, belongs \
in MEMORY.md too, which each session starts with: copy it there with memory_promote, or add a line to the file where \
you have not that tool."""

# For each message, the host keeps what was recalled in its context: more would fill that in a long session.
RECALLED_CHARS = 1_500

# The settings of the documented plugin by their path there, and what each is called here. Those of `_SWITCHED` are
# a switch and a value there, and one value here, which is `off` without the switch.
_SETTINGS = {
    "search.hybrid.vectorWeight": "search.vector_weight",
    "search.hybrid.candidateMultiplier": "search.candidate_multiplier",
    "search.minScore": "search.min_score",
    "search.maxResults": "search.max_results",
    "embeddings.provider": "embedding.provider",
    "embeddings.model": "embedding.model",
    "embeddings.batchSize": "embedding.batch_size",
    "chunking.tokens": "chunking.tokens",
    "chunking.overlap": "chunking.overlap_tokens",
    "intentDetection.enabled": "plugins.intent.enabled",
    "intentDetection.languages": "plugins.intent.languages",
    "intentDetection.confidenceThreshold": "plugins.intent.confidence_threshold",
}
# Where one of these is named, the numbers are those of the documented plugin, which scores in its own way.
_OF_THE_PRESET = ("chunking.", "search.hybrid.", "search.minScore")
# The host compacts and prunes by its own settings.
UNUSED = frozenset(f"compaction.{name}" for name in ("reserve_tokens", "reserve_tokens_floor", "keep_recent_tokens"))
_SWITCHED: Mapping[str, tuple[str, str, Any]] = {
    "search.mmr": ("lambda", "search.mmr", None),
    "search.temporalDecay": ("halfLifeDays", "search.half_life_days", None),
    "cache": ("maxEntries", "embedding.max_entries", 0),
    "snapshots": ("maxMessages", "sessions.snapshot_messages", 0),
}


def read_settings(block: Any) -> dict[str, dict[str, Any]]:
    """Return the documented plugin's settings, `config.memory` of OpenCode, as `MemoryConfig.replace` takes them.

    Raises:
        ConfigError: It is no object, or a setting is unknown.
    """
    values = _flatten(block)
    tables: dict[str, dict[str, Any]] = {}
    for path, (name, place, off) in _SWITCHED.items():
        on, value = values.pop(f"{path}.enabled", None), values.pop(f"{path}.{name}", None)
        if on is False or value is not None:
            _put(tables, place, off if on is False else value)
    text = values.pop("search.hybrid.textWeight", None)
    if values.pop("search.hybrid.enabled", True) is False:  # nothing is found by meaning
        values["search.hybrid.vectorWeight"] = 0.0
    elif text is not None and isinstance(vector := values.get("search.hybrid.vectorWeight", 1 - text), int | float):
        values["search.hybrid.vectorWeight"] = vector / ((vector + text) or 1)  # its share of both counts here
    for path, value in values.items():
        if path not in _SETTINGS:
            raise ConfigError(f"the settings of the plugin have no {path!r}: there are {', '.join(_SETTINGS)}")
        if value is not None:  # `model: null` is the provider's own
            _put(tables, _SETTINGS[path], value)
    return tables


def choose_base(block: Any) -> MemoryConfig:
    """Return the defaults for a block of settings: the preset, where it names chunks or scores of that.

    Raises:
        ConfigError: It is no object.
    """
    is_scored = any(path.startswith(_OF_THE_PRESET) for path in _flatten(block))
    return MemoryConfig.opencode() if is_scored else MemoryConfig()


def answer(name: str, event: Event, memory: Memory, exchange: Exchange | None) -> dict[str, Any]:
    """Handle an event, and return the answer for the plugin, {} for nothing.

    Args:
        name: The event, as OpenCode calls it; "tool" for a call of a tool.
        event: Its fields: always `sessionID`, with some `messages`, `text`, `tool` and `args`.
        memory: The memory.
        exchange: Asks the plugin for the reply of its model; without, no model is asked for an intent.

    Raises:
        InvalidInputError: The event is unknown, or lacks something.
        OpenClawMemoryError: Whatever the memory raises.
    """
    act = _EVENTS.get(name)
    if act is None:
        raise InvalidInputError(f"there is no event {name!r}: the plugin sends {', '.join(_EVENTS)}")
    return act(event, memory, exchange)


def _start_session(event: Event, memory: Memory, _: Exchange | None) -> dict[str, Any]:
    sync_or_skip(memory)
    tools = event.get("tools", TOOLS)
    writing = [WRITING] if "memory_append" in tools else []
    system = "\n\n".join([*writing, compose_session_start(memory, tools)])
    notices, written = memory.config.find_unread_settings(UNUSED), (*memory.config.explicit, "plugins.")
    return {"system": system, "notices": [notice for notice in notices if notice.startswith(written)]}


def _recall_for_message(event: Event, memory: Memory, exchange: Exchange | None) -> dict[str, Any]:
    session = require_text(event, "sessionID")
    # What was said since the last compaction is in the context anyway.
    in_view = memory.sessions.log(session).read_messages_since(memory.sessions.flush(session).state.compacted_bytes)
    text = require_text(event, "text")
    recalled = recall(memory, text, max_chars=RECALLED_CHARS, in_view=in_view)
    detector = load_plugin("detectors", "intent")(memory.config)
    if exchange is None or not (find_audience(memory, None).is_user_alone and detector.is_worth_asking(text)):
        return {"recalled": recalled}
    intent = detector.detect(text, lambda prompt: _read_reply(exchange({"ask": prompt, "title": "Memory intent"})))
    suggestion = detector.suggest(intent)
    suggested = detector.write_instructions(suggestion) if suggestion else ""
    notices = [f"nothing is suggested for a message: {intent.reason}"] if intent.reason else []
    return {"recalled": "\n\n".join(filter(None, (recalled, suggested))), "notices": notices}


def _call_tool(event: Event, memory: Memory, _: Exchange | None) -> dict[str, Any]:
    names = [name.removeprefix("memory_") for name in event.get("tools", TOOLS)]
    tools = {tool.name: tool for tool in memory_tools(memory, include=names)}
    name = require_text(event, "tool")
    if name not in tools:
        raise InvalidInputError(f"there is no tool {name!r}: there are {', '.join(tools)}")
    sync_or_skip(memory)
    return {"output": tools[name](event.get("args") or {})}


def _log_idle(event: Event, memory: Memory, _: Exchange | None) -> dict[str, Any]:
    if _log_messages(event, memory):
        sync_or_skip(memory)  # now, and not while the user waits for an answer to the next message
    return {}


def _flush_session(event: Event, memory: Memory, exchange: Exchange | None) -> dict[str, Any]:
    from openclaw_memory.flush import FlushModel, ModelReply, run_flush  # which loads asyncio

    messages = _log_messages(event, memory)
    flush = memory.sessions.flush(require_text(event, "sessionID"))
    room = event.get("room")

    def ask(request: Sequence[Mapping[str, Any]]) -> ModelReply:
        prompt = {"ask": request[0]["content"], "title": "Memory flush"}
        reply = _read_reply(exchange(prompt) if exchange else {})
        return ModelReply(reply, reply)

    model = FlushModel(ask=ask, can_call=False, room=room if isinstance(room, int) and room > 0 else None)
    turn = run_flush(flush, messages, lambda _tool: model, compacting=True) if messages else None
    return {} if turn is None else {"flush": turn.outcome}


def _finish_compaction(event: Event, memory: Memory, _: Exchange | None) -> dict[str, Any]:
    memory.sessions.flush(require_text(event, "sessionID")).record_compaction()
    sync_or_skip(memory)
    return {}


def _end_session(event: Event, memory: Memory, _: Exchange | None) -> dict[str, Any]:
    _log_messages(event, memory)
    memory.sessions.snapshot(require_text(event, "sessionID"))
    return {}


_EVENTS: Mapping[str, Callable[[Event, Memory, Exchange | None], dict[str, Any]]] = {
    "session.created": _start_session,
    "chat.message": _recall_for_message,
    "tool": _call_tool,
    "session.idle": _log_idle,
    "session.compacting": _flush_session,
    "session.compacted": _finish_compaction,
    "session.deleted": _end_session,
}


def _log_messages(event: Event, memory: Memory) -> list[Mapping[str, Any]]:
    """Add new messages to the session's log; return the storable ones."""
    messages: list[Mapping[str, Any]] = []
    for item in _check_objects(event.get("messages", [])):
        # A role in lower case, an id, and a text: the rest of OpenCode's parts is left out by the plugin.
        text, role = item.get("text"), item.get("role")
        if role not in {"user", "assistant"} or not isinstance(text, str) or not text.strip():
            continue
        with suppress(PolicyError):  # what is never to be stored is left out
            memory.workspace.policies.check(None, text)
            extra = {name: item[name] for name in ("id", "timestamp") if item.get(name) is not None}
            messages.append({**extra, "role": role, "content": [{"type": "text", "text": text}]})
    if messages:
        memory.sessions.log(require_text(event, "sessionID")).keep_named(messages)
    return messages


def _read_reply(answered: Mapping[str, Any]) -> str:
    text = answered.get("reply")
    if not isinstance(text, str):
        raise RuntimeError(str(answered.get("error") or "the plugin gave no reply of its model"))
    return text


def _check_objects(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidInputError("the messages of the event are no list of objects")
    return value


def _flatten(block: Any, path: str = "") -> dict[str, Any]:
    """Return the values of nested objects by their paths: `{"search.mmr.lambda": 0.7}`."""
    if not isinstance(block, Mapping):
        raise ConfigError(
            f"the settings of the plugin{path and f' below {path!r}'} must be an object, not {block!r:.80}"
        )
    flat: dict[str, Any] = {}
    for name, value in block.items():
        at = f"{path}.{name}" if path else str(name)
        inner = any(path.startswith(f"{at}.") for path in (*_SETTINGS, *(f"{prefix}.x" for prefix in _SWITCHED)))
        flat |= _flatten(value, at) if inner else {at: value}
    return flat


def _put(tables: dict[str, dict[str, Any]], place: str, value: Any) -> None:
    *parts, key = place.split(".")
    for part in parts:
        tables = tables.setdefault(part, {})
    tables[key] = value
