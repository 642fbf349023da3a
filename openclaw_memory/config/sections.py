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
Fusion: TypeAlias = Literal["standardised", "weighted"]  # -> search.candidates.FUSIONS
Answer: TypeAlias = Literal["lines", "chunks"]  # -> search.passages.ANSWERS
Match: TypeAlias = Literal["any", "all"]
BatchUse: TypeAlias = Literal["off", "wait", "later"]
Citations: TypeAlias = Literal["on", "off", "auto"]
BackendName: TypeAlias = Literal["builtin", "qmd"]  # -> backends.chosen.backend_of
BackendMode: TypeAlias = Literal["search", "vsearch", "query"]
KeyPlace: TypeAlias = Literal["file", "keyring"]  # -> security.keys.make
PolicyAction: TypeAlias = Literal["never-store", "masked", "allowed"]  # -> text.policies.ACTIONS


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

    style: Style = "headings"
    max_chars: int = 700
    overlap_lines: int = 1
    tokens: int = 400
    overlap_tokens: int = 80


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
        max_files: Files past the first so many are left out, and named as skipped.
        allow_hard_links: Whether files with more than one hard link count: they may lie outside the workspace too.
        endings: What the names of notes end in, as spelled here.
    """

    extra_paths: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = 10 * 1024 * 1024
    max_files: int | None = None
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
        batch: Whether the texts of a large first index go to the service's batch API: `off`; `wait` for them; or
            collect them `later`, at another sync.
        batch_concurrency: How many jobs of the batch API run at a time.
        max_entries: How many vectors the cache keeps; those of the index are always kept.
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
    interval_seconds: float = 0.0
    debounce_seconds: float = 1.5
    rescan_seconds: float = 300.0


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
    max_share: float = 0.34
    delta_bytes: int = 100_000
    delta_messages: int = 50
    debounce_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """How notes are written, and read at the start of a session.

    Attributes:
        timezone: The IANA name of the zone of the notes' days (`Europe/Amsterdam`); not set: the machine's.
        bootstrap_chars: How much of a file is shown at the start of a session, in characters.
    """

    timezone: str | None = None
    bootstrap_chars: int = 20_000


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
    citations: Citations = "auto"
    max_chars: int = 4_000
    get_lines: int = 120


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
    """How old tool results are shortened in memory; OpenClaw's numbers. A ratio is a share of the window.

    Attributes:
        ttl_seconds: Nothing happens within so long of the last call, while a provider's cache holds the messages.
        keep_assistants: What follows the last so many replies stays as it is.
        soft_ratio: From which share of the window on long results keep their beginning and end alone.
        soft_max_chars: Results of more characters are long.
        head_chars: How many characters of its beginning a long result keeps.
        tail_chars: How many of its end.
        hard_ratio: From which share on results are replaced, oldest first.
        min_chars: None is replaced if all of them together have fewer characters.
        placeholder: What replaces a result.
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
    """The ends of sessions, each kept in a file of its own.

    Attributes:
        enabled: Whether the end of a session is kept.
        max_messages: How many of its last messages are.
    """

    enabled: bool = True
    max_messages: int = 15


@dataclass(frozen=True, slots=True)
class EncryptionConfig:
    """What is encrypted on the disk; see the guide to encryption. Nothing is decrypted because a setting is off.

    Attributes:
        enabled: Whether an index is encrypted when it is made.
        keys: Where a new key is kept: in a `file` of the user's data folder, or in the `keyring`. Keys of the
            environment come first.
        transcripts: Whether transcripts are encrypted too.
        snapshots: Whether snapshots are.
    """

    enabled: bool = False
    keys: KeyPlace = "file"
    transcripts: bool = False
    snapshots: bool = False


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
        versions: How many values of a record its file keeps, the present one and those before. With more, files still
            grow when a year is over.
        waiting: How many of the latest observations that wait it keeps.
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

    Attributes:
        enabled: Whether anything is found out; if not, a message wants nothing, and no model is asked.
        languages: The ISO 639-1 codes of the languages that users write in.
        confidence_threshold: Something is suggested where the model is more confident.
        deadline_seconds: How long the model has for its answer, a second try included; then rules decide, on which
            nothing is suggested.
    """

    enabled: bool = True
    languages: tuple[str, ...] = ("en", "nl", "de", "fr", "es")
    confidence_threshold: float = 0.7
    deadline_seconds: float = 4.0


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
class BackendConfig:
    """Which engine answers searches: the built-in one, or the program QMD, in whose place the built-in one steps in.

    Attributes:
        name: The engine.
        mode: The command of QMD that answers: `search` by keywords, all of which a note must hold, `vsearch` by
            vectors, `query` by both, with expansion and reranking; the latter two need models that QMD downloads.
        command: What starts QMD: `["qmd"]`, or `["/opt/node22/bin/node", "/opt/qmd/node_modules/@tobilu/qmd/bin/qmd"]`.
        collection: The name under which QMD keeps the notes.
        folder: Where QMD keeps its index; empty: in the user's cache folder.
        update_minutes: How often QMD is handed the notes that have changed, besides at the first search; 0: at no other
            time.
        timeout_seconds: How long an answer may take.
        update_timeout_seconds: How long an update or the embedding may take.
        server: Whether QMD runs as a server; if not, each search starts the program: slower, but no port is open.
    """

    name: BackendName = "builtin"
    mode: BackendMode = "search"
    command: tuple[str, ...] = ("qmd",)
    collection: str = "memory"
    folder: str = ""
    update_minutes: float = 5.0
    timeout_seconds: float = 10.0
    update_timeout_seconds: float = 600.0
    server: bool = True


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where the index is kept, unless the program says so itself: `store=` or `index_path=` of `Memory.open`.

    Attributes:
        url: `"sqlite"`, a file in the workspace; `"sqlite:///PATH"`, a file elsewhere;
            `"postgresql://user@host/database?tenant=ID"`; or the URL of a store that another package adds. Of a
            database that names no tenant, each workspace is one by its path, and each memory of `Memories` by the name
            of its folder; `&hnsw=1` keeps an index of neighbours for the vectors of one, `&files=column` its notes as
            rows.
    """

    url: str = field(default="sqlite", repr=False)  # it may hold a password


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """The access log: who has read and written what; see the guide to it.

    Attributes:
        enabled: Whether there is one.
        folder: Where it is, relative to the workspace or absolute.
        max_bytes: A file of it that has grown to so many bytes is followed by a new one.
        keep: How many of the older files stay, the latest ones.
        required: Whether what cannot be logged is refused; if not, it is done all the same, and the status says that
            entries are missing.
    """

    enabled: bool = False
    folder: str = ".memory/audit"
    max_bytes: int = 4 * 1024 * 1024
    keep: int = 4
    required: bool = False


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
    "encryption": EncryptionConfig,
    "records": RecordsConfig,
    "intent": IntentConfig,
    "policies": PoliciesConfig,
    "backend": BackendConfig,
    "store": StoreConfig,
    "audit": AuditConfig,
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
    "audit.max_bytes": (4096, 1 << 40),
    "audit.keep": (0, 1_000_000),
    "backend.update_minutes": (0, 525_600),
    "backend.timeout_seconds": (0.1, 3600),
    "backend.update_timeout_seconds": (1, 86_400),
}

CHOICES: Mapping[str, tuple[str, ...]] = {
    "chunking.style": get_args(Style),
    "search.match": get_args(Match),
    "search.fusion": get_args(Fusion),
    "search.answer": get_args(Answer),
    "embedding.batch": get_args(BatchUse),
    "recall.citations": get_args(Citations),
    "encryption.keys": get_args(KeyPlace),
    "backend.name": get_args(BackendName),
    "backend.mode": get_args(BackendMode),
}

_GLOBS = frozenset({"files.include", "files.exclude"})
_PATHS = frozenset({"files.extra_paths", "sessions.folder", "audit.folder", "backend.command", "backend.folder"})
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
            _check_type(name, value, str(spec.type))
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
