"""The tool memory_erase: it shows a model what would go, and forgets it once the user has typed the hash of that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError
from openclaw_memory.text.fence import without_recalled
from openclaw_memory.types import ToolAnswer
from openclaw_memory.types.control import ForgetPlan, ForgetReceipt

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory

HASH_DIGITS = 12  # of the hash of a plan: a person types them
WAITS_SECONDS = 900.0  # a plan: as long as somebody may take to read it, and no longer than they remember it
MOST_WAITING = 100  # plans of one memory, the latest one of each session
MOST_SHOWN = 20  # rows of a plan: a model repeats them to the user

_CRITERIA = {"lastDays": "last_days", "since": "since", "query": "query", "key": "key", "session": "session"}
_ASK = (
    "nothing is deleted yet: tell the user what would go, and ask them to type the hash if they want it gone for good; "
    "only in a later turn, once they have typed it, call memory_erase with it alone"
)


class _Waiting(NamedTuple):
    """A plan that waits for the user's word: what was asked for, what would go, and until when it waits."""

    wanted: Mapping[str, Any]
    plan: ForgetPlan
    until: float  # by the monotonic clock


# By session. A plan is kept and not made again: a transcript that is being written has another one at each moment.
_WAITING: WeakKeyDictionary[Memory, dict[str | None, _Waiting]] = WeakKeyDictionary()


def erase(
    memory: Memory, session: str | None, user_said: Callable[[], str | None], given: Mapping[str, Any]
) -> ToolAnswer:
    """Plan what is forgotten, or forget what was planned and confirmed.

    Args:
        memory: The memory.
        session: The session whose plan it is.
        user_said: Returns the user's latest message; None where it is unknown.
        given: The checked arguments: one that says what is to go, or the hash of a plan.

    Raises:
        PathNotAllowedError: The user has not typed the hash.
        NotFoundError: No plan waits in this session.
        InvalidInputError: Not one argument is given, or the hash is not that of the plan that waits.
        ConflictError: What was planned has changed.
    """
    if len(given) != 1:
        said = ", ".join(given) or "nothing"
        raise InvalidInputError(f"{said} was given: name one of {', '.join(_CRITERIA)}, or the hash of a plan alone")
    if "hash" in given:
        return _done(memory, session, user_said(), given["hash"].lower())
    return _planned(memory, session, given)


def _planned(memory: Memory, session: str | None, given: Mapping[str, Any]) -> ToolAnswer:
    wanted = {_CRITERIA[name]: value for name, value in given.items()}
    receipt = memory.control.forget(**wanted)
    plan = receipt.plan
    waiting = _WAITING.setdefault(memory, {})
    waiting.pop(session, None)
    if plan:
        waiting[session] = _Waiting(wanted, plan, time.monotonic() + WAITS_SECONDS)
    for oldest in list(waiting)[:-MOST_WAITING]:
        waiting.pop(oldest, None)
    data: dict[str, Any] = {"status": "ok", "outcome": "planned" if plan else "nothing", **_counts(plan)}
    rows = [{"where": step.citation, "what": step.action, "why": step.reason} for step in plan.steps]
    looks = [{"where": one.where, "why": one.reason} for one in plan.review]
    data |= _most("goes", rows) | _most("lookAt", looks)
    return ToolAnswer(data | ({"hash": plan.hash[:HASH_DIGITS], "note": _ASK} if plan else {}), receipt)


def _done(memory: Memory, session: str | None, said: str | None, code: str) -> ToolAnswer:
    plans = _WAITING.get(memory, {})
    waiting = plans.get(session)
    if waiting is None or waiting.until < time.monotonic():
        plans.pop(session, None)
        raise NotFoundError(
            "no plan waits for a hash in this session: name what is to go, show the user the plan, and ask again"
        )
    if not waiting.plan.hash.startswith(code):
        raise InvalidInputError(
            "this is not the hash of the plan that waits in this session: take the one that the user has typed, or "
            "plan again"
        )
    if said is not None and code[:HASH_DIGITS] not in without_recalled(said).lower():
        raise PathNotAllowedError(
            "the user has not typed this hash in their latest message: ask them to, and wait for their answer"
        )
    if plans.pop(session, None) is not waiting:  # another call has just taken it
        raise NotFoundError("this plan is being done, or there is a newer one: plan again, and look at it")
    receipt = memory.control.forget(**waiting.wanted, dry_run=False, seen=waiting.plan)
    return ToolAnswer(_receipt(receipt), receipt)


def _receipt(receipt: ForgetReceipt) -> dict[str, Any]:
    data: dict[str, Any] = {"status": "ok", "outcome": "forgotten", "erased": receipt.is_erased}
    remaining = [{"where": one.path, "why": one.reason} for one in receipt.remaining]
    return data | _most("forgotten", list(receipt.forgotten)) | _most("remaining", remaining)


def _counts(plan: ForgetPlan) -> dict[str, int]:
    """Return how many whole files, lines of others, messages and entries of `sessions.json` go, where any do."""
    of = {"remove": 0, "lines": 0, "messages": 0}
    for step in plan.steps:
        of[step.action] += sum(last - first + 1 for first, last in step.spans) if step.spans else 1
    counts = {"files": of["remove"], "lines": of["lines"], "messages": of["messages"], "sessions": len(plan.sessions)}
    return {name: count for name, count in counts.items() if count}


def _most(name: str, rows: list[Any]) -> dict[str, Any]:
    """Return the first of some rows under a name, and how many more there are."""
    if not rows:
        return {}
    more = len(rows) - MOST_SHOWN
    return {name: rows[:MOST_SHOWN]} | ({f"{name}Omitted": more} if more > 0 else {})
