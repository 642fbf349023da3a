"""Answer the events that a host sends over one pair of streams, a line of JSON each."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from openclaw_memory import Memory
from openclaw_memory.errors import InvalidInputError, SyncBusyError

Event = Mapping[str, Any]
# Sends the host a question, and returns its reply; {} where the host is gone.
Exchange = Callable[[Event], Event]


def serve(lines: Iterable[bytes], write: Callable[[bytes], object], answer: Callable[[Event, Exchange], Event]) -> None:
    """Answer requests until the lines end, each in a thread of its own; then wait for these threads.

    A request is `{"id": 1, ...}`, and its answer has the same `id`. What takes long may ask the host in between, with
    `{"id": 1, "question": 7, ...}`, to which `{"question": 7, ...}` is the reply; other requests do not wait for it.

    Args:
        lines: What the host sends, such as the binary stdin of a process.
        write: Sends the host a line at once.
        answer: Makes the fields of an answer; it raises nothing. A line that is no JSON object has no fields.
    """
    numbers, writing, ended = itertools.count(1), threading.Lock(), threading.Event()
    waiting: dict[int, SimpleQueue[Event]] = {}
    threads: set[threading.Thread] = set()

    def send(fields: Event) -> None:
        with writing, suppress(OSError):  # a host that is gone reads no answer
            write(f"{json.dumps(fields)}\n".encode())  # in ASCII: the encoding of a pipe is unknown

    def answer_request(request: Event) -> None:
        def ask_host(fields: Event) -> Event:
            number = next(numbers)
            replies = waiting[number] = SimpleQueue()
            send({**fields, "id": request.get("id"), "question": number})
            return {} if ended.is_set() else replies.get()

        send({**answer(request, ask_host), "id": request.get("id")})

    for line in lines:
        request = _parse_object(line)
        if "question" in request:
            if replies := waiting.pop(request["question"], None):
                replies.put(request)
            continue
        threads = {thread for thread in threads if thread.is_alive()}
        threads.add(thread := threading.Thread(target=answer_request, args=(request,), daemon=True))
        thread.start()
    ended.set()
    for replies in tuple(waiting.values()):
        replies.put({})
    for thread in threads:
        thread.join()


def _parse_object(line: bytes) -> Event:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def require_text(event: Event, name: str) -> str:
    """Return a field of an event.

    Raises:
        InvalidInputError: It is missing, or no text.
    """
    value = event.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"the event has no {name!r}: this is no input of a hook")
    return value


def sync_or_skip(memory: Memory) -> None:
    """Sync the index, unless another process does it: the next event finds it done."""
    with suppress(SyncBusyError):
        memory.sync(wait=1.0)
