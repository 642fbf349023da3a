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


# fmt: off
FAULTS = (
    Fault(1, "a process that writes and syncs is killed at any moment", "what it acknowledged is there, once and whole; the index is sound, and after a sync equals a fresh one", "a soak with 60 kills (nightly; 900 by endurance)"),
    Fault(2, "a kill at a system call of append, edit, promote, or a sync", "old or new, never mixed; the next one goes on", "8 calls of each writer, 3 of each of 4 kinds of sync (nightly: each)"),
    Fault(3, "a kill while the index is built again", "the old index or the new one, searchable; leftovers are swept", "4 kills (100 nightly)"),
    Fault(4, "the index file is deleted", "built again with the same ids and hits", "all of 600 lines"),
    Fault(5, "garbage in the pages of the index, a cut file, a file that is no database", "built again, the search answers right and says so; never taken for a lock", "every page; 6 of each of 4 kinds (100 nightly)"),
    Fault(6, "one bit of the index is flipped", "no wrong text is returned", "80 bits (300 nightly), and 6 through a search (100 nightly)"),
    Fault(7, "one bit of an encrypted index is flipped", "detected; in the first 16 bytes, which mean nothing, it changes nothing", "100 of 100"),
    Fault(8, "the disk is full", "a typed error, no half-written line or row; all goes on once there is room", "each system call; each page free in a real file system"),
    Fault(9, "the disk does not confirm, turned read-only, no descriptors are left", "not acknowledged; searches still answer", "each writer, 0 to 15 descriptors"),
    Fault(10, "processes append to one file at once", "every line is kept", "2 x 20, and 8 x 500 nightly"),
    Fault(11, "processes sync at once while others search", "no error reaches anybody", "4 x 15 syncs (60 nightly) and 2 searchers"),
    Fault(12, "an edit of lines that have changed meanwhile", "a conflict that shows both versions, nothing is overwritten", "each"),
    Fault(13, "paths that lead out, and a symlink swapped in while reading", "refused, nothing leaks", "66 attacks, 20,000 readings during swaps"),
    Fault(14, "hostile queries", "answered, no exception", "61 queries in 4 set-ups, and generated ones; <= 100 ms of processor time each"),
    Fault(15, "text made to keep the masking of secrets busy", "linear", "100 KB a pattern, <= 0.1 s each"),
    Fault(16, "not UTF-8, UTF-16, BOM, CRLF, NUL, U+2028, lone CR", "indexed or reported; lines end at \\n only", "each"),
    Fault(17, "a line of 100 MB, a sparse file of 50 GB, FIFO, device, socket", "skipped and listed, not read", "< 64 MB of memory"),
    Fault(18, "lines of a transcript that are NaN, huge numbers, deep nesting, lone surrogates, half a line, ...", "skipped and counted, the rest is indexed", "20 kinds"),
    Fault(19, "100,000 files", "scanned", "100,100 (nightly)"),
    Fault(20, "the embedding service: 429, 5xx, a reset, half a body", "at most three tries (five of 429 while indexing), then keywords, and status says so", "each"),
    Fault(21, "the embedding service hangs, or sends byte by byte", "a deadline of our own ends it", "deadline + 0.5 s"),
    Fault(22, "an embedder with too few vectors, NaN, null, other dimensions, zero vectors", "refused or made harmless, never stored", "each"),
    Fault(23, "a gzip bomb from the embedding service", "refused before it is unpacked", "300 MB, < 32 MB of memory"),
    Fault(24, "an editor saves by renaming, a file is deleted and restored, 10,000 events come at once", "one sync, no file is dropped", "debounce + 1 s (in the benchmarks)"),
    Fault(25, "indexing a file fails once", "tried again without the file being touched", "each kind of failure"),
    Fault(26, "a clock that is 40 days or 10 years off, midnight, clocks that change", "the right day's file, scores from 0 to 1, changes are noticed", "12 moments, 4 distances"),
    Fault(27, "any history of talk, compactions, overflows, restarts, crashes, failures and damage", "one flush before each compaction, from 176,000 of 200,000 tokens on, and none besides", "20 histories on a disk (2,000 nightly)"),
    Fault(28, "`NO_REPLY` in any case, streamed in any pieces", "reaches nobody", "37 forms, every split into three"),
    Fault(29, "a heartbeat, a program that compacts by itself, a workspace that cannot be written, an unknown window", "no flush", "each"),
    Fault(30, "a crash after a flush has written, before it was marked; two flushes at once", "no line twice, none lost", "a kill, 15 crashes at any call, 4 threads"),
    Fault(31, "a text that forges the fence of recalled memory, with look-alikes", "cannot close it", "100 texts (5,000 nightly)"),
    Fault(32, "recalled memory in a transcript, or in what a model saves", "not indexed, and not written, again", "each form"),
    Fault(33, "secrets with a known prefix", "masked in what is indexed, logged, shown, written by a tool, and saved by a flush", "116 formats, 0 of 15 harmless lines"),
    Fault(34, "passwords in plain words, in five languages", "masked", "", not_built="taken out, as its rules masked notes of people too"),
    Fault(35, "records marked never to be stored, masked or expired", "never in a search, a reading or the bytes of the index", "0 leaks"),
    Fault(36, "forget the last N days", "gone from notes, index, vectors, caches and the write-ahead log", "0 traces"),
    Fault(37, "an access log is edited, cut or reordered", "its verification fails and names the first wrong entry; kills, full disks and 8 writers at once do not break it", "4 of 4, and each byte of a small log; a kill at 6 system calls (nightly: each)"),
    Fault(38, "no key, or a wrong one, for an encrypted index", "a typed error, nothing is changed or set aside, no text on the disk: each write of a process is looked at", "each call; a kill at 18 system calls of each change (each nightly)"),
    Fault(39, "which language a sentence is in", "identified, in 97 of 100 by py3langid, in 85 by stop words", "100 sentences and 250 messages of five languages"),
    Fault(40, "a model that reads intents answers nonsense, late or with injected words", "rules decide within 4 s, nothing is suggested on them, nothing is deleted", "100 malformed, late and hostile replies, 150 generated"),
    Fault(41, "`do not forget ...` in five languages", "means remember", "5 of 5"),
    Fault(42, "any sequence of writing, renaming, deleting, crashing, losing and damaging the index", "the index equals a fresh one", "120 runs of up to 20 steps"),
    Fault(43, "there is no network", "the whole suite passes", "every test: the settings of pytest block all hosts but this one"),
    Fault(44, "others may read what is written", "files 0600, folders 0700", "every file and folder made"),
    Fault(45, "a workspace that strangers prepared, on every surface: calls, commands, tools, what adapters do of their own", "our errors only; nothing shown from outside, written outside, forged, or left hanging", "99 attacks on 15 surfaces, <= 15 s and 500 MB each (nightly: ten times as large, and 100 mixtures)"),
    Fault(46, "`.memory`, or a file in it, is a link or a hard link to what is others', or an index of theirs", "neither read nor written: the index is in the user's data folder", "folder, copies, links, hard links"),
    Fault(47, "settings inside a workspace that are nested, endless, sparse, no file, or full of stars", "our errors and notices only; globs match in bounded time", "27 hostile files, 200 fuzzed ones (10,000 nightly), <= 50 ms each"),
    Fault(48, "an index that another user made or changed: false text, rows of other notes, triggers, views", "a text is shown only if its note holds it; what a schema says is not run", "each"),
    Fault(49, "a note, or the name of a file, forges the citations and fences that a model is shown", "true citations carry digits of the fence's random id, which no note can know", "generated texts and names (10,000 nightly), 0 taken for one"),
    Fault(50, "a process is forked while threads are at work in its memory", "no child hangs; what it may not use it is told", "20 forks (1,000 nightly), 0 hung"),
    Fault(51, "threads append, edit, force syncs and read the status all at once", "no false damage, no closed store", "24 forced syncs of 12 threads (5,000 nightly), 0"),
    Fault(52, "a kill while a long text is appended", "all of it or nothing; of a transcript whole entries", "0.5 MB, 3 kills (nightly: 25 at 0.5 MB, 25 at 9 MB)"),
    Fault(53, "secrets inside words of any script, of further formats, or cut by invisible characters and line ends", "masked, and look-alikes left alone", "<= 2 of 30 look-alikes"),
    Fault(54, "10 MB of anything in one note, and front matter that is nested", "20,000 chunks of a file at most, and the report says how far; no deeper values are read", "10 MB: <= 15 s of processor time, <= 500 MB"),
    Fault(55, "several people read along, and a key or a state says so in an odd way", "what is private is hidden by tools, retrievers and stores alike; a setting fails closed", "each part of both adapters"),
    Fault(56, "names of files and text with control and bidirectional characters", "reach no terminal, `repr`, page, log or error; a name that would tear a citation apart is skipped with a word", "each"),
    Fault(57, "memories are opened, searched, and closed or dropped in a loop", "model, threads and descriptors are released at once", "10 times (1,000 nightly), flat"),
    Fault(58, "a file changes behind its stamps: the same size, and its mtime set back", "noticed: the ctime counts", "each kind of file"),
    Fault(59, "a password in the address of a service, a query in it, 200,000 dimensions, an endless answer", "in no message and no log; refused with a word", "each"),
    Fault(60, "deleted text in the bytes of the index", "gone after the next sync, from rows, keyword index, vectors and log", "each way to delete; 25 rounds of edits (400 nightly), 0 words left"),
    Fault(61, "vectors that no note needs any more", "the index stays below twice the size of a new one", "60 rounds of edits (1,500 nightly)"),
    Fault(62, "the model that ships is exchanged for another", "found out by a SHA-256 in the code before a vector is kept", "the whole file"),
    Fault(63, "a record of high sensitivity is edited, lowered or stripped of its signature by something else", "shown nowhere, reported with the command that signs it; no tool vouches for it", "9 forgeries, each of 19 fields"),
    Fault(64, "an agent saves a page that says `ignore all previous instructions`", "a quotation with its source; never in MEMORY.md, never a preference", "7 doors to MEMORY.md, 4 to a preference, 8 ends of lines"),
    Fault(65, "whatever a file, a transcript, a citation, settings, a policy, a query or a date says", "read, or an error of ours; a time that grows with the length alone", "12 parsers, 240 texts (a million nightly), 100 KB in 0.1 s"),
)
# fmt: on


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
