"""Find settings that are set and not read, since another setting decides that they do not count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from openclaw_memory.config.sections import SECTIONS
from openclaw_memory.plugins import is_known_plugin

Condition: TypeAlias = tuple[Callable[[Any], bool], str]  # a test of the settings, and its words

# Embedders in this process: nothing is asked of a service, and a batch of texts has no size.
_IN_PROCESS = frozenset({"static", "hashing", "none"})


def _require(section: str, name: str, *values: Any) -> Condition:
    """Make the condition that a setting has one of some values."""
    words = " or ".join("true" if value is True else f'"{value}"' for value in values)
    return lambda config: getattr(getattr(config, section), name) in values, f"{section}.{name} = {words}"


def _list_providers(config: Any) -> set[str]:
    """List the providers that may embed; a fallback stands in for another one alone."""
    provider = config.embedding.provider
    return {provider} if provider == "none" else {provider, config.embedding.fallback}


def _has_own_table(config: Any) -> bool:
    return "auto" in _list_providers(config) or {*config.embedding.providers} <= _list_providers(config)


_FLUSHES = (lambda config: config.compaction.flushes, "compaction.enabled = true and compaction.flush = true")
_SERVICE = (
    lambda config: not _list_providers(config) <= _IN_PROCESS | {"local"},
    "a service as embedding.provider or embedding.fallback",
)
_SLOW = (
    lambda config: not _list_providers(config) <= _IN_PROCESS,
    "a service or a local model as embedding.provider or embedding.fallback",
)
_EMBEDS = (lambda config: config.embedding.provider != "none", "another embedding.provider than none")
_NAMED = (lambda config: config.embedding.provider not in {"auto", "none"}, "a name as embedding.provider")

# Settings that are not here are always read, or by a call that a program makes, such as `watch`.
READ_WHEN: Mapping[str, Condition] = {
    "chunking.max_chars": _require("chunking", "style", "headings"),
    "chunking.tokens": _require("chunking", "style", "tokens", "lines"),
    "chunking.overlap_tokens": _require("chunking", "style", "tokens", "lines"),
    "search.vector_weight": _EMBEDS,
    "embedding.model": _NAMED,
    "embedding.fallback": _EMBEDS,
    "embedding.providers": (_has_own_table, "each as embedding.provider or embedding.fallback"),
    "embedding.batch_size": _SLOW,
    "embedding.max_entries": _SLOW,
    **dict.fromkeys(("embedding.query_seconds", "embedding.concurrency"), _SERVICE),
    **dict.fromkeys(
        (f"sessions.{name}" for name in ("delta_bytes", "delta_messages")),
        _require("sessions", "index", True),
    ),
    **dict.fromkeys(
        (f"compaction.{name}" for name in ("reserve_tokens", "reserve_tokens_floor", "keep_recent_tokens")),
        _require("compaction", "enabled", True),
    ),
    **dict.fromkeys(
        (f"compaction.{name}" for name in ("force_flush_bytes", "flush_timeout_seconds", "prompt", "system_prompt")),
        _FLUSHES,
    ),
}


def find_unread_settings(config: Any, unused: Collection[str]) -> tuple[str, ...]:
    """Return the notices of `MemoryConfig.find_unread_settings`."""
    notices = []
    for section, model in SECTIONS.items():
        values, defaults = getattr(config, section), model()
        for key in model.__struct_fields__:
            name = f"{section}.{key}"
            if name not in config.explicit and getattr(values, key) == getattr(defaults, key):
                continue
            if name in unused:
                notices.append(f"{name} is set and not read: this program does not use it")
            elif name in READ_WHEN and not READ_WHEN[name][0](config):
                notices.append(f"{name} is set and not read: it needs {READ_WHEN[name][1]}")
    for plugin, table in config.plugins.items():
        names = (f"plugins.{plugin}.{key}" for key in table)
        notices += [f"{name} is set and not read: this program does not use it" for name in names if name in unused]
        if not is_known_plugin(plugin):
            notices.append(f"plugins.{plugin} is set and not read: no installed plug-in has this name")
    return tuple(notices)
