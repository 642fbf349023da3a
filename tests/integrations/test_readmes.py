"""The README of an integration cannot lie: its examples run, and its public names are in it."""

import importlib
import io
from pathlib import Path

import pytest
from adapter_readmes import check_examples, check_links, check_names

FOLDER = Path(__file__).parents[2] / "integrations"
PACKAGES = sorted(path.parent.name for path in FOLDER.glob("openclaw_memory_*/README.md"))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_readme_is_true(package, tmp_path, monkeypatch):
    readme = (FOLDER / package / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # What is called `memory` is closed: an example need not open one.
    check_examples(readme, {"__name__": "readme", "memory": io.BytesIO()})
    check_names(readme, importlib.import_module(package).__all__)
    check_links(readme)
