"""The suites of both adapters pass where every index is in PostgreSQL."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


@pytest.mark.nightly
@pytest.mark.parametrize("adapter", ["langchain", "llama_index"])
def test_the_suite_of_an_adapter_passes(adapter, database):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "postgres_everywhere"]
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*command, "-m", "not sqlite_only and not nightly", str(TESTS / "adapters" / adapter)],
        env={**os.environ, "POSTGRES_EVERYWHERE": database, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
