"""A memory whose engine is the recorded QMD, and what the tests let go wrong with it."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from openclaw_memory_qmd import QmdBackend
from qmd_recording import write_notes

from openclaw_memory import Memory, MemoryConfig

FAKE = Path(__file__).with_name("qmd_fake.py")


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it has not come about"
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


def recorded(place: Path) -> dict[str, object]:
    """Settings by which the recorded QMD answers; what it was called with is in the folder `faults`."""
    (place / "faults").mkdir(exist_ok=True)
    command = (sys.executable, "-S", "-E", str(FAKE), str(place / "faults"))
    return {"command": command, "folder": str(place / "qmd"), "update_minutes": 0.0}


class Qmd:
    """The recorded QMD: its notes, its folders, and what it was called with."""

    def __init__(self, place: Path) -> None:
        self.notes, self.faults, self.folder = write_notes(place / "notes"), place / "faults", place / "qmd"
        self.settings = recorded(place)
        self._open: list[Memory] = []

    def config(self, **changes: object) -> MemoryConfig:
        return MemoryConfig().replace({"store": {"backend": "qmd"}, "plugins": {"qmd": self.settings | changes}})

    def engine(self, config: MemoryConfig | None = None, **changes: object) -> QmdBackend:
        """The engine of a memory, without what the memory does before and after a search."""
        return self.memory(config, **changes)._backend

    def memory(self, config: MemoryConfig | None = None, **changes: object) -> Memory:
        self._open.append(Memory.open(self.notes, embedder=None, config=config or self.config(**changes)))
        return self._open[-1]

    def fails(self, command: str, how: str) -> None:
        (self.faults / command).write_text(how, encoding="utf-8")

    def is_well(self) -> None:
        for file in self.faults.iterdir():
            if file.name != "calls":
                file.unlink()

    @property
    def calls(self) -> list[str]:
        file = self.faults / "calls"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def count(self, command: str) -> int:
        return sum(call.split()[0] == command for call in self.calls)

    def hanging(self) -> int:
        file = self.faults / "hanging"
        wait_for(lambda: file.exists() and file.read_text(encoding="utf-8"))
        return int(file.read_text(encoding="utf-8"))

    def close(self) -> None:
        for one in self._open:
            one.close()
