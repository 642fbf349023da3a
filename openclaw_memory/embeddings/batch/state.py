"""What is known of the batch jobs of an index, in a file beside it: who pays for a job must not lose its name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from openclaw_memory._log import warn
from openclaw_memory.errors import StoreError

SUFFIX = ".batches.json"
# A job is handed over under the lock, which takes ten minutes at most: who waits longer waits for something stuck.
LOCK_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Job:
    """One job: its name at the service, the keys of its texts, and what these came to in tokens, at most.

    `submitted` is a time in seconds since 1970; `failures` counts the vain attempts to get its vectors.
    """

    name: str
    keys: Sequence[str]
    tokens: int
    submitted: float
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """The jobs of one embedder's identity, and how many failed since the last one that did not."""

    jobs: tuple[Job, ...] = ()
    failures: int = 0

    def without(self, name: str) -> Known:
        """The same without the job of that name."""
        return replace(self, jobs=tuple(job for job in self.jobs if job.name != name))


class JobFile:
    """The jobs of one embedder's identity in the file at `path`, which other processes change as well.

    `known` is what the file said when it was last read. The jobs of other identities stay in it: a model that is
    wanted again finds its own.
    """

    def __init__(self, path: Path, identity: str) -> None:
        import filelock

        self.path, self.identity = path, identity
        self.known = Known()
        self._others: dict[str, Known] = {}
        self._lock = filelock.FileLock(f"{path}.lock", timeout=LOCK_SECONDS, mode=0o600)
        self.read()

    def read(self) -> None:
        """Look what the file says now.

        Raises:
            StoreError: it cannot be read; or it is damaged, and cannot be set aside.
        """
        try:
            self._take(load(self.path))
        except ValueError:
            with self.locked():  # of two processes one sets it aside
                return

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the file, which is read first; the lock falls with its process.

        Raises:
            StoreError: there is no lock to be had; the file cannot be read, or is damaged and cannot be set aside.
        """
        try:
            self._lock.acquire()
        except TimeoutError as error:
            raise StoreError(
                f"{self._lock.lock_file} is held for over {LOCK_SECONDS:g} s; end the process that holds it"
            ) from error
        except (OSError, NotImplementedError) as error:
            raise StoreError(f"{self._lock.lock_file} cannot be locked ({error}); mend its permissions") from error
        try:
            try:
                self._take(load(self.path))
            except ValueError as damage:
                self._set_aside(damage)
            yield
        finally:
            self._lock.release()

    def save(self, known: Known) -> None:
        """Put `known` into the file at once and whole; under the lock, or what others know is lost.

        Raises:
            StoreError: it cannot be written.
        """
        save(self.path, self._others | {self.identity: known})
        self.known = known

    def sweep(self, before: float) -> None:
        """Forget jobs of other identities that were submitted before that time, in seconds since 1970.

        Raises:
            StoreError: the file cannot be written.
        """
        if not any(job.submitted < before for known in self._others.values() for job in known.jobs):
            return
        with self.locked():
            for identity, known in self._others.items():
                young = tuple(job for job in known.jobs if job.submitted >= before)
                self._others[identity] = replace(known, jobs=young)
            self.save(self.known)

    def _take(self, everything: dict[str, Known]) -> None:
        self.known = everything.pop(self.identity, Known())
        self._others = everything

    def _set_aside(self, damage: ValueError) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            os.replace(self.path, aside)
        except OSError as error:
            words = f"{self.path} is damaged ({damage}) and cannot be kept as {aside} ({error.strerror}); delete it"
            raise StoreError(words) from error
        warn(f"{self.path} is damaged ({damage}) and is kept as {aside}; texts of its jobs are sent again")
        self._take({})


def path_of(index_path: Path) -> Path:
    """The file that goes with an index."""
    return Path(f"{index_path}{SUFFIX}")


def load(path: Path) -> dict[str, Known]:
    """What the file knows of each identity.

    Raises:
        StoreError: the file is there and cannot be read.
        ValueError: it is damaged.
    """
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); mend its permissions, or delete it") from error
    try:
        return {
            identity: Known(tuple(_job(job) for job in known["jobs"]), int(known["failures"]))
            for identity, known in said.items()
        }
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def save(path: Path, everything: Mapping[str, Known]) -> None:
    """Put `everything` into the file at once and whole; where there is nothing to know, there is no file.

    Raises:
        StoreError: it cannot be written.
    """
    worth = {identity: asdict(known) for identity, known in everything.items() if known.jobs or known.failures}
    try:
        if not worth:
            path.unlink(missing_ok=True)
            return
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            _write(beside, json.dumps(worth).encode())
            os.replace(beside, path)
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}); make room, or mend its permissions") from error


def _job(said: Mapping[str, Any]) -> Job:
    keys = [str(key) for key in said["keys"]]
    return Job(str(said["name"]), keys, int(said["tokens"]), float(said["submitted"]), int(said["failures"]))


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
