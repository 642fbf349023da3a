"""Configure a memory: one frozen `MemoryConfig` made of small sections, presets as data, and TOML in layers.

`MemoryConfig()` finds most in the fewest characters; `MemoryConfig.openclaw()` has OpenClaw's own numbers, and
`MemoryConfig.opencode()` those of an OpenCode plugin. All run through the same code. A number out of range is clamped
and reported in `notices`; a value of the wrong type, or an unknown key, is a `ConfigError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias

from msgspec import Struct, structs

from openclaw_memory.config import sections
from openclaw_memory.config.checks import check_keys, describe_value
from openclaw_memory.errors import ConfigError, suggest
from openclaw_memory.plugins import is_known_plugin

OPENCLAW_VERSIONS = ("2026.9", "2026.2")  # the latest first

_COMMAND_TABLES = ("workspace", "workspaces")  # which folder the command works on: not a setting of a memory


def merge_tables(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables key by key at every depth; a later layer wins."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = merged.get(name)
            both = isinstance(below, Mapping) and isinstance(value, Mapping)
            merged[name] = merge_tables(below, value) if both else value  # type: ignore[arg-type]
    return merged


@cache
def _read_presets() -> dict[str, Any]:
    path = Path(__file__).with_name("presets.toml")
    return parse_toml(path.read_text("utf-8"), str(path))


class MemoryConfig(Struct, frozen=True, kw_only=True, eq=False):
    """Hold all settings of one memory; `notices` lists values that were clamped, normalised or not allowed.

    `policies` are the user's rules about what may be stored and shown: of those that match, the strictest counts, and
    of equally strict ones the first. `plugins` has the settings of each plug-in by its
    name, which the plug-in checks: see `read_plugin_settings`.
    `explicit` names the settings that a file or a program wrote out, as `"search.mmr"`.
    """

    chunking: sections.ChunkingConfig = sections.ChunkingConfig()
    files: sections.FilesConfig = sections.FilesConfig()
    search: sections.SearchConfig = sections.SearchConfig()
    embedding: sections.EmbeddingConfig = sections.EmbeddingConfig()
    sync: sections.SyncConfig = sections.SyncConfig()
    sessions: sections.SessionsConfig = sections.SessionsConfig()
    recall: sections.RecallConfig = sections.RecallConfig()
    journal: sections.JournalConfig = sections.JournalConfig()
    compaction: sections.CompactionConfig = sections.CompactionConfig()
    records: sections.RecordsConfig = sections.RecordsConfig()
    store: sections.StoreConfig = sections.StoreConfig()
    policies: tuple[sections.PolicyRule, ...] = ()
    plugins: Mapping[str, Mapping[str, Any]] = {}
    notices: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check each section.

        Raises:
            ConfigError: A value has the wrong type, is not one of the choices, or is not a number.
        """
        notices = list(self.notices)
        for name, default in _DEFAULTS.items():
            if (section := getattr(self, name)) is not default:
                structs.force_setattr(self, name, sections.check_section(name, section, notices))
        structs.force_setattr(self, "policies", sections.read_policies(self.policies))
        if not (isinstance(self.plugins, Mapping) and all(isinstance(own, Mapping) for own in self.plugins.values())):
            raise ConfigError(f"plugins must be a table of tables, not {describe_value('plugins', self.plugins)}")
        structs.force_setattr(self, "notices", tuple(dict.fromkeys(notices)))

    def __eq__(self, value: object) -> bool:
        """Compare all but `explicit`: written out or not, settings of equal values do the same."""
        fields = [field for field in self.__struct_fields__ if field != "explicit"]
        return isinstance(value, MemoryConfig) and all(getattr(self, name) == getattr(value, name) for name in fields)

    __hash__ = None  # type: ignore[assignment]  # tables of plug-ins may be changed

    @classmethod
    def openclaw(cls, version: str = OPENCLAW_VERSIONS[0]) -> Self:
        """Return OpenClaw's own numbers: chunks of 400/80 tokens, weights 0.7/0.3, minimum score 0.35, 6 results.

        Args:
            version: Whose numbers: `"2026.9"`, or `"2026.2"` for those that OpenClaw's documents describe: chunks that
                repeat whole lines, four candidates of each search for a result, no boosts of the keyword score, a cache
                of 10,000 vectors, and 50 lines of `memory_get`.

        Raises:
            ConfigError: The version is another one.
        """
        if version not in OPENCLAW_VERSIONS:
            wrong, versions = describe_value("version", version), ", ".join(OPENCLAW_VERSIONS)
            raise ConfigError(f"there is no preset of OpenClaw {wrong}; there are {versions}")
        return cls._from_preset(f"openclaw-{version}")

    @classmethod
    def opencode(cls) -> Self:
        """Return the numbers of an OpenCode plugin: as `openclaw("2026.2")`, 10 results, 100 texts embedded at once."""
        return cls._from_preset("opencode")

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, agent: str | None = None, base: Self | None = None) -> Self:
        """Read `[defaults]`, then `[agents.<agent>]` over it, key by key.

        `preset = "openclaw"`, one of its versions, `"openclaw-2026.2"`, or `"opencode"`, may be in either. `workspace`
        and `[workspaces]`, which the command reads in the user's settings, are passed over.

        Args:
            path: The TOML file.
            agent: The agent's id. One that the file does not name gets the defaults, and a line in `notices`.
            base: What the file changes, where it names no preset; the defaults where None.

        Raises:
            ConfigError: The file cannot be read, is not TOML, has an unknown key or a value of the wrong type.
        """
        document = _read_toml(path)
        if unknown := sorted(set(document) - {"defaults", "agents", *_COMMAND_TABLES}):
            raise ConfigError(f"{path}: unknown table [{unknown[0]}]; use [defaults] and [agents.<id>]")
        agents = _read_table(document, "agents", path)
        own = _read_table(agents, agent, path) if agent is not None else {}
        tables = merge_tables(_read_table(document, "defaults", path), own)
        start = cls._from_preset(tables.pop("preset")) if "preset" in tables else base or cls()
        is_missing = agent is not None and agent not in agents
        notices = [f"{path} has no table [agents.{agent}]: its [defaults] alone are used"] if is_missing else []
        return start.replace(tables, origin=f"{path}: ").with_notices(*notices)

    def replace(self, tables: Mapping[str, Any], *, origin: str = "") -> Self:
        """Return this configuration with some settings replaced.

        Args:
            tables: The new values, `{section: {setting: value}}`.
            origin: The beginning of messages, such as a file.

        Raises:
            ConfigError: A section or a setting is unknown, or a value has the wrong type.
        """
        changes: dict[str, Any] = {}
        for name, table in tables.items():
            if name == "plugins":
                changes[name] = merge_tables(self.plugins, table) if isinstance(table, Mapping) else table
                continue
            if name == "policies":
                changes[name] = table
                continue
            if name not in sections.SECTIONS:
                parts = f"{suggest(name, sections.SECTIONS)}the parts are {', '.join(sections.SECTIONS)}"
                raise ConfigError(f"{origin}unknown part [{name}]; {parts}")
            if not isinstance(table, Mapping):
                raise ConfigError(f"{origin}[{name}] must be a table of settings, not {describe_value(name, table)}")
            check_keys(sections.SECTIONS[name], table, name, origin)
            changes[name] = structs.replace(getattr(self, name), **table)
        names = (f"{name}.{key}" for name in changes if name in sections.SECTIONS for key in tables[name])
        try:
            return structs.replace(self, **changes, explicit=tuple(sorted({*self.explicit, *names})))
        except ConfigError as error:
            raise ConfigError(f"{origin}{error}") from error

    def with_notices(self, *notices: str) -> Self:
        """Return this configuration with more `notices`.

        Args:
            notices: The new ones.
        """
        return structs.replace(self, notices=(*self.notices, *notices)) if notices else self

    def find_unread_settings(self, unused: Collection[str] = ()) -> tuple[str, ...]:
        """Return a notice for each setting that is set and not read.

        A setting is set if a file or a program wrote it out, or if it differs from its default.

        Args:
            unused: Settings that the program never uses, such as `plugins.intent.languages`.
        """
        notices = []
        for section, model in sections.SECTIONS.items():
            values, defaults = getattr(self, section), model()
            for key in model.__struct_fields__:
                name = f"{section}.{key}"
                if name not in self.explicit and getattr(values, key) == getattr(defaults, key):
                    continue
                if name in unused:
                    notices.append(f"{name} is set and not read: this program does not use it")
                elif name in READ_WHEN and not READ_WHEN[name][0](self):
                    notices.append(f"{name} is set and not read: it needs {READ_WHEN[name][1]}")
        for plugin, table in self.plugins.items():
            names = (f"plugins.{plugin}.{key}" for key in table)
            notices += [f"{name} is set and not read: this program does not use it" for name in names if name in unused]
            if not is_known_plugin(plugin):
                notices.append(f"plugins.{plugin} is set and not read: no installed plug-in has this name")
        return tuple(notices)

    @classmethod
    def _from_preset(cls, name: object) -> Self:
        if not isinstance(name, str) or name not in _read_presets():
            presets = ", ".join(sorted(_read_presets()))
            raise ConfigError(f"unknown preset {describe_value('preset', name)}; the presets are {presets}")
        tables = dict(_read_presets()[name])
        base = tables.pop("base", None)
        config = (cls._from_preset(base) if base else cls()).replace(tables)
        structs.force_setattr(config, "explicit", ())  # which nobody wrote out
        return config


_DEFAULTS: Mapping[str, Any] = dict(zip(sections.SECTIONS, MemoryConfig.__struct_defaults__, strict=False))


def check_config(config: MemoryConfig | None) -> MemoryConfig:
    """Return the settings of a caller, or the default ones.

    Args:
        config: The settings; None for the defaults.

    Raises:
        ConfigError: It is something else.
    """
    if config is None or isinstance(config, MemoryConfig):
        return config or MemoryConfig()
    raise ConfigError(
        f"config must be a MemoryConfig, not a value of type {type(config).__name__}; "
        "MemoryConfig.from_toml(path) reads one from a file"
    )


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Raises:
        ConfigError: It is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: not TOML, or a number of over 4,300 digits
        raise ConfigError(f"{origin} cannot be read as TOML: {error}; fix the file or leave it out") from error


def _read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"the settings file {path} does not exist: correct its name, or leave it out") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}; fix the file or leave it out") from error
    return parse_toml(text, str(path))


def _read_table(document: Mapping[str, Any], key: str, path: object) -> Mapping[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: [{key}] must be a table, not {describe_value(key, table)}")
    return table


# --- settings that are set and not read, since another setting decides that they do not count -----------------------

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
    name: condition
    for names, condition in (
        ("chunking.max_chars", _require("chunking", "style", "headings")),
        ("chunking.tokens chunking.overlap_tokens", _require("chunking", "style", "tokens", "lines")),
        ("search.vector_weight embedding.fallback", _EMBEDS),
        ("embedding.model", _NAMED),
        ("embedding.providers", (_has_own_table, "each as embedding.provider or embedding.fallback")),
        ("embedding.batch_size embedding.max_entries", _SLOW),
        ("embedding.query_seconds", _SERVICE),
        ("sessions.delta_bytes sessions.delta_messages", _require("sessions", "index", True)),
        ("compaction.reserve_tokens compaction.reserve_tokens_floor", _require("compaction", "enabled", True)),
        ("compaction.keep_recent_tokens", _require("compaction", "enabled", True)),
        ("compaction.force_flush_bytes compaction.flush_timeout_seconds", _FLUSHES),
        ("compaction.prompt compaction.system_prompt", _FLUSHES),
    )
    for name in names.split()
}
