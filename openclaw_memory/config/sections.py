"""Define the settings: small frozen parts with their defaults, and the values each may have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from openclaw_memory.config.globs import read_globs
from openclaw_memory.errors import ConfigError
from openclaw_memory.types.records import RecordType, Sensitivity

# The one place that names the choices; each is the key of a function in the table behind the arrow.
Style: TypeAlias = Literal["headings", "tokens", "lines"]  # -> chunking.chunking.STYLES
Fusion: TypeAlias = Literal["standardised", "weighted"]  # -> search.candidates
Answer: TypeAlias = Literal["lines", "chunks"]  # -> search.passages
Match: TypeAlias = Literal["any", "all"]
Citations: TypeAlias = Literal["on", "off", "auto"]
PolicyAction: TypeAlias = Literal["never-store", "masked", "allowed"]  # -> text.policies.ACTIONS


def limit(default: float | None, low: float, high: float) -> Any:
    """Make a setting that is a number between two limits."""
    return field(default=default, metadata={"range": (low, high)})


@dataclass(frozen=True, slots=True)
class ChunkingConfig:
    """How Markdown is split into chunks.

    Attributes:
        style: `headings` packs whole blocks below one heading; `tokens` is OpenClaw's sliding window, and `lines` that
            of OpenClaw 2026.2, which repeats whole lines.
        max_chars: The most characters of a chunk of `headings`. As many as a snippet has by default, so that a result
            can show a chunk whole.
        overlap_lines: How many lines of a chunk of `headings` the next one of its section repeats.
        tokens: The size of a chunk of `tokens` and `lines`, in OpenClaw's tokens of four characters.
        overlap_tokens: How much of such a chunk the next one repeats.
    """

    style: Style = field(default="headings", metadata={"choices": get_args(Style)})
    max_chars: int = limit(700, 80, 100_000)
    overlap_lines: int = limit(1, 0, 20)
    tokens: int = limit(400, 8, 100_000)
    overlap_tokens: int = limit(80, 0, 100_000)


@dataclass(frozen=True, slots=True)
class FilesConfig:
    """Which files count as memory, besides `MEMORY.md`, `USER.md` and the notes in `memory/`. Globs are relative.

    Attributes:
        extra_paths: Notes, and folders whose notes all count, except in hidden folders and those of
            installed programs, such as `node_modules`. `"."` is the whole workspace, without the agent's own rules,
            such as `AGENTS.md` at its top.
        include: Globs: where there are any, only files that match one count.
        exclude: Globs of files that do not count; one that begins with `!` brings files back.
        max_bytes: Larger files are left out, and named as skipped; transcripts may be larger.
        allow_hard_links: Whether files with more than one hard link count: they may lie outside the workspace too.
        endings: What the names of notes end in, as spelled here.
    """

    extra_paths: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = limit(10 * 1024 * 1024, 1, 1 << 40)
    allow_hard_links: bool = False
    endings: tuple[str, ...] = (".md", ".MD", ".markdown", ".txt", ".TXT")


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How a query is answered.

    From its fourth search on a process keeps its indexes in memory, which makes searches of large ones several times as
    fast; the status says which does not fit.

    Attributes:
        max_results: How many results there are at most.
        min_score: What a result must reach to be shown.
        snippet_chars: The most characters of a snippet.
        passage_chars: Up to how many characters lines are put together; not set: `snippet_chars`, or 300 where a search
            has a budget.
        candidates: How many of the best chunks have their lines scored.
        candidate_multiplier: Keyword and vector search bring so many times `max_results` chunks each, at most
            `candidates`.
        match: Whether a chunk must hold `any` or `all` words of the query to be found by keywords.
        fusion: `standardised` mixes z-scores of the keyword and the vector search, `weighted` mixes raw scores.
        vector_weight: How much vectors count where chunks are ranked; the two weights are scaled to sum to 1.
        text_weight: How much keywords count there.
        boosts: Whether `weighted` takes the keyword score with OpenClaw's boosts.
        keyword_fill: Of chunks, whether places that nothing at or above `min_score` takes go to those that hold the
            words; a `min_score` given to a search lets none pass below.
        answer: `lines` scores the lines of the best chunks and returns the best lines of each place; `chunks` returns
            the beginnings of the best chunks.
        mmr: Variety of the results: 1 is the score alone, 0 variety alone; not set: off.
        half_life_days: The score of a dated note halves for every so many days of its age; not set: off.
        task_weight: How much the likeness of a result to the task counts, where a search is given one.
        memory_mb: How many MB of its indexes a process keeps in memory. One that does not fit is read from the file, as
            are all with 0.
    """

    max_results: int = limit(6, 1, 1000)
    min_score: float = limit(0.0, 0, 1)
    snippet_chars: int = limit(700, 40, 100_000)
    passage_chars: int | None = limit(None, 1, 100_000)
    candidates: int = limit(50, 1, 1000)
    candidate_multiplier: int | None = limit(None, 1, 1000)
    match: Match = field(default="any", metadata={"choices": get_args(Match)})
    fusion: Fusion = field(default="standardised", metadata={"choices": get_args(Fusion)})
    vector_weight: float = limit(0.5, 0, float("inf"))
    text_weight: float = limit(0.5, 0, float("inf"))
    boosts: bool = True
    keyword_fill: bool = True
    answer: Answer = field(default="lines", metadata={"choices": get_args(Answer)})
    mmr: float | None = limit(None, 0, 1)
    half_life_days: float | None = limit(None, 0.001, 1_000_000)
    task_weight: float = limit(0.1, 0, 1)
    memory_mb: int = limit(256, 0, 1_000_000)


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """Which embedder to use, and how a service is asked.

    Attributes:
        provider: `static` (ships, offline), `auto`, `none` (keywords only), or a provider's name.
        model: Short for the model of `provider`.
        fallback: The provider of an index that `provider` cannot build.
        allow_remote: Whether text may leave this machine.
        providers: Each provider's own options by its name, also those of `fallback` and of what `auto` tries:
            `{"openai": {"base_url": "http://localhost:11434/v1", "model": "embeddinggemma"}}`.
        query_seconds: How long a search waits for the vector of its question before keywords answer alone.
        request_seconds: How long a sync waits for one answer of a service.
        concurrency: How many requests of a sync run at a time, in each process.
        batch_size: The most texts of a request, or of a run of a local model; not set: as many as suit the provider,
            whose own option of this kind counts first.
        max_entries: How many vectors the user's cache keeps, of all workspaces; those of an index are always kept.
    """

    provider: str = "static"
    model: str | None = None
    fallback: str = "none"
    allow_remote: bool = True
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)  # it may hold a key
    query_seconds: float = limit(10.0, 0.1, 3600)
    request_seconds: float = limit(120.0, 1, 3600)
    concurrency: int = limit(4, 1, 64)
    batch_size: int | None = limit(None, 1, 10_000)
    max_entries: int = limit(50_000, 0, 1 << 40)


@dataclass(frozen=True, slots=True)
class SyncConfig:
    """When the index follows the files, apart from calls of `sync`.

    Attributes:
        before_search: Whether a search waits if a first index has to be built or finished; else it answers from what
            there is.
        on_open: Whether opening a memory begins a sync in the background.
        on_search: Whether a search begins one, if files have changed since the last check.
        interval_seconds: A sync in the background this often; 0: never.
        debounce_seconds: How long nothing must have happened before the watcher syncs.
        rescan_seconds: How often the watcher scans all files, with events or without.
    """

    before_search: bool = True
    on_open: bool = False
    on_search: bool = True
    interval_seconds: float = limit(0.0, 0, 31_536_000)
    debounce_seconds: float = limit(1.5, 0, 3600)
    rescan_seconds: float = limit(300.0, 1, 86_400)


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    """Transcripts of conversations.

    Attributes:
        index: Whether transcripts are indexed and found.
        folder: Where their `*.jsonl` are, relative to the workspace or absolute.
        max_share: The most that transcripts get of the results when notes are searched too, unless these have no more.
        delta_bytes: The watcher syncs a transcript once it has grown by so many bytes, or by `delta_messages` lines.
        delta_messages: By how many lines one grows before the watcher syncs it.
        debounce_seconds: How long the watcher leaves a transcript alone after its last change.
    """

    index: bool = True
    folder: str = "sessions"
    max_share: float = limit(0.34, 0, 1)
    delta_bytes: int = limit(100_000, 1, 1 << 40)
    delta_messages: int = limit(50, 1, 1_000_000)
    debounce_seconds: float = limit(5.0, 0, 3600)


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """How notes are written, and read at the start of a session.

    Attributes:
        timezone: The IANA name of the zone of the notes' days (`Europe/Amsterdam`); not set: the machine's.
        bootstrap_chars: How much of a file is shown at the start of a session, in characters.
    """

    timezone: str | None = None
    bootstrap_chars: int = limit(20_000, 100, 10_000_000)


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """What a model is shown of the memory: by the tools, and by what is recalled before it is asked.

    Attributes:
        assume_direct: Whether a session that is not known to be a group counts as direct. If not, it counts as a group
            unless its key names the main session or a direct message, or `sessions.json` says that its chat is direct.
        citations: Whether citations are shown: always (`on`), never (`off`), or in direct chats alone (`auto`).
        max_chars: The most characters of notes in one answer.
        get_lines: How many lines `memory_get` shows unless a call says how many.
    """

    assume_direct: bool = True
    citations: Citations = field(default="auto", metadata={"choices": get_args(Citations)})
    max_chars: int = limit(4_000, 200, 1_000_000)
    get_lines: int = limit(120, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """When a conversation is compacted, and its memories flushed before. Sizes are in tokens, unless named bytes.

    The user waits for a flush. Two calls of its model are usual, the note and `NO_REPLY`; a conversation that is shown
    in parts takes two for each.

    Attributes:
        enabled: Whether conversations are compacted and flushed; if not, one that is too long for its model stays so.
        reserve_tokens: How much of the window stays free for the answer.
        reserve_tokens_floor: The least that stays free, at most a quarter of the window.
        keep_recent_tokens: How much of the end of the conversation is kept as it is.
        flush: Whether memories are saved before a compaction.
        soft_threshold_tokens: How long before the compaction the flush is due.
        force_flush_bytes: A flush is due also when a transcript has grown by so many bytes; 0: never.
        flush_timeout_seconds: When a flush is given up.
        flush_max_calls: How often a flush asks its model at most.
        prompt: The prompt of the flush; not set: the built-in one.
        system_prompt: The same for its system prompt.
    """

    enabled: bool = True
    reserve_tokens: int = limit(16_384, 0, 10_000_000)
    reserve_tokens_floor: int = limit(20_000, 0, 10_000_000)
    keep_recent_tokens: int = limit(20_000, 0, 10_000_000)
    flush: bool = True
    soft_threshold_tokens: int = limit(4_000, 0, 10_000_000)
    force_flush_bytes: int = limit(2 * 1024 * 1024, 0, 1 << 40)
    flush_timeout_seconds: float = limit(120.0, 0.01, 3600)
    flush_max_calls: int = limit(8, 1, 1000)
    prompt: str | None = None
    system_prompt: str | None = None

    @property
    def flushes(self) -> bool:
        """Whether memories are saved before a compaction."""
        return self.enabled and self.flush


@dataclass(frozen=True, slots=True)
class PruningConfig:
    """How old tool results are shortened in memory; OpenClaw's numbers. A ratio is a share of the window.

    Attributes:
        ttl_seconds: Nothing happens within so long of the last call, while a provider's cache holds the messages.
        keep_assistants: What follows the last so many replies stays as it is.
        soft_ratio: From which share of the window on long results keep their beginning and end alone.
        hard_ratio: From which share on results are replaced, oldest first.
        placeholder: What replaces a result.
    """

    ttl_seconds: float = limit(300.0, 0, 31_536_000)
    keep_assistants: int = limit(3, 0, 1_000_000)
    soft_ratio: float = limit(0.3, 0, 1)
    hard_ratio: float = limit(0.5, 0, 1)
    placeholder: str = "[Old tool result content cleared]"


@dataclass(frozen=True, slots=True)
class SnapshotsConfig:
    """The ends of sessions, each kept in a file of its own.

    Attributes:
        enabled: Whether the end of a session is kept.
        max_messages: How many of its last messages are.
    """

    enabled: bool = True
    max_messages: int = limit(15, 1, 1000)


@dataclass(frozen=True, slots=True)
class RecordsConfig:
    """How facts are settled, and for how long they hold.

    Attributes:
        stable_days: How old a value is when it counts as stable, as one that was confirmed does.
        observations: How many observations of another value replace a stable one.
        half_life_days: How long it takes for the confidence in a record of the types `decaying` to halve, until it is
            confirmed.
        decaying: The types of record whose confidence decays.
        high_impact: Globs of keys whose values are replaced by a confirmation alone; OpenClaw names billing and the
            scope of credentials.
        least_confidence: Observations below it are refused.
        ttl_days: For how many days a record holds, by type (`other=90`); for ever where a type is not named.
        most: How many records of one type and user there are at most: the least certain go first.
    """

    stable_days: float = limit(7.0, 0, 1_000_000)
    observations: int = limit(2, 1, 1000)
    half_life_days: float = limit(30.0, 0.001, 1_000_000)
    decaying: tuple[str, ...] = ("preference",)
    high_impact: tuple[str, ...] = ("billing.*", "credential.*", "*.scope")
    least_confidence: float = limit(0.3, 0, 1)
    ttl_days: tuple[str, ...] = ("preference=365", "fact=365", "reminder=90", "other=90")
    most: int = limit(10_000, 1, 10_000_000)


def _check_pattern(pattern: str, rule: str) -> None:
    """Check that a pattern is a regular expression that matches no empty text.

    Raises:
        ConfigError: It is not; the message names the rule, and never its pattern.
    """
    try:
        with warnings.catch_warnings(action="error", category=FutureWarning):
            compiled = re.compile(pattern, re.MULTILINE)
    except FutureWarning as error:  # it names a place, and nothing of the pattern
        raise ConfigError(
            f"the pattern of {rule} means something else to later versions of Python ({error}): put a backslash there"
        ) from None
    except (re.error, OverflowError, RecursionError) as error:
        words = error.msg if isinstance(error, re.error) else type(error).__name__
        raise ConfigError(f"the pattern of {rule} is no regular expression: {words}") from None
    if compiled.search(""):
        raise ConfigError(f"the pattern of {rule} matches an empty text: have it match a character")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule: what it is called, what becomes of a text that it matches, and which it matches.

    `pattern` is a regular expression, searched in the whole text; `type`, `key` (a glob) and `sensitivity` are those of
    a record. A rule matches where all that it names do; it names one of the four at least.
    """

    name: str
    action: PolicyAction
    pattern: str | None = field(default=None, repr=False)  # it may hold what is never to be stored
    type: str | None = None
    key: str | None = None
    sensitivity: str | None = None

    def __post_init__(self) -> None:
        """Check the rule.

        Raises:
            ConfigError: A value is wrong; the message names the rule, and never its pattern.
        """
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError("a rule of policies.rules has no name: give each one, by which a refusal names it")
        rule = f"the rule {self.name!r} of policies.rules"
        if self.action not in get_args(PolicyAction):
            raise ConfigError(f"{rule} has no action of {', '.join(get_args(PolicyAction))}")
        named = [name for name in ("pattern", "type", "key", "sensitivity") if getattr(self, name) is not None]
        if wrong := [name for name in named if not isinstance(getattr(self, name), str) or not getattr(self, name)]:
            raise ConfigError(f"{wrong[0]} of {rule} must be a string that is not empty")
        if not named:
            raise ConfigError(f"{rule} matches everything: name a pattern, type, key or sensitivity")
        for name, known in (("type", get_args(RecordType)), ("sensitivity", get_args(Sensitivity))):
            if getattr(self, name) is not None and getattr(self, name) not in known:
                raise ConfigError(f"{name} of {rule} is not one of {', '.join(known)}")
        if self.pattern is not None:
            _check_pattern(self.pattern, rule)


@dataclass(frozen=True, slots=True)
class PoliciesConfig:
    """What may be stored and shown, by rules of the user's: `never-store`, `masked` or `allowed`.

    Attributes:
        rules: The rules. Of those that match, the strictest counts, and of equally strict ones the first; without any
            all is allowed.
    """

    rules: tuple[PolicyRule, ...] = ()

    def __post_init__(self) -> None:
        """Take rules as tables too, as TOML has them.

        Raises:
            ConfigError: A rule is wrong, or two have one name.
        """
        if not isinstance(self.rules, list | tuple):
            raise ConfigError("policies.rules must be a list of rules, each a table with a name and an action")
        rules = tuple(one if isinstance(one, PolicyRule) else _rule_of(one) for one in self.rules)
        names = [rule.name for rule in rules]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"policies.rules has two rules {twice[0]!r}: give each a name of its own")
        object.__setattr__(self, "rules", rules)


def _rule_of(table: Any) -> PolicyRule:
    if not isinstance(table, Mapping):
        raise ConfigError("a rule of policies.rules must be a table with a name and an action")
    known = {spec.name for spec in fields(PolicyRule)}
    if unknown := sorted(str(key) for key in table.keys() - known):
        raise ConfigError(
            f"a rule of policies.rules has the unknown key {unknown[0]!r}: use {', '.join(sorted(known))}"
        )
    return PolicyRule(**{"name": "", "action": "", **table})


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where the index is kept, unless the program says so itself: `store=` or `index_path=` of `Memory.open`.

    Attributes:
        backend: The engine that answers searches: `builtin`, or one that a plug-in adds.
        url: `"sqlite"`, a file in the workspace; `"sqlite:///PATH"`, a file elsewhere; or the URL of a store that a
            package adds, such as `"postgresql://user@host/database?tenant=ID"`. A database that names no tenant has
            each workspace as one by its path, and each memory of `Memories` by the name of its folder.
    """

    backend: str = "builtin"
    url: str = field(default="sqlite", repr=False)  # it may hold a password


PARTS: Mapping[str, type[Any]] = {part.__name__.removesuffix("Config").lower(): part for part in (
    ChunkingConfig, FilesConfig, SearchConfig, EmbeddingConfig, SyncConfig, SessionsConfig, JournalConfig,
    RecallConfig, CompactionConfig, PruningConfig, SnapshotsConfig, RecordsConfig, PoliciesConfig, StoreConfig,
)}  # fmt: skip


def _collect(kind: str) -> dict[str, Any]:
    """Collect the ranges or the choices of all settings, by name."""
    settings = ((f"{part}.{spec.name}", spec.metadata) for part, model in PARTS.items() for spec in fields(model))
    return {name: metadata[kind] for name, metadata in settings if kind in metadata}


RANGES: Mapping[str, tuple[float, float]] = _collect("range")
CHOICES: Mapping[str, tuple[str, ...]] = _collect("choices")

_GLOBS = frozenset({"files.include", "files.exclude"})
_PATHS = frozenset({"files.extra_paths", "sessions.folder"})
# Showing more of a wrong value does not help, and it may be a key in the wrong place.
_MOST_SHOWN, _BEGINNING = 24, 12
_MOST_BITS = 64


def shown(name: str, value: object) -> str:
    """Return a wrong value for a message: its type alone if it may hold a key, its beginning if it is long."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a number of very many digits"  # Python refuses to write out more than 4,300 of them
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if name.partition(".")[0] in {"embedding", "store", "defaults", "agents"} or isinstance(value, Mapping):
        return f"a value of type {type(value).__name__}"
    whole = repr(value)
    return whole if len(whole) <= _MOST_SHOWN else f"{whole[:_BEGINNING]}... ({type(value).__name__})"


def checked(part_name: str, part: Any, notices: list[str]) -> Any:
    """Return `part` with each value inside its range; raise ConfigError for a value of the wrong type."""
    if not isinstance(part, PARTS[part_name]):
        raise ConfigError(
            f"{part_name} must be a {PARTS[part_name].__name__}, not a value of type {type(part).__name__}"
        )
    changes: dict[str, Any] = {}
    for spec in fields(part):
        name = f"{part_name}.{spec.name}"
        value = getattr(part, spec.name)
        if name not in CHOICES:
            check_type(name, value, str(spec.type))
        elif value not in CHOICES[name]:
            raise ConfigError(f"{name} must be one of {', '.join(CHOICES[name])}, not {shown(name, value)}")
        if name == "files.endings":
            _check_endings(value)
        if name in _GLOBS:
            read_globs(name, value)
        if name in RANGES and value is not None:
            low, high = RANGES[name]
            clamped = min(max(value, low), high)
            if clamped != value:
                changes[spec.name] = type(value)(clamped)
                notices.append(f"{name} = {shown(name, value)} is outside [{low:g}, {high:g}]: {clamped:g} is used")
    return replace(part, **changes) if changes else part


def _check_endings(endings: tuple[str, ...]) -> None:
    for one in endings:
        if not (one.startswith(".") and one[1:].isalnum()):
            raise ConfigError(f'files.endings holds {one!r}: an ending is a dot and letters, such as ".md"')


def check_type(name: str, value: Any, annotation: str) -> None:
    """Raise ConfigError for a value that does not fit the annotation of its field."""
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
        "tuple[PolicyRule, ...]": (isinstance(value, tuple), "a list of rules"),
        "Mapping[str, Mapping[str, Any]]": (
            isinstance(value, Mapping) and all(isinstance(table, Mapping) for table in value.values()),
            "a table of tables, such as {'openai': {'model': '...'}}",
        ),
    }[kind]
    if not fits:
        raise ConfigError(f"{name} must be {words}, not {shown(name, value)}")
    paths = value if isinstance(value, tuple) else (value,)
    if name in _PATHS and any("\0" in str(path) for path in paths):
        raise ConfigError(f"{name} holds a NUL, which no path has: {value!r}; write the path without it")


def normalised_weights(search: SearchConfig, notices: list[str]) -> SearchConfig:
    """Return weights that sum to 1; equal ones if both are zero."""
    vector, text = search.vector_weight, search.text_weight
    total = vector + text
    if total == 0 or total == float("inf"):
        notices.append(f"search.vector_weight {vector:g} and text_weight {text:g} have no usable sum: 0.5 each is used")
        return replace(search, vector_weight=0.5, text_weight=0.5)
    if abs(total - 1) < 1e-9:
        return search
    notices.append(f"search weights {vector:g} and {text:g} were scaled to sum to 1")
    return replace(search, vector_weight=vector / total, text_weight=text / total)
