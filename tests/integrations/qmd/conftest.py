"""A memory whose engine is the recorded QMD."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from qmd_place import Qmd


@pytest.fixture
def qmd(tmp_path):
    place = Qmd(tmp_path)
    yield place
    place.close()
