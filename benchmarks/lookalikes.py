"""How much of the evidence a search shows among look-alikes: the notes again and again, about other people and things.

    python benchmarks/lookalikes.py DIR... [--held DIR... [--only-held]] [--copies 1,16,94] [--recipe NAME ...] [--json]

Each DIR is a workspace with questions, or a folder of some, as for `retrieval.py`; the notes of all of them make one
workspace. Every further copy of the notes has other names in the place of its people's, other days and numbers, and
one thing in two exchanged for another of its kind. The questions stay, and so do the lines that answer them. Those of
the workspaces in `--held` have figures of their own; with `--only-held` no others are asked. At
100,000 chunks some of the others take long: `--questions` asks so many of each workspace, spread over all of its.

The recipes are those of `rivals.py`, each in a process of its own, all with the static model. It has embedded a question
before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from retrieval import SEED, Workspace, chosen_workspaces, mean, speakers, workspaces
from rivals import RECIPES, answered, model_named, notes, prepared, table
from speed import in_fresh_process, machine

from openclaw_memory.chunking import chunk
from openclaw_memory.config.sections import ChunkingConfig

BESIDE = (
    "ours",
    "ours, keywords only",
    "LangChain: FAISS + BM25",
    "LanceDB: hybrid",
    "Chroma: vectors",
    "txtai: hybrid",
)

MAX_DAYS = 700  # a copy's days are at most so many after those of the notes
# Few enough to come back: the people of the other workspaces, and these.
NAMES = """Agnes Bram Clara Desmond Edith Fabian Greta Hugo Ingrid Jonas Klara Linus Magda Nestor Odette Petra Rufus Selma
Theo Ursula""".split()
MONTHS = """January February March April May June July August September October November December""".split()
DAYS = """Monday Tuesday Wednesday Thursday Friday Saturday Sunday""".split()
# What may stand in for what.
KINDS = """
dog cat rabbit parrot horse hamster turtle pony
dogs cats rabbits parrots horses hamsters turtles ponies
puppy kitten foal chick
painting drawing sculpture photograph sketch collage
pottery knitting weaving carving origami embroidery
guitar piano violin drums flute cello trumpet
book novel poem comic diary magazine
movie play show opera musical documentary
beach lake forest river mountain desert island waterfall
park garden museum library theater market zoo aquarium
house apartment cabin cottage farm studio
car bike boat van truck scooter
pizza pasta soup salad sushi curry stew
cake pie cookies bread pudding muffins
tea coffee juice lemonade cocoa
hiking camping swimming running climbing cycling skiing surfing
yoga pilates boxing karate fencing ballet
football basketball tennis hockey baseball volleyball
concert festival parade wedding picnic carnival
school college kindergarten academy university
job internship course contract apprenticeship
mom dad grandma grandpa aunt uncle
son daughter niece nephew cousin
brother sister
kids children grandchildren
friend neighbor colleague classmate teammate
doctor teacher nurse lawyer chef engineer
dress shirt jacket scarf hat coat
ring necklace bracelet brooch watch
red blue green yellow purple orange
flowers roses sunflowers tulips daisies lilies
storm fire flood accident snowfall
charity hospital church shelter club
dance band choir painting-class chess
phone laptop tablet camera console
game puzzle quiz tournament contest
week month weekend
summer winter spring autumn
""".strip().splitlines()


def copied(chosen: Sequence[Workspace], folder: Path, copy: int) -> None:
    """Write the notes into `folder`: as they are with copy 0, else a variation of them, of which no two are alike."""
    everyone = {name for workspace in chosen for name in speakers(workspace)} | {*NAMES}
    for workspace in chosen:
        chance = random.Random(f"{SEED} {workspace.name} {copy}")
        words = _exchanged(speakers(workspace), everyone, chance)
        days, number = chance.randint(1, MAX_DAYS), chance.randint(1, 9)
        for note in sorted(workspace.folder.glob("memory/**/*.md")):
            path, text = str(note.relative_to(workspace.folder / "memory")), note.read_text(encoding="utf-8")
            if copy:
                path, text = _moved(path, days), _varied(_moved(text, days), words, number)
            target = folder / "memory" / f"{workspace.name}-{copy}" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def _exchanged(people: Sequence[str], everyone: set[str], chance: random.Random) -> dict[str, str]:
    """What each word becomes: all names and dates another one, every second thing."""
    words = dict(zip(people, chance.sample(sorted(everyone - {*people}), len(people)), strict=True))
    months, days = chance.randrange(1, len(MONTHS)), chance.randrange(1, len(DAYS))
    words |= {month: MONTHS[(at + months) % len(MONTHS)] for at, month in enumerate(MONTHS)}
    words |= {day: DAYS[(at + days) % len(DAYS)] for at, day in enumerate(DAYS)}
    for kind in map(str.split, KINDS):
        for word in kind:
            other = chance.choice([one for one in kind if one != word])
            if chance.random() < 0.5:
                words |= {word: other, word.capitalize(): other.capitalize()}
    for person in people:  # "Mel" of "Melanie"
        words |= {person[:length]: words[person][:length] for length in (3, 4) if len(person) > length}
    return words


def _moved(text: str, days: int) -> str:
    """The text with its days (2023-05-08) so many days later."""
    return re.sub(r"\b\d{4}-\d\d-\d\d\b", lambda found: str(date.fromisoformat(found[0]) + timedelta(days=days)), text)


def _varied(text: str, words: dict[str, str], number: int) -> str:
    """The text with other words, and other numbers where they are no part of a day or a time."""
    text = re.sub(r"[^\W\d_]+", lambda found: words.get(found[0], found[0]), text)
    return re.sub(r"(?<![\d:.-])\b\d{1,4}\b(?![\d:.-])", lambda found: str(int(found[0]) + number), text)


def gold(workspace: Workspace, question: dict[str, Any]) -> list[tuple[str, int, str]]:
    """The lines that answer a question, where `copied` has put them."""
    places = workspace.gold(question)
    return [(path.replace("memory/", f"memory/{workspace.name}-0/", 1), line, text) for path, line, text in places]


def measured(name: str, folder: Path, groups: dict[str, Sequence[Workspace]]) -> list[dict[str, Any]]:
    """The figures of one recipe, a row for each group of workspaces, or the `error` for which there are none."""
    try:
        ask = prepared(name, folder)
    except ImportError as error:
        return [{"name": name, "error": f"{error}: pip install -r benchmarks/requirements.txt"}]
    rows, times = [], list[float]()
    for group, chosen in groups.items():
        metrics = []
        for workspace in chosen:
            for question in workspace.questions:
                model_named("static").embed_query(question["question"])
                found, took = answered(ask, question["question"], gold(workspace, question))
                metrics.append(found)
                times.append(took)
        rows.append({"name": f"{name}, {group}", "questions": len(metrics), **mean(metrics)})
    spent = {"query_ms": statistics.median(times), "query_ms_p95": statistics.quantiles(times, n=20)[-1]}
    return [row | spent for row in rows]


def compared(
    names: Sequence[str], copies: int, every: Sequence[Workspace], groups: dict[str, Sequence[Workspace]]
) -> dict[str, Any]:
    """All recipes over the same notes, those of `every` workspace, and the questions of `groups`."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for copy in range(copies):
            copied(every, folder, copy)
        chunks = sum(len(chunk(text, "", ChunkingConfig(), note_date=None)) for _, text in notes(folder))
        rows = []
        for name in names:
            of_recipe = in_fresh_process(measured, name, folder, groups)
            print(f"{chunks:,} chunks: {json.dumps(of_recipe)}", file=sys.stderr, flush=True)
            rows += [row for row in of_recipe if "error" not in row]
    return {"copies": copies, "chunks": chunks, "rows": rows}


def spread(chosen: Sequence[Workspace], count: int | None) -> Sequence[Workspace]:
    """The workspaces with so many of their questions, at equal distances; with all of them for None."""
    if count is None:
        return chosen
    return [replace(one, questions=one.questions[:: max(1, len(one.questions) // count)][:count]) for one in chosen]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--held", nargs="+", type=Path, default=[], metavar="DIR", help="what has figures of its own")
    parser.add_argument("--only-held", action="store_true", help="ask the questions of those alone")
    parser.add_argument("--questions", type=int, metavar="N", help="of each workspace; else all")
    parser.add_argument("--copies", default="1,16,94", help="how many times the notes are there, with commas between")
    parser.add_argument("--recipe", action="append", choices=RECIPES, help="one of `rivals.py`; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    held, rest = list(workspaces(options.held)), chosen_workspaces(parser, options.folders)
    groups = {"held": held, "the rest": [] if options.only_held else rest}
    groups = {name: spread(chosen, options.questions) for name, chosen in groups.items() if chosen}
    names, numbers = options.recipe or BESIDE, map(int, options.copies.split(","))
    sizes = [compared(names, copies, [*rest, *held], groups) for copies in numbers]
    if options.json:
        print(json.dumps({**machine(), "sizes": sizes}, indent=1))
        return
    for size in sizes:
        print(f"{size['chunks']:,} chunks\n\n{table(size['rows'])}\n")


if __name__ == "__main__":
    sys.exit(main())
