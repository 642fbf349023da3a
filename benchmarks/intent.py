"""How well intents are found without a model: what the gate saves and misses, the rules, and the language of a message.

    python benchmarks/intent.py [--json]

Reads `benchmarks/intent/tune.tsv`, from which the phrases were chosen, and `held.tsv`, which had no part in it: language,
intent (remember, query, forget or none) and text, separated by tabs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from openclaw_memory_intent import IntentConfig, detect_intent, detect_language, is_worth_asking
from openclaw_memory_intent.languages import by_stop_words

FOLDER = Path(__file__).parent / "intent"
FILES = ("tune.tsv", "held.tsv")


class Message(NamedTuple):
    language: str
    intent: str
    text: str


def read(path: Path) -> list[Message]:
    rows = path.read_text(encoding="utf-8").splitlines()
    return [Message(*row.split("\t", 2)) for row in rows if row.strip()]


def measured(messages: list[Message]) -> dict[str, Any]:
    """Counts of the gate, and shares of what the rules and both identifications of languages get right."""
    wanting = [one for one in messages if one.intent != "none"]
    wanting_nothing = [one for one in messages if one.intent == "none"]
    missed = [one.text for one in wanting if not is_worth_asking(one.text)]
    rules = IntentConfig()
    return {
        "messages": len(messages),
        "want_something": len(wanting),
        "calls_saved": sum(not is_worth_asking(one.text) for one in wanting_nothing),
        "of_those_that_want_nothing": len(wanting_nothing),
        "missed": len(missed),
        "missed_texts": missed,
        "rules": mean((detect_intent(one.text, None, rules).intent or "none") == one.intent for one in messages),
        "language": mean(detect_language(one.text) == one.language for one in messages),
        "language_by_stop_words": mean(by_stop_words(one.text) == one.language for one in messages),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    report: dict[str, Any] = {}
    for name in FILES:
        if not (FOLDER / name).exists():
            continue
        messages = read(FOLDER / name)
        languages = dict.fromkeys(one.language for one in messages)
        report[name] = {
            "all": measured(messages),
            **{code: measured([one for one in messages if one.language == code]) for code in languages},
        }
        begun = time.process_time()
        for one in messages:
            is_worth_asking(one.text)
        report[name]["all"]["gate_us"] = (time.process_time() - begun) / len(messages) * 1e6
    if as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    for name, by_language in report.items():
        print(f"{name}: the gate takes {by_language['all']['gate_us']:.0f} us of CPU time a message")
        for code, figures in by_language.items():
            print(
                f"  {code:<4} {figures['messages']:>4} messages  saved {figures['calls_saved']:>3} of "
                f"{figures['of_those_that_want_nothing']:<3} missed {figures['missed']:>2} of {figures['want_something']:<4}"
                f" rules {figures['rules']:.3f}  language {figures['language']:.3f}"
                f"  by stop words {figures['language_by_stop_words']:.3f}"
            )
        print(*(f"  missed: {text}" for text in by_language["all"]["missed_texts"]), sep="\n")


if __name__ == "__main__":
    main()
