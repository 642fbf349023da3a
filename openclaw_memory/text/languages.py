"""Languages by ISO 639-1 code: their stemmers, scripts, and stop words, folded as by `text.terms.fold`."""

from openclaw_memory._system import read_lines

DEFAULT_LANGUAGE = "en"
UNSTEMMED = "none"  # in place of a language that has no stemmer


def read_table(name: str) -> list[list[str]]:
    """Read a file of words beside this one: the fields of each line."""
    return list(map(str.split, read_lines(__file__, name)))


_TABLE = read_table("languages.txt")
# The Snowball algorithms of PyStemmer, "" for a language with rules of its own.
STEMMERS = {row[1]: "".join(row[2:]) for row in _TABLE if row[0] == "stemmer"}
# The letters of scripts, by the commonest language, and those that it does not have itself but another one has.
SCRIPTS = {row[1]: row[2] for row in _TABLE if row[0] == "script"}
FOREIGN_LETTERS = {row[1]: dict(own.split(":") for own in row[3:]) for row in _TABLE if row[0] == "script"}
# The terms that count the chunks of each language; no text has one like it.
MARKS = {name: f"lang={name}" for name in (*STEMMERS, UNSTEMMED) if name != DEFAULT_LANGUAGE}


def _read_words() -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {}
    for name, *own in read_table("stop_words.txt"):
        words.setdefault(name, set()).update(own)
    return {name: frozenset(own) for name, own in words.items()}


STOP_WORDS = _read_words()
DAY_WORDS = STOP_WORDS.pop("day")  # of a question for a day as a whole
BOUND_WORDS = STOP_WORDS.pop("bound")  # that make a day the limit of a time
