"""LangGraph's tests of its own store pass against ours, where `LANGGRAPH_STORE_SUITE` is the path of that file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = os.environ.get("LANGGRAPH_STORE_SUITE", "")
# What differs: the README has a table.
DIFFERS = {"test_embed_with_path"}


@pytest.mark.skipif(not SUITE, reason="LANGGRAPH_STORE_SUITE does not name LangGraph's tests of its store")
def test_langgraphs_own_tests_pass_but_for_what_the_readme_says(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "langgraph_suite", "-p", "no:cacheprovider"]
    command += ["-o", "asyncio_mode=auto", f"--rootdir={Path(SUITE).parent}", SUITE]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)) == DIFFERS, done.stdout
    assert "23 passed" in done.stdout
