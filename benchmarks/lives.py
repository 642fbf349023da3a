"""Agents that live with ten users for thirty sessions: which facts they answer, and what that costs.

    python benchmarks/lives.py [--quick] [--json] [--only NAME ...]

Each user tells facts, changes some, takes some back, and asks for them in later sessions in other words, in one of three
languages (`life_script.py`); no session is on the same day as another, and each is compacted several times. The agents are
those of `life_agents.py`: this library's, and what is usual instead. All have the same scripted model, which answers from
nothing but what it is shown (`life_model.py`), and the same embedder. What is measured:

- answered: questions whose answer is the newest value that the user told; wrong: an older value or another user's, which
  `another's` counts; the rest was not answered;
- noted twice: sentences with a fact that stand more than once in what the agent keeps as notes or facts;
- tokens: those of all that the model is shown in a turn, estimated, its summaries and extractions included;
- ms: CPU time of a turn, without that of the scripted model.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from life_agents import AGENTS
from life_meter import Meter
from life_model import HEARD, UNKNOWN
from life_script import Life, Turn, make_lives
from speed import in_fresh_process, machine


@dataclass(frozen=True)
class Scale:
    """How much is lived."""

    users: int
    sessions: int


FULL = Scale(10, 30)
QUICK = Scale(2, 4)


def measured(name: str, scale: Scale) -> dict[str, Any]:
    """The figures of one agent, or the `error` for which there are none."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ |= {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False"}
    meter = Meter()
    lives = make_lives(scale.users, scale.sessions)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["MEM0_DIR"] = scratch
        try:
            with _days() as move_to_day, AGENTS[name](meter, Path(scratch)) as agent:
                agent.live("nobody", "warm-up", ["I see that it is raining again.", "What is my locker code?"])
                meter.restart()
                answers = list(_live(agent, lives, move_to_day, meter))
                twice = sum(agent.count_notes(life.user, text) > 1 for life in lives for text in life.statements)
        except ImportError as error:
            return {"name": name, "error": f"{error}: pip install -r benchmarks/requirements.txt"}
    right = sum(answer == turn.value for turn, answer in answers)
    others = sum(answer is not None and answer not in turn.values for turn, answer in answers)
    wrong = sum(answer is not None and answer != turn.value for turn, answer in answers)
    return {
        "name": name,
        "questions": len(answers),
        "answered": right / len(answers),
        "wrong": wrong / len(answers),
        "another's": others,
        "noted twice": twice,
        **meter.figures(),
    }


def _live(
    agent: Any, lives: Sequence[Life], move_to_day: Callable[[int], None], meter: Meter
) -> Iterator[tuple[Turn, str | None]]:
    """Let all users have a session each day; yield the questions and their answers, None for one that is not known."""
    for number in range(len(lives[0].sessions)):
        move_to_day(number + 1)
        for life in lives:
            turns = life.sessions[number]
            with meter.turns(len(turns)):
                replies = agent.live(life.user, f"{life.user}-session{number}", [turn.text for turn in turns])
            for turn, text in zip(turns, replies, strict=True):
                if turn.topic:
                    yield turn, None if text in (HEARD, UNKNOWN) else text.rstrip(".")


@contextmanager
def _days() -> Iterator[Callable[[int], None]]:
    """Yield a function that moves the clock to a day from now on; without `time-machine`, all is on one day.

    The days are yet to come: files have the stamps of the machine's own clock, which should not be later than now.
    """
    try:
        import time_machine
    except ImportError:
        yield lambda _number: None
        return
    now = datetime.datetime.now(datetime.UTC)
    with time_machine.travel(now, tick=True) as clock:
        yield lambda number: clock.move_to(now + datetime.timedelta(days=number))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    names = list(rows[0])[2:]
    lines = ["| agent | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        cells = [f"{row[name]:.1%}" if name in ("answered", "wrong") else f"{row[name]:,.0f}" for name in names]
        lines.append(f"| {row['name']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two users and four sessions, to see that all runs")
    parser.add_argument("--users", type=int, help=f"how many users live; {FULL.users}, or with --quick {QUICK.users}")
    parser.add_argument(
        "--sessions", type=int, help=f"how many sessions each has; {FULL.sessions}, or {QUICK.sessions}"
    )
    parser.add_argument("--only", action="append", choices=AGENTS, help="one agent; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    usual = QUICK if options.quick else FULL
    scale = Scale(options.users or usual.users, options.sessions or usual.sessions)
    rows = []
    for name in options.only or AGENTS:
        row = in_fresh_process(measured, name, scale)
        print(json.dumps(row), file=sys.stderr, flush=True)  # what is done is known, whatever comes next
        rows += [row] if "error" not in row else []
    if not rows:
        sys.exit("nothing could be measured")
    print(json.dumps({**machine(), "scale": asdict(scale), "rows": rows}, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
