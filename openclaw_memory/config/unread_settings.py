"""Find settings that are set and not read, since another setting decides that they do not count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory.config.sections import PARTS
from openclaw_memory.plugins import is_known_plugin

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig


class Condition(NamedTuple):
    """Keep a test of all settings together with its words."""

    holds: Callable[[MemoryConfig], bool]
    words: str


def _require(part: str, name: str, *values: Any) -> Condition:
    """Make the condition that a setting has one of some values."""
    words = " or ".join("true" if value is True else f'"{value}"' for value in values)
    return Condition(lambda config: getattr(getattr(config, part), name) in values, f"{part}.{name} = {words}")


# Embedders in this process: nothing is asked of a service, and no run of them has a size.
_IN_PROCESS = frozenset({"static", "hashing", "none"})
_FLUSHES = Condition(lambda config: config.compaction.flushes, "compaction.enabled = true and compaction.flush = true")
_SERVICE = Condition(
    lambda config: not _list_providers(config) <= _IN_PROCESS | {"local"},
    "a service as embedding.provider or embedding.fallback",
)
_SLOW = Condition(
    lambda config: not _list_providers(config) <= _IN_PROCESS,
    "a service or a local model as embedding.provider or embedding.fallback",
)
_EMBEDS = Condition(lambda config: config.embedding.provider != "none", "another embedding.provider than none")
_SESSIONS = _require("sessions", "index", True)
_COMPACTION = _require("compaction", "enabled", True)

# Settings that are not here are always read, or by a call that a program makes, such as `watch`.
READ_WHEN: Mapping[str, Condition] = {
    "chunking.max_chars": _require("chunking", "style", "headings"),
    "chunking.overlap_lines": _require("chunking", "style", "headings"),
    "chunking.tokens": _require("chunking", "style", "tokens", "lines"),
    "chunking.overlap_tokens": _require("chunking", "style", "tokens", "lines"),
    "search.boosts": _require("search", "fusion", "weighted"),
    "search.passage_chars": _require("search", "answer", "lines"),
    "search.keyword_fill": _require("search", "answer", "chunks"),
    "search.vector_weight": _EMBEDS,
    "embedding.model": Condition(
        lambda config: config.embedding.provider not in {"auto", "none"}, "a name as embedding.provider"
    ),
    "embedding.fallback": _EMBEDS,
    "embedding.providers": Condition(
        lambda config: "auto" in _list_providers(config) or {*config.embedding.providers} <= _list_providers(config),
        "each as embedding.provider or embedding.fallback",
    ),
    "embedding.batch_size": _SLOW,
    "embedding.max_entries": _SLOW,
    "embedding.query_seconds": _SERVICE,
    "embedding.request_seconds": _SERVICE,
    "embedding.concurrency": _SERVICE,
    "sessions.max_share": _SESSIONS,
    "sessions.delta_bytes": _SESSIONS,
    "sessions.delta_messages": _SESSIONS,
    "sessions.debounce_seconds": _SESSIONS,
    "compaction.reserve_tokens": _COMPACTION,
    "compaction.reserve_tokens_floor": _COMPACTION,
    "compaction.keep_recent_tokens": _COMPACTION,
    "compaction.force_flush_bytes": _FLUSHES,
    "compaction.flush_timeout_seconds": _FLUSHES,
    "compaction.flush_max_calls": _FLUSHES,
    "compaction.prompt": _FLUSHES,
    "compaction.system_prompt": _FLUSHES,
    "snapshots.max_messages": _require("snapshots", "enabled", True),
    "records.half_life_days": Condition(lambda config: bool(config.records.decaying), "a type in records.decaying"),
}


def find_unread_settings(config: MemoryConfig, unused: Collection[str] = ()) -> tuple[str, ...]:
    """Return a notice for each setting that is set and not read.

    A setting is set if a file or a program wrote it out, or if it differs from its default.

    Args:
        config: The settings.
        unused: Settings that the program never uses, such as `plugins.intent.languages`.
    """
    notices = []
    for part, model in PARTS.items():
        for spec in fields(model):
            name = f"{part}.{spec.name}"
            condition = READ_WHEN.get(name)
            needs = None if condition is None or condition.holds(config) else f"it needs {condition.words}"
            reason = "this program does not use it" if name in unused else needs
            if reason is not None and (name in config.explicit or _is_changed(config, part, spec.name)):
                notices.append(f"{name} is set and not read: {reason}")
    plugins = (f"plugins.{plugin}.{key}" for plugin, table in config.plugins.items() for key in table)
    notices += [f"{name} is set and not read: this program does not use it" for name in plugins if name in unused]
    unknown = (plugin for plugin in config.plugins if not is_known_plugin(plugin))
    notices += [f"plugins.{name} is set and not read: no installed plug-in has this name" for name in unknown]
    return tuple(notices)


def _list_providers(config: MemoryConfig) -> set[str]:
    """List the providers that may embed; a fallback stands in for another one alone."""
    provider = config.embedding.provider
    return {provider} if provider == "none" else {provider, config.embedding.fallback}


def _is_changed(config: MemoryConfig, part: str, name: str) -> bool:
    return bool(getattr(getattr(config, part), name) != getattr(PARTS[part](), name))
