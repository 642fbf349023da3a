"""Configure a memory: one frozen `MemoryConfig` made of small sections, presets as data, and TOML in layers.

`MemoryConfig()` finds most in the fewest characters; `MemoryConfig.openclaw()` has OpenClaw's own numbers, and
`MemoryConfig.opencode()` those of an OpenCode plugin. All run through the same code. A number out of range is clamped
and reported in `notices`; a value of the wrong type, or an unknown key, is a `ConfigError`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, structs

from openclaw_memory.config.checks import check_keys, describe_value
from openclaw_memory.config.sections import (
    SECTIONS,
    ChunkingConfig,
    CompactionConfig,
    EmbeddingConfig,
    FilesConfig,
    JournalConfig,
    PolicyRule,
    RecallConfig,
    RecordsConfig,
    SearchConfig,
    SessionsConfig,
    StoreConfig,
    SyncConfig,
    check_section,
    read_policies,
)
from openclaw_memory.errors import ConfigError, suggest

OPENCLAW_VERSIONS = ("2026.9", "2026.2")  # the latest first

_OPENCLAW_2026_9: Mapping[str, Mapping[str, Any]] = {
    "chunking": {"style": "tokens"},
    "files": {"endings": (".md",)},
    "search": {
        "min_score": 0.35,
        "candidates": 200,
        "fusion": "boosted",
        "vector_weight": 0.7,
        "answer": "chunks",
    },
    "embedding": {"provider": "auto", "query_seconds": 60.0},
    "sync": {"on_open": True},
    "sessions": {"index": False},
}
# OpenClaw of February 2026, which its documents describe.
_OPENCLAW_2026_2: Mapping[str, Mapping[str, Any]] = {
    "chunking": {"style": "lines"},
    "search": {"candidate_multiplier": 4, "fusion": "weighted"},
    "embedding": {"max_entries": 10_000},
    "recall": {"get_lines": 50},
}
_OPENCODE: Mapping[str, Mapping[str, Any]] = {"search": {"max_results": 10}, "embedding": {"batch_size": 100}}
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


PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "default": {},
    "openclaw": _OPENCLAW_2026_9,
    "opencode": merge_tables(_OPENCLAW_2026_9, _OPENCLAW_2026_2, _OPENCODE),
    "openclaw-2026.9": _OPENCLAW_2026_9,
    "openclaw-2026.2": merge_tables(_OPENCLAW_2026_9, _OPENCLAW_2026_2),
}


class MemoryConfig(Struct, frozen=True, kw_only=True, eq=False):
    """Hold all settings of one memory; `notices` lists values that were clamped, normalised or not allowed.

    `policies` are the user's rules about what may be stored and shown: of those that match, the strictest counts, and
    of equally strict ones the first. `plugins` has the settings of each plug-in by its
    name, which the plug-in checks: see `read_plugin_settings`.
    `explicit` names the settings that a file or a program wrote out, as `"search.mmr"`.
    """

    chunking: ChunkingConfig = ChunkingConfig()
    files: FilesConfig = FilesConfig()
    search: SearchConfig = SearchConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    sync: SyncConfig = SyncConfig()
    sessions: SessionsConfig = SessionsConfig()
    recall: RecallConfig = RecallConfig()
    journal: JournalConfig = JournalConfig()
    compaction: CompactionConfig = CompactionConfig()
    records: RecordsConfig = RecordsConfig()
    store: StoreConfig = StoreConfig()
    policies: tuple[PolicyRule, ...] = ()
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
                structs.force_setattr(self, name, check_section(name, section, notices))
        structs.force_setattr(self, "policies", read_policies(self.policies))
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
    def from_toml(cls, path: str | os.PathLike[str], *, agent: str | None = None) -> Self:
        """Read `[defaults]`, then `[agents.<agent>]` over it, key by key.

        `preset = "openclaw"`, one of its versions, `"openclaw-2026.2"`, or `"opencode"`, may be in either. `workspace`
        and `[workspaces]`, which the command reads in the user's settings, are passed over.

        Args:
            path: The TOML file.
            agent: The agent's id. One that the file does not name gets the defaults, and a line in `notices`.

        Raises:
            ConfigError: The file cannot be read, is not TOML, has an unknown key or a value of the wrong type.
        """
        document = _read_toml(path)
        if unknown := sorted(set(document) - {"defaults", "agents", *_COMMAND_TABLES}):
            raise ConfigError(f"{path}: unknown table [{unknown[0]}]; use [defaults] and [agents.<id>]")
        agents = _read_table(document, "agents", path)
        own = _read_table(agents, agent, path) if agent is not None else {}
        tables = merge_tables(_read_table(document, "defaults", path), own)
        config = cls._from_preset(tables.pop("preset", "default")).replace(tables, origin=f"{path}: ")
        if agent is None or agent in agents:
            return config
        return config.with_notices(f"{path} has no table [agents.{agent}]: its [defaults] alone are used")

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
            if name not in SECTIONS:
                sections = ", ".join(SECTIONS)
                raise ConfigError(f"{origin}unknown part [{name}]; {suggest(name, SECTIONS)}the parts are {sections}")
            if not isinstance(table, Mapping):
                raise ConfigError(f"{origin}[{name}] must be a table of settings, not {describe_value(name, table)}")
            check_keys(SECTIONS[name], table, name, origin)
            changes[name] = structs.replace(getattr(self, name), **table)
        names = (f"{name}.{key}" for name in changes if name in SECTIONS for key in tables[name])
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
        from openclaw_memory.config.unread import find_unread_settings

        return find_unread_settings(self, unused)

    @classmethod
    def _from_preset(cls, name: object) -> Self:
        if not isinstance(name, str) or name not in PRESETS:
            raise ConfigError(
                f"unknown preset {describe_value('preset', name)}; the presets are {', '.join(sorted(PRESETS))}"
            )
        config = cls().replace(PRESETS[name])
        structs.force_setattr(config, "explicit", ())  # which nobody wrote out
        return config


_DEFAULTS: Mapping[str, Any] = dict(zip(SECTIONS, MemoryConfig.__struct_defaults__, strict=False))


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

    Args:
        text: The document.
        origin: Its file, for messages.

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
