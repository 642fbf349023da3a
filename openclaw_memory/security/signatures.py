"""Signatures of record files: whether this library wrote a file as it is, and whether a later version was signed here.

A signature is an HMAC-SHA256 over the path, all fields and the text. It cannot say that a file is not an older one that
was put back, or that a signature should be there: for that, the versions signed on this machine are listed in the
user's data folder, a line for each write, in one file for each workspace.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from threading import Lock
from typing import Any

from openclaw_memory._links import NO_LINK
from openclaw_memory._log import warn
from openclaw_memory.config.data_folder import locate_user_data
from openclaw_memory.errors import OpenClawMemoryError, suggest_remedy
from openclaw_memory.security import keys
from openclaw_memory.security.keys import Key
from openclaw_memory.types.codec import get_plain_name

FIELD = "signature"
FOLDER = "signed"  # in the user's data folder
_WORKSPACES = 256  # lists that are kept in memory; those of others are read again
_METHOD = "hmac-sha256"
_WRITTEN = re.compile(rf"{_METHOD}:([0-9a-f]{{16}}):([0-9a-f]{{64}})")
_PURPOSE = "signature"
_GONE = "gone"
_UNSIGNED = ("low", "medium")  # all else counts as high, also what is misspelled
_LOW = re.compile(rf'^sensitivity: "?(?:{"|".join(_UNSIGNED)})"?[ \t]*\r?$'.encode(), re.MULTILINE)


def needs_signature(root: Path, path: str, fields: Mapping[str, Any] | None) -> bool:
    """Return whether a file has to be signed: a record of high sensitivity, or a file that was signed before.

    Args:
        root: The workspace.
        path: The file.
        fields: Its fields; None where it has none.
    """
    content = fields or {}
    is_high = "memory_id" in content and content.get("sensitivity") not in _UNSIGNED
    return is_high or FIELD in content or _open_ledger(root).is_listed(path)


def is_plain(data: bytes) -> bool:
    """Return whether the file of a record needs no signature by its own words; it is not parsed for that.

    Args:
        data: Its content.
    """
    return data.count(b"sensitivity") == 1 and _LOW.search(data) is not None and FIELD.encode() not in data


def is_listed(root: Path, path: str) -> bool:
    """Return whether the record at a path was signed here, and not forgotten since.

    Args:
        root: The workspace.
        path: The file.
    """
    return _open_ledger(root).is_listed(path)


def sign(path: str, fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the fields with a signature over them.

    Args:
        path: The file.
        fields: Its fields, as they are written.
        text: The text below them.

    Raises:
        StoreError: The key of this user can neither be read nor made. Nothing may be written.
    """
    key = keys.load_signing_key()
    return {**_strip_signature(fields), FIELD: f"{_METHOD}:{key.id}:{_compute_mac(key, path, fields, text)}"}


def explain_refusal(root: Path, path: str, fields: Mapping[str, Any] | None, text: str) -> str | None:
    """Return why a file must not be shown; None for one that needs no signature, or has a good one.

    Args:
        root: The workspace.
        path: The file.
        fields: Its fields; None where it has none.
        text: The text below them.
    """
    if not needs_signature(root, path, fields):
        return None
    wrong = _check_signature(_open_ledger(root), path, fields or {}, text)
    if wrong is None:
        return None
    return f"{path} {wrong}; it is shown nowhere: look at it, then sign it with `openclaw-memory sign {quote(path)}`"


def record_signed(root: Path, path: str, memory_id: str, version: int) -> None:
    """Put down that a version was signed here: earlier ones are no longer taken.

    A failure to note it is a warning in the log: the record itself is written and signed.

    Args:
        root: The workspace.
        path: The file of the record.
        memory_id: The id of the record.
        version: The version.
    """
    _open_ledger(root).add(path, memory_id, version)


def record_forgotten(root: Path, path: str) -> None:
    """Put down that a record was forgotten here: its file is not taken again. Nothing happens for one never signed.

    Args:
        root: The workspace.
        path: The file of the record.
    """
    _open_ledger(root).close(path)


def find_latest_version(root: Path, memory_id: str) -> int:
    """Return the latest version of a record that was signed here; 0 for none.

    Args:
        root: The workspace.
        memory_id: The id of the record.
    """
    return _open_ledger(root).find_latest_version(memory_id) or 0


def _check_signature(ledger: _Ledger, path: str, fields: Mapping[str, Any], text: str) -> str | None:
    if FIELD not in fields:
        was = "has lost its signature" if ledger.is_listed(path) else "is of high sensitivity and not signed"
        return f"{was}: something else than this library wrote it, or an earlier version of it"
    return _check_forged(path, fields, text) or _check_outdated(ledger, fields)


def _check_forged(path: str, fields: Mapping[str, Any], text: str) -> str | None:
    written = _WRITTEN.fullmatch(str(fields[FIELD]))
    if written is None:  # it is not repeated: a model may read this
        return "has something else than a signature in the field of that name"
    key_id, mac = written.groups()
    try:
        key = keys.find_signing_key(key_id)
    except OpenClawMemoryError as error:
        return f"cannot be checked ({error})"
    if key is None:
        return f"was signed with the key {key_id}, which is not here: set {keys.VARIABLE} to that key if it is yours"
    if not hmac.compare_digest(mac, _compute_mac(key, path, fields, text)):
        return "has changed since it was signed: something else than this library wrote it"
    return None


def _check_outdated(ledger: _Ledger, fields: Mapping[str, Any]) -> str | None:
    newest, version = ledger.find_latest_version(str(fields.get("memory_id"))), fields.get("version")
    if newest is None:
        return "was forgotten here, and has come back"
    if not isinstance(version, int) or version < newest:
        return f"is version {version}, and version {newest} was signed here: an older file was put back"
    return ledger.trouble


def _strip_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != FIELD}


def _compute_mac(key: Key, path: str, fields: Mapping[str, Any], text: str) -> str:
    # Git and editors change the ends of lines; what a value holds is in its field too, to the letter.
    content = [get_plain_name(path), _strip_signature(fields), text.replace("\r\n", "\n").strip()]
    message = json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hmac.new(key.derive(_PURPOSE), message, "sha256").hexdigest()


@dataclass(slots=True)
class _Ledger:
    """The signed versions of one workspace on this machine; a file that has grown is read on."""

    file: Path | None
    """None where the user has no data folder."""
    trouble: str | None = None
    """Why the file cannot be read, if it cannot."""
    _read: tuple[int, int] = (0, 0)  # inode, and how many bytes of it were read
    # Paths and ids by their tags: the latest record at a path, and the latest version of a record, None if forgotten.
    _records: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, int | None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def is_listed(self, path: str) -> bool:
        """Return whether the record at a path was signed here, and was not forgotten since."""
        self._refresh()
        memory_id = self._records.get(_make_path_tag(path))
        return memory_id is not None and self._versions[memory_id] is not None

    def find_latest_version(self, memory_id: str) -> int | None:
        """Return the latest version that was signed, 0 for none; None for a record that was forgotten."""
        self._refresh()
        return self._versions.get(_make_tag(memory_id), 0)

    def add(self, path: str, memory_id: str, version: int) -> None:
        """Put down a version of a record."""
        self._write(f"{_make_path_tag(path)} {_make_tag(memory_id)} {version}\n".encode())

    def close(self, path: str) -> None:
        """Put down that the record at a path was forgotten, if it is listed."""
        if self.is_listed(path):
            self._write(f"{_make_path_tag(path)} {self._records[_make_path_tag(path)]} {_GONE}\n".encode())

    def _write(self, line: bytes) -> None:
        if self.file is None:
            return
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_LINK, 0o600)
            try:
                os.write(descriptor, line)  # at once: processes that write at the same time part no line
            finally:
                os.close(descriptor)
        except OSError as error:
            warn(f"{self.file} does not say what was signed last ({error.strerror}): {suggest_remedy(error)}")

    def _refresh(self) -> None:
        if self.file is None:
            return
        with self._lock:
            try:
                info = os.stat(self.file, follow_symlinks=False)
                if (info.st_ino, info.st_size) != self._read:
                    self._read_on(info)
                self.trouble = None
            except FileNotFoundError:
                self._forget()
            except OSError as error:
                self.trouble = (
                    f"may be an older one: {self.file} cannot be read ({error.strerror}, {suggest_remedy(error)})"
                )

    def _read_on(self, info: os.stat_result) -> None:
        inode, at = self._read
        if inode != info.st_ino or at > info.st_size:
            self._forget()
            at = 0
        descriptor = os.open(self.file or "", os.O_RDONLY | NO_LINK)
        with open(descriptor, "rb") as stream:
            stream.seek(at)
            new = stream.read()
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.decode("utf-8", "replace").split("\n"):
            match line.split(" "):
                case [path, memory_id, version] if version == _GONE or version.isdecimal():
                    self._take(path, memory_id, version)
                case _:  # the end, or half a line of a process that was killed
                    continue
        self._read = info.st_ino, at + len(whole)

    def _take(self, path: str, memory_id: str, version: str) -> None:
        self._records[path] = memory_id
        newest = self._versions.get(memory_id, 0)
        self._versions[memory_id] = None if newest is None or version == _GONE else max(newest, int(version))

    def _forget(self) -> None:
        self._records.clear()
        self._versions.clear()
        self._read = (0, 0)


def _open_ledger(root: Path) -> _Ledger:
    return _open_ledger_in(locate_user_data() / FOLDER, root)


@lru_cache(maxsize=_WORKSPACES)
def _open_ledger_in(folder: Path | None, root: Path) -> _Ledger:
    name = blake2b(os.path.realpath(root).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return _Ledger(folder and folder / name)


def _make_path_tag(path: str) -> str:
    return _make_tag(get_plain_name(path))  # to seal a file changes nothing of what it says


def _make_tag(name: str) -> str:
    """Return the digest of a path or an id: both may hold private words."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
