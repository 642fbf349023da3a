"""Runs Python from this checkout, or where packages are not installed, as it seems to it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A finder that knows no package of the names in the first argument.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
missing = set(sys.argv[1].split())
class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in missing else known(name, package)
from openclaw_memory.errors import MissingExtraError
"""


def make_environment(**variables: str) -> dict[str, str]:
    """The environment of a process that imports this checkout, with further variables."""
    paths = [str(ROOT), str(ROOT / "adapters"), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}


def run_without(script: str, *missing: str) -> str:
    """What the script prints in a process of its own, in which none of the `missing` packages can be imported."""
    command = [sys.executable, "-c", WITHOUT + script, " ".join(missing)]
    done = subprocess.run(command, env=make_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
