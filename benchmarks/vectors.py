"""What vectors find by themselves: each question of a workspace among all lines of its notes, without the search's recipe.

    python benchmarks/vectors.py DIR... [--embedders static,PATH.oms,...] [--json]

DIR is a workspace as for `retrieval.py`. r@1 is the share of questions whose nearest line is one that answers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paraphrase import loaded
from retrieval import Workspace, machine, workspaces

from openclaw_memory.types import Embedder


def recall(embedder: Embedder, workspace: Workspace) -> dict[str, Any]:
    """r@1 over the lines of the workspace's notes that are neither empty nor headings."""
    places = [
        (str(path.relative_to(workspace.folder)), number)
        for path in sorted(workspace.folder.rglob("*.md"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    lines = embedder.embed_documents([workspace.line(*place) for place in places])
    asked = embedder.embed_documents([question["question"] for question in workspace.questions])
    nearest = (asked @ lines.T).argmax(axis=1)
    right = sum(
        places[found] in {(path, line) for path, line, _ in workspace.gold(question)}
        for found, question in zip(nearest, workspace.questions, strict=True)
    )
    return {
        "workspace": workspace.name,
        "embedder": embedder.identity,
        "lines": len(lines),
        "questions": len(asked),
        "r@1": right / len(asked),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a workspace, or a folder of some")
    parser.add_argument("--embedders", default="static", help="providers or static models' files, parted by commas")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    options = parser.parse_args(arguments)
    rows = [
        recall(loaded(name), workspace)
        for workspace in workspaces(options.folders)
        for name in options.embedders.split(",")
    ]
    if options.json:
        print(json.dumps({**machine(), "rows": rows}, indent=1))
        return
    for row in rows:
        print(
            f"{row['workspace']}: r@1 {row['r@1']:.4f} of {row['questions']}, {row['lines']} lines, {row['embedder']}"
        )


if __name__ == "__main__":
    main()
