"""How large each package may be: its budget in budgets.toml, which only falls."""

import pytest
from budgets import lower, measure, read_budgets


@pytest.fixture(scope="module")
def figures():
    return measure()


def test_no_package_is_larger_than_its_budget(figures):
    budgets = read_budgets()
    larger = {
        f"{package}.{name}": (figure, budgets.get(package, {}).get(name))
        for package, row in figures.items()
        for name, figure in row.items()
        if figure > budgets.get(package, {}).get(name, -1)
    }
    assert larger == {}, "take as much away as you add: each is (now, budget)"


def test_a_budget_that_has_become_too_large_is_lowered_in_the_same_commit(figures):
    assert lower(read_budgets(), figures) == read_budgets(), (
        "run `python tests/budgets.py --lower` and commit budgets.toml"
    )
