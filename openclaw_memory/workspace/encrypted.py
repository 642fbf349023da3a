"""Encrypt a file where it is, and decrypt it again: at every moment there is one file, which holds all of the text.

A file first gets its other content, in one step, and then its other name; one that is decrypted first its name. What a
killed process leaves has the name of a plain file and the content of an encrypted one, and is read as such.
"""

from __future__ import annotations

from dataclasses import replace

from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import EncryptionError, WriteError
from openclaw_memory.security.age import is_encrypted, why_not_read
from openclaw_memory.text.policies import encryption_of
from openclaw_memory.types.files import ENCRYPTED, unencrypted
from openclaw_memory.workspace.atomic import rename_file, replace_file
from openclaw_memory.workspace.paths import Place
from openclaw_memory.workspace.safe_read import as_written, decrypted, read_as_it_is


def with_ending(place: Place, *, is_encrypted: bool) -> Place:
    """Return the place of the same file with the ending of an encrypted one, or without it.

    Args:
        place: A place, with or without it.
        is_encrypted: Whether it is to have the ending.
    """
    ending = ENCRYPTED * is_encrypted
    path, name = unencrypted(place.path) + ending, unencrypted(place.parts[-1]) + ending
    return replace(place, path=path, parts=(*place.parts[:-1], name))


def encrypt_at(place: Place, rules: FilesConfig) -> Place:
    """Encrypt a file; return its new place. One that is encrypted stays as it is. Call it with the lock of its folder.

    Args:
        place: The file.
        rules: What encrypts it.

    Raises:
        NotFoundError, PathNotAllowedError, WorkspaceError: It cannot be read.
        EncryptionError: The index is plain, or the key is not here.
        WriteError: It has hard links, would be too large, or there is a file with the other name.
        OSError: It cannot be written. It is as it was.
    """
    data, info = read_as_it_is(place, rules)
    target = with_ending(place, is_encrypted=True)
    if not is_encrypted(data):
        if place == target:
            raise EncryptionError(f"{place.path} is no file of age, though its name says so: rename it")
        if info.st_nlink > 1:
            raise WriteError(f"{place.path} has {info.st_nlink} hard links, under which it would stay: copy it first")
        rename_file(place.base, place.parts, target.parts[-1], dry_run=True)
        replace_file(place.base, place.parts, as_written(data, target, rules, is_there=False), info)
    elif encryption_of(rules) is None:
        raise EncryptionError(why_not_read(place.path))
    if place != target:
        rename_file(place.base, place.parts, target.parts[-1])
    return target


def decrypt_at(place: Place, rules: FilesConfig) -> Place:
    """Decrypt a file; return its new place. One that is plain stays as it is. Call it with the lock of its folder.

    Args:
        place: The file.
        rules: What decrypts it.

    Raises:
        NotFoundError, PathNotAllowedError, WorkspaceError: It cannot be read.
        UndecryptableError: The index is plain, the key is not here, or the file is damaged.
        WriteError: It has hard links, or there is a file with the other name.
        OSError: It cannot be written. It is as it was, under either name.
    """
    data, info = read_as_it_is(place, rules)
    plain = decrypted(data, place.path, rules)
    if not is_encrypted(data):
        return place
    if info.st_nlink > 1:
        raise WriteError(f"{place.path} has {info.st_nlink} hard links, which a change would part: copy it first")
    target = with_ending(place, is_encrypted=False)
    if place != target:
        rename_file(place.base, place.parts, target.parts[-1])
    replace_file(target.base, target.parts, plain, info)
    return target


def encrypt_again(place: Place, rules: FilesConfig) -> bool:
    """Encrypt a file with the present key of the index, whichever it had; return whether it had another.

    Call it with the lock of its folder.

    Args:
        place: The file.
        rules: What decrypts and encrypts it.

    Raises:
        NotFoundError, PathNotAllowedError, WorkspaceError, UndecryptableError: As `decrypt_at`.
        OSError: It cannot be written. It is as it was.
    """
    data, info = read_as_it_is(place, rules)
    encryption = encryption_of(rules)
    if not is_encrypted(data) or (encryption is not None and encryption.is_sealed_now(data, place.path)):
        return False
    plain = decrypted(data, place.path, rules)
    replace_file(place.base, place.parts, as_written(plain, place, rules, is_there=True), info)
    return True
