"""How many passwords in plain words are masked, in five languages, and how many harmless sentences are by mistake.

    python benchmarks/passwords.py [--tuned-only] [--json]

Reads `benchmarks/passwords/tune.tsv`, from which the rules were made, and `held.tsv`, which was written before them and
had no part in them: language, password (none in a harmless sentence) and text, separated by tabs. Found is a password of
which nothing is left in the sentence; a mistake is a harmless sentence that is not as it was.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from openclaw_memory.text.redaction import redact

FOLDER = Path(__file__).parent / "passwords"
FILES = ("tune.tsv", "held.tsv")


class Sentence(NamedTuple):
    language: str
    password: str
    text: str


def read(path: Path) -> list[Sentence]:
    """Return the sentences of a file."""
    return [Sentence(*row.split("\t", 2)) for row in path.read_text(encoding="utf-8").splitlines() if row.strip()]


def measured(sentences: list[Sentence]) -> dict[str, Any]:
    """Return counts of what is found and of mistakes, with the sentences where masking was wrong."""
    planted = [one for one in sentences if one.password]
    harmless = [one for one in sentences if not one.password]
    # Nothing of a password may stay, and nothing but the password go.
    missed = [one.text for one in planted if redact(one.text) != one.text.replace(one.password, "***")]
    mistaken = [one.text for one in harmless if redact(one.text) != one.text]
    return {
        "passwords": len(planted),
        "found": len(planted) - len(missed),
        "harmless": len(harmless),
        "mistakes": len(mistaken),
        "missed_texts": missed,
        "mistaken_texts": mistaken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tuned-only", action="store_true", help="leave the held-out sentences unread")
    options = parser.parse_args()
    report: dict[str, Any] = {}
    for name in FILES[:1] if options.tuned_only else FILES:
        sentences = read(FOLDER / name)
        languages = dict.fromkeys(one.language for one in sentences)
        report[name] = {
            "all": measured(sentences),
            **{code: measured([one for one in sentences if one.language == code]) for code in languages},
        }
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    for name, by_language in report.items():
        print(name)
        for code, one in by_language.items():
            print(
                f"  {code:<4} found {one['found']:>3} of {one['passwords']:<4}"
                f" masked by mistake {one['mistakes']:>2} of {one['harmless']}"
            )
        print(*(f"  missed: {text}" for text in by_language["all"]["missed_texts"]), sep="\n")
        print(*(f"  mistaken: {text}" for text in by_language["all"]["mistaken_texts"]), sep="\n")


if __name__ == "__main__":
    main()
