"""Plan a deletion for memory_erase, and delete once the user has typed the hash of the plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError
from openclaw_memory.text.fence import remove_fences
from openclaw_memory.types import ToolAnswer
from openclaw_memory.types.results import ForgetPlan

if TYPE_CHECKING:
    from openclaw_memory.flush.session import Session
    from openclaw_memory.memory import Memory

HASH_DIGITS = 12  # of the hash of a plan: a person types them
PLAN_SECONDS = 900.0  # a plan expires: as long as somebody may take to read it, and no longer than they remember it
MAX_PLANS = 100  # plans of one memory, the latest one of each session
MAX_ROWS = 20  # rows of a plan: a model repeats them to the user

_ASK = (
    "nothing is deleted yet: tell the user what would go, and ask them to type the hash if they want it gone for good; "
    "only in a later turn, once they have typed it, call memory_erase with it alone"
)


class _Waiting(NamedTuple):
    """A plan that waits for the user's word."""

    criteria: Mapping[str, Any]
    plan: ForgetPlan
    expires: float  # by the monotonic clock


# By session. A plan is stored and not made again: a transcript that is being written has another one at each moment.
_WAITING: WeakKeyDictionary[Memory, dict[Session, _Waiting]] = WeakKeyDictionary()


def plan_erasure(memory: Memory, session: Session, criteria: Mapping[str, Any]) -> ToolAnswer:
    """Plan a deletion, and store the plan for the session.

    Args:
        memory: The memory.
        session: The session whose plan it is.
        criteria: One criterion of `memory.control.forget`.
    """
    receipt = memory.control.forget(**criteria)
    plan = receipt.plan
    waiting = _WAITING.setdefault(memory, {})
    waiting.pop(session, None)
    if plan:
        waiting[session] = _Waiting(criteria, plan, time.monotonic() + PLAN_SECONDS)
    for oldest in list(waiting)[:-MAX_PLANS]:
        waiting.pop(oldest, None)
    data: dict[str, Any] = {"status": "ok", "outcome": "planned" if plan else "nothing", **_count(plan)}
    rows = [{"where": step.citation, "what": step.action, "why": step.reason} for step in plan.steps]
    data |= _limit("goes", rows)
    data |= _limit("lookAt", [{"where": item.where, "why": item.reason} for item in plan.review])
    return ToolAnswer(data | ({"hash": plan.hash[:HASH_DIGITS], "note": _ASK} if plan else {}), receipt)


def erase_planned(
    memory: Memory, session: Session, read_user_message: Callable[[], str | None], code: str
) -> ToolAnswer:
    """Delete by the plan of the session.

    Args:
        memory: The memory.
        session: The session whose plan it is.
        read_user_message: Returns the user's latest message; None if it is unknown.
        code: The hash of the plan, in lower case.

    Raises:
        PathNotAllowedError: The user has not typed the hash.
        NotFoundError: No plan waits in this session.
        InvalidInputError: The hash is not that of the plan.
        ConflictError: The planned files have changed.
    """
    plans = _WAITING.get(memory, {})
    waiting = plans.get(session)
    if waiting is None or waiting.expires < time.monotonic():
        plans.pop(session, None)
        raise NotFoundError("no plan waits in this session: name what is to go, show the user the plan, and ask again")
    if not waiting.plan.hash.startswith(code):
        raise InvalidInputError(
            "this is not the hash of this session's plan: take the one that the user has typed, or plan again"
        )
    message = read_user_message()
    if message is not None and code[:HASH_DIGITS] not in remove_fences(message).lower():
        raise PathNotAllowedError("this hash is not in the user's latest message: ask them to type it, and wait")
    if plans.pop(session, None) is not waiting:  # another call has just taken it
        raise NotFoundError("this plan is being done, or there is a newer one: plan again, and look at it")
    receipt = memory.control.forget(**waiting.criteria, dry_run=False, expected=waiting.plan)
    data: dict[str, Any] = {"status": "ok", "outcome": "forgotten", "erased": receipt.is_erased}
    data |= _limit("forgotten", list(receipt.forgotten))
    data |= _limit("remaining", [{"where": file.path, "why": file.reason} for file in receipt.remaining])
    return ToolAnswer(data, receipt)


def _count(plan: ForgetPlan) -> dict[str, int]:
    """Count the whole files, lines of others, messages and entries of `sessions.json` that go, if any do."""
    totals = {"remove": 0, "lines": 0, "messages": 0}
    for step in plan.steps:
        totals[step.action] += sum(last - first + 1 for first, last in step.spans) if step.spans else 1
    counts = {"files": totals["remove"], "lines": totals["lines"], "messages": totals["messages"]}
    return {name: count for name, count in (counts | {"sessions": len(plan.sessions)}).items() if count}


def _limit(name: str, rows: list[Any]) -> dict[str, Any]:
    """Return the first rows under a name, and how many more there are."""
    more = len(rows) - MAX_ROWS
    return ({name: rows[:MAX_ROWS]} if rows else {}) | ({f"{name}Omitted": more} if more > 0 else {})
