"""A memory whose engine is the recorded QMD."""

import pytest
from qmd_place import Qmd


@pytest.fixture
def qmd(tmp_path):
    place = Qmd(tmp_path)
    yield place
    place.close()
