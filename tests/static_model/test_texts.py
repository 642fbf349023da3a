"""The texts that the static model is built from: of the form that is read, and blind to the check that judges it."""

import json
import re
from pathlib import Path

import pytest
import Stemmer

from openclaw_memory.text.languages import STOP_WORDS
from openclaw_memory.text.terms import fold, split_words
from tools.static_model import sources

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "tools" / "static_model" / "text"
CHECK = ROOT / "benchmarks" / "paraphrase"
STEMMERS = {"en": "english", "nl": "dutch", "de": "german", "fr": "french", "es": "spanish"}


def blocks(path):
    return re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())


@pytest.mark.parametrize("path", sorted(TEXT.glob("lexicon-*.txt")), ids=lambda path: path.stem)
def test_a_line_of_the_lexicon_has_a_column_for_each_language(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len([column for column in line.split("|") if column.strip()]) != 5] == []
    assert len(list(sources.lexicon([path]))) == len(lines) > 500


@pytest.mark.parametrize("path", sorted(TEXT.glob("questions-*.txt")), ids=lambda path: path.stem)
def test_a_block_has_a_fact_and_its_question_in_each_language(path):
    found = list(sources.questions([path]))
    assert len(found) == 2 * len(blocks(path)) > 400
    assert [group.texts for group in found if set(group.texts) != set(sources.LANGUAGES)] == []


def content(text, language):
    kept = [folded for word in split_words(text) if (folded := fold(word)) not in STOP_WORDS[language]]
    return frozenset(Stemmer.Stemmer(STEMMERS[language]).stemWords(kept))


@pytest.mark.nightly
@pytest.mark.parametrize("language", sources.LANGUAGES)
def test_no_question_with_its_fact_is_near_one_of_the_paraphrase_check(language):
    checked = [json.loads(line) for line in (CHECK / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()]
    theirs = [
        (content(pair["question"], language), content(pair["fact"], language)) for pair in checked if "question" in pair
    ]
    found = list(sources.questions(sorted(TEXT.glob("questions-*.txt"))))
    near = []
    for question, fact in zip(found[::2], found[1::2], strict=True):
        asked, said = content(question.texts[language], language), content(fact.texts[language], language)
        for their_question, their_fact in theirs:
            shared = len((asked | said) & (their_question | their_fact))
            same = shared / min(len(asked | said), len(their_question | their_fact))
            in_question = len(asked & their_question)
            in_both = in_question and said & their_fact
            twins = in_question >= 2 and in_question >= 0.6 * min(len(asked), len(their_question))
            if twins or same >= 0.4 or (in_both and same >= 0.28):
                near.append((question.texts[language], fact.texts[language]))
    assert near == []


def test_home_assistants_messages_lose_what_is_no_prose():
    assert sources._prose("Set **{name}** up at <b>[the site](https://x.example)</b>  [%key:a::b%]") == (
        "Set up at the site"
    )
