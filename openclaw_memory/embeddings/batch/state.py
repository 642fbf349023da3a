"""The batch jobs of an index, in a file next to it: each job is paid for, so its name must not be lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from openclaw_memory._log import warn
from openclaw_memory.errors import StoreError

SUFFIX = ".batches.json"
# A job is handed over under the lock, which takes ten minutes at most.
LOCK_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Job:
    """One job: its name at the service, the keys of its texts, and how many tokens these are at most.

    `submitted` is a time in seconds since 1970; `failures` counts the failed attempts to get its vectors.
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
        """Return the same without the job of that name."""
        return replace(self, jobs=tuple(job for job in self.jobs if job.name != name))


class JobFile:
    """The jobs of one embedder's identity in the file at `path`, which other processes change as well.

    `known` is what the file held when it was last read. The jobs of other identities stay in it: a model that is
    wanted again finds its own.
    """

    def __init__(self, path: Path, identity: str) -> None:
        import filelock

        self.path, self.identity = path, identity
        self._lock = filelock.FileLock(f"{path}.lock", timeout=LOCK_SECONDS, mode=0o600)
        self.read()

    def read(self) -> None:
        """Read the file again.

        Raises:
            StoreError: it cannot be read; or it is damaged, and cannot be set aside.
        """
        try:
            self._others = load(self.path)
        except ValueError:
            with self.locked():  # of two processes one sets it aside
                return
        self.known = self._others.pop(self.identity, Known())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the file, which is read first; a process that ends releases the lock.

        Raises:
            StoreError: the lock cannot be taken; the file cannot be read, or is damaged and cannot be set aside.
        """
        try:
            self._lock.acquire()
        except TimeoutError as error:
            raise StoreError(
                f"{self._lock.lock_file} is held for over {LOCK_SECONDS:g} s; end the process that holds it"
            ) from error
        except (OSError, NotImplementedError) as error:
            raise StoreError(f"{self._lock.lock_file} cannot be locked ({error}); check its permissions") from error
        try:
            try:
                self._others = load(self.path)
            except ValueError as damage:
                self._set_aside(damage)
            self.known = self._others.pop(self.identity, Known())
            yield
        finally:
            self._lock.release()

    def save(self, known: Known) -> None:
        """Put `known` into the file at once and whole; only under the lock.

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
        if any(job.submitted < before for known in self._others.values() for job in known.jobs):
            with self.locked():
                for identity, known in self._others.items():
                    young = tuple(job for job in known.jobs if job.submitted >= before)
                    self._others[identity] = replace(known, jobs=young)
                self.save(self.known)

    def _set_aside(self, damage: ValueError) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            os.replace(self.path, aside)
        except OSError as error:
            message = f"{self.path} is damaged ({damage}) and cannot be kept as {aside} ({error.strerror}); delete it"
            raise StoreError(message) from error
        warn(f"{self.path} is damaged ({damage}) and is kept as {aside}; texts of its jobs are sent again")
        self._others = {}


def path_of(index_path: Path) -> Path:
    """Return the file that goes with an index."""
    return Path(f"{index_path}{SUFFIX}")


def load(path: Path) -> dict[str, Known]:
    """Return what the file holds, by identity; nothing where there is no file.

    Raises:
        StoreError: the file cannot be read.
        ValueError: it is damaged.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); check its permissions, or delete it") from error
    try:
        return {
            identity: Known(
                tuple(
                    Job(
                        str(job["name"]),
                        [str(key) for key in job["keys"]],
                        int(job["tokens"]),
                        float(job["submitted"]),
                        int(job["failures"]),
                    )
                    for job in known["jobs"]
                ),
                int(known["failures"]),
            )
            for identity, known in json.loads(content).items()
        }
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def save(path: Path, everything: Mapping[str, Known]) -> None:
    """Put `everything` into the file at once and whole; where there is nothing to keep, there is no file.

    Raises:
        StoreError: it cannot be written.
    """
    kept = {identity: asdict(known) for identity, known in everything.items() if known.jobs or known.failures}
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        if not kept:
            path.unlink(missing_ok=True)
            return
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        message = f"{path} cannot be written ({error.strerror}); free some space, or check its permissions"
        raise StoreError(message) from error
