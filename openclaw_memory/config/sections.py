"""Define the settings: small frozen sections with their defaults, and the values that each setting may have."""

import datetime
import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from openclaw_memory.config.checks import check_keys, check_values, describe_value
from openclaw_memory.config.path_rules import is_inside, read_globs
from openclaw_memory.errors import ConfigError
from openclaw_memory.types.records import RecordType, Sensitivity

# The one place that names the choices; the functions of each are behind the arrow.
Style: TypeAlias = Literal["headings", "tokens", "lines"]  # -> chunking.STYLES
Fusion: TypeAlias = Literal["standardised", "weighted", "boosted"]  # -> search.candidates
Answer: TypeAlias = Literal["lines", "chunks"]  # -> search.passages
Citations: TypeAlias = Literal["on", "off", "auto"]
PolicyAction: TypeAlias = Literal["never-store", "masked", "allowed"]  # -> text.policies.ACTIONS
Text: TypeAlias = Annotated[str, Meta(min_length=1)]

MAX_RESULTS = 1000
# The parts of a day in the name of its note, and the names that `text.days` reads the day of.
_PARTS = {"YYYY": "%Y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "DD": "%d", "dddd": "%A", "ddd": "%a"}
_PART = re.compile(rf"\[([^\]/]*)\]|{'|'.join(_PARTS)}")
_NAMES_A_DAY = re.compile(r"YYYY([-_. ]?)MM\1DD|DD\.MM\.YYYY|(?:^|/)YYYY/MM/DD(?=$|[-_.])")
# May hold a key, a password, or text that is never to be stored.
_SECRET = frozenset({"providers", "url", "pattern", "rerank", "api_key"})


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the settings."""

    def __repr__(self) -> str:
        fields = (field for field in self.__struct_fields__ if field not in _SECRET)
        return f"{type(self).__name__}({', '.join(f'{field}={getattr(self, field)!r}' for field in fields)})"

    def check(self) -> None:
        """Check rules that types do not express.

        Raises:
            ConfigError: A rule is broken.
        """


class ChunkingConfig(Section, frozen=True):
    """Set how Markdown is cut into chunks. A change rebuilds the index.

    Attributes:
        style: `headings` cuts at headings and blocks; `tokens` is OpenClaw's sliding window, `lines` that of OpenClaw
            2026.2, which repeats whole lines.
        max_chars: Most characters of a chunk, with `headings`. Match it to `search.snippet_chars` to show whole chunks.
        tokens: Size of a chunk, with `tokens` and `lines`. A token is four characters.
        overlap_tokens: How much of a chunk the next one repeats, with `tokens` and `lines`.
    """

    style: Style = "headings"
    max_chars: Annotated[int, Meta(ge=80, le=100_000)] = 700
    tokens: Annotated[int, Meta(ge=8, le=100_000)] = 400
    overlap_tokens: Annotated[int, Meta(ge=0, le=100_000)] = 80


class FilesConfig(Section, frozen=True):
    """Select the files that count as memory, besides `MEMORY.md`, `USER.md` and `memory/`. Globs are relative.

    Attributes:
        extra_paths: More notes and folders of notes, such as a vault, without hidden folders and those of programs
            (`node_modules`). `"."` is the whole workspace, without rules of agents such as `AGENTS.md`.
        include: Globs. If there are any, only matching files count.
        exclude: Globs of files to leave out. One that begins with `!` brings files back.
        max_bytes: Larger notes are skipped, and `status` names them. Transcripts may be larger.
        endings: File name endings of notes, in upper and lower case as written here.
    """

    extra_paths: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: Annotated[int, Meta(ge=1, le=1 << 40)] = 10 * 1024 * 1024
    endings: tuple[str, ...] = (".md", ".MD", ".markdown", ".mdx", ".txt", ".TXT", ".org", ".canvas")

    def check(self) -> None:
        for ending in self.endings:
            if not (ending.startswith(".") and ending[1:].isalnum()):
                raise ConfigError(f'files.endings holds {ending!r}: an ending is a dot and letters, such as ".md"')
        _check_paths("files.extra_paths", self.extra_paths)
        read_globs("files.include", self.include)
        read_globs("files.exclude", self.exclude)


class RerankConfig(Section, frozen=True):
    """Set a reranker; see `SearchConfig.rerank`.

    Attributes:
        model: The name or folder of a cross-encoder, a service with its model, or a function.
        milliseconds: How long a search waits for it.
        file_name: The ONNX file of the model; not set: the most exact one.
        api_key: The key of a service; not set: that of the environment.
        base_url: The address of a service; not set: its own.
    """

    model: Any
    milliseconds: Annotated[float, Meta(ge=1, le=3_600_000)] = 1500.0
    file_name: str | None = None
    api_key: str | None = None
    base_url: str | None = None

    def __hash__(self) -> int:  # a function need not have one
        return hash((self.milliseconds, self.file_name, self.api_key, self.base_url))


class SearchConfig(Section, frozen=True):
    """Set the ranking and the results of a search.

    After three searches a process keeps the index in memory, which makes searches of large ones several times as fast.

    Attributes:
        max_results: Most results. Raise it to give a model more to read.
        min_score: Hide results below this score. Raise it if weak results do harm; too high hides answers.
        snippet_chars: Most characters of a snippet.
        candidates: How many of the best chunks have their lines scored. Raise it if an answer exists but is not found;
            searches take longer.
        candidate_multiplier: Limit the chunks of keyword and of vector search to this many times `max_results`, as
            OpenClaw does.
        fusion: `standardised` adds z-scores of both searches, and any word finds a chunk. `weighted` and `boosted` are
            OpenClaw's: raw scores, `boosted` with a higher keyword score; a chunk must hold all words, or any if too
            few chunks do.
        vector_weight: Weight of vectors against keywords, 0 to 1. Lower it for names and codes, raise it for questions
            in other words than the notes.
        answer: `lines` returns the best lines of the best chunks, `chunks` the chunks from their beginning.
        mmr: Trade score for variety: 1 is the score alone, 0 variety alone. Set it if results repeat each other.
        rerank: A model that ranks the best 40 results again: a cross-encoder (`cross-encoder/ms-marco-MiniLM-L-6-v2`),
            a service (`voyage/rerank-2.5`), a table with either as `model`, or in Python a function of a question and
            texts.
        half_life_days: Halve the score of a dated note for every so many days of age. Set it if new notes should win.
        memory_mb: Memory for the indexes of a process, in MB. Larger indexes are read from disk; 0 reads all from disk.
    """

    max_results: Annotated[int, Meta(ge=1, le=MAX_RESULTS)] = 6
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    snippet_chars: Annotated[int, Meta(ge=40, le=100_000)] = 700
    candidates: Annotated[int, Meta(ge=1, le=1000)] = 50
    candidate_multiplier: Annotated[int, Meta(ge=1, le=1000)] | None = None
    fusion: Fusion = "standardised"
    vector_weight: Annotated[float, Meta(ge=0, le=1)] = 0.5
    answer: Answer = "lines"
    mmr: Annotated[float, Meta(ge=0, le=1)] | None = None
    rerank: Any = None
    half_life_days: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None
    memory_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 256

    def check(self) -> None:
        choice = self.rerank if isinstance(self.rerank, Mapping) else {"model": self.rerank}
        wrong: list[str] = []
        check_keys(RerankConfig, choice, "search.rerank")
        check_values(RerankConfig, choice, "search.rerank", wrong)
        model = choice.get("model", 0)
        if wrong or not (model is None or callable(model) or (isinstance(model, str) and model.strip())):
            what = "search.rerank must be the name of a reranker, a table with a model, or a function"
            raise ConfigError(wrong[0].partition(": ")[0] if wrong else what)

    @property
    def text_weight(self) -> float:
        """The weight of keywords: both sum to 1."""
        return 1 - self.vector_weight

    @property
    def match(self) -> Literal["any", "all"]:
        """The words of a query that a chunk must hold."""
        return "any" if self.fusion == "standardised" else "all"


class EmbeddingConfig(Section, frozen=True):
    """Select the embedder, and set the limits of a service.

    Attributes:
        provider: `static` (ships, offline), `none` (keywords only), `auto`, or another provider's name.
        model: The model of `provider`.
        fallback: The provider to use if `provider` cannot build the index.
        allow_remote: Set to false to refuse every embedder that sends text elsewhere.
        providers: Options of each provider by its name: `{"openai": {"base_url": "http://localhost:11434/v1", "model":
            "embeddinggemma"}}`.
        query_seconds: How long a search waits for the vector of its question before keywords answer alone.
        batch_size: Most texts in one request or run of a model. Lower it if a service or your memory refuses; not set:
            the provider's own.
        max_entries: Vectors in your cache, which all workspaces share. The index keeps its own.
    """

    provider: str = "static"
    model: str | None = None
    fallback: str = "none"
    allow_remote: bool = True
    providers: Mapping[str, Mapping[str, Any]] = {}
    query_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 10.0
    batch_size: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    max_entries: Annotated[int, Meta(ge=0, le=1 << 40)] = 50_000


class SyncConfig(Section, frozen=True):
    """Set when the index is synced without a call of `sync`.

    Attributes:
        before_search: Let the first search wait until the index is built. With false it answers from the part that is
            ready.
        on_open: Sync in the background when a memory opens.
        on_search: Sync in the background at a search if files have changed.
        interval_seconds: Sync in the background this often; 0 is never. For programs that stay open without a watcher.
        debounce_seconds: The watcher syncs when no file has changed for this long.
    """

    before_search: bool = True
    on_open: bool = False
    on_search: bool = True
    interval_seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 0.0
    debounce_seconds: Annotated[float, Meta(ge=0, le=3600)] = 1.5


class SessionsConfig(Section, frozen=True):
    """Set the time zone, the start and end of a session, and its transcripts.

    Attributes:
        timezone: IANA zone of the days of notes (`Europe/Amsterdam`). Set it on servers; not set: the machine's.
        bootstrap_chars: Most characters of each file shown at the start of a session.
        index: Index and find transcripts.
        folder: Folder of the transcripts (`*.jsonl`), relative to the workspace or absolute.
        delta_bytes: The watcher syncs a transcript after this many new bytes, or `delta_messages` lines.
        delta_messages: The watcher syncs a transcript after this many new lines.
        snapshot_messages: How many last messages the snapshot of an ended session keeps; 0 keeps no message.
    """

    timezone: str | None = None
    bootstrap_chars: Annotated[int, Meta(ge=100, le=10_000_000)] = 20_000
    index: bool = True
    folder: str = "sessions"
    delta_bytes: Annotated[int, Meta(ge=1, le=1 << 40)] = 100_000
    delta_messages: Annotated[int, Meta(ge=1, le=1_000_000)] = 50
    snapshot_messages: Annotated[int, Meta(ge=0, le=1000)] = 15

    def check(self) -> None:
        _check_paths("sessions.folder", (self.folder,))


class JournalConfig(Section, frozen=True):
    """Set the path of daily notes, which `append`, tools and a flush write.

    Attributes:
        folder: Folder of daily notes; all its notes count. `"."` is the workspace.
        name: File name without `.md`, as in Obsidian: `YYYY`, `MM` and `DD` are the date, `MMMM`, `MMM`, `dddd` and
            `ddd` names of month and weekday, `[text]` is `text`.
    """

    folder: str = "memory"
    name: str = "YYYY-MM-DD"

    @property
    def pattern(self) -> str:
        """The path of a note, with the parts of its day."""
        return posixpath.normpath(posixpath.join(self.folder.strip() or ".", f"{self.name}.md"))

    def make_path(self, day: datetime.date) -> str:
        """Return the path of the note of a day."""
        return _PART.sub(lambda part: f"{day:{_PARTS[part[0]]}}" if part[0] in _PARTS else part[1], self.pattern)

    def check(self) -> None:
        if not is_inside(self.pattern) or "\\" in self.pattern:
            raise ConfigError(f"journal.folder and journal.name are {self.pattern!r}: name a folder of the workspace")
        if _NAMES_A_DAY.search(self.name) is None or re.search("[A-Za-z]", _PART.sub("", self.name)):
            forms = "YYYY-MM-DD, YYYY_MM_DD, YYYYMMDD, DD.MM.YYYY or YYYY/MM/DD"
            raise ConfigError(f"journal.name is {self.name!r}: write the day as {forms}, and text as [text]")


class RecallConfig(Section, frozen=True):
    """Limit the notes that tools and recall show to a model.

    Attributes:
        assume_direct: Treat a session of unknown kind as a direct chat, which may see private notes. Set to false if
            group chats reach your agent: then its key or `sessions.json` must say that it is direct.
        citations: Show citations always (`on`), never (`off`), or only in direct chats (`auto`).
        max_chars: Most characters of notes in one answer.
        get_lines: Lines that `memory_get` shows if the call names no number.
    """

    assume_direct: bool = True
    citations: Citations = "auto"
    max_chars: Annotated[int, Meta(ge=200, le=1_000_000)] = 4_000
    get_lines: Annotated[int, Meta(ge=1, le=1_000_000)] = 120


class CompactionConfig(Section, frozen=True):
    """Set when a conversation is compacted and memories are flushed before. Sizes are in tokens unless named bytes.

    The user waits for a flush: usually two calls of its model; for a conversation in parts, two for each part.

    Attributes:
        enabled: Compact and flush. With false a conversation can outgrow its model.
        reserve_tokens: Part of the window that stays free for the answer.
        reserve_tokens_floor: Least part that stays free, up to a quarter of the window.
        keep_recent_tokens: How much of the end of the conversation is kept word for word.
        flush: Save memories before a compaction.
        soft_threshold_tokens: How far before the compaction the flush runs.
        force_flush_bytes: Also flush when a transcript has grown by this much; 0 is never.
        flush_timeout_seconds: Give up a flush after this time.
        prompt: Prompt of the flush; not set: the built-in one.
        system_prompt: System prompt of the flush; not set: the built-in one.
    """

    enabled: bool = True
    reserve_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] = 16_384
    reserve_tokens_floor: Annotated[int, Meta(ge=0, le=10_000_000)] = 20_000
    keep_recent_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] = 20_000
    flush: bool = True
    soft_threshold_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] = 4_000
    force_flush_bytes: Annotated[int, Meta(ge=0, le=1 << 40)] = 2 * 1024 * 1024
    flush_timeout_seconds: Annotated[float, Meta(ge=0.01, le=3600)] = 120.0
    prompt: str | None = None
    system_prompt: str | None = None

    @property
    def flushes(self) -> bool:
        """True if memories are saved before a compaction."""
        return self.enabled and self.flush

    def get_reserve(self, window: int | None) -> int:
        """Return the tokens kept free for the answer: `reserve_tokens`, at least the floor, at most a quarter window.

        Args:
            window: The model's context window in tokens; None or at most 0 if unknown.
        """
        reserve = max(self.reserve_tokens, self.reserve_tokens_floor)
        return min(reserve, window // 4) if window is not None and window > 0 else reserve

    def get_soft_threshold(self, window: int | None) -> int:
        """Return by how many tokens a flush precedes a compaction: at most half of the window without the reserve.

        Args:
            window: The model's context window in tokens; None or at most 0 if unknown.
        """
        if window is None or window <= 0:
            return self.soft_threshold_tokens
        return min(self.soft_threshold_tokens, (window - self.get_reserve(window)) // 2)

    def get_compaction_threshold(self, window: int | None) -> int | None:
        """Return the size in tokens above which a conversation is compacted; None if the window is unknown.

        Args:
            window: The model's context window in tokens; None or at most 0 if unknown.
        """
        return window - self.get_reserve(window) if window is not None and window > 0 else None

    def get_flush_threshold(self, window: int | None) -> int | None:
        """Return the size in tokens from which a flush is due: window - reserve - soft threshold (176,000 of 200,000).

        Args:
            window: The tokens that a conversation has room for; None or at most 0 if unknown.

        Returns:
            The threshold, at least 1; None if the window is unknown.
        """
        limit = self.get_compaction_threshold(window)
        return None if limit is None else limit - self.get_soft_threshold(window)


class RecordsConfig(Section, frozen=True):
    """Set how long records hold.

    Attributes:
        ttl_days: Days by type (`other=90`), by sensitivity (`high=180`; the fewer count) or by both (`fact.high=30`).
            Others hold for ever.
    """

    ttl_days: tuple[str, ...] = ("preference=365", "fact=365", "reminder=90", "other=90", "high=180")


class PolicyRule(Section, frozen=True):
    """A rule: its name, the action on a text that it matches, and the texts that it matches.

    `pattern` is a regular expression, searched in the whole text; `type`, `key` (a glob) and `sensitivity` are those of
    a record. A rule matches if all of these that it names do; it names one of the four at least.
    """

    name: str
    action: PolicyAction
    pattern: Text | None = None
    type: RecordType | None = None
    key: Text | None = None
    sensitivity: Sensitivity | None = None

    def __post_init__(self) -> None:
        """Check the rule.

        Raises:
            ConfigError: A value is wrong; the message names the rule, and never its pattern.
        """
        rule = f"policies[{self.name!r}]"
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError("a rule of policies has no name: give each one, by which a refusal names it")
        check_values(PolicyRule, {field: getattr(self, field) for field in self.__struct_fields__}, rule, [])
        if not (self.pattern or self.type or self.key or self.sensitivity):
            raise ConfigError(f"{rule} matches everything: name a pattern, type, key or sensitivity")
        try:
            is_empty = self.pattern is not None and re.search(self.pattern, "", re.MULTILINE)
        except (re.error, OverflowError, RecursionError, FutureWarning) as error:  # a warning, where they are errors
            raise ConfigError(f"the pattern of {rule} is not a regular expression: {error}") from None
        if is_empty:
            raise ConfigError(f"the pattern of {rule} matches an empty text: have it match a character")


def read_policies(rules: Any) -> tuple[PolicyRule, ...]:
    """Read rules; each may be a table, as TOML has it.

    Raises:
        ConfigError: A rule is wrong, or two have one name.
    """
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, PolicyRule | Mapping) for rule in rules):
        raise ConfigError(f"policies must be a list of rules, not {describe_value('policies', rules)}")
    policies = tuple(rule if isinstance(rule, PolicyRule) else _read_rule(rule) for rule in rules)
    names = [rule.name for rule in policies]
    if doubles := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"policies has two rules {doubles[0]!r}: give each a name of its own")
    return policies


def _read_rule(table: Mapping[str, Any]) -> PolicyRule:
    check_keys(PolicyRule, table, "policies")
    return PolicyRule(**{"name": "", "action": "", **table})


class StoreConfig(Section, frozen=True):
    """Select the search engine and the store, unless the program passes `store=` or `index_path=`.

    Attributes:
        backend: `builtin`, or an engine that a plug-in adds.
        url: `"sqlite"` is a file in your data folder, `"sqlite:///PATH"` another file. A plug-in adds others:
            `"postgresql://user@host/database?tenant=ID"`. Without `tenant` it is the path of the workspace, in
            `Memories` the name of the memory's folder.
    """

    backend: str = "builtin"
    url: str = "sqlite"


SECTIONS: Mapping[str, type[Section]] = {section.__name__.removesuffix("Config").lower(): section for section in (
    ChunkingConfig, FilesConfig, SearchConfig, EmbeddingConfig, SyncConfig, SessionsConfig, RecallConfig,
    JournalConfig, CompactionConfig, RecordsConfig, StoreConfig,
)}  # fmt: skip


def check_section(name: str, section: Any, notices: list[str]) -> Any:
    """Return a section with each value in its type and range.

    Raises:
        ConfigError: A value has the wrong type, is not one of the choices, or is not a number.
    """
    model = SECTIONS[name]
    if not isinstance(section, model):
        raise ConfigError(f"{name} must be a {model.__name__}, not a value of type {type(section).__name__}")
    checked = model(
        **check_values(model, {field: getattr(section, field) for field in model.__struct_fields__}, name, notices)
    )
    checked.check()
    return checked


def _check_paths(name: str, paths: tuple[str, ...]) -> None:
    for path in paths:
        if "\0" in path:
            raise ConfigError(f"{name} holds a NUL, which no path has: {path!r}; write the path without it")
