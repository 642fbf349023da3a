"""The batch jobs of an index, in a file next to it: each job is paid for, so its name must not be lost."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from openclaw_memory._log import warn
from openclaw_memory.errors import StoreError

SUFFIX = ".batches.json"


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
            identity: Known(tuple(_job(**job) for job in known["jobs"]), int(known["failures"]))
            for identity, known in json.loads(content).items()
        }
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def load_or_set_aside(path: Path) -> dict[str, Known]:
    """Return what the file holds, by identity; a damaged file is renamed and counts as none.

    Raises:
        StoreError: the file cannot be read; or it is damaged, and cannot be renamed.
    """
    try:
        return load(path)
    except ValueError as damage:
        aside = path.with_name(f"{path.name}.damaged")
        try:
            os.replace(path, aside)
        except OSError as error:
            message = f"{path} is damaged ({damage}) and cannot be kept as {aside} ({error.strerror}); delete it"
            raise StoreError(message) from error
        warn(f"{path} is damaged ({damage}) and is kept as {aside}; texts of its jobs are sent again")
        return {}


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


def _job(name: str, keys: Sequence[str], tokens: int, submitted: float, failures: int) -> Job:
    return Job(str(name), [str(key) for key in keys], int(tokens), float(submitted), int(failures))
