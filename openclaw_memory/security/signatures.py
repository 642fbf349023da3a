"""Sign the files of records, and tell whether this library wrote one as it is.

A signature is an HMAC-SHA256 over the path, all fields and the text. It cannot say that a file is not an older one that
was put back.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from shlex import quote
from typing import Any

from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.security import keys
from openclaw_memory.security.keys import Key
from openclaw_memory.types.codec import get_plain_name

FIELD = "signature"
_METHOD = "hmac-sha256"
_WRITTEN = re.compile(rf"{_METHOD}:([0-9a-f]{{16}}):([0-9a-f]{{64}})")
_PURPOSE = "signature"
_UNSIGNED = ("low", "medium")  # all else counts as high, also what is misspelled


def needs_signature(fields: Mapping[str, Any]) -> bool:
    """Return whether a file has to be signed: a record of high sensitivity, or a file that was signed before.

    Args:
        fields: Its fields.
    """
    return FIELD in fields or ("memory_id" in fields and fields.get("sensitivity") not in _UNSIGNED)


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


def explain_refusal(path: str, fields: Mapping[str, Any], text: str) -> str | None:
    """Return why a file must not be shown; None for one that needs no signature, or has a good one.

    Args:
        path: The file.
        fields: Its fields.
        text: The text below them.
    """
    if not needs_signature(fields) or (problem := _find_problem(path, fields, text)) is None:
        return None
    return f"{path} {problem}; it is shown nowhere: look at it, then sign it with `openclaw-memory sign {quote(path)}`"


def _find_problem(path: str, fields: Mapping[str, Any], text: str) -> str | None:
    if FIELD not in fields:
        return "is of high sensitivity and not signed: something else than this library wrote it"
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


def _strip_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != FIELD}


def _compute_mac(key: Key, path: str, fields: Mapping[str, Any], text: str) -> str:
    # Git and editors change the ends of lines; what a value holds is in its field too, to the letter.
    content = [get_plain_name(path), _strip_signature(fields), text.replace("\r\n", "\n").strip()]
    message = json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hmac.new(key.derive(_PURPOSE), message, "sha256").hexdigest()
