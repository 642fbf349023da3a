"""Report each call on a memory to observers: one event hook, `Memory.events`.

An observer is called with an `Event` after each call that reads or writes, and before each that changes something. The
methods that emit events are marked with `@observed`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from openclaw_memory.errors import ConflictError
from openclaw_memory.types.files import Excerpt, Span, parse_citation

__all__ = ["Event", "acting_as"]

P = ParamSpec("P")
T = TypeVar("T")
Location: TypeAlias = tuple[str, str]  # a path and its lines, such as `3-9,12`; "" for the file as a whole
# Finds the locations of a call by its result, the object and the arguments.
Locate: TypeAlias = Callable[..., Iterable[Location]]

LIBRARY = "library"  # a program that calls the memory itself
STARTED = "started"
_MAX_CHARS = 200  # of a door, and of a session: a client chooses its own name
_JOINING = r"[/@\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
_UNSAFE = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"


class Event(NamedTuple):
    """One call that reads or writes a memory.

    Attributes:
        op: The operation: `search`, `get`, `append`, `forget`, ...
        places: The files that it reads or changes, each with its lines, such as `3-9,12`; "" for the whole file.
        result: `ok`; `started` before a change and before an iteration; `planned`, `partly`, `busy`, or the name of an
            error.
        actor: The doors that the call comes through, the outermost first, such as `mcp:zed/tool:memory_get`; `library`
            for a program that calls the memory itself.
        session: The session that the innermost door names, if any; see `acting_as`.
    """

    op: str
    places: tuple[Location, ...] = ()
    result: str = "ok"
    actor: str = LIBRARY
    session: str | None = None


# Takes an event. What it raises goes to the caller, and keeps a change that is `started` from being made. It may have
# methods `list_problems()`, which returns notices for `Memory.status`, and `close()`, which `Memory.close` calls.
Observer: TypeAlias = Callable[[Event], object]


class Events:
    """The observers of one memory. Without any, a call costs one look at them."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.observers = tuple(observers)

    def add(self, observer: Observer) -> None:
        """Call an observer with an event for each call that reads or writes, from now on.

        Args:
            observer: A function of an `Event`. Its errors go to the caller; one at `started` prevents the change.
        """
        self.observers = (*self.observers, observer)

    def emit(self, op: str, places: Iterable[Location] = (), result: str = "ok") -> None:
        """Call every observer.

        Args:
            op: The operation.
            places: The files that it reads or changes, with their lines.
            result: `ok`, or another outcome.
        """
        if self.observers:
            event = Event(op, tuple(places), result, *get_actor())
            for observer in self.observers:
                observer(event)

    def list_problems(self) -> list[str]:
        """Collect the notices of the observers."""
        return [notice for observer in self.observers for notice in getattr(observer, "list_problems", list)()]

    def close(self) -> None:
        """Close the observers that can be closed."""
        for observer in self.observers:
            getattr(observer, "close", lambda: None)()


def observed(
    op: str, locate: Locate = lambda *_, **__: (), *, writes: bool = False, judge: Callable[[Any], str] = lambda _: "ok"
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Emit an event for each call of a method, through the `events` of its object.

    A generator emits it when it ends, or is closed.

    Args:
        op: The operation.
        locate: Finds the files by the result (of a generator, each item), the object and the arguments.
        writes: Whether an event `started` goes before, so that an observer can refuse the change.
        judge: Turns the result into that of the event.
    """

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        is_iteration = inspect.isgeneratorfunction(method)

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            events: Events = args[0].events  # type: ignore[attr-defined]  # the object of the method
            if not events.observers:
                return method(*args, **kwargs)
            if is_iteration:
                items: Any = method(*args, **kwargs)
                return _iterate(items, events, op, lambda item: locate(item, *args, **kwargs))  # type: ignore[return-value]
            if writes:
                events.emit(op, (), STARTED)
            try:
                value = method(*args, **kwargs)
            except BaseException as error:
                path = error.path if isinstance(error, ConflictError) else None
                events.emit(op, [(path, "")] if path else (), type(error).__name__)
                raise
            events.emit(op, locate(value, *args, **kwargs), judge(value))
            return value

        call.op = op  # type: ignore[attr-defined]  # marks it
        return call

    return decorate


def _iterate(items: Generator[T, None, None], events: Events, op: str, locate: Locate) -> Iterator[T]:
    """Yield the items, and emit the event when they end or are left."""
    events.emit(op, (), STARTED)
    places: dict[Location, None] = {}
    result = "ok"
    try:
        with closing(items):
            for item in items:
                places.update(dict.fromkeys(locate(item)))
                yield item
    except Exception as error:
        result = type(error).__name__
        raise
    finally:
        events.emit(op, places, result)


# --- locations ---------------------------------------------------------------------------------------------------


def format_lines(*spans: Span) -> str:
    """Write runs of lines as an event names them: `3-9,12`."""
    return ",".join(f"{first}" if last <= first else f"{first}-{last}" for first, last in spans)


def locate_citation(citation: str) -> Location:
    """Split a path or a citation into the path and its lines."""
    place = parse_citation(citation)
    return (citation, "") if place is None else (place[0], format_lines(*place[1]))


def locate_excerpt(excerpt: Excerpt, *_: Any, **__: Any) -> list[Location]:
    """Locate an excerpt."""
    return [(excerpt.path, format_lines((excerpt.start_line, excerpt.end_line)) if excerpt.end_line else "")]


def locate_file(item: Any, *_: Any, **__: Any) -> list[Location]:
    """Locate something that has a `path`; nothing for None."""
    return [] if item is None else [(item.path, "")]


def locate_files(items: Iterable[Any], *_: Any, **__: Any) -> list[Location]:
    """Locate several things that each have a `path`."""
    return [(item.path, "") for item in items]


def locate_paths(paths: Iterable[str], *_: Any, **__: Any) -> list[Location]:
    """Locate whole files by their paths."""
    return [(path, "") for path in paths]


# --- actors ------------------------------------------------------------------------------------------------------

_blocks: ContextVar[tuple[acting_as, ...]] = ContextVar("openclaw_memory.events", default=())


def get_actor() -> tuple[str, str | None]:
    """Return the doors of the call, the outermost first and joined by `/`, and its session."""
    doors, session = list[str](), None
    for block in _blocks.get():
        door = re.sub(_JOINING, "_", block.door[:_MAX_CHARS])
        if not doors or doors[-1] != door:  # parts of one door that use each other are one door
            doors.append(door)
        session = session if block.session is None else block.session
    return "/".join(doors) or LIBRARY, re.sub(_UNSAFE, "_", session[:_MAX_CHARS]) if session else None


class acting_as:  # noqa: N801 - used as a `with` block
    """Name the actor of a `with` block in its events: `with acting_as("my-bot", session="anna"):`.

    Blocks inside each other add up. They reach the tasks and the calls of `run_in_thread` that begin in the block. One
    object may be used for several blocks, also at once in several threads and tasks.
    """

    def __init__(self, door: str, *, session: str | None = None) -> None:
        """Name the door.

        Args:
            door: The way to the memory, such as `web`, or `tool:memory_get`; of a longer one the first 200 characters
                count, and `/`, `@` and controls become `_`.
            session: The session; that of the block around this one if None.
        """
        self.door, self.session = door, session

    def __enter__(self) -> None:
        """Begin the block."""
        _blocks.set((*_blocks.get(), self))

    def __exit__(self, *_: object) -> None:
        """End the block. A lease may end in another task than it began in, where there is nothing to end."""
        blocks = _blocks.get()
        if blocks[-1:] == (self,):
            _blocks.set(blocks[:-1])


# --- values of a run ---------------------------------------------------------------------------------------------

VALUES: ContextVar[Mapping[str, Any]] = ContextVar("openclaw_memory.run_values")


@contextmanager
def run_values(**values: Any) -> Iterator[None]:
    """Give the runs of a `with` block values: those that templates choose a memory by, and `session_key`.

    They reach the tasks and the calls of `run_in_thread` that begin in the block. Blocks add to the values around.

    Args:
        **values: By their names.
    """
    token = VALUES.set({**VALUES.get({}), **values})
    try:
        yield
    finally:
        VALUES.reset(token)
