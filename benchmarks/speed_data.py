"""Synthetic notes and questions for `speed.py`: English words by Zipf's law, the same on every machine."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path

from openclaw_memory.chunking import chunk
from openclaw_memory.config.sections import ChunkingConfig

SEED = 11
NOTE_BYTES = 2_550  # a note ends with the section that reaches this: 3 KB on average
FIRST_DAY = datetime.date(2012, 1, 1)
NOTES_PER_DAY = 4
DEMO = Path(__file__).parent.parent / "openclaw_memory" / "data" / "demo"
# Nearly half of English text are these, the most frequent first.
FUNCTION_WORDS = (
    "the of and to in a is that for it was on are as with they be at one have this from or had by not but some what we "
    "can out other were all there when up use your how said an each she which do their time if will way about many then "
    "them would so these her him has more no most than its who may after before into over only very our"
).split()
FUNCTION_SHARE, NAME_SHARE, IDENTIFIER_SHARE = 0.45, 0.04, 0.01
NAMES = "Anna Ben Carla David Elena Farid Grace Hugo Ines Jonas Kenji Laura Marek Nadia Omar Petra Quinn Rosa Sven Tara"
CONTENT_WORDS = 20_000
PREFIXES = ("un", "re", "co", "de", "en", "up", "bi", "ex", "mis", "out")
SUFFIXES = ("s", "ed", "er", "ly", "al", "en", "ic", "or", "ing", "ful", "ness")
QUESTIONS = (
    "When did {name} {0} the {1} {2}?",
    "What was said about the {0} and the {1} of {2}?",
    "Who has the {0} {1} for {2}?",
    "How did {name} feel about {0} {1}?",
    "Where is the {0} that {name} {1} {2}?",
    "Why was the {0} {1} {2} not in {3}?",
)


class Vocabulary:
    """Content words, a frequent one first: those of the notes that ship, then these with English affixes."""

    def __init__(self, words: int = CONTENT_WORDS) -> None:
        text = " ".join(path.read_text(encoding="utf-8") for path in sorted(DEMO.rglob("*.md")))
        stems = sorted({word for word in re.findall(r"\b[a-z]{3,7}\b", text.lower()) if word not in FUNCTION_WORDS})
        rng = random.Random(SEED)
        self.content: list[str] = []
        for prefixes, suffixes in (("",), ("",)), (("",), SUFFIXES), (PREFIXES, ("",)), (PREFIXES, SUFFIXES):
            made = {prefix + stem + suffix for prefix in prefixes for stem in stems for suffix in suffixes}
            more = sorted(made.difference(self.content))
            rng.shuffle(more)
            self.content += more
        del self.content[words:]
        self._content_weights = list(accumulate(1 / rank for rank in range(10, len(self.content) + 10)))
        self._function_weights = list(accumulate(1 / rank for rank in range(1, len(FUNCTION_WORDS) + 1)))

    def contents(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self.content, cum_weights=self._content_weights, k=count)

    def functions(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(FUNCTION_WORDS, cum_weights=self._function_weights, k=count)

    def sentence(self, rng: random.Random) -> str:
        count = rng.randint(8, 20)
        words = [
            function if rng.random() < FUNCTION_SHARE else content
            for function, content in zip(self.functions(rng, count), self.contents(rng, count), strict=True)
        ]
        for at in range(count):
            chance = rng.random()
            if chance < IDENTIFIER_SHARE:
                words[at] = f"GEO-{rng.randrange(10_000)}"
            elif chance < IDENTIFIER_SHARE + NAME_SHARE:
                words[at] = rng.choice(NAMES.split())
        return f"{words[0].capitalize()} {' '.join(words[1:])}."


def notes(vocabulary: Vocabulary, number: int = 0) -> Iterator[tuple[str, str]]:
    """Paths and texts of notes of about 3 KB, from one on and without end: a title, headings, bullets, paragraphs."""
    while True:
        rng = random.Random(f"{SEED}-{number}")
        day = FIRST_DAY + datetime.timedelta(days=number // NOTES_PER_DAY)
        slug = "-".join(vocabulary.contents(rng, 2))
        parts, size = [f"# {slug}\n"], 0
        while size < NOTE_BYTES:
            mark = "- " if rng.random() < 0.7 else ""
            lines = [mark + vocabulary.sentence(rng) for _ in range(rng.randint(4, 12))]
            title = " ".join(vocabulary.contents(rng, 3)).capitalize()
            parts.append(f"\n## {title}\n\n" + "\n".join(lines) + "\n")
            size += len(parts[-1])
        yield f"memory/{day.isoformat()}-{slug}-{number % NOTES_PER_DAY}.md", "".join(parts)
        number += 1


def write_files(folder: Path, count: int) -> Path:
    """A workspace of `count` notes."""
    for path, text in islice(notes(Vocabulary()), count):
        _write(folder / path, text)
    return folder


def write_chunks(folder: Path, count: int) -> Path:
    """A workspace that gives `count` chunks or a few more."""
    made = 0
    for path, text in notes(Vocabulary()):
        _write(folder / path, text)
        made += len(chunk(text, "", ChunkingConfig(), note_date=None))
        if made >= count:
            return folder
    return folder


def questions(count: int) -> list[str]:
    """Different questions in the words of the notes."""
    rng, vocabulary = random.Random(SEED + 1), Vocabulary()
    return [
        rng.choice(QUESTIONS).format(*vocabulary.contents(rng, 4), name=rng.choice(NAMES.split())) for _ in range(count)
    ]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
