"""Shorten a conversation: its older part becomes a summary, which a log records; old tool results are cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.config import CompactionConfig, PruningConfig
from openclaw_memory.conversation.messages import (
    CHARS_PER_TOKEN,
    Message,
    cut_middle,
    estimate_tokens,
    get_answered_call,
    get_call_ids,
    get_text,
    is_from_user,
    is_result,
    is_text_block,
    with_text,
)
from openclaw_memory.conversation.window import get_compaction_threshold, is_overflow
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.workspace.transcript_records import get_message

if TYPE_CHECKING:
    from openclaw_memory.workspace.session_log import SessionLog

Count: TypeAlias = Callable[[Sequence[Message]], int]
Summarise: TypeAlias = Callable[[Sequence[Message]], str]

# OpenClaw's words: a model that knows one takes the other for the same.
SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n"
    "<summary>\n{summary}\n</summary>"
)

# How much of the beginning, and of the end, of a question stays that is too long to be kept; of pruning's answers too.
ASKED_CHARS = 1_500
# Pruning, with OpenClaw's numbers: which results of tools are long, what stays at either end, and what is not replaced.
LONG_RESULT_CHARS, KEPT_CHARS, LEAST_CLEARED_CHARS = 4_000, 1_500, 50_000


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of a compaction. `messages` is how the conversation goes on, a new list.

    `summarised` are the messages that `summary` replaces, `kept` those that follow it unchanged; sizes are in tokens.
    If nothing was done, there is no `summary`, and `why` is the reason. `entry_id` is the id of the entry in the log.
    """

    messages: list[Message]
    tokens_before: int
    tokens_after: int
    summary: str | None = None
    summarised: tuple[Message, ...] = ()
    kept: tuple[Message, ...] = ()
    entry_id: str | None = None
    why: str = ""


def should_compact(tokens: int, window: int | None, rules: CompactionConfig | None = None) -> bool:
    """Return whether a conversation leaves less of the window free than the rules reserve; never with them off.

    Args:
        tokens: The size of the conversation.
        window: The model's context window in tokens; if None (unknown), the answer is False.
        rules: The compaction settings, by default `CompactionConfig()`.
    """
    rules = rules or CompactionConfig()
    threshold = get_compaction_threshold(window, rules)
    return rules.enabled and threshold is not None and tokens > threshold


def cut(messages: Sequence[Message], keep_tokens: int, count: Count = estimate_tokens) -> int:
    """Return the index at which the kept part begins: the fewest last messages that have `keep_tokens`, at least one.

    A tool call and its answers are always on the same side, whatever is between them, and the kept part never begins
    with a tool's answer. The index is 0 if all messages are kept.

    Args:
        messages: The conversation, oldest first.
        keep_tokens: How many tokens to keep at least.
        count: Counts the tokens of messages.
    """
    at, tokens = len(messages), 0
    while at > 0 and (at == len(messages) or tokens < keep_tokens):
        at -= 1
        tokens += count([messages[at]])
    if tokens < keep_tokens:
        return 0
    return max((place for place in _places(messages) if place <= at), default=0)


def _places(messages: Sequence[Message]) -> list[int]:
    """Return every index at which the messages can be split, 0 first, ascending."""
    callers: dict[str, int] = {}  # ids are used again by some models: an answer is to the last call of that id
    answered_at = list(range(len(messages)))
    for at, message in enumerate(messages):
        caller = callers.get(get_answered_call(message) or "")
        if caller is not None:
            answered_at[caller] = at
        callers.update(dict.fromkeys(get_call_ids(message), at))
    places, tied_to = [], -1
    for at, message in enumerate(messages):
        if at > tied_to and (at == 0 or not is_result(message)):
            places.append(at)
        tied_to = max(tied_to, answered_at[at])
    return places


def compact(
    messages: Sequence[Message],
    summarise: Summarise,
    *,
    rules: CompactionConfig | None = None,
    window: int | None = None,
    count: Count = estimate_tokens,
    log: SessionLog | None = None,
    before: Callable[[Sequence[Message]], object] | None = None,
    after: Callable[[Compacted], object] | None = None,
) -> Compacted:
    """Return the conversation with a summary in place of its older messages; the input is not changed.

    It goes on with the system messages among the summarised ones, the summary as a message of the role `user` and the
    type `compaction`, the user's last message if that is older than the kept part, and the last messages, as many as
    `rules.keep_recent_tokens` asks for. They take at most the free part of the `window`, if the last message does; of a
    user message that does not fit in as well, the beginning and the end stay. An earlier summary is summarised with the
    rest. If the conversation would not get shorter, or `rules.enabled` is off, nothing is done.

    Args:
        messages: The conversation, oldest first.
        summarise: Returns a summary of the messages it is given, as text.
        rules: The compaction settings, by default `CompactionConfig()`.
        window: The model's context window in tokens; None if unknown.
        count: Counts the tokens of messages.
        log: Gets a `compaction` entry, from which `load_conversation` builds the same list again. The messages need
            the ids of their entries then, as `log_message` returns them.
        before: Called with the messages that are about to be lost, before `summarise`. If nothing is done, neither this
            nor `after` is called, unless it is the summary that turns out too long.
        after: Called with the outcome.

    Raises:
        InvalidInputError: The messages to keep are not in the log, or the summary is not a text. Nothing was changed.
        WriteError: The entry could not be written.
        WorkspaceError: The log could not be read.
        Exception: Whatever `before`, `summarise` and `after` raise. Except for `after`, nothing was changed then.
    """
    rules, held = rules or CompactionConfig(), list(messages)
    tokens, free = count(held), get_compaction_threshold(window, rules)
    if not rules.enabled:
        return Compacted(
            held, tokens, tokens, kept=tuple(held), why="no conversation is compacted: compaction.enabled is off"
        )
    at = _cut_to_fit(held, rules.keep_recent_tokens, free, count)
    older, kept = held[:at], held[at:]
    lost = tuple(message for message in older if message.get("role") != "system")
    asked = _asked_again(older, kept, _asked_chars(older, kept, free, count))
    is_all_there_is = all(message is asked or message.get("type") == "compaction" for message in lost)
    # An empty summary is the shortest of all: without a gain even so, none is made.
    if is_all_there_is or count(_going_on(older, asked, kept, "")) >= tokens:
        return Compacted(held, tokens, tokens, kept=tuple(held), why=_why_not(rules))
    place = _place_in_log(log, kept) if log is not None else {}
    if before is not None:
        before(lost)
    summary = summarise(lost)
    if not isinstance(summary, str) or not summary.strip():
        raise InvalidInputError(
            f"the summary of {len(lost)} messages is {summary!r}: let the summariser return its text"
        )
    left = count(_going_on(older, asked, kept, summary))
    if left >= tokens:
        why = f"with the summary of {len(summary):,} characters there would be {left:,} tokens instead of {tokens:,}"
        return Compacted(held, tokens, tokens, kept=tuple(held), why=why)
    entry = {**place, "tokensBefore": tokens, "summary": summary}
    if asked and "askedChars" in asked:
        entry["askedChars"] = asked["askedChars"]
    entry_id = log.append_entry("compaction", **entry) if log is not None else None
    going_on = _going_on(older, asked, kept, summary, entry_id)
    done = Compacted(going_on, tokens, left, summary, lost, tuple(kept), entry_id)
    if after is not None:
        after(done)
    return done


def _cut_to_fit(messages: Sequence[Message], keep_tokens: int, free: int | None, count: Count) -> int:
    """Return where the kept part begins. It takes at most half of the free tokens, apart from the last messages."""
    if free is None:
        return cut(messages, keep_tokens, count)
    at = cut(messages, min(keep_tokens, free // 2), count)
    later = [place for place in _places(messages) if place >= at] or [at]
    return next((place for place in later if count(messages[place:]) <= free), later[-1])


def _going_on(
    older: Sequence[Message], asked: Message | None, kept: Sequence[Message], summary: str, entry_id: str | None = None
) -> list[Message]:
    """Return a conversation after a compaction; `older` are the messages before those that are kept."""
    lasting = [message for message in older if message.get("role") == "system"]
    message: dict[str, Any] = {"role": "user", "type": "compaction", "content": SUMMARY.format(summary=summary)}
    return [*lasting, message | ({"id": entry_id} if entry_id else {}), *([asked] if asked else []), *kept]


def _last_asked(older: Sequence[Message], kept: Sequence[Message]) -> Message | None:
    """Return the user's last message if it is older than the kept part: it says what is being done."""
    if any(map(is_from_user, kept)):
        return None
    return next(filter(is_from_user, reversed(older)), None)


def _asked_chars(older: Sequence[Message], kept: Sequence[Message], free: int | None, count: Count) -> int | None:
    """Return how many characters of each end of the user's last message stay; None for all of it, if there is room."""
    asked = _last_asked(older, kept)
    lasting = [message for message in older if message.get("role") == "system" or message is asked]
    if asked is None or free is None or count([*lasting, *kept]) <= free:
        return None
    return min(ASKED_CHARS, free * CHARS_PER_TOKEN // 8)  # both ends together take a quarter of what is free at most


def _asked_again(older: Sequence[Message], kept: Sequence[Message], chars: int | None) -> Message | None:
    """Return the user's last message to repeat after the summary: whole, or so many characters of each end."""
    asked = _last_asked(older, kept)
    if asked is None or chars is None or "askedChars" in asked:
        return asked
    text = get_text(asked)
    short = cut_middle(text, chars, chars, "this message")
    return asked if short == text else {**with_text(asked, short), "askedChars": chars}


def _why_not(rules: CompactionConfig) -> str:
    return (
        "there is nothing to summarise, or nothing to gain by it: the last messages, which stay as they are until they "
        f"have {rules.keep_recent_tokens:,} tokens (compaction.keep_recent_tokens), are all there is, or nearly so, "
        "besides system messages, a summary and what the user said last"
    )


def _place_in_log(log: SessionLog, kept: Sequence[Message]) -> dict[str, str]:
    """Return the fields of a log entry that give its place: the first kept message, and the branch that it ends."""
    known = {entry["id"] for entry in log.read_entries() if isinstance(entry.get("id"), str)}
    # A system prompt is often no part of the log.
    strange = [one for one in kept if one.get("id") not in known and (one.get("role") != "system" or "id" in one)]
    ids = [one["id"] for one in kept if one.get("id") in known]
    if strange or not ids:
        raise InvalidInputError(
            f"not all messages to keep are in {log.path} (id {(strange or kept)[0].get('id')!r}): add each with "
            "log_message(log, message) and go on with what it returns, or take them from load_conversation(log)"
        )
    place = {"firstKeptEntryId": ids[0]}
    # What others have added meanwhile stays part of the conversation; only another branch is left alone.
    on_branch = any(entry.get("id") == ids[-1] for entry in log.read_branch())
    return place if on_branch else {**place, "parentId": ids[-1]}


def log_message(log: SessionLog, message: Message) -> Message:
    """Add a message to a log, and return it with the id of its entry once it is on disk.

    Args:
        log: The log of the session.
        message: The message to add.

    Raises:
        InvalidInputError, PathNotAllowedError, WriteError: As `SessionLog.append_entry`.
    """
    kept = {key: value for key, value in message.items() if key != "id"}
    return {**kept, "id": log.append_entry("message", message=kept)}


def load_conversation(log: SessionLog, leaf: str | None = None) -> list[Message]:
    """Return the messages of a log as the model saw them, each with the `id` of its entry.

    After a compaction these are its summary, what it kept, and what followed. Hidden messages of programs
    (`custom_message`) are included, in the role `user`. A compaction whose first kept message cannot be read any more
    does not count: the messages before it are returned instead, and nothing is lost.

    Args:
        log: The log of the session.
        leaf: The id of the entry in which the branch ends, by default the last one.

    Raises:
        NotFoundError: No entry has the id `leaf`.
        PathNotAllowedError, WorkspaceError: As `SessionLog.entries`.
    """
    branch = log.read_branch(leaf)
    places = {entry["id"]: at for at, entry in enumerate(branch) if isinstance(entry.get("id"), str)}
    for at in range(len(branch) - 1, -1, -1):
        entry = branch[at]
        first = places.get(str(entry.get("firstKeptEntryId"))) if entry.get("type") == "compaction" else None
        if first is not None and first < at and isinstance(entry.get("summary"), str):
            older, kept = _messages(branch[:first]), _messages(branch[first:at])
            chars = entry.get("askedChars")
            asked = _asked_again(older, kept, chars if isinstance(chars, int) and chars > 0 else None)
            going_on = _going_on(older, asked, kept, entry["summary"], entry.get("id"))
            return [*going_on, *_messages(branch[at + 1 :])]
    return _messages(branch)


def _messages(entries: Sequence[Mapping[str, Any]]) -> list[Message]:
    found: list[Message] = []
    for entry in entries:
        message = get_message(entry)
        if entry.get("type") == "custom_message" and isinstance(entry.get("content"), str | list):
            message = {**entry, "role": "user"}
        if message:
            found.append({**message, "id": entry["id"]} if "id" in entry else message)
    return found


@dataclass(frozen=True, slots=True)
class AskResult:
    """A model's reply, and how the conversation goes on: `messages` ends with the reply, unless that was compacted too.

    `compactions` are those that were done, in their order. `failure` is what ended the compaction after the reply: the
    conversation is then as long as it was, and the next reply tries again.
    """

    reply: Message
    messages: list[Message]
    compactions: tuple[Compacted, ...] = ()
    failure: Exception | None = None


def ask_with_compaction(
    ask: Callable[[list[Message]], Message],
    messages: Sequence[Message],
    summarise: Summarise,
    *,
    window: int | None,
    rules: CompactionConfig | None = None,
    count: Count = estimate_tokens,
    log: SessionLog | None = None,
    before: Callable[[Sequence[Message]], object] | None = None,
    after: Callable[[Compacted], object] | None = None,
) -> AskResult:
    """Ask a model once, and keep the conversation inside its window; the input is not changed.

    If `ask` raises because the window is full (`is_overflow`), the conversation is compacted to about half at most and
    asked once more. It is compacted as well after a reply that leaves less free than `rules` reserve.

    Args:
        ask: Gets the messages and returns the reply; with a `log`, one that `log_message` has added to it.
        messages: The conversation, oldest first.
        summarise: Returns a summary of the messages it is given, as text.
        window: The model's context window in tokens; None if unknown: then replies cause no compaction.
        rules: The compaction settings, by default `CompactionConfig()`.
        count: Counts the tokens of messages.
        log: Gets an entry for each compaction, see `compact`.
        before: Called with the messages that are about to be lost, see `compact`.
        after: Called with the outcome of each compaction.

    Raises:
        Exception: Whatever `ask` raises, the second time at the latest; the log then has the compaction, and
            `load_conversation(log)` is how it goes on. If nothing could be shortened, it is the first error. What
            compacting raises before a reply passes on too; after the reply, it is in `failure`.
    """
    rules, held = rules or CompactionConfig(), list(messages)
    done: list[Compacted] = []

    def compact_to(window: int | None) -> Compacted:
        return compact(held, summarise, rules=rules, window=window, count=count, log=log, before=before, after=after)

    try:
        reply = ask(list(held))
    except Exception as error:
        if not is_overflow(error):
            raise
        # The model has counted: its window is smaller than this conversation, whatever the counter says.
        tokens = count(held)
        compacted = compact_to(min(window or tokens, tokens))
        if compacted.summary is None:
            error.add_note(compacted.why)
            raise
        done.append(compacted)
        held = compacted.messages
        reply = ask(list(held))
    held = [*held, reply]
    if not should_compact(count(held), window, rules):
        return AskResult(reply, held, tuple(done))
    try:
        compacted = compact_to(window)
    except Exception as error:  # noqa: BLE001 - the reply is there, and the result has the error
        return AskResult(reply, held, tuple(done), error)
    done += [compacted] if compacted.summary is not None else []
    return AskResult(reply, compacted.messages, tuple(done))


def prune(
    messages: Sequence[Message],
    *,
    window: int,
    rules: PruningConfig | None = None,
    idle_seconds: float | None = None,
    count: Callable[[Sequence[Message]], int] = estimate_tokens,
) -> list[Message]:
    """Return the messages with old tool results shortened where they fill much of the window; the input is not changed.

    From `rules.soft_ratio` of the window on, long results keep their beginning and end around a note of what was cut.
    If that leaves `rules.hard_ratio` or more, results are replaced by `rules.placeholder`, the oldest first, until less
    is filled. Results after the last `rules.keep_assistants` replies stay, and so do those that hold anything but text.
    Pruning twice changes nothing more.

    Args:
        messages: The conversation, oldest first.
        window: The model's context window in tokens.
        rules: The pruning settings, by default `PruningConfig()`.
        idle_seconds: How long ago the model was last asked. Up to `rules.ttl_seconds` nothing is shortened, since the
            provider still has the messages in a cache that any change makes worthless. None means unknown, as after a
            restart: then they are shortened.
        count: Counts the tokens of messages.

    Raises:
        InvalidInputError: The window is not larger than 0.
    """
    rules = rules or PruningConfig()
    if window <= 0:
        raise InvalidInputError(f"a model's window has at least one token, not {window}: give its size in tokens")
    pruned = list(messages)
    old = [at for at in range(_protected_from(pruned, rules.keep_assistants)) if _is_prunable(pruned[at])]
    if not old or (idle_seconds is not None and idle_seconds < rules.ttl_seconds):
        return pruned
    sizes = [count([message]) for message in pruned]
    if sum(sizes) < rules.soft_ratio * window:
        return pruned
    for at in old:
        pruned[at] = _trimmed(pruned[at], rules)
        if pruned[at] is not messages[at]:
            sizes[at] = count([pruned[at]])
    if sum(len(get_text(pruned[at])) for at in old) < LEAST_CLEARED_CHARS:
        return pruned
    total = sum(sizes)
    for at in old:
        if total < rules.hard_ratio * window:
            break
        if len(get_text(pruned[at])) > len(rules.placeholder):
            pruned[at] = with_text(pruned[at], rules.placeholder)
            total += count([pruned[at]]) - sizes[at]
    return pruned


def _protected_from(messages: Sequence[Message], replies: int) -> int:
    """Return where the last `replies` assistant messages begin; 0 if there are fewer: then all are protected."""
    if replies == 0:
        return len(messages)
    found = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    return found[-replies] if len(found) >= replies else 0


def _is_prunable(message: Message) -> bool:
    content = message.get("content")
    if not is_result(message):
        return False
    return isinstance(content, str) or (isinstance(content, list) and all(is_text_block(block) for block in content))


def _trimmed(message: Message, rules: PruningConfig) -> Message:
    text = get_text(message)
    if len(text) <= LONG_RESULT_CHARS or text == rules.placeholder:
        return message
    short = cut_middle(text, KEPT_CHARS, KEPT_CHARS, "this tool result")
    return message if short == text else with_text(message, short)
