"""Configure a memory: one frozen `MemoryConfig` made of small parts, three presets, and TOML in layers.

`MemoryConfig()` finds most in the fewest characters; `MemoryConfig.openclaw()` has OpenClaw's own numbers, and
`MemoryConfig.opencode()` those of an OpenCode plugin. All run through the same code: they differ in data alone. A value
out of range is clamped and reported in `notices`; a value of the wrong type, or an unknown key, is a `ConfigError`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from openclaw_memory.config.sections import (
    PARTS,
    ChunkingConfig,
    CompactionConfig,
    EmbeddingConfig,
    FilesConfig,
    JournalConfig,
    PoliciesConfig,
    PruningConfig,
    RecallConfig,
    RecordsConfig,
    SearchConfig,
    SessionsConfig,
    SnapshotsConfig,
    StoreConfig,
    SyncConfig,
    check_type,
    checked,
    normalised_weights,
    shown,
)
from openclaw_memory.errors import ConfigError, nearest

_GIVEN = "the given settings"
_OF_THE_COMMAND = ("workspace", "workspaces")  # which folder it works on: no setting of a memory
OPENCLAW_VERSIONS = ("2026.9", "2026.2")  # whose numbers there are, the latest first
# Where the numbers of February, which OpenClaw's documents describe, are not those of today.
_OF_2026_2: Mapping[str, Mapping[str, Any]] = {
    "chunking": {"style": "lines"},
    "search": {"candidate_multiplier": 4, "boosts": False},
    "embedding": {"max_entries": 10_000},
    "recall": {"get_lines": 50},
}
# What an OpenCode plugin has otherwise than OpenClaw of February.
_OF_OPENCODE: Mapping[str, Mapping[str, Any]] = {"search": {"max_results": 10}, "embedding": {"batch_size": 100}}


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """All settings of one memory; `notices` lists what was clamped, normalised or not allowed.

    `plugins` has the settings of each plug-in by its name, which the plug-in checks: see `read_plugin_settings`.
    `explicit` names the settings that a file or a program wrote out, as `"search.mmr"`.
    """

    chunking: ChunkingConfig = field(default_factory=ChunkingConfig)
    files: FilesConfig = field(default_factory=FilesConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    sync: SyncConfig = field(default_factory=SyncConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    journal: JournalConfig = field(default_factory=JournalConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    pruning: PruningConfig = field(default_factory=PruningConfig)
    snapshots: SnapshotsConfig = field(default_factory=SnapshotsConfig)
    records: RecordsConfig = field(default_factory=RecordsConfig)
    policies: PoliciesConfig = field(default_factory=PoliciesConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    explicit: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check every part.

        Raises:
            ConfigError: A value has the wrong type, is not one of the choices, or is not a number.
        """
        notices = list(self.notices)
        for name in PARTS:
            object.__setattr__(self, name, checked(name, getattr(self, name), notices))
        check_type("plugins", self.plugins, "Mapping[str, Mapping[str, Any]]")
        object.__setattr__(self, "search", normalised_weights(self.search, notices))
        object.__setattr__(self, "notices", tuple(dict.fromkeys(notices)))

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
            raise ConfigError(
                f"there is no preset of OpenClaw {shown('version', version)}; there are {', '.join(OPENCLAW_VERSIONS)}"
            )
        config = cls(
            chunking=ChunkingConfig(style="tokens"),
            search=SearchConfig(
                min_score=0.35,
                candidates=200,
                match="all",
                fusion="weighted",
                vector_weight=0.7,
                text_weight=0.3,
                answer="chunks",
            ),
            embedding=EmbeddingConfig(provider="auto", query_seconds=60),
            sync=SyncConfig(on_open=True),
            sessions=SessionsConfig(index=False),
            files=FilesConfig(endings=(".md",)),
        )
        return config if version == OPENCLAW_VERSIONS[0] else config._apply_preset(_OF_2026_2)

    @classmethod
    def opencode(cls) -> Self:
        """Return the numbers of an OpenCode plugin: as `openclaw("2026.2")`, 10 results, 100 texts embedded at once."""
        return cls.openclaw("2026.2")._apply_preset(_OF_OPENCODE)

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
        if unknown := sorted(set(document) - {"defaults", "agents", *_OF_THE_COMMAND}):
            raise ConfigError(f"{path}: unknown table [{unknown[0]}]; use [defaults] and [agents.<id>]")
        defaults = _table(document, "defaults", path)
        agents = _table(document, "agents", path)
        layers = [defaults, _table(agents, agent, path) if agent is not None else {}]
        tables = _merged(layers)
        config: Self = _preset(cls, tables.pop("preset", "default")).updated(tables, origin=str(path))
        if agent is None or agent in agents:
            return config
        notice = f"{path} has no table [agents.{agent}]: its [defaults] alone are used"
        return replace(config, notices=(*config.notices, notice))

    def updated(self, tables: Mapping[str, Any], *, origin: str = _GIVEN) -> Self:
        """Return this configuration with some keys replaced.

        Args:
            tables: The new values, `{part: {key: value}}`.
            origin: Where they are from, for messages.

        Raises:
            ConfigError: A part or a key is unknown, or a value has the wrong type.
        """
        parts: dict[str, Any] = {}
        changes: dict[str, Any] = {}
        for name, table in tables.items():
            if name == "plugins":
                check_type("plugins", table, "Mapping[str, Mapping[str, Any]]")
                changes["plugins"] = _merged([self.plugins, table])
                continue
            if name not in PARTS:
                raise ConfigError(
                    f"{origin}: unknown part [{name}]; {nearest(name, PARTS)}the parts are {', '.join(PARTS)}"
                )
            if not isinstance(table, Mapping):
                raise ConfigError(f"{origin}: [{name}] must be a table of settings, not {shown(name, table)}")
            known = {part.name for part in fields(PARTS[name])}
            if unknown := sorted(set(table) - known):
                raise ConfigError(
                    f"{origin}: unknown key {name}.{unknown[0]}; {nearest(unknown[0], known)}"
                    f"known are {', '.join(sorted(known))}"
                )
            values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
            parts[name] = values
        try:
            parts = {name: replace(getattr(self, name), **values) for name, values in parts.items()}
            explicit = sorted({*self.explicit, *(f"{name}.{key}" for name in parts for key in tables[name])})
            return replace(self, **parts, **changes, explicit=tuple(explicit))
        except ConfigError as error:
            if origin == _GIVEN:
                raise
            raise ConfigError(f"{origin}: {error}") from error

    def _apply_preset(self, tables: Mapping[str, Any]) -> Self:
        """Return this configuration with the values of a preset, which nobody wrote out."""
        return replace(self.updated(tables), explicit=self.explicit)

    def noting(self, *words: str) -> Self:
        """Return this configuration with more `notices`.

        Args:
            words: The new ones.
        """
        return replace(self, notices=(*self.notices, *words)) if words else self


def settings_of(given: MemoryConfig | None) -> MemoryConfig:
    """Return the settings that a caller has passed, or the default ones.

    Args:
        given: The settings; None for the defaults.

    Raises:
        ConfigError: It is something else.
    """
    if given is None or isinstance(given, MemoryConfig):
        return given or MemoryConfig()
    raise ConfigError(
        f"config must be a MemoryConfig, not a value of type {type(given).__name__}; "
        "MemoryConfig.from_toml(path) reads one from a file"
    )


def _preset(cls: type[MemoryConfig], name: object) -> Any:
    if name == "default":
        return cls()
    presets = {"openclaw": cls.openclaw, "opencode": cls.opencode}
    presets |= {f"openclaw-{version}": partial(cls.openclaw, version) for version in OPENCLAW_VERSIONS}
    if isinstance(name, str) and name in presets:
        return presets[name]()
    raise ConfigError(f"unknown preset {shown('preset', name)}; the presets are {', '.join(['default', *presets])}")


def _read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"the settings file {path} does not exist: correct its name, or leave it out") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}; fix the file or leave it out") from error
    return parse_toml(text, str(path))


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Args:
        text: The document.
        origin: Where it is from, for messages.

    Raises:
        ConfigError: It is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: no TOML, or a number of over 4,300 digits
        raise ConfigError(f"{origin} cannot be read as TOML: {error}; fix the file or leave it out") from error


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge several sets of tables, key by key at every depth; the later layer wins."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = merged.get(name)
            both = isinstance(below, Mapping) and isinstance(value, Mapping)
            merged[name] = _merged([below, value]) if both else value  # type: ignore[list-item]
    return merged


def _table(document: Mapping[str, Any], key: str, path: object) -> Mapping[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: [{key}] must be a table, not {shown(key, table)}")
    return table


# --- the environment -------------------------------------------------------------------------------------------------

# The id becomes part of paths: nothing that could name a folder above, a drive or a hidden file.
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def use_one_thread() -> None:
    """Limit numpy's OpenBLAS to one thread, unless the environment says otherwise; call it before numpy is imported.

    Its threads take 50 ms of processor time to start, which a command of a quarter of a second does not win back.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def colours() -> bool | None:
    """Return whether to write in colours: None, as the terminal decides, unless NO_COLOR is set (no-color.org)."""
    return False if os.environ.get("NO_COLOR") else None


def default_workspace() -> str | None:
    """Return the workspace that OPENCLAW_MEMORY_WORKSPACE names, by a folder or a name; None where it is unset."""
    return os.environ.get("OPENCLAW_MEMORY_WORKSPACE", "").strip() or None


def masks_listed_secrets() -> bool:
    """Return whether tokens that public lists of formats know are masked: OPENCLAW_MEMORY_LISTED_SECRETS may be `off`.

    A variable, since masking is the same in all of a process, and no file in a workspace may turn it off.
    """
    return os.environ.get("OPENCLAW_MEMORY_LISTED_SECRETS", "").strip().lower() not in {"off", "0", "false", "no"}


KEYS_VARIABLE = "OPENCLAW_MEMORY_KEY"


def keys_in_environment() -> tuple[str, ...]:
    """Return the keys in OPENCLAW_MEMORY_KEY, separated by commas: new data gets the first."""
    given = os.environ.get(KEYS_VARIABLE, "").split(",")
    return tuple(one.strip() for one in given if one.strip())


def state_dir() -> Path:
    """Return OpenClaw's state folder: `OPENCLAW_STATE_DIR`, or `.openclaw` in `OPENCLAW_HOME` or the home folder."""
    if folder := os.environ.get("OPENCLAW_STATE_DIR"):
        return Path(folder).expanduser()
    return Path(os.environ.get("OPENCLAW_HOME", "~")).expanduser() / ".openclaw"


class AgentPlaces(NamedTuple):
    """The places of an agent's notes, index and transcripts, and the folder of whatever else belongs to it."""

    workspace: Path
    index_path: Path
    sessions: Path
    state: Path


def agent_places(agent_id: str) -> AgentPlaces:
    """Return where OpenClaw's layout keeps what belongs to an agent; the id is taken in lower case.

    Notes are in `<state>/workspace` for `main`, in `<state>/workspace-<id>` for others, the index is
    `<state>/memory/<id>.sqlite`, transcripts are in `<state>/agents/<id>/sessions`.

    Raises:
        ConfigError: The id holds other characters than letters, digits, `-` and `_`.
    """
    if not isinstance(agent_id, str) or not _AGENT_ID.fullmatch(agent_id):
        raise ConfigError(f"agent id {agent_id!r} must be 1 to 64 letters, digits, '-' or '_', and begin with no sign")
    name, state = agent_id.lower(), state_dir()
    return AgentPlaces(
        workspace=state / ("workspace" if name == "main" else f"workspace-{name}"),
        index_path=state / "memory" / f"{name}.sqlite",
        sessions=state / "agents" / name / "sessions",
        state=state / "agents" / name,
    )


# --- what is not the memory's ---------------------------------------------------------------------------------

# What OpenClaw puts into the top of each workspace for the agent itself to read. A program that could have these
# indexed and changed as notes could give the agent other rules.
OF_THE_AGENT = frozenset(
    {"AGENTS.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md"}
)
_OF_THE_AGENT_FOLDED = frozenset(name.casefold() for name in OF_THE_AGENT)
_OF_PROGRAMS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def is_passed_over(folder: str) -> bool:
    """Whether folders of this name below an extra path are skipped: hidden ones, and those of installed programs.

    One that is named in `files.extra_paths` itself counts.
    """
    return folder.startswith(".") or folder in _OF_PROGRAMS


def may_be_of_the_agent(name: str) -> bool:
    """Whether a file of this name at the top of a workspace is the agent's own, on a disk that ignores case."""
    return name.casefold() in _OF_THE_AGENT_FOLDED
