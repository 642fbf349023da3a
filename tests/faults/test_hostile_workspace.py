"""A workspace from strangers: whatever was planted in it, no surface fails, leaks, writes outside, or shows a forgery."""

import random

import pytest
from faults.hostile_surfaces import problems_of
from faults.hostile_workspace import ATTACKS


@pytest.fixture
def place(tmp_path):
    """A folder for a workspace, which is not there yet."""
    return tmp_path / "place"


# To meet every surface takes more than a second: a few attacks by default, in one workspace; among the nightly tests each
# of all attacks has a workspace of its own.
BY_DEFAULT = (
    "citations_are_forged",
    "config_that_names_services",
    "index_tells_lies",
    "names_are_odd",
    "notes_are_links",
)


def test_a_few_attacks_come_to_nothing_on_every_surface(place):
    found = problems_of(BY_DEFAULT, place)
    assert not found.problems, "\n".join([*(ATTACKS[name].must_hold for name in BY_DEFAULT), *found.problems])


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
