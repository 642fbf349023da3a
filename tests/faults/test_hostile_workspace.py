"""A workspace from strangers: whatever was planted in it, no surface fails, leaks, writes outside, or shows a forgery."""

import random

import pytest
from faults.hostile_surfaces import problems_of
from faults.hostile_workspace import ATTACKS


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_comes_to_nothing_on_every_surface(name, tmp_path):
    found = problems_of((name,), tmp_path / "place")
    assert not found.problems, "\n".join([ATTACKS[name].must_hold, *found.problems])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ATTACKS)
def test_a_larger_attack_comes_to_nothing_on_every_surface(name, tmp_path):
    found = problems_of((name,), tmp_path / "place", seed=1, scale=10)
    assert not found.problems, "\n".join([ATTACKS[name].must_hold, *found.problems])


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100))
def test_attacks_that_are_planted_together_come_to_nothing(seed, tmp_path):
    names = tuple(random.Random(seed).sample(sorted(ATTACKS), 4))
    found = problems_of(names, tmp_path / "place", seed=seed)
    assert not found.problems, "\n".join([*names, *found.problems])
