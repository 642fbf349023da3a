"""The fault matrix: the faults that this library must survive, with figures; tests are marked `fault(row)`.

`python tests/faults/matrix.py` prints it as a table. With `--run` it runs the marked tests first and prints the results;
further arguments are those of pytest: `python tests/faults/matrix.py --run -n 2 -m "endurance or not endurance"`.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
MARKED = re.compile(r"^@pytest\.mark\.fault\(([\d, ]+)\)\n(?:[^d\n].*\n|\)\n)*?(?:async )?def (\w+)", re.MULTILINE)


class Fault(NamedTuple):
    row: int
    fault: str
    expected: str
    figures: str  # of all cases: of those that are alike, the default run takes a sample
    not_built: str = ""  # the feature that this row is about, where there is none yet
    not_held: str = ""  # what gives way, where something does

    @property
    def proofs(self) -> list[str]:
        """The tests that are marked with this row."""
        return find_proofs().get(self.row, [])

    @property
    def state(self) -> str:
        if self.not_built:
            return f"not built: {self.not_built}"
        return f"not held: {self.not_held}" if self.not_held else "held"


ROWS = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()[1:]  # below the names of the columns
FAULTS = tuple(Fault(int(row), *cells) for row, *cells in (line.split("\t") for line in ROWS))


@cache
def find_proofs() -> dict[int, list[str]]:
    """The marked tests of each row, as `file::test` below `tests/`."""
    proofs: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for rows, test in MARKED.findall(path.read_text(encoding="utf-8")):
            for row in rows.split(","):
                proofs.setdefault(int(row), []).append(f"{path.relative_to(TESTS).as_posix()}::{test}")
    return proofs


def missing(proofs: tuple[str, ...]) -> list[str]:
    """Those of `proofs`, each `file::test` below `tests/`, that are not there."""
    return [proof for proof in proofs if not is_there(*proof.split("::"))]


def is_there(file: str, test: str) -> bool:
    return test in tests_in(TESTS / file)


@cache
def tests_in(file: Path) -> set[str]:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return set(re.findall(r"^(?:async )?def (\w+)", text, re.MULTILINE))


class Outcomes:
    """What became of each test, by `file::test` below `tests/`: a plugin of pytest."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0].removeprefix("tests/")
        if report.failed:
            self.failed.add(test)
        elif report.passed and report.when == "call":
            self.passed.add(test)

    def state(self, fault: Fault) -> str:
        if not fault.proofs:
            return fault.state
        if failed := [proof for proof in fault.proofs if proof in self.failed]:
            return f"not held: {', '.join(failed)}"
        left_out = sum(proof not in self.passed for proof in fault.proofs)
        return fault.state + (f" ({left_out} of {len(fault.proofs)} proofs not run)" if left_out else "")


def table(outcomes: Outcomes | None = None) -> str:
    states = [fault.state if outcomes is None else outcomes.state(fault) for fault in FAULTS]
    rows = [
        f"| {fault.row} | {fault.fault} | {fault.expected} | {fault.figures} | {state} |"
        for fault, state in zip(FAULTS, states, strict=True)
    ]
    kinds = [state.partition(":")[0].partition(" (")[0] for state in states]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("held", "not held", "not built"))
    return "\n".join(["| # | fault | expected | figures | state |", "|---|---|---|---|---|", *rows, "", counts])


def main(arguments: list[str]) -> int:
    if arguments[:1] != ["--run"]:
        print(table())
        return 0
    outcomes = Outcomes()
    proofs = sorted({str(TESTS / proof) for proofs in find_proofs().values() for proof in proofs})
    code = pytest.main([f"--rootdir={TESTS.parent}", *proofs, *arguments[1:]], plugins=[outcomes])
    print(table(outcomes))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
