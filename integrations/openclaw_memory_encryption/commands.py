"""Define the commands that encrypt a memory, decrypt it, and give it another key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import click

from openclaw_memory.cli import Place, clean_line, show_json, show_note, with_place
from openclaw_memory.errors import OpenClawMemoryError, SealedFileError, StoreError

if TYPE_CHECKING:
    from openclaw_memory import Memory
    from openclaw_memory_encryption.index import KeyChange

Change: TypeAlias = dict[str, str]  # of a file: its paths, or why it was left
NOT_ALL = 1  # the exit code where a file was left as it is


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@with_place
def encrypt(place: Place, paths: tuple[str, ...]) -> int:
    """Encrypt the index, or files, without embedding anything again.

    The key is the first one in OPENCLAW_MEMORY_KEY, or a new one in the data folder or keyring (setting
    plugins.encryption.keys). Keep a copy of it. Close every other program that has the memory open; if the command is
    killed, run it again. Records of high sensitivity are encrypted with the index, and notes, transcripts and snapshots
    if the settings say so.

    Each PATH is a file to encrypt with the key of the index: memory/health.md becomes memory/health.md.age, and is
    searched, read and written as before.

    Example: openclaw-memory encrypt --workspace notes
    """
    from openclaw_memory_encryption.index import encrypt_index

    if paths:
        return _reseal_paths(place, paths, sealed=True)
    change = _replace_key(place, encrypt_index)
    with place.open() as memory:
        files, left = _reseal(place, memory, _list_unsealed(memory), sealed=True)
    words = " already" if change.before == change.after else ": keep a copy of that key"
    return _report(place, change, f"the index is encrypted with the key {change.after}{words}", files, left)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--all", "is_all", is_flag=True, help="Decrypt every encrypted file, then the index.")
@click.option("--identity", is_flag=True, help="Only print the identity for the program age: `age -d -i`.")
@with_place
def decrypt(place: Place, paths: tuple[str, ...], *, is_all: bool, identity: bool) -> int:
    """Decrypt the index, or files.

    The key is kept. The index holds the text of encrypted files, so it is decrypted only with --all, which decrypts
    them first. Each PATH is a file to decrypt. With plugins.encryption.enabled, the next new index is encrypted again.

    The identity reads every file that the key of the index encrypts: guard it like the key.

    Example: openclaw-memory decrypt --workspace notes
    """
    from openclaw_memory_encryption.index import decrypt_index

    if identity:
        return _print_identity(place)
    if paths:
        return _reseal_paths(place, paths, sealed=False)
    with place.open() as memory:
        sealed = memory.control.list_sealed()
        if sealed and not is_all:
            raise StoreError(
                f"{len(sealed):,} files are encrypted, such as {sealed[0]}, and a plain index would hold their text in "
                "the open: decrypt them too, with --all, or keep the index as it is"
            )
        files, left = _reseal(place, memory, sealed, sealed=False)
    if left:
        return _report_files(place, files, left)
    change = _replace_key(place, lambda root, index, _, **options: decrypt_index(root, index, **options))
    return _report(place, change, "the index is plain" + (" already" if change.before is None else ""), files)


@click.command("rotate-key")
@with_place
def rotate_key(place: Place) -> int:
    """Encrypt the index and every encrypted file with another key.

    The new key is the first one in OPENCLAW_MEMORY_KEY, followed by the old one after a comma, or a new one as for
    `encrypt`. The old key is kept, since copies of the index and other memories may need it. If the command is killed,
    run it again: it finishes with the key that the index has by then.

    Example: openclaw-memory rotate-key --workspace notes
    """
    from openclaw_memory_encryption.index import KeyChange, rotate_index_key
    from openclaw_memory_encryption.keys import State

    with place.open() as memory:
        memory.status()  # a change of the key that was cut short is settled when the index is opened
        state = State(memory.workspace.root)
    if state.read().rotating:
        change = KeyChange(*state.key_ids * 2)
        words = f"the index has the key {change.after} already, which its files were still to get"
    else:
        change = _replace_key(place, rotate_index_key)
        words = f"the index is encrypted with the key {change.after}, and no longer with {change.before}"
    with place.open() as memory:
        files, left = _reseal(place, memory, memory.control.list_sealed(), sealed=True)
    with state.lock():
        state.write(*state.key_ids, is_rotating=False)
    return _report(place, change, f"{words}: keep a copy of the new key", files, left)


def _list_unsealed(memory: Memory) -> list[str]:
    """List the plain files that need encryption: records of high sensitivity, and the kinds that the settings name."""
    is_sealing = memory.workspace.files.codec.is_sealing
    kinds = {kind for kind in ("transcript", "snapshot") if is_sealing(kind)}
    kinds |= {"day", "note", "record", "document"} if is_sealing("note") else set()
    items = (item for item in memory.control.inspect() if item.kind in kinds or item.sensitivity == "high")
    return sorted(item.path for item in items if not item.path.endswith(".age"))


def _replace_key(place: Place, change: Callable[..., KeyChange]) -> KeyChange:
    """Change the key of the index of a memory, which is closed before."""
    from openclaw_memory_encryption.keys import read_settings

    with place.open() as memory:
        root, index, keys_in = memory.workspace.root, memory.index_path, read_settings(memory.config).keys
    if index is None:
        raise StoreError("only an index in a file of SQLite is encrypted here: this memory keeps another one")
    return change(root, index, keys_in, wait=1.0)


def _reseal(place: Place, memory: Memory, paths: Sequence[str], *, sealed: bool) -> tuple[list[Change], list[Change]]:
    """Encrypt or decrypt files and sync the index; return the files changed, and those left with the reason."""
    files, left = list[Change](), list[Change]()
    for path in paths:
        try:
            files.append({"before": path, "after": memory.control.reseal(path, sealed=sealed)})
        except OpenClawMemoryError as error:
            left.append({"path": path, "reason": str(error)})
    if files and (trouble := place.sync(memory).trouble):
        show_note(trouble)
    return files, left


def _reseal_paths(place: Place, paths: Sequence[str], *, sealed: bool) -> int:
    with place.open() as memory:
        files, left = _reseal(place, memory, paths, sealed=sealed)
    return _report_files(place, files, left)


def _print_identity(place: Place) -> int:
    from openclaw_memory_encryption.age import derive_identity
    from openclaw_memory_encryption.keys import State, find_key

    with place.open() as memory:
        key_ids = State(memory.workspace.root).key_ids
    if not key_ids:
        raise SealedFileError("the index is plain, and no file is encrypted with its key: there is no identity")
    identity = derive_identity(find_key(key_ids[-1], "the index"))
    if place.as_json:
        show_json({"key": key_ids[-1], "identity": identity})
    else:
        click.echo(identity)
    return 0


def _report(
    place: Place, change: KeyChange, words: str, files: Sequence[Change] = (), left: Sequence[Change] = ()
) -> int:
    code = _report_files(place, files, left, **change._asdict())
    if not place.as_json:
        click.echo(words)
        if change.after is not None:
            show_note("notes that are not encrypted lie beside it as they are: encrypt them, or their disk")
    return code


def _report_files(place: Place, files: Sequence[Change], left: Sequence[Change], **change: object) -> int:
    """Print the files that were changed, and those left with the reason."""
    if place.as_json:
        show_json({**change, "files": files, "left": left})
        return NOT_ALL if left else 0
    for file in files:
        click.echo(clean_line(" -> ".join(dict.fromkeys(file.values()))))
    for file in left:
        show_note(f"{clean_line(file['path'])} was left as it is: {file['reason']}")
    if files and not change:
        show_note("versions of before may be left in a repository, in copies, and in free space on the disk")
    return NOT_ALL if left else 0
