"""What of a text a note does not say yet, block by block (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from openclaw_memory.workspace.dates import is_date_title

_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s")
_HEADING = re.compile(r"#{1,6}\s")
_CODE = re.compile(r"\s*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading, a paragraph, or one item of a list with what belongs to it.

    `above` counts the headings and paragraphs before it: below others, the same words may mean another thing.
    """

    text: str
    above: int
    is_item: bool


def missing(text: str, note: str) -> str:
    """The blocks of a text that a note does not have, "" where it has them all.

    A block is there where the note has its lines, and above them the headings and paragraphs that the text has above
    it. What is missing brings the heading or paragraph right above it along. The title of a daily note never is.
    """
    blocks, above = _blocks(text)
    noted, noted_above = _blocks(note)
    places: dict[str, list[int]] = {}
    for block in noted:
        places.setdefault(block.text, []).append(block.above)
    kept: list[_Block] = []
    under = ""
    for block in blocks:
        wanted = above[: block.above]
        if any(noted_above[max(0, place - block.above) : place] == wanted for place in places.get(block.text, ())):
            continue
        if wanted and wanted[-1] != under:
            kept.append(_Block(wanted[-1], 0, is_item=False))
        kept.append(block)
        under = kept[-1].text if not block.is_item else "".join(wanted[-1:])
    return _joined(kept)


def _blocks(text: str) -> tuple[list[_Block], list[str]]:
    """The blocks of a text, and its headings and paragraphs alone."""
    found: list[_Block] = []
    above: list[str] = []
    for block in _parted(text):
        if is_date_title(block):
            continue
        is_item = _ITEM.match(block) is not None
        found.append(_Block(block, len(above), is_item))
        if not is_item:
            above.append(block)
    return found, above


def _parted(text: str) -> list[str]:
    """The text, parted at blank lines, before items of a list, and around headings; code stays in one piece."""
    blocks: list[list[str]] = []
    block: list[str] = []
    in_code = False
    for line in map(str.rstrip, text.split("\n")):
        begins = not line or _ITEM.match(line) or _HEADING.match(line) or (block and _HEADING.match(block[0]))
        if begins and not in_code:
            blocks.append(block)
            block = []
        if line or in_code:
            block.append(line)
        in_code ^= _CODE.match(line) is not None
    return ["\n".join(lines).rstrip() for lines in (*blocks, block) if lines]


def _joined(blocks: list[_Block]) -> str:
    """The blocks with blank lines between them, but for items that follow each other."""
    text = ""
    for block, before in zip(blocks, [None, *blocks], strict=False):
        gap = "" if before is None else "\n" if block.is_item and before.is_item else "\n\n"
        text += gap + block.text
    return text
