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
    """Set the chunks of Markdown.

    Attributes:
        style: `headings` packs whole blocks below one heading; `tokens` is OpenClaw's sliding window, and `lines` that
            of OpenClaw 2026.2, which repeats whole lines.
        max_chars: The most characters of a chunk of `headings`. As many as a snippet has by default, so that a result
            can show a chunk whole.
        tokens: The size of a chunk of `tokens` and `lines`, in OpenClaw's tokens of four characters.
        overlap_tokens: How much of a chunk of `tokens` or `lines` the next one repeats; of `headings` it is one line.
    """

    style: Style = "headings"
    max_chars: Annotated[int, Meta(ge=80, le=100_000)] = 700
    tokens: Annotated[int, Meta(ge=8, le=100_000)] = 400
    overlap_tokens: Annotated[int, Meta(ge=0, le=100_000)] = 80


class FilesConfig(Section, frozen=True):
    """Select the files that count as memory, besides `MEMORY.md`, `USER.md` and `memory/`. Globs are relative.

    Attributes:
        extra_paths: Notes, and folders whose notes all count, except in hidden folders and those of
            installed programs, such as `node_modules`. `"."` is the whole workspace, without the agent's own rules,
            such as `AGENTS.md` at its top.
        include: Globs: where there are any, only files that match one count.
        exclude: Globs of files that do not count; one that begins with `!` brings files back.
        max_bytes: Larger files are left out, and named as skipped; transcripts may be larger.
        endings: The endings of the names of notes, as spelled here.
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
    """Set the search for answers.

    From the fourth search on a process keeps an index in memory, which makes searches of large ones several times as
    fast; the status says which does not fit.

    Attributes:
        max_results: How many results there are at most.
        min_score: The least score of a result that is shown.
        snippet_chars: The most characters of a snippet.
        candidates: How many of the best chunks have their lines scored.
        candidate_multiplier: Keyword and vector search bring so many times `max_results` chunks each, at most
            `candidates`.
        fusion: `standardised` mixes z-scores of the keyword and the vector search; a chunk is found by any word.
            `weighted` and `boosted` are OpenClaw's: raw scores, the second with boosts of the keyword score; a chunk
            must hold all words, or any where too few do.
        vector_weight: How much vectors count where chunks are ranked; keywords have the rest of 1.
        answer: `lines` scores the lines of the best chunks and returns the best lines of each place; `chunks` returns
            the beginnings of the best chunks.
        mmr: Variety of the results: 1 is the score alone, 0 variety alone; not set: off.
        rerank: The model that ranks the 40 best results again, by the question and the best lines of each: the name or
            folder of a cross-encoder, such as `cross-encoder/ms-marco-MiniLM-L-6-v2`; a service, such as
            `voyage/rerank-2.5`; a table with one of these as `model`; or in Python a function of a question and texts
            that returns a number for each. Not set: off.
        half_life_days: The score of a dated note halves for every so many days of its age; not set: off.
        memory_mb: How many MB of its indexes a process keeps in memory. One that does not fit is read from the file, as
            are all with 0.
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
        provider: `static` (ships, offline), `auto`, `none` (keywords only), or a provider's name.
        model: Short for the model of `provider`.
        fallback: The provider of an index that `provider` cannot build.
        allow_remote: Whether text may leave this machine.
        providers: Each provider's own options by its name, also those of `fallback` and of what `auto` tries:
            `{"openai": {"base_url": "http://localhost:11434/v1", "model": "embeddinggemma"}}`.
        query_seconds: How long a search waits for the vector of its question before keywords answer alone.
        batch_size: The most texts of a request, or of a run of a local model; not set: as many as suit the provider,
            whose own option of this kind counts first.
        max_entries: How many vectors the user's cache keeps, of all workspaces; those of an index are always kept.
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
    """Set the times of a sync, apart from calls of `sync`.

    Attributes:
        before_search: Whether a search waits if a first index has to be built or finished; else it answers from what
            there is.
        on_open: Whether opening a memory begins a sync in the background.
        on_search: Whether a search begins one, if files have changed since the last check.
        interval_seconds: A sync in the background this often; 0: never.
        debounce_seconds: How long nothing must have happened before the watcher syncs.
    """

    before_search: bool = True
    on_open: bool = False
    on_search: bool = True
    interval_seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 0.0
    debounce_seconds: Annotated[float, Meta(ge=0, le=3600)] = 1.5


class SessionsConfig(Section, frozen=True):
    """Set the days of notes, the start and the end of a session, and the transcripts of conversations.

    Attributes:
        timezone: The IANA name of the zone of the notes' days (`Europe/Amsterdam`); not set: the machine's.
        bootstrap_chars: How much of a file is shown at the start of a session, in characters.
        index: Whether transcripts are indexed and found.
        folder: Where their `*.jsonl` are, relative to the workspace or absolute.
        delta_bytes: The watcher syncs a transcript once it has grown by so many bytes, or by `delta_messages` lines.
        delta_messages: By how many lines one grows before the watcher syncs it.
        snapshot_messages: How many of its last messages are kept when a session ends; 0: none.
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
    """Set where the notes of days are: those that `append`, the tools and a flush write to.

    Attributes:
        folder: Their folder in the workspace, whose notes all count; `"."` is the workspace itself.
        name: Their name below it, without `.md`, as Obsidian writes it: `YYYY`, `MM` and `DD` are the day, `MMMM`,
            `MMM`, `dddd` and `ddd` the names of its month and weekday, and `[text]` is `text`.
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
    """Limit the notes that a model is shown, by tools and by recall.

    Attributes:
        assume_direct: Whether a session that is not known to be a group counts as direct. If not, it counts as a group
            unless its key names the main session or a direct message, or `sessions.json` says that its chat is direct.
        citations: Whether citations are shown: always (`on`), never (`off`), or in direct chats alone (`auto`).
        max_chars: The most characters of notes in one answer.
        get_lines: How many lines `memory_get` shows unless a call says how many.
    """

    assume_direct: bool = True
    citations: Citations = "auto"
    max_chars: Annotated[int, Meta(ge=200, le=1_000_000)] = 4_000
    get_lines: Annotated[int, Meta(ge=1, le=1_000_000)] = 120


class CompactionConfig(Section, frozen=True):
    """Set the compaction of a conversation, and the flush before. Sizes are in tokens, unless named bytes.

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
        prompt: The prompt of the flush; not set: the built-in one.
        system_prompt: The same for its system prompt.
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
    """Set for how long facts hold.

    Attributes:
        ttl_days: For how many days a record holds, by type (`other=90`) and sensitivity (`high=180`): the fewer of
            both count, or those of `fact.high=30`; for ever where none is named.
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
    """Select the engine and the store, unless the program does: `store=` or `index_path=` of `Memory.open`.

    Attributes:
        backend: The engine that answers searches: `builtin`, or one that a plug-in adds.
        url: `"sqlite"`, the file `index.sqlite` in the user's data folder; `"sqlite:///PATH"`, a file of your choice,
            seen from the workspace; or the URL of a store that a package adds, such as
            `"postgresql://user@host/database?tenant=ID"`. A database that names no tenant has each workspace as one
            by its path, and each memory of `Memories` by the name of its folder.
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
