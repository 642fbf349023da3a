"""Languages by ISO 639-1 code: their stemmers, scripts, and stop words, folded as by `text.terms.fold` (data only)."""

from pathlib import Path

DEFAULT_LANGUAGE = "en"
UNSTEMMED = "none"  # in place of a language that has no stemmer

# The Snowball algorithms of PyStemmer; `text.terms` has rules of its own for Hebrew.
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "he": "", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
    "yi": "yiddish",
}  # fmt: skip
# The terms that count the chunks of each language; no text has one like it.
MARKS = {name: f"lang={name}" for name in (*STEMMERS, UNSTEMMED) if name != DEFAULT_LANGUAGE}

# The letters of scripts, by the commonest language, and those that it does not have itself but another one has.
SCRIPTS = {
    "ru": "[\u0400-\u04ff]", "ar": "[\u0620-\u06d3]", "el": "[\u0370-\u03ff\u1f00-\u1fff]", "hi": "[\u0904-\u0939]",
    "hy": "[\u0531-\u0587]", "ta": "[\u0b85-\u0bb9]", "he": "[\u05d0-\u05ea]",
}  # fmt: skip
FOREIGN_LETTERS: dict[str, dict[str, str]] = {
    "ru": {"uk": "іїєґ", "sr": "ђјљњћџ"}, "ar": {"ur": "ٹڈڑےں", "fa": "پچژگ"}, "el": {}, "hi": {}, "hy": {}, "ta": {},
    "he": {},
}  # fmt: skip


def read_table(name: str) -> list[list[str]]:
    """Read a file of words beside this one: the fields of each line that is no comment."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def _read_words() -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {}
    for name, *own in read_table("stop_words.txt"):
        words.setdefault(name, set()).update(own)
    return {name: frozenset(own) for name, own in words.items()}


STOP_WORDS = _read_words()
DAY_WORDS = STOP_WORDS.pop("day")  # of a question for a day as a whole
BOUND_WORDS = STOP_WORDS.pop("bound")  # that make a day the limit of a time
