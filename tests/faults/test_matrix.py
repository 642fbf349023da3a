"""The fault matrix names tests that exist, and so does each promise of the threat model."""

import re

import pytest
from faults.matrix import FAULTS, TESTS, Fault, Outcomes, missing, table

MODEL = (TESTS.parent / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
PROMISED = MODEL.partition("\n## ")[2].partition("\n## What is not promised\n")[0]
PROMISES = [promise for section in PROMISED.split("\n## ") for promise in section.split("\n- ")[1:]]
# A footnote: its name, and the tests that it lists.
NOTES = dict(re.findall(r"^\[\^(\S+)\]: (.+(?:\n    .+)*)", MODEL, re.MULTILINE))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.row} {fault.fault}")
def test_each_fault_has_tests_that_exist(fault):
    assert bool(fault.proofs) != bool(fault.not_built), "a fault has proofs, unless its feature is not built"
    assert missing(fault.proofs) == []


def test_each_row_is_there_once_and_in_order():
    assert [fault.row for fault in FAULTS] == list(range(1, len(FAULTS) + 1))


def test_the_table_says_of_each_row_whether_it_holds():
    lines = table().splitlines()
    assert len(lines) == len(FAULTS) + 4
    held = sum(not fault.not_built and not fault.not_held for fault in FAULTS)
    assert lines[-1].startswith(f"{held} held, ")


def test_a_row_whose_proof_failed_is_not_held():
    outcomes = Outcomes()
    fault = Fault(1, "a fault", "survived", "each", ("a.py::test_a", "b.py::test_b"))
    outcomes.passed = {"a.py::test_a"}
    assert outcomes.state(fault) == "held (1 of 2 proofs not run)"
    outcomes.passed = {"a.py::test_a", "b.py::test_b"}
    assert outcomes.state(fault) == "held"
    outcomes.failed = {"b.py::test_b"}  # another case of the same test
    assert outcomes.state(fault) == "not held: b.py::test_b"


# --- the threat model
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.partition("\n")[0])
def test_each_promise_names_its_tests(promise):
    names = re.findall(r"\[\^(\S+?)\]", promise)
    assert names, "a promise ends with a footnote that lists its tests"
    assert set(names) <= NOTES.keys()


@pytest.mark.parametrize("name", NOTES)
def test_the_tests_of_a_promise_exist(name):
    tests = re.findall(r"`([^`]+)`", NOTES[name])
    assert tests
    assert missing(tuple(tests)) == []
    assert any(f"[^{name}]" in promise for promise in PROMISES)
