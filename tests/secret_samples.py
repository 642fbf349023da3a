"""Tokens of the formats that are masked, by the lists of `secret_samples.txt`, and what only looks like one."""

import re
from pathlib import Path

HEX = "3f786850e387550fdab836ed7e6dc881" * 2
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z" * 10
UPPER = "A1B2C3D4E5F6G7H8" * 4
LETTERS = "QwErTyUiOpAsDfGhJkLzXcVbNm" * 4
UUID = "0b6ad4f2-9f0e-4a51-bb0e-7a2f6d0f8b11"
ALPHABETS = {"HEX": HEX, "MIXED": MIXED, "UPPER": UPPER, "LETTERS": LETTERS, "UUID": UUID}


def read_samples(name: str) -> dict[str, str]:
    """The tokens of a list, by the names of their providers."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    text = re.sub(r"<([A-Z]+) ?(\d*)>", lambda part: ALPHABETS[part[1]][: int(part[2] or 99)], text)
    return dict(re.findall(rf"(?m)^{name} (.+?) = (.+)$", text))


KNOWN, LISTED, NAMED = map(read_samples, ("known", "listed", "named"))

HARMLESS = [*read_samples("harmless").values()]
# Thirty that look like tokens to a hasty eye.
LOOKALIKES = [*read_samples("lookalike").values()]
