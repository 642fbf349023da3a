"""Define the settings: small frozen parts with their defaults, and the values each may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from openclaw_memory.config.globs import read_globs
from openclaw_memory.errors import ConfigError
from openclaw_memory.types.records import RecordType, Sensitivity

# The one place that names the choices; each is the key of a function in the table behind the arrow.
Style: TypeAlias = Literal["headings", "tokens", "lines"]  # -> chunking.chunking.STYLES
Fusion: TypeAlias = Literal["standardised", "weighted"]  # -> search.candidates.FUSIONS
Answer: TypeAlias = Literal["lines", "chunks"]  # -> search.passages.ANSWERS
Match: TypeAlias = Literal["any", "all"]
BatchUse: TypeAlias = Literal["off", "wait", "later"]
Citations: TypeAlias = Literal["on", "off", "auto"]
PolicyAction: TypeAlias = Literal["never-store", "masked", "allowed"]  # -> text.policies.ACTIONS


@dataclass(frozen=True, slots=True)
class ChunkingConfig:
    """How Markdown is split into chunks.

    `headings` packs whole blocks up to `max_chars` below one heading; `tokens` is OpenClaw's sliding window, in its
    tokens of four characters, and `lines` that of OpenClaw 2026.2, which repeats whole lines. `max_chars` equals the
    default snippet, so that a result can show a chunk whole.
    """

    style: Style = "headings"
    max_chars: int = 700
    overlap_lines: int = 1
    tokens: int = 400
    overlap_tokens: int = 80


@dataclass(frozen=True, slots=True)
class FilesConfig:
    """Which files count as memory, besides `MEMORY.md`, `USER.md` and `memory/**/*.md`. Globs are relative.

    `extra_paths` are Markdown files, and folders whose Markdown all counts, except in hidden folders and those of
    installed programs, such as `node_modules`. `"."` is the whole workspace, without the agent's own rules, such as
    `AGENTS.md` at its top. Files past the first `max_files` are left out, and named as skipped.
    """

    extra_paths: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = 10 * 1024 * 1024
    max_files: int | None = None
    allow_hard_links: bool = False


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How a query is answered.

    `answer="lines"` scores the lines of the `candidates` best chunks and returns the best lines of each place;
    `answer="chunks"` returns the beginnings of the best chunks. No snippet is longer than `snippet_chars`; lines are
    put together up to `passage_chars` (None: `snippet_chars`, or 300 where a search has a budget).
    `fusion="standardised"` mixes z-scores of the keyword and the vector search, `"weighted"` mixes raw scores, with
    OpenClaw's `boosts` of the keyword score or without. With a `candidate_multiplier`, keyword and vector search bring
    so many times `max_results` chunks each, at most `candidates`. Of chunks, with `keyword_fill`, places that nothing
    at or above `min_score` takes go to those that hold the words; a `min_score` given to a search lets none pass below.
    `mmr` (lambda, 0..1) and `half_life_days` are off when None. Where a search is given a task, the likeness of a
    result to it counts `task_weight` (0..1).
    From its fourth search on a process keeps up to `memory_mb` of its indexes in memory, which makes searches of large
    ones several times as fast; an index that does not fit is read from the file, as are all with 0. The status says
    which does not.
    """

    max_results: int = 6
    min_score: float = 0.06
    snippet_chars: int = 700
    passage_chars: int | None = None
    candidates: int = 50
    candidate_multiplier: int | None = None
    match: Match = "any"
    fusion: Fusion = "standardised"
    vector_weight: float = 0.5
    text_weight: float = 0.5
    boosts: bool = True
    keyword_fill: bool = True
    answer: Answer = "lines"
    mmr: float | None = None
    half_life_days: float | None = None
    task_weight: float = 0.1
    memory_mb: int = 256


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """Which embedder to use: `static` (ships, offline), `auto`, `none` (keywords only), or a provider's name.

    `providers` holds each provider's own options by its name, also those of `fallback` and of what `auto` tries:
    `{"openai": {"base_url": "http://localhost:11434/v1", "model": "embeddinggemma"}}`; `model` is short for the model
    of `provider`. `fallback` is the provider of an index that `provider` cannot build. Without `allow_remote` no text
    leaves this machine. A request, or a run of a local model, has at most `batch_size` texts, by default as many as
    suit the provider, whose own option of this kind counts first. `batch` sends the texts of a large first index to the
    service's batch API, and waits for them or collects them at a later sync; `batch_concurrency` jobs run at a time.
    The cache keeps `max_entries` vectors; those of the index are always kept.
    """

    provider: str = "static"
    model: str | None = None
    fallback: str = "none"
    allow_remote: bool = True
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)  # it may hold a key
    query_seconds: float = 10.0
    request_seconds: float = 120.0
    concurrency: int = 4
    batch_size: int | None = None
    batch: BatchUse = "off"
    batch_concurrency: int = 2
    max_entries: int = 50_000


@dataclass(frozen=True, slots=True)
class SyncConfig:
    """When the index follows the files, apart from calls of `sync`.

    With `before_search` a search waits if a first index has to be built or finished; without it, it answers from what
    there is. `on_open` and `on_search` sync in the background, the latter if files have changed since the last check;
    `interval_seconds` does so periodically (0: never). The watcher waits until nothing has happened for
    `debounce_seconds`, and scans all files every `rescan_seconds`, with events or without.
    """

    before_search: bool = True
    on_open: bool = False
    on_search: bool = True
    interval_seconds: float = 0.0
    debounce_seconds: float = 1.5
    rescan_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    """Transcripts of conversations: `*.jsonl` in `folder`, which is relative to the workspace or absolute.

    When notes and transcripts are searched together, at most `max_share` of the results are from transcripts unless the
    notes have no more results. The watcher syncs a transcript once it has grown by `delta_bytes` or by `delta_messages`
    lines, and has not changed for `debounce_seconds`.
    """

    index: bool = True
    folder: str = "sessions"
    max_share: float = 0.34
    delta_bytes: int = 100_000
    delta_messages: int = 50
    debounce_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """How notes are written, and read at the start of a session.

    `timezone` is the IANA name of the zone of the notes' days (`Europe/Amsterdam`), None for the machine's. At the
    start of a session, no file is shown beyond `bootstrap_chars` characters.
    """

    timezone: str | None = None
    bootstrap_chars: int = 20_000


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """What a model is shown of the memory: by the tools, and by what is recalled before it is asked.

    `citations` are shown always (`on`), never (`off`), or in direct chats alone (`auto`). At most `max_chars`
    characters of notes go into one answer. `memory_get` shows `get_lines` lines unless a call says how many. With
    `assume_direct = false`, a session counts as a group unless its key names the main session or a direct message, or
    `sessions.json` says that its chat is direct.
    """

    assume_direct: bool = True
    citations: Citations = "auto"
    max_chars: int = 4_000
    get_lines: int = 120


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """When a conversation is compacted, and its memories flushed before. Sizes are in tokens, unless named bytes.

    Without `enabled` neither happens, and a conversation that is too long for its model stays so; without `flush` a
    conversation is compacted, and nothing is saved before.

    `reserve_tokens` stay free for the answer, at least `reserve_tokens_floor`, at most a quarter of the window; the
    last `keep_recent_tokens` are kept as they are. The flush is due `soft_threshold_tokens` before that, or when a
    transcript has grown by `force_flush_bytes` (0: never). None for `prompt` and `system_prompt` means the built-in
    ones.

    The user waits for a flush: it is given up after `flush_timeout_seconds`, and asks its model `flush_max_calls` times
    at most. Two calls are usual, the note and `NO_REPLY`; a conversation that is shown in parts takes two for each.
    """

    enabled: bool = True
    reserve_tokens: int = 16_384
    reserve_tokens_floor: int = 20_000
    keep_recent_tokens: int = 20_000
    flush: bool = True
    soft_threshold_tokens: int = 4_000
    force_flush_bytes: int = 2 * 1024 * 1024
    flush_timeout_seconds: float = 120.0
    flush_max_calls: int = 8
    prompt: str | None = None
    system_prompt: str | None = None

    @property
    def flushes(self) -> bool:
        """Whether memories are saved before a compaction."""
        return self.enabled and self.flush


@dataclass(frozen=True, slots=True)
class PruningConfig:
    """How old tool results are shortened in memory; OpenClaw's numbers. A `ratio` is a share of the window.

    Nothing happens within `ttl_seconds` of the last call, while a provider's cache holds the messages, nor to what
    follows the last `keep_assistants` replies. From `soft_ratio` on, results of over `soft_max_chars` keep their first
    `head_chars` and last `tail_chars`; from `hard_ratio` on they are replaced by `placeholder`, oldest first, if all of
    them together have `min_chars` or more.
    """

    ttl_seconds: float = 300.0
    keep_assistants: int = 3
    soft_ratio: float = 0.3
    soft_max_chars: int = 4_000
    head_chars: int = 1_500
    tail_chars: int = 1_500
    hard_ratio: float = 0.5
    min_chars: int = 50_000
    placeholder: str = "[Old tool result content cleared]"


@dataclass(frozen=True, slots=True)
class SnapshotsConfig:
    """Of a session that ends, the last `max_messages` are kept in a file of their own, where `enabled`."""

    enabled: bool = True
    max_messages: int = 15


@dataclass(frozen=True, slots=True)
class RecordsConfig:
    """How facts are settled, and for how long they hold.

    A value that was confirmed, or is older than `stable_days`, is replaced after `observations` of another one. Keys
    that match a glob of `high_impact` (OpenClaw names billing and the scope of credentials) are replaced by a
    confirmation alone. Observations below `least_confidence` are refused. The confidence in records of the types
    `decaying` halves every `half_life_days` until they are confirmed. `ttl_days` are days by type (`other=90`),
    for ever where a type is not named. Of one type and user there are at most `most`: the least certain go first. A
    file keeps the latest `versions` values of a record, the present one and the one before, and the latest `waiting`
    observations that wait: with more of them files still grow when a year is over.
    """

    stable_days: float = 7.0
    observations: int = 2
    half_life_days: float = 30.0
    decaying: tuple[str, ...] = ("preference",)
    high_impact: tuple[str, ...] = ("billing.*", "credential.*", "*.scope")
    least_confidence: float = 0.3
    ttl_days: tuple[str, ...] = ("preference=365", "fact=365", "reminder=90", "other=90")
    most: int = 10_000
    versions: int = 2
    waiting: int = 5


@dataclass(frozen=True, slots=True)
class IntentConfig:
    """How it is found out what a message wants of the memory; see `openclaw_memory.intent`.

    Something is suggested where a model is more confident than `confidence_threshold`. It has `deadline_seconds` for
    its answer, a second try included; then rules decide, on which nothing is suggested. `languages` are the ISO 639-1
    codes of those that users write in.
    """

    enabled: bool = True
    languages: tuple[str, ...] = ("en", "nl", "de", "fr", "es")
    confidence_threshold: float = 0.7
    deadline_seconds: float = 4.0


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
            try:
                pattern = re.compile(self.pattern, re.MULTILINE)
            except (re.error, OverflowError, RecursionError) as error:
                words = error.msg if isinstance(error, re.error) else type(error).__name__
                raise ConfigError(f"the pattern of {rule} is no regular expression: {words}") from None
            if pattern.search(""):
                raise ConfigError(f"the pattern of {rule} matches an empty text: have it match a character")


@dataclass(frozen=True, slots=True)
class PoliciesConfig:
    """What may be stored and shown, by rules of the user's: `never-store`, `masked` or `allowed`.

    Of the rules that match, the strictest counts, and of equally strict ones the first. Without rules all is allowed.
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


PARTS: Mapping[str, type[Any]] = {
    "chunking": ChunkingConfig,
    "files": FilesConfig,
    "search": SearchConfig,
    "embedding": EmbeddingConfig,
    "sync": SyncConfig,
    "sessions": SessionsConfig,
    "journal": JournalConfig,
    "recall": RecallConfig,
    "compaction": CompactionConfig,
    "pruning": PruningConfig,
    "snapshots": SnapshotsConfig,
    "records": RecordsConfig,
    "intent": IntentConfig,
    "policies": PoliciesConfig,
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
    "search.passage_chars": (1, 100_000),
    "search.candidates": (1, 1000),
    "search.candidate_multiplier": (1, 1000),
    "search.vector_weight": (0, float("inf")),
    "search.text_weight": (0, float("inf")),
    "search.mmr": (0, 1),
    "search.half_life_days": (0.001, 1_000_000),
    "search.task_weight": (0, 1),
    "search.memory_mb": (0, 1_000_000),
    "embedding.query_seconds": (0.1, 3600),
    "embedding.request_seconds": (1, 3600),
    "embedding.concurrency": (1, 64),
    "embedding.batch_size": (1, 10_000),
    "embedding.batch_concurrency": (1, 64),
    "embedding.max_entries": (0, 1 << 40),
    "sync.interval_seconds": (0, 31_536_000),
    "sync.debounce_seconds": (0, 3600),
    "sync.rescan_seconds": (1, 86_400),
    "sessions.max_share": (0, 1),
    "sessions.delta_bytes": (1, 1 << 40),
    "sessions.delta_messages": (1, 1_000_000),
    "sessions.debounce_seconds": (0, 3600),
    "journal.bootstrap_chars": (100, 10_000_000),
    "recall.max_chars": (200, 1_000_000),
    "recall.get_lines": (1, 1_000_000),
    "compaction.reserve_tokens": (0, 10_000_000),
    "compaction.reserve_tokens_floor": (0, 10_000_000),
    "compaction.keep_recent_tokens": (0, 10_000_000),
    "compaction.soft_threshold_tokens": (0, 10_000_000),
    "compaction.force_flush_bytes": (0, 1 << 40),
    "compaction.flush_timeout_seconds": (0.01, 3600),
    "compaction.flush_max_calls": (1, 1000),
    "pruning.ttl_seconds": (0, 31_536_000),
    "pruning.keep_assistants": (0, 1_000_000),
    "pruning.soft_ratio": (0, 1),
    "pruning.soft_max_chars": (1, 1 << 30),
    "pruning.head_chars": (0, 1 << 30),
    "pruning.tail_chars": (0, 1 << 30),
    "pruning.hard_ratio": (0, 1),
    "pruning.min_chars": (0, 1 << 40),
    "snapshots.max_messages": (1, 1000),
    "intent.confidence_threshold": (0, 1),
    "intent.deadline_seconds": (0.01, 600),
    "records.stable_days": (0, 1_000_000),
    "records.observations": (1, 1000),
    "records.half_life_days": (0.001, 1_000_000),
    "records.least_confidence": (0, 1),
    "records.most": (1, 10_000_000),
    "records.versions": (1, 1000),
    "records.waiting": (1, 1000),
}

CHOICES: Mapping[str, tuple[str, ...]] = {
    "chunking.style": get_args(Style),
    "search.match": get_args(Match),
    "search.fusion": get_args(Fusion),
    "search.answer": get_args(Answer),
    "embedding.batch": get_args(BatchUse),
    "recall.citations": get_args(Citations),
}

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
    if name.partition(".")[0] in {"embedding", "defaults", "agents"} or isinstance(value, Mapping):
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
            _check_type(name, value, str(spec.type))
        elif value not in CHOICES[name]:
            raise ConfigError(f"{name} must be one of {', '.join(CHOICES[name])}, not {shown(name, value)}")
        if name in _GLOBS:
            read_globs(name, value)
        if name in RANGES and value is not None:
            low, high = RANGES[name]
            clamped = min(max(value, low), high)
            if clamped != value:
                changes[spec.name] = type(value)(clamped)
                notices.append(f"{name} = {shown(name, value)} is outside [{low:g}, {high:g}]: {clamped:g} is used")
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
