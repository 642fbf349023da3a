"""Settings: one frozen `MemoryConfig` made of small parts, two presets, and the reading of TOML in layers.

`MemoryConfig()` finds most in the fewest characters; `MemoryConfig.openclaw()` has OpenClaw's own numbers. Both run
through the same code: they differ in data alone. A value out of range is clamped, with a word about it in `notices`;
a value of the wrong type, or a key nobody knows, is a `ConfigError`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

from openclaw_memory.errors import ConfigError, WorkspaceError

# What a file found inside a workspace may set: nothing that could send notes elsewhere or read beyond the folder.
WORKSPACE_SETTABLE: Mapping[str, frozenset[str] | None] = {
    "chunking": None,
    "files": frozenset({"include", "exclude"}),
    "sync": frozenset({"debounce_seconds"}),
}

# The id becomes part of paths: nothing that could name a folder above, a drive or a hidden file.
AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

# The one place that names the choices; each is the key of a function in the table behind the arrow.
Style: TypeAlias = Literal["headings", "tokens"]  # -> chunking.STYLES
Fusion: TypeAlias = Literal["standardised", "weighted"]  # -> search.candidates.FUSIONS
Answer: TypeAlias = Literal["lines", "chunks"]  # -> search.answers.ANSWERS
Match: TypeAlias = Literal["any", "all"]
BatchUse: TypeAlias = Literal["off", "wait", "later"]


@dataclass(frozen=True, slots=True)
class Chunking:
    """How Markdown is cut.

    `headings` packs whole blocks up to `max_chars` below one heading; `tokens` is OpenClaw's sliding window, in its
    tokens of four characters. `max_chars` equals the default snippet, so that an answer can show a chunk whole.
    """

    style: Style = "headings"
    max_chars: int = 700
    overlap_lines: int = 1
    tokens: int = 400
    overlap_tokens: int = 80


@dataclass(frozen=True, slots=True)
class Files:
    """Which files count as memory, besides `MEMORY.md`, `USER.md` and `memory/**/*.md`. Globs are relative."""

    extra_paths: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = 10 * 1024 * 1024
    max_files: int = 100_000
    allow_hard_links: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """How a question is answered.

    `answer="lines"` scores the lines of the `candidates` best chunks and returns the best windows of lines;
    `answer="chunks"` returns the beginnings of the best chunks. `fusion="standardised"` mixes z-scores of both legs,
    `"weighted"` mixes raw scores. `mmr` (lambda, 0..1) and `half_life_days` are off when None.
    """

    max_results: int = 6
    min_score: float = 0.04
    snippet_chars: int = 700
    candidates: int = 25
    match: Match = "any"
    fusion: Fusion = "standardised"
    vector_weight: float = 0.5
    text_weight: float = 0.5
    answer: Answer = "lines"
    mmr: float | None = None
    half_life_days: float | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """Which embedder: `static` (ships, offline), `auto`, `none` (keyword-only), or a provider's name.

    `providers` holds each provider's own options by its name, also those of `fallback` and of what `auto` tries:
    `{"openai": {"base_url": "http://localhost:11434/v1", "model": "embeddinggemma"}}`; `model` is short for the model
    of `provider`. `fallback` is the provider of an index that `provider` cannot build. Without `allow_remote` no text
    leaves this machine. `batch` hands the texts of a large first index to the service's batch API, and waits for them
    or collects them at a later sync. Of vectors, `max_entries` are kept; those of the index always are.
    """

    provider: str = "static"
    model: str | None = None
    fallback: str = "none"
    allow_remote: bool = True
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)  # it may hold a key
    query_seconds: float = 10.0
    request_seconds: float = 120.0
    concurrency: int = 4
    batch: BatchUse = "off"
    max_entries: int = 50_000


@dataclass(frozen=True, slots=True)
class Sync:
    """When the index follows the files."""

    debounce_seconds: float = 1.5


PARTS: Mapping[str, type[Any]] = {
    "chunking": Chunking,
    "files": Files,
    "search": Search,
    "embedding": Embedding,
    "sync": Sync,
}

RANGES: Mapping[str, tuple[float, float]] = {
    "chunking.max_chars": (80, 100_000),
    "chunking.overlap_lines": (0, 20),
    "chunking.tokens": (8, 100_000),
    "chunking.overlap_tokens": (0, 100_000),
    "files.max_bytes": (1, 1 << 40),
    "files.max_files": (1, 10_000_000),
    "search.max_results": (1, 1000),
    "search.min_score": (0, 1),
    "search.snippet_chars": (40, 100_000),
    "search.candidates": (1, 1000),
    "search.vector_weight": (0, float("inf")),
    "search.text_weight": (0, float("inf")),
    "search.mmr": (0, 1),
    "search.half_life_days": (0.001, 1_000_000),
    "embedding.query_seconds": (0.1, 3600),
    "embedding.request_seconds": (1, 3600),
    "embedding.concurrency": (1, 64),
    "embedding.max_entries": (0, 1 << 40),
    "sync.debounce_seconds": (0, 3600),
}

CHOICES: Mapping[str, tuple[str, ...]] = {
    "chunking.style": get_args(Style),
    "search.match": get_args(Match),
    "search.fusion": get_args(Fusion),
    "search.answer": get_args(Answer),
    "embedding.batch": get_args(BatchUse),
}


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """All settings of one memory; `notices` says in words what was clamped, normalised or not allowed."""

    chunking: Chunking = field(default_factory=Chunking)
    files: Files = field(default_factory=Files)
    search: Search = field(default_factory=Search)
    embedding: Embedding = field(default_factory=Embedding)
    sync: Sync = field(default_factory=Sync)
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every part.

        Raises:
            ConfigError: a value has the wrong type, is not one of the choices, or is not a number.
        """
        notices = list(self.notices)
        for name in PARTS:
            object.__setattr__(self, name, _checked(name, getattr(self, name), notices))
        object.__setattr__(self, "search", _normalised_weights(self.search, notices))
        object.__setattr__(self, "notices", tuple(dict.fromkeys(notices)))

    @classmethod
    def openclaw(cls) -> Self:
        """OpenClaw's own numbers: chunks of 400/80 tokens, weights 0.7/0.3, minimum score 0.35, 6 results of 700."""
        return cls(
            chunking=Chunking(style="tokens"),
            search=Search(
                min_score=0.35,
                candidates=200,
                match="all",
                fusion="weighted",
                vector_weight=0.7,
                text_weight=0.3,
                answer="chunks",
            ),
            embedding=Embedding(provider="auto", query_seconds=60),
        )

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, agent: str | None = None) -> Self:
        """Read `[defaults]`, then `[agents.<agent>]` over it, key by key. `preset = "openclaw"` may stand in either.

        An agent that the file does not name has the defaults, and a word about it in `notices`.

        Raises:
            ConfigError: the file cannot be read, is not TOML, has an unknown key or a value of the wrong type.
        """
        document = _read_toml(Path(path))
        if unknown := sorted(set(document) - {"defaults", "agents"}):
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

    def updated(self, tables: Mapping[str, Any], *, origin: str = "the given settings") -> Self:
        """This configuration with the keys of `{part: {key: value}}` replaced.

        Raises:
            ConfigError: a part or a key is unknown, or a value has the wrong type.
        """
        parts: dict[str, Any] = {}
        for name, table in tables.items():
            if name not in PARTS:
                raise ConfigError(f"{origin}: unknown part [{name}]; the parts are {', '.join(PARTS)}")
            if not isinstance(table, Mapping):
                raise ConfigError(f"{origin}: [{name}] must be a table of settings, not {table!r}")
            known = {part.name for part in fields(PARTS[name])}
            if unknown := sorted(set(table) - known):
                raise ConfigError(f"{origin}: unknown key {name}.{unknown[0]}; known are {', '.join(sorted(known))}")
            values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
            parts[name] = replace(getattr(self, name), **values)
        return replace(self, **parts)

    def with_workspace_file(self, path: Path) -> Self:
        """Apply a file found inside a workspace: it may set chunking, ignore patterns and debounce, nothing else.

        What it may not set is left as it was and named in `notices`. A missing file changes nothing.

        Raises:
            ConfigError: the file is not TOML, or an allowed key has a wrong value.
            WorkspaceError: the folder of the file may not be looked into.
        """
        try:
            if not path.is_file():
                return self
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be looked at: {error.strerror}; mend its permissions") from error
        allowed: dict[str, Any] = {}
        refused: list[str] = []
        for part, table in _read_toml(path).items():
            keys = WORKSPACE_SETTABLE.get(part, frozenset())
            if not isinstance(table, Mapping):
                refused.append(part)
                continue
            allowed[part] = {key: value for key, value in table.items() if keys is None or key in keys}
            refused += [f"{part}.{key}" for key in table if key not in allowed[part]]
        config = self.updated({part: table for part, table in allowed.items() if table}, origin=str(path))
        words = tuple(f"{path}: {key} may not be set from inside a workspace and was ignored" for key in refused)
        return replace(config, notices=(*config.notices, *words))


def use_one_thread() -> None:
    """Ask numpy's OpenBLAS for one thread, unless the environment says otherwise; call it before numpy is imported.

    Its threads take 50 ms of processor time to start, which a command of a quarter of a second does not win back.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def state_dir() -> Path:
    """OpenClaw's state folder: `OPENCLAW_STATE_DIR`, or `.openclaw` in `OPENCLAW_HOME`, or in the home folder."""
    if folder := os.environ.get("OPENCLAW_STATE_DIR"):
        return Path(folder).expanduser()
    return Path(os.environ.get("OPENCLAW_HOME", "~")).expanduser() / ".openclaw"


def agent_folders(agent_id: str) -> tuple[Path, Path]:
    """Where OpenClaw's layout keeps an agent's notes, and the index of them.

    Notes are in `<state>/workspace` for `main`, in `<state>/workspace-<id>` for others; the index is
    `<state>/memory/<id>.sqlite`, with the id in lower case.

    Raises:
        ConfigError: the id holds other characters than letters, digits, `-` and `_`.
    """
    if not isinstance(agent_id, str) or not AGENT_ID.fullmatch(agent_id):
        raise ConfigError(f"agent id {agent_id!r} must be 1 to 64 letters, digits, '-' or '_', and begin with no sign")
    name, state = agent_id.lower(), state_dir()
    return state / ("workspace" if name == "main" else f"workspace-{name}"), state / "memory" / f"{name}.sqlite"


def _preset(cls: type[MemoryConfig], name: object) -> Any:
    if name == "openclaw":
        return cls.openclaw()
    if name == "default":
        return cls()
    raise ConfigError(f"unknown preset {name!r}; the presets are 'default' and 'openclaw'")


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}; mend the file or leave it out") from error


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One set of tables out of several, key by key at every depth; the later layer wins."""
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
        raise ConfigError(f"{path}: [{key}] must be a table, not {table!r}")
    return table


def _checked(part_name: str, part: Any, notices: list[str]) -> Any:
    """`part` with each value inside its range; raises ConfigError for a value of the wrong type."""
    if not isinstance(part, PARTS[part_name]):
        raise ConfigError(f"{part_name} must be a {PARTS[part_name].__name__}, not {part!r}")
    changes: dict[str, Any] = {}
    for spec in fields(part):
        name = f"{part_name}.{spec.name}"
        value = getattr(part, spec.name)
        if name not in CHOICES:
            _check_type(name, value, str(spec.type))
        elif value not in CHOICES[name]:
            raise ConfigError(f"{name} must be one of {', '.join(CHOICES[name])}, not {value!r}")
        if name in RANGES and value is not None:
            low, high = RANGES[name]
            clamped = min(max(value, low), high)
            if clamped != value:
                changes[spec.name] = type(value)(clamped)
                notices.append(f"{name} = {value} is outside [{low:g}, {high:g}]: {clamped:g} is used")
    return replace(part, **changes) if changes else part


def _check_type(name: str, value: Any, annotation: str) -> None:
    if value is None and annotation.endswith("| None"):
        return
    kind = annotation.removesuffix(" | None")
    # NaN is the one number that differs from itself.
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124
    fits, words = {
        "int": (isinstance(value, int) and is_number, "a whole number"),
        "float": (is_number, "a number"),
        "bool": (isinstance(value, bool), "true or false"),
        "str": (isinstance(value, str), "a string"),
        "tuple[str, ...]": (
            isinstance(value, tuple) and all(isinstance(item, str) for item in value),
            "a list of strings",
        ),
        "Mapping[str, Mapping[str, Any]]": (
            isinstance(value, Mapping) and all(isinstance(table, Mapping) for table in value.values()),
            "a table of tables, one for each provider",
        ),
    }[kind]
    if not fits:
        raise ConfigError(f"{name} must be {words}, not {value!r}")


def _normalised_weights(search: Search, notices: list[str]) -> Search:
    """Weights that sum to 1; equal ones where both are zero."""
    vector, text = search.vector_weight, search.text_weight
    total = vector + text
    if total == 0 or total == float("inf"):
        notices.append(f"search.vector_weight {vector:g} and text_weight {text:g} have no usable sum: 0.5 each is used")
        return replace(search, vector_weight=0.5, text_weight=0.5)
    if abs(total - 1) < 1e-9:
        return search
    notices.append(f"search weights {vector:g} and {text:g} were scaled to sum to 1")
    return replace(search, vector_weight=vector / total, text_weight=text / total)
