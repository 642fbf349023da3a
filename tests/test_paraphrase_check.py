"""The paraphrase check is what it claims to be: no question shares a word with its fact."""

import json
from pathlib import Path

import pytest
import Stemmer

from openclaw_memory.text.languages import STOP_WORDS
from openclaw_memory.text.terms import fold, split_words, stem_word

FOLDER = Path(__file__).parents[1] / "benchmarks" / "paraphrase"
LANGUAGES = {"en": "english", "nl": "dutch", "de": "german", "fr": "french", "es": "spanish"}


def read(language):
    return [json.loads(line) for line in (FOLDER / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()]


def stems(text, language):
    """What a text's content words are looked up by, and their stems by the rules of their own language."""
    content = [word for word in split_words(text) if fold(word) not in STOP_WORDS[language]]
    return {stem_word(word) for word in content}, set(Stemmer.Stemmer(LANGUAGES[language]).stemWords(content))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_shares_no_content_word_number_or_name_with_its_fact(language):
    shared = []
    asked = [line for line in read(language) if "question" in line]
    assert len(asked) == 64
    for line in asked:
        fact, question = (stems(line[key], language) for key in ("fact", "question"))
        common = (fact[0] & question[0]) | (fact[1] & question[1])
        shared += [(sorted(common), line["fact"], line["question"])] if common else []
    assert shared == []
