"""End what a run of the tests leaves behind, however the run ends: its processes and its folders.

conftest.py starts this program beside the run. Its input ends with the run, and says what to end and to remove: the mark
of the processes, the folder of what is temporary, and that of pytest ("" is none), which is kept where tests failed.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK = "OPENCLAW_MEMORY_TEST_RUN"  # an environment variable, which the processes of a run inherit
# The second ends a server that waits for its clients, the third what listens to no other.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
SECONDS_TO_END = 5.0


def find_processes(mark: str) -> list[int]:
    """Find the processes that inherited the mark of a run."""
    variable = f"{MARK}={mark}".encode()
    pids = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has just ended, or is of another user
            if variable in file.read_bytes().split(b"\0"):
                pids.append(int(file.parent.name))
    return pids


def end_processes(mark: str) -> None:
    """End the processes of a run, with force where they do not end when they are asked to."""
    for number in SIGNALS:
        ends = time.monotonic() + SECONDS_TO_END
        while (pids := find_processes(mark)) and time.monotonic() < ends:
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, number)
            time.sleep(0.05)


def main() -> None:
    """Wait until the run is over, and clean up after it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # who ends all that is about tests does not end this
        signal.signal(number, signal.SIG_IGN)
    mark, scratch, written, *failed = sys.stdin.read().split("\n")[:-1]
    end_processes(mark)
    is_own = Path(written, mark).exists()  # and not that of the next run, which pytest may have given the same number
    for folder in [scratch] if failed or not is_own else [scratch, written]:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
