"""A workspace from strangers: whatever was planted in it, no surface fails, leaks, writes outside, or shows a forgery."""

import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from faults.hostile_surfaces import problems_of
from faults.hostile_workspace import ATTACKS


@pytest.fixture
def place():
    """A folder for a workspace: in memory where that can be had, for these tests write much and wait for no disk."""
    memory = "/dev/shm"
    folder = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    yield Path(folder, "place")
    shutil.rmtree(folder, ignore_errors=True)


# To meet every surface takes more than a second: a few attacks by default, three in one workspace; among the nightly
# tests each of all attacks has a workspace of its own.
BY_DEFAULT = sorted(ATTACKS)[3::10]


@pytest.mark.parametrize("names", [BY_DEFAULT[at::3] for at in range(3)], ids=", ".join)
def test_a_few_attacks_come_to_nothing_on_every_surface(names, place):
    found = problems_of(tuple(names), place)
    assert not found.problems, "\n".join([*(ATTACKS[name].must_hold for name in names), *found.problems])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_comes_to_nothing_on_every_surface(name, place):
    found = problems_of((name,), place)
    assert not found.problems, "\n".join([ATTACKS[name].must_hold, *found.problems])


@pytest.mark.endurance
@pytest.mark.parametrize("name", ATTACKS)
def test_a_larger_attack_comes_to_nothing_on_every_surface(name, place):
    found = problems_of((name,), place, seed=1, scale=10)
    assert not found.problems, "\n".join([ATTACKS[name].must_hold, *found.problems])


@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(100))
def test_attacks_that_are_planted_together_come_to_nothing(seed, place):
    names = tuple(random.Random(seed).sample(sorted(ATTACKS), 4))
    found = problems_of(names, place, seed=seed)
    assert not found.problems, "\n".join([*names, *found.problems])
