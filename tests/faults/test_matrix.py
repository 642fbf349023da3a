"""Each row of the fault matrix has tests that are marked with it, and each promise of the threat model names tests."""

import re

from faults.matrix import FAULTS, TESTS, Outcomes, find_proofs, missing, table

MODEL = (TESTS.parent / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
PROMISED = MODEL.partition("\n## ")[2].partition("\n## What is not promised\n")[0]
# A promise is an item of a list that opens with its name in bold.
PROMISES = re.findall(r"^- (?:\*\*([^*]+?)\.?\*\*)?", PROMISED, re.MULTILINE)
PROOFS = [line.split("\t") for line in (TESTS / "faults" / "promises.tsv").read_text(encoding="utf-8").splitlines()[1:]]


def test_each_fault_is_there_once_and_has_marked_tests():
    assert [fault.row for fault in FAULTS] == list(range(1, len(FAULTS) + 1))
    for fault in FAULTS:
        assert bool(fault.proofs) != bool(fault.not_built), f"no test is marked fault({fault.row})"
    assert find_proofs().keys() <= {fault.row for fault in FAULTS}


def test_the_table_says_of_each_row_whether_it_holds():
    lines = table().splitlines()
    assert len(lines) == len(FAULTS) + 4
    held = sum(not fault.not_built and not fault.not_held for fault in FAULTS)
    assert lines[-1].startswith(f"{held} held, ")


def test_a_row_whose_proof_failed_is_not_held():
    outcomes, fault = Outcomes(), FAULTS[0]
    first, *others = fault.proofs
    outcomes.passed = {first}
    assert outcomes.state(fault) == f"held ({len(others)} of {len(others) + 1} proofs not run)"
    outcomes.passed = {first, *others}
    assert outcomes.state(fault) == "held"
    outcomes.failed = {first}  # another case of the same test
    assert outcomes.state(fault) == f"not held: {first}"


# --- the threat model
def test_each_promise_has_tests_which_exist():
    assert len(PROMISES) == len(set(PROMISES))
    assert set(PROMISES) == {promise for promise, _ in PROOFS}
    assert missing(tuple(test for _, test in PROOFS)) == []
