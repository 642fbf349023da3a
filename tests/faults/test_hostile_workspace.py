"""A workspace from strangers: whatever was planted in it, no surface fails, leaks, writes outside, or shows a forgery."""

import random

import pytest
from faults.hostile_surfaces import problems_of
from faults.hostile_workspace import ATTACKS

# To meet every surface takes more than a second: a few attacks by default, in one workspace; among the nightly tests each
# of all attacks has a workspace of its own.
BY_DEFAULT = (
    "citations_are_forged",
    "config_that_names_services",
    "index_tells_lies",
    "names_are_odd",
    "notes_are_links",
)


@pytest.mark.fault(45)
def test_a_few_attacks_come_to_nothing_on_every_surface(tmp_path):
    assert problems_of(BY_DEFAULT, tmp_path / "place") == []


@pytest.mark.fault(45)
@pytest.mark.nightly
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_comes_to_nothing_on_every_surface(name, tmp_path):
    assert problems_of((name,), tmp_path / "place") == []


@pytest.mark.fault(45)
@pytest.mark.endurance
@pytest.mark.parametrize("name", ATTACKS)
def test_a_larger_attack_comes_to_nothing_on_every_surface(name, tmp_path):
    assert problems_of((name,), tmp_path / "place", seed=1, scale=10) == []


@pytest.mark.fault(45)
@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(100))
def test_attacks_that_are_planted_together_come_to_nothing(seed, tmp_path):
    names = tuple(random.Random(seed).sample(sorted(ATTACKS), 4))
    assert problems_of(names, tmp_path / "place", seed=seed) == [], names
