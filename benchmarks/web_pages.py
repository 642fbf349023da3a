"""What a page of `openclaw-memory web` costs: CPU time of the server, medians, and bytes, at many notes.

    python benchmarks/web_pages.py [--notes N] [--rounds N] [--no-embedder] [--json]

The pages are asked for in this process, without a network between; the client's share of the time is in it.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from openclaw_memory_web import create_app
from speed_data import questions, write_files
from starlette.testclient import TestClient

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import EmbeddingConfig

HOST = "127.0.0.1:8000"
BAR_MS, BAR_BYTES = 200, 100_000  # of the first page, with all that it loads
SEARCH = f"/?{urlencode({'q': questions(1)[0]})}"  # in the words of the notes: it finds some
PAGES = ("/", "/status", SEARCH, "/days", "/records", "/forget?query=ferry")


def measured(folder: Path, rounds: int, config: MemoryConfig) -> dict[str, Any]:
    with Memory.open(folder, config=config) as memory:
        memory.sync()
        app = create_app(memory, token="token", hosts=[HOST])
        client = TestClient(app, base_url=f"http://{HOST}")
        client.get("/", params={"token": "token"})
        found: dict[str, Any] = {}
        for page in PAGES:
            times = []
            for _ in range(rounds):
                began = time.process_time()
                answer = client.get(page)
                times.append((time.process_time() - began) * 1000)
                answer.raise_for_status()
            found[page] = {
                "first_ms": round(times[0], 1),
                "median_ms": round(statistics.median(times), 1),
                "bytes": len(answer.content),
            }
        loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get("/").text)
        found["/"]["bytes_with_all_it_loads"] = found["/"]["bytes"] + sum(
            len(client.get(one).content) for one in loaded
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-embedder", action="store_true", help="keywords alone")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    config = MemoryConfig(embedding=EmbeddingConfig(provider="none" if given.no_embedder else "static"))
    with tempfile.TemporaryDirectory() as folder:
        found = measured(write_files(Path(folder), given.notes), given.rounds, config)
    if given.json:
        print(
            json.dumps(
                {"notes": given.notes, "embedder": not given.no_embedder, "rounds": given.rounds, "pages": found},
                indent=1,
            )
        )
        return
    for page, told in found.items():
        print(f"{page:32} {told['median_ms']:7.1f} ms ({told['first_ms']:.1f} the first) {told['bytes']:8,} bytes")
    first = found["/"]
    print(f"the first page: bar {BAR_MS} ms, {first['bytes_with_all_it_loads']:,} of at most {BAR_BYTES:,} bytes")


if __name__ == "__main__":
    main()
