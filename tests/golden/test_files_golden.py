"""What OpenClaw 2026.9.6 lists and reads in one workspace, against what this library lists and reads there."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import NotFoundError, PathNotAllowedError
from openclaw_memory.openclaw import list_memory_files
from openclaw_memory.workspace import Workspace

GOLDEN = json.loads((Path(__file__).parent / "files.json").read_text(encoding="utf-8"))

# Deliberate differences: what is read, and why. Each holds in all three configurations.
DIFFERENT_READS = {
    "DREAMS.md": ("not_allowed", "a file that is never indexed is not read either: one allow-list serves all"),
    "dreams.md": ("not_allowed", "the same"),
    "memory/hardlink.md": ("not_allowed", "a hard link may be a way to a file outside"),
}
ENDINGS = MemoryConfig.openclaw().files.endings  # other programs read `.txt` and `.MD` too
DIFFERENT_LISTING = {"memory/hardlink.md": "as above"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("golden")
    for name in GOLDEN["tree"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"content of {name}\nline2\n", encoding="utf-8")
    (root / GOLDEN["emptyFile"]).touch()
    for link, target in GOLDEN["links"]:
        os.symlink(root / target, root / link)
    os.link(root / "outside/secret.md", root / "ws/memory/hardlink.md")
    return root


def workspace(root, extra_paths):
    """Our way to say `{path, pattern}`: the path as an extra one, the pattern as a glob beside those of the notes."""
    patterns = [extra for extra in extra_paths if not isinstance(extra, str)]
    include = ("/*.md", "/memory/", *(f"{extra['path']}/{extra['pattern']}" for extra in patterns)) if patterns else ()
    paths = tuple(extra if isinstance(extra, str) else extra["path"] for extra in extra_paths)
    return Workspace.open(root / "ws", FilesConfig(extra_paths=paths, include=include, endings=ENDINGS))


@pytest.mark.parametrize("case", GOLDEN["listMemoryFiles"], ids=lambda case: str(case["extraPaths"]))
def test_the_same_files_are_listed_in_the_same_order(root, case):
    scan = workspace(root, case["extraPaths"]).scan()
    assert [file.path for file in scan.files] == [path for path in case["current"] if path not in DIFFERENT_LISTING]
    skipped = {item.path: item.reason for item in scan.skipped}
    assert set(DIFFERENT_LISTING) <= set(skipped)
    assert all("symlink" in skipped[path] for path in case["skippedSymlinkRoots"])


def test_the_same_paths_are_read_refused_or_not_found(root):
    for case in GOLDEN["readMemoryFile"]:
        expected = case["current"]
        kind = {"ok": "ok", "not_found": "not_found"}.get(expected.get("status"), "not_allowed")
        kind, _ = DIFFERENT_READS.get(case["path"], (kind, ""))
        found = read(workspace(root, case["extraPaths"]), case["path"].replace("<root>", str(root)))
        assert found == (expected if kind == "ok" else {"status": kind}), case


def read(memory: Workspace, path: str) -> dict[str, Any]:
    """What reading a path gives, in OpenClaw's shape."""
    try:
        excerpt = memory.read_excerpt(path)
    except NotFoundError:
        return {"status": "not_found"}
    except PathNotAllowedError:
        return {"status": "not_allowed"}
    lines = excerpt.end_line - excerpt.start_line + 1
    found = {"text": excerpt.text, "path": excerpt.path, "from": excerpt.start_line, "lines": lines}
    return {"status": "ok", **found}


def test_every_deliberate_difference_is_one():
    reads = {case["path"]: case["current"] for case in GOLDEN["readMemoryFile"]}
    assert all("status" in reads[path] for path in DIFFERENT_READS)
    assert all(path in GOLDEN["listMemoryFiles"][0]["current"] for path in DIFFERENT_LISTING)


def test_the_function_for_notebooks_lists_what_the_preset_indexes(root):
    expected = GOLDEN["listMemoryFiles"][0]["current"]
    assert list_memory_files(root / "ws") == [path for path in expected if path not in DIFFERENT_LISTING]
