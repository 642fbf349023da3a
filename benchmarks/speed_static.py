"""What the static model costs a process that has just begun: rows of `speed.py`, loading included."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from speed_data import Vocabulary, notes

CHUNKS, CHUNK_CHARS = 3000, 700
LOADED = "from openclaw_memory.embeddings.static import StaticEmbedder; embedder = StaticEmbedder(); "
QUERY = "When did Caroline go to the LGBTQ support group?"
PROCESSES = {
    "bare": "pass",
    "array": f"{LOADED}embedder.embed_query({QUERY!r})",
}
BULK = f"import json, sys; texts = json.load(open(sys.argv[1])); {LOADED}embedder.embed_documents(texts)"


def write_texts(path: Path) -> Path:
    """Different texts of 700 characters, cut out of the notes of `speed_data.py`, as JSON."""
    texts = (
        text[start : start + CHUNK_CHARS]
        for _, text in notes(Vocabulary())
        for start in range(0, len(text) - CHUNK_CHARS + 1, CHUNK_CHARS)
    )
    path.write_text(json.dumps(list(islice(texts, CHUNKS))), encoding="utf-8")
    return path


def static_rows(scale: Any, scratch: Path) -> Iterator[Any]:
    """A first question and a first batch, each in fresh processes, less what a bare Python takes."""
    from speed import Row, process_milliseconds

    texts = write_texts(scratch / "texts.json")
    commands = {name: ["-c", code] for name, code in PROCESSES.items()} | {"bulk": ["-c", BULK, str(texts)]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(scale.processes + 2):
        for name, command in commands.items():
            times[name].append(process_milliseconds(command, scratch))
    # The first two write bytecode and warm the disk's cache.
    bare, *others = (statistics.median(taken[2:]) for taken in times.values())
    as_array, bulk = (taken - bare for taken in others)
    yield Row("static model: a first question, numpy included, over bare Python", as_array, "ms")
    yield Row(
        f"static model: {CHUNKS:,} chunks of {CHUNK_CHARS} characters at once, over bare Python",
        CHUNKS / (bulk / 1000), "chunks/s", 2000, at_least=True,
    )  # fmt: skip
