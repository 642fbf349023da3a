"""Define the commands that encrypt what a memory keeps, decrypt it, and give it another key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.options import WAIT_SECONDS, Place, placed, synced
from openclaw_memory.cli.output import note, say, say_json
from openclaw_memory.errors import EncryptionError, StoreError

NOT_ALL = 1  # the exit code where a file was left with its old key

if TYPE_CHECKING:
    from openclaw_memory.config.sections import KeyPlace
    from openclaw_memory.control.encrypting import Moved
    from openclaw_memory.memory import Memory
    from openclaw_memory.store.encryption import KeyChange
    from openclaw_memory.types import Skipped
    from openclaw_memory.workspace import Workspace


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@placed
def encrypt(place: Place, paths: tuple[str, ...]) -> int:
    """Encrypt the index, or files: nothing is embedded again.

    The key is the first one in OPENCLAW_MEMORY_KEY, or a new one in the user's data folder or keyring, as
    encryption.keys says. Keep a copy of it. The index must be open nowhere else. Killed, the command is run again. With
    the index, records of high sensitivity are encrypted, and transcripts and snapshots if the settings say so.

    Each PATH is a file to encrypt with the key of the index: memory/health.md becomes memory/health.md.age, which is
    read, found and written to like any other.

    Example: openclaw-memory encrypt --workspace notes
    """
    from openclaw_memory.control import encrypting
    from openclaw_memory.store import encrypt_index

    if paths:
        return _moved(place, paths, encrypting.encrypt_files)
    change = _changed(place, lambda index, keys_in: encrypt_index(index, keys_in, wait=WAIT_SECONDS))
    with place.open() as memory:
        wanted = encrypting.wanted_by_settings(memory.workspace, memory.records.everything())
        files = encrypting.encrypt_files(memory.workspace, wanted)
        _follow(memory, files)
    if change.before == change.after:
        return _say(place, change, f"the index is encrypted with the key {change.after} already", files)
    return _say(place, change, f"the index is encrypted with the key {change.after}: keep a copy of that key", files)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--all", "is_all", is_flag=True, help="Decrypt the index, and before it every encrypted file.")
@click.option("--identity", is_flag=True, help="Only print what the program age reads the files with, `age -d -i`.")
@placed
def decrypt(place: Place, paths: tuple[str, ...], *, is_all: bool, identity: bool) -> int:
    """Decrypt the index, or files.

    The key stays where it is. With encryption.enabled in the settings, an index that is made later is encrypted again.
    While files are encrypted, the index stays so, which has their text: --all decrypts them first. Each PATH is a file
    to decrypt, whatever the index is.

    Who has the identity can read every file that the key of the index encrypts: keep it as you keep the key.

    Example: openclaw-memory decrypt --workspace notes
    """
    from openclaw_memory.control import encrypting
    from openclaw_memory.store import decrypt_index

    if identity:
        return _identity(place)
    if paths:
        return _moved(place, paths, encrypting.decrypt_files)
    files: list[Moved] = []
    with place.open() as memory:
        there = encrypting.encrypted_files(memory.workspace)
        if there and not is_all:
            raise EncryptionError(
                f"{len(there):,} files are encrypted, such as {there[0]}, and a plain index would hold their text in "
                "the open: decrypt them too, with --all, or keep the index as it is"
            )
        files = encrypting.decrypt_files(memory.workspace, there)
        _follow(memory, files)
    change = _changed(place, lambda index, _: decrypt_index(index, wait=WAIT_SECONDS))
    return _say(place, change, "the index is plain" + (" already" if change.before is None else ""), files)


@click.command("rotate-key")
@placed
def rotate_key(place: Place) -> int:
    """Encrypt the index, and every encrypted file, with another key.

    It is the first one in OPENCLAW_MEMORY_KEY (then the old one must follow there, after a comma), or a new one, as for
    `encrypt`. The old key is not deleted: copies of the index, and other memories, may need it. Killed, the command is
    run again: it first gives the files that are left the key that the index has by then, and no other one.

    Example: openclaw-memory rotate-key --workspace notes
    """
    from openclaw_memory.control import encrypting
    from openclaw_memory.store import rotate_index_key
    from openclaw_memory.store.encryption import KeyChange
    from openclaw_memory.workspace.scan import key_id_of

    with place.open() as memory:
        key_id = key_id_of(memory.workspace.rules)
        is_begun = key_id is not None and bool(encrypting.of_another_key(memory.workspace))
    if is_begun:
        change = KeyChange(key_id, key_id)
        words = f"the index has the key {key_id} already, which its files were still to get"
    else:
        change = _changed(place, lambda index, keys_in: rotate_index_key(index, keys_in, wait=WAIT_SECONDS))
        words = f"the index is encrypted with the key {change.after}, and no longer with {change.before}"
    with place.open() as memory:
        changed, left = encrypting.encrypt_again_all(memory.workspace)
        _follow(memory, changed)
    code = _say(place, change, f"{words}: keep a copy of the new key", changed, left)
    return NOT_ALL if left else code


def _changed(place: Place, change: Callable[[Path, KeyPlace], KeyChange]) -> KeyChange:
    """Change the key of the index of a memory, which is closed before."""
    with place.open() as memory:
        index, keys_in = memory.index_path, memory.config.encryption.keys
    if index is None:
        raise StoreError("only an index in a file of SQLite is encrypted here: this memory keeps another one")
    return change(index, keys_in)


def _moved(place: Place, paths: Sequence[str], change: Callable[[Workspace, Sequence[str]], list[Moved]]) -> int:
    """Encrypt or decrypt files, and have the index follow."""
    with place.open() as memory:
        files = change(memory.workspace, paths)
        _follow(memory, files)
    if place.as_json:
        say_json({"files": [one._asdict() for one in files]})
        return 0
    _list(files)
    note("versions of before may be left in a repository, in copies, and in free space on the disk")
    return 0


def _follow(memory: Memory, files: Sequence[object]) -> None:
    if files and (trouble := synced(memory, hidden=True).trouble):
        note(trouble)


def _identity(place: Place) -> int:
    from openclaw_memory.security import keys
    from openclaw_memory.security.age import identity_of
    from openclaw_memory.workspace.scan import key_id_of

    with place.open() as memory:
        key_id = key_id_of(memory.workspace.rules)
    if key_id is None:
        raise EncryptionError("the index is plain, and no file is encrypted with its key: there is no identity")
    identity = identity_of(keys.find(key_id, "the index"))
    if place.as_json:
        say_json({"key": key_id, "identity": identity})
    else:
        say(identity)
    return 0


def _list(files: Sequence[Moved | str]) -> None:
    for one in files:
        say(clean_line(one if isinstance(one, str) else f"{one.before} -> {one.after}"))


def _say(
    place: Place,
    change: KeyChange,
    words: str,
    files: Sequence[Moved | str] = (),
    left: Sequence[Skipped] = (),
) -> int:
    if place.as_json:
        named = [one if isinstance(one, str) else one._asdict() for one in files]
        say_json({**change._asdict(), "files": named, "left": left})
        return 0
    _list(files)
    say(words)
    for file in left:
        note(f"{clean_line(file.path)} was left as it is: {clean(file.reason)}")
    if change.after is not None:
        note("notes that are not encrypted lie beside it as they are: encrypt them, or their disk")
    return 0
