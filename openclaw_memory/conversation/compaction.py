"""Shorten a conversation: replace its older part by a summary, which a log records, and cut old tool results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.messages import (
    Message,
    estimate_tokens,
    get_answered_call,
    get_call_ids,
    get_text,
    is_from_user,
    is_result,
    is_text_block,
    with_text,
)
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.workspace.transcript_formats import get_message
from openclaw_memory.workspace.transcript_records import cut_middle

if TYPE_CHECKING:
    from openclaw_memory.workspace.session_log import SessionLog

Summarise: TypeAlias = Callable[[Sequence[Message]], str]

# OpenClaw's words: a model that knows one takes the other for the same.
SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n"
    "<summary>\n{summary}\n</summary>"
)
ASKED_CHARS = 1_500  # of each end that stay of the user's last message, if it is older than the kept part
# Pruning, with OpenClaw's numbers: which results of tools are long, the characters at either end that stay, and the
# total below which none is replaced.
LONG_RESULT_CHARS, KEPT_CHARS, LEAST_CLEARED_CHARS = 4_000, 1_500, 50_000
SOFT_RATIO, HARD_RATIO = 0.3, 0.5  # shares of the window
PROTECTED_REPLIES = 3
CACHE_SECONDS = 300.0  # for which a provider's cache holds the messages
PLACEHOLDER = "[Old tool result content cleared]"


class Compaction(Struct, frozen=True):
    """The outcome of a compaction.

    Attributes:
        messages: How the conversation goes on, a new list.
        tokens_after: Its size now.
        summary: The summary; None if nothing was done.
        reason: Why nothing was done; "" if it was.
    """

    messages: list[Message]
    tokens_after: int
    summary: str | None = None
    reason: str = ""


def cut(messages: Sequence[Message], keep_tokens: int) -> int:
    """Return the index at which the kept part begins: the fewest last messages that have `keep_tokens`, at least one.

    A tool call and its answers are always on the same side, whatever is between them, and the kept part never begins
    with a tool's answer. The index is 0 if all messages are kept.

    Args:
        messages: The conversation, oldest first.
        keep_tokens: How many tokens to keep at least.
    """
    at, tokens = len(messages), 0
    while at > 0 and (at == len(messages) or tokens < keep_tokens):
        at -= 1
        tokens += estimate_tokens([messages[at]])
    if tokens < keep_tokens:
        return 0
    return max((place for place in _find_cuts(messages) if place <= at), default=0)


def _find_cuts(messages: Sequence[Message]) -> list[int]:
    """Return every index at which the messages can be split, 0 first, ascending."""
    callers: dict[str, int] = {}  # some models use ids again: an answer is to the last call of that id
    answered_at = list(range(len(messages)))
    for at, message in enumerate(messages):
        caller = callers.get(get_answered_call(message) or "")
        if caller is not None:
            answered_at[caller] = at
        callers.update(dict.fromkeys(get_call_ids(message), at))
    cuts, tied_to = [], -1
    for at, message in enumerate(messages):
        if at > tied_to and (at == 0 or not is_result(message)):
            cuts.append(at)
        tied_to = max(tied_to, answered_at[at])
    return cuts


def compact(
    messages: Sequence[Message],
    summarise: Summarise,
    rules: CompactionConfig,
    *,
    window: int | None = None,
    log: SessionLog | None = None,
    before: Callable[[Sequence[Message]], object] | None = None,
) -> Compaction:
    """Return the conversation with a summary in place of its older messages; the input is not changed.

    It goes on with the system messages among the summarised ones, the summary as a message of the role `user` and the
    type `compaction`, the user's last message if that is older than the kept part, and the last messages, as many as
    `rules.keep_recent_tokens` asks for. They take at most the free part of the `window`, if the last message does. Of a
    longer message of the user, the first and the last `ASKED_CHARS` stay. An earlier summary is summarised with the
    rest. If the conversation would not get shorter, or `rules.enabled` is off, nothing is done.

    Args:
        messages: The conversation, oldest first.
        summarise: Returns a summary of messages, as text.
        rules: The compaction settings.
        window: The model's context window in tokens; None if unknown.
        log: Gets a `compaction` entry, from which `load_conversation` builds the same list again. The messages need
            the ids of their entries then, as `SessionLog.append_message` returns them.
        before: Called with the messages that are about to be lost, before `summarise`; not if nothing is done, unless
            it is the summary that turns out too long.

    Raises:
        InvalidInputError: The messages to keep are not in the log, or the summary is not a text. Nothing was changed.
        WriteError: The entry could not be written.
        WorkspaceError: The log could not be read.
        Exception: Whatever `before` and `summarise` raise. Nothing was changed then.
    """
    messages = list(messages)
    tokens, free = estimate_tokens(messages), rules.get_compaction_threshold(window)

    def leave(reason: str) -> Compaction:
        return Compaction(messages, tokens, reason=reason)

    if not rules.enabled:
        return leave("no conversation is compacted: compaction.enabled is off")
    at = _cut_to_fit(messages, rules.keep_recent_tokens, free)
    older, recent = messages[:at], messages[at:]
    lost = tuple(message for message in older if message.get("role") != "system")
    question = _repeat_question(older, recent)
    has_lost = any(message is not question and message.get("type") != "compaction" for message in lost)
    # An empty summary is the shortest of all: without a gain even so, none is made.
    if not has_lost or estimate_tokens(_join(older, question, recent, "")) >= tokens:
        return leave(
            "there is nothing to summarise, or nothing to gain by it: besides system messages, a summary and the "
            f"user's last message there are only the last {rules.keep_recent_tokens:,} tokens "
            "(compaction.keep_recent_tokens), which stay as they are"
        )
    place = _find_place(log, recent) if log is not None else {}
    if before is not None:
        before(lost)
    summary = summarise(lost)
    if not isinstance(summary, str) or not summary.strip():
        raise InvalidInputError(f"the summary of {len(lost)} messages is {summary!r}: let the summariser return text")
    left = estimate_tokens(_join(older, question, recent, summary))
    if left >= tokens:
        return leave(f"with a summary of {len(summary):,} characters it has {left:,} tokens instead of {tokens:,}")
    entry_id = None if log is None else log.append_entry("compaction", **place, tokensBefore=tokens, summary=summary)
    return Compaction(_join(older, question, recent, summary, entry_id), left, summary)


def _cut_to_fit(messages: Sequence[Message], keep_tokens: int, free: int | None) -> int:
    """Return where the kept part begins. It takes at most half of the free tokens, apart from the last messages."""
    if free is None:
        return cut(messages, keep_tokens)
    at = cut(messages, min(keep_tokens, free // 2))
    later = [place for place in _find_cuts(messages) if place >= at] or [at]
    return next((place for place in later if estimate_tokens(messages[place:]) <= free), later[-1])


def _join(
    old: Sequence[Message], question: Message | None, new: Sequence[Message], summary: str, entry_id: str | None = None
) -> list[Message]:
    """Return a conversation after a compaction; `old` are the messages before the new ones."""
    system = [message for message in old if message.get("role") == "system"]
    message: dict[str, Any] = {"role": "user", "type": "compaction", "content": SUMMARY.format(summary=summary)}
    return [*system, message | ({"id": entry_id} if entry_id else {}), *([question] if question else []), *new]


def _repeat_question(older: Sequence[Message], recent: Sequence[Message]) -> Message | None:
    """Return the user's last message if it is older than the kept part: the model still works on it."""
    if any(map(is_from_user, recent)) or (question := next(filter(is_from_user, reversed(older)), None)) is None:
        return None
    text = get_text(question)
    short = cut_middle(text, ASKED_CHARS, ASKED_CHARS, "this message")
    return question if short == text else with_text(question, short)


def _find_place(log: SessionLog, recent: Sequence[Message]) -> dict[str, str]:
    """Return the fields of a log entry that give its place: the first kept message, and the branch that it ends."""
    entry_ids = {entry["id"] for entry in log.read_entries() if isinstance(entry.get("id"), str)}
    ids = [message["id"] for message in recent if message.get("id") in entry_ids]
    missing = [message for message in recent if message.get("id") not in entry_ids]
    missing = [message for message in missing if message.get("role") != "system" or "id" in message]
    if missing or not ids:
        raise InvalidInputError(
            f"not all messages to keep are in {log.path} (id {(missing or recent)[0].get('id')!r}): add each with "
            "log.append_message(message) and go on with its result, or take them from load_conversation(log)"
        )
    # Entries that others have added meanwhile stay part of the conversation; only another branch is left alone.
    is_on_branch = any(entry.get("id") == ids[-1] for entry in log.read_branch())
    return {"firstKeptEntryId": ids[0], **({} if is_on_branch else {"parentId": ids[-1]})}


def load_conversation(log: SessionLog, leaf: str | None = None) -> list[Message]:
    """Return the messages of a log as the model saw them, each with the `id` of its entry.

    After a compaction these are its summary, the messages that it kept, and those that followed. Hidden messages of
    programs (`custom_message`) are included, in the role `user`. A compaction whose first kept message cannot be read
    any more does not count.

    Args:
        log: The log of the session.
        leaf: The id of the entry in which the branch ends, by default the last one.

    Raises:
        NotFoundError: No entry has the id `leaf`.
        PathNotAllowedError, WorkspaceError: As `SessionLog.read_entries`.
    """
    branch = log.read_branch(leaf)
    places = {entry["id"]: at for at, entry in enumerate(branch) if isinstance(entry.get("id"), str)}
    for at in range(len(branch) - 1, -1, -1):
        entry = branch[at]
        first = places.get(str(entry.get("firstKeptEntryId"))) if entry.get("type") == "compaction" else None
        if first is not None and first < at and isinstance(entry.get("summary"), str):
            older, recent = _read_messages(branch[:first]), _read_messages(branch[first:at])
            messages = _join(older, _repeat_question(older, recent), recent, entry["summary"], entry.get("id"))
            return [*messages, *_read_messages(branch[at + 1 :])]
    return _read_messages(branch)


def _read_messages(entries: Sequence[Mapping[str, Any]]) -> list[Message]:
    messages: list[Message] = []
    for entry in entries:
        message = get_message(entry)
        if entry.get("type") == "custom_message" and isinstance(entry.get("content"), str | list):
            message = {**entry, "role": "user"}
        if message:
            messages.append({**message, "id": entry["id"]} if "id" in entry else message)
    return messages


def prune(messages: Sequence[Message], *, window: int, idle_seconds: float | None = None) -> list[Message]:
    """Return the messages with old tool results shortened if they fill much of the window; the input is not changed.

    From `SOFT_RATIO` of the window on, long results keep their beginning and end around a note. If that leaves
    `HARD_RATIO` or more, results are replaced by `PLACEHOLDER`, the oldest first, until less is filled.
    Results after the last `PROTECTED_REPLIES` replies stay, and so do those that hold anything but text. Pruning
    twice changes nothing more.

    Args:
        messages: The conversation, oldest first.
        window: The model's context window in tokens.
        idle_seconds: How long ago the model was last asked. Up to `CACHE_SECONDS` nothing is shortened, since the
            provider still has the messages in a cache that any change makes worthless. None means unknown, as after a
            restart: then they are shortened.

    Raises:
        InvalidInputError: The window is not larger than 0.
    """
    if window <= 0:
        raise InvalidInputError(f"a model's window has at least one token, not {window}: give its size in tokens")
    pruned = list(messages)
    old = [at for at in range(_find_protected(pruned)) if _is_prunable(pruned[at])]
    if not old or (idle_seconds is not None and idle_seconds < CACHE_SECONDS):
        return pruned
    sizes = [estimate_tokens([message]) for message in pruned]
    if sum(sizes) < SOFT_RATIO * window:
        return pruned
    for at in old:
        pruned[at] = _trim(pruned[at])
        if pruned[at] is not messages[at]:
            sizes[at] = estimate_tokens([pruned[at]])
    if sum(len(get_text(pruned[at])) for at in old) < LEAST_CLEARED_CHARS:
        return pruned
    total = sum(sizes)
    for at in old:
        if total < HARD_RATIO * window:
            break
        if len(get_text(pruned[at])) > len(PLACEHOLDER):
            pruned[at] = with_text(pruned[at], PLACEHOLDER)
            total += estimate_tokens([pruned[at]]) - sizes[at]
    return pruned


def _trim(message: Message) -> Message:
    text = get_text(message)
    if len(text) <= LONG_RESULT_CHARS or text == PLACEHOLDER:
        return message
    short = cut_middle(text, KEPT_CHARS, KEPT_CHARS, "this tool result")
    return message if short == text else with_text(message, short)


def _find_protected(messages: Sequence[Message]) -> int:
    """Return where the last replies that are protected begin; 0 if there are fewer: then all are protected."""
    places = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    return places[-PROTECTED_REPLIES] if len(places) >= PROTECTED_REPLIES else 0


def _is_prunable(message: Message) -> bool:
    content = message.get("content")
    is_text = isinstance(content, str) or (isinstance(content, list) and all(map(is_text_block, content)))
    return is_text and is_result(message)
