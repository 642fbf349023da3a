"""Read the keys of this user, 32 random bytes each, from the environment and the data folder; sign records with them.

A key is never used itself: `Key.derive` gives each purpose a key of its own, so that what one of them gives away says
nothing of the others. A signature is an HMAC-SHA256 over the path, all fields and the text: it tells whether this
library wrote a file as it is. It cannot say that a file is not an older one that was put back.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import Any

from openclaw_memory._system import NO_LINK
from openclaw_memory.config.environment import KEYS_VARIABLE, locate_user_data, read_keys
from openclaw_memory.errors import OpenClawMemoryError, StoreError, UserKeyError, suggest_remedy
from openclaw_memory.types.codec import get_plain_name

BYTES = 32
VARIABLE = KEYS_VARIABLE
NAME = "user.key"  # in the user's data folder
_ID_BYTES = 8
SIGNATURE = "signature"  # the field of a file, and the purpose of the key that made it
_METHOD = "hmac-sha256"
_WRITTEN = re.compile(rf"{_METHOD}:([0-9a-f]{{16}}):([0-9a-f]{{64}})")
_UNSIGNED = ("low", "medium")  # all else counts as high, also what is misspelled


@dataclass(frozen=True, slots=True)
class Key:
    """A key, shown by its id alone."""

    secret: bytes = field(repr=False)
    """32 bytes."""
    id: str = field(init=False)
    """16 hex digits that say which key it is, and nothing about what it is."""

    def __post_init__(self) -> None:
        """Check the length, and make the id.

        Raises:
            UserKeyError: The secret is not 32 bytes long.
        """
        if len(self.secret) != BYTES:
            raise UserKeyError(f"a key has {BYTES} bytes, not {len(self.secret)}: write it as 64 hex digits")
        object.__setattr__(self, "id", blake2b(key=self.secret, person=b"id", digest_size=_ID_BYTES).hexdigest())

    def derive(self, purpose: str) -> bytes:
        """Return the 32 bytes that are the key of one purpose, such as "index"; BLAKE2b keyed by this key.

        Args:
            purpose: At most 16 bytes.
        """
        return blake2b(key=self.secret, person=purpose.encode(), digest_size=BYTES).digest()

    @classmethod
    def read_environment(cls) -> tuple[Key, ...]:
        """Read the keys in `OPENCLAW_MEMORY_KEY`: new data gets the first.

        Raises:
            UserKeyError: The environment does not hold keys.
        """
        try:
            return tuple(cls(bytes.fromhex(digits)) for digits in read_keys())
        except (ValueError, UserKeyError) as error:
            raise UserKeyError(
                f"{VARIABLE} does not hold keys of 64 hex digits each, separated by commas: make one with "
                "`python -c 'import secrets; print(secrets.token_hex(32))'`"
            ) from error

    @classmethod
    def load_user_key(cls) -> Key:
        """Load the key in the user's data folder; make it if there is none yet.

        Raises:
            ConfigError: The user has no home folder.
            StoreError: It can neither be read nor made.
        """
        return cls(_load_file(locate_user_data() / NAME))


def load_signing_key() -> Key:
    """Load the key that this user signs with: the first of the environment, else the secret in the user's data folder.

    Raises:
        UserKeyError: The environment does not hold keys.
        StoreError: There is no key and none can be made.
    """
    return next(iter(Key.read_environment()), None) or Key.load_user_key()


def find_signing_key(key_id: str) -> Key | None:
    """Return the key with an id, if this user signs or has signed with it and has it still.

    Raises:
        UserKeyError, StoreError: As `load_signing_key`.
    """
    keys = (load_signing_key(), *Key.read_environment(), Key.load_user_key())
    return next((key for key in keys if key.id == key_id), None)


@cache
def _load_file(file: Path) -> bytes:
    try:
        with suppress(FileExistsError):
            _create_file(file)
        with open(os.open(file, os.O_RDONLY | NO_LINK), "rb") as opened:
            key = opened.read(BYTES + 1)
    except OSError as error:
        raise StoreError(
            f"{file}, which signs records, cannot be kept ({error.strerror or error}): {suggest_remedy(error)}, "
            "or set OPENCLAW_MEMORY_HOME to a folder of your own"
        ) from error
    if len(key) != BYTES:
        raise StoreError(f"{file} has {len(key)} bytes where a key has {BYTES}: restore it from a backup, or delete it")
    return key


def _create_file(file: Path) -> None:
    """Write a new key under another name, then link it into place whole."""
    if file.exists():
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = file.with_name(f".{NAME}.{os.urandom(8).hex()}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(os.urandom(BYTES))
            opened.flush()
            os.fsync(descriptor)
        os.link(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)


def needs_signature(fields: Mapping[str, Any]) -> bool:
    """Return whether a file has to be signed: a record of high sensitivity, or a file that was signed before."""
    return SIGNATURE in fields or ("memory_id" in fields and fields.get("sensitivity") not in _UNSIGNED)


def sign_fields(path: str, fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the fields with a signature over them.

    Raises:
        StoreError: The key of this user can neither be read nor made. Nothing may be written.
    """
    key = load_signing_key()
    return {**_strip_signature(fields), SIGNATURE: f"{_METHOD}:{key.id}:{_compute_mac(key, path, fields, text)}"}


def explain_refusal(path: str, fields: Mapping[str, Any], text: str) -> str | None:
    """Return why a file must not be shown; None for one that needs no signature, or has a good one."""
    if not needs_signature(fields) or (problem := _find_problem(path, fields, text)) is None:
        return None
    return f"{path} {problem}; it is shown nowhere: look at it, then sign it with `openclaw-memory sign {quote(path)}`"


def _find_problem(path: str, fields: Mapping[str, Any], text: str) -> str | None:
    if SIGNATURE not in fields:
        return "is of high sensitivity and not signed: something else than this library wrote it"
    written = _WRITTEN.fullmatch(str(fields[SIGNATURE]))
    if written is None:  # it is not repeated: a model may read this
        return "has something else than a signature in the field of that name"
    key_id, mac = written.groups()
    try:
        key = find_signing_key(key_id)
    except OpenClawMemoryError as error:
        return f"cannot be checked ({error})"
    if key is None:
        return f"was signed with the key {key_id}, which is not here: set {VARIABLE} to that key if it is yours"
    if not hmac.compare_digest(mac, _compute_mac(key, path, fields, text)):
        return "has changed since it was signed: something else than this library wrote it"
    return None


def _strip_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != SIGNATURE}


def _compute_mac(key: Key, path: str, fields: Mapping[str, Any], text: str) -> str:
    # Git and editors change the ends of lines; what a value holds is in its field too, to the letter.
    content = [get_plain_name(path), _strip_signature(fields), text.replace("\r\n", "\n").strip()]
    message = json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hmac.new(key.derive(SIGNATURE), message, "sha256").hexdigest()
