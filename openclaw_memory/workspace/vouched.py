"""Whether a record may be shown as its file is: what the signature says of the text of a whole file."""

from __future__ import annotations

from pathlib import Path

from openclaw_memory.security import signatures
from openclaw_memory.text.front_matter import parse
from openclaw_memory.workspace.paths import is_record


def explain_withheld(root: Path, path: str, file: str) -> str | None:
    """Return why the file of a record is shown nowhere; None for one that may be shown, and for all other files.

    Args:
        root: The workspace.
        path: The file.
        file: All of its text.
    """
    if not is_record(path):
        return None
    said = parse(file)
    fields, text = (None, "") if said is None else (said.fields, said.text)
    return signatures.problem(root, path, fields, text)
