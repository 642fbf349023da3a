"""What is known of the batch jobs of an index, in a file beside it: who pays for a job must not lose its name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from openclaw_memory.errors import StoreError

SUFFIX = ".batches.json"


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

    identity: str
    jobs: tuple[Job, ...] = ()
    failures: int = 0


def path_of(index_path: Path) -> Path:
    """The file that goes with an index."""
    return Path(f"{index_path}{SUFFIX}")


def load(path: Path, identity: str) -> Known:
    """What the file knows of this identity. Jobs of another one are of no use: the index has another model now.

    Raises:
        StoreError: the file is there and cannot be read.
        ValueError: it is damaged.
    """
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return Known(identity)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); mend its permissions, or delete it") from error
    try:
        known = Known(str(said["identity"]), tuple(_job(job) for job in said["jobs"]), int(said["failures"]))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return known if known.identity == identity else Known(identity)


def save(path: Path, known: Known) -> None:
    """Put `known` into the file at once and whole; where there is nothing to know, there is no file.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        if not known.jobs and not known.failures:
            path.unlink(missing_ok=True)
            return
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            _write(beside, json.dumps(asdict(known)).encode())
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
