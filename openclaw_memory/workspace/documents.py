"""Write, find and remove documents: texts that a program adds to a memory, each a Markdown file with front matter."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from itertools import count
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from msgspec import Struct, structs

from openclaw_memory.errors import (
    EmbedderError,
    InvalidInputError,
    NotFoundError,
    PathNotAllowedError,
    UndecodableError,
)
from openclaw_memory.text.days import get_path_day
from openclaw_memory.text.front_matter import EMBEDDING, Embedding, FrontMatter, get_embedding, parse, render
from openclaw_memory.text.policies import NONE, Policies, iterate_leaves
from openclaw_memory.text.redaction import find_masks, redact
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace.atomic import make_folders, open_folder
from openclaw_memory.workspace.document_cache import DocumentCache, make_key, split_key
from openclaw_memory.workspace.encodings import check_text, decode
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER, MOVE_NOTE, NOTE_ENDINGS, NOTES_FOLDER, Place, with_ending
from openclaw_memory.workspace.scan import walk_notes

_NAME_CHARS = 80
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
# Windows takes these for devices, with any ending behind a dot.
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")

# The masks of `redact`: of a secret that it shows the ends of, and of one that it shows nothing of.
_MASK = re.compile(r"""[^\s"']{6}…[^\s"']{4}""")
_HIDDEN = "***"


class Fields(NamedTuple):
    """A document to write.

    Attributes:
        path: Its file.
        fields: The fields above its text.
        text: The text.
        seal: Makes of fields and text, as they will be in the file, the fields that vouch for them; None for none.
        is_sealed: Whether its file is to be sealed, and have the name of one; None for as it is, or by its path.
    """

    path: str
    fields: Mapping[str, Any]
    text: str
    seal: Callable[[Mapping[str, Any], str], Mapping[str, Any]] | None = None
    is_sealed: bool | None = None


class Whereabouts(Struct, frozen=True):
    """The existing documents, as far as a caller has to know them to write more.

    Attributes:
        paths: The files of documents, by their keys.
        models: Model and dimensions of the vectors that came with any document.
        names: The files in the folder of documents, without their endings, as a disk that ignores case compares them.
        is_followed: Whether the index knows all of them.
    """

    paths: Mapping[str, Sequence[str]]
    models: AbstractSet[tuple[str, int]]
    names: AbstractSet[str]
    is_followed: bool = False


class Upserted(Struct, frozen=True):
    """The result of adding documents; true if any file was changed.

    Attributes:
        paths: The files of the documents, by their keys.
        changed: The files that were changed.
        embeddings: The vectors that came with the documents, by path.
        was_followed: Whether the index knew all documents before.
    """

    paths: Mapping[str, str]
    changed: Sequence[str]
    embeddings: Mapping[str, Embedding]
    was_followed: bool

    def __bool__(self) -> bool:
        return bool(self.changed)


class _File(Struct, frozen=True):
    """The file at a place now. It has no `content` if it is missing or a person's own."""

    place: Place
    info: os.stat_result | None
    text: str
    content: FrontMatter | None


class _Version(Struct, frozen=True):
    """The new version of a file."""

    place: Place
    info: os.stat_result | None
    text: str
    fields: Mapping[str, Any]
    is_changed: bool


def make_file_name(doc_id: str) -> str:
    """Return a file name for a document, without its ending: the id, or its readable part and a digest.

    It consists of `a-z`, `0-9`, `_` and `-`, has at most 93 characters, and is valid on every system. Ids that differ
    only in case get different names.

    Raises:
        InvalidInputError: The id is not a string, is blank, or is not Unicode.
    """
    if not isinstance(doc_id, str) or not doc_id.strip():
        raise InvalidInputError(f"a document needs an id of at least one character, not {doc_id!r}")
    check_text(doc_id, f"the id {doc_id!r}")
    safe = _UNSAFE.sub("-", doc_id.lower()).strip("-_")[:_NAME_CHARS]
    if safe == doc_id and not _RESERVED.fullmatch(safe):
        return safe
    return f"{safe}-{sha256(doc_id.encode()).hexdigest()[:12]}".lstrip("-")


def make_path(key: str) -> str:
    """Return the path of the document with this key, unless a person's file had that name, or a person moved it.

    Raises:
        InvalidInputError: As `make_file_name`.
    """
    collection, doc_id = split_key(key)
    folder = f"{DOCUMENTS_FOLDER}/{make_file_name(collection)}" if collection else DOCUMENTS_FOLDER
    return f"{folder}/{make_file_name(doc_id)}.md"


def write(files: WorkspaceFiles, documents: Sequence[Fields]) -> list[str]:
    """Write documents, each file whole or not at all; return the paths of those that changed.

    Raises:
        InvalidInputError: A field is not JSON, or a text is not Unicode: nothing was written.
        PathNotAllowedError: A path is not below `memory/`, is excluded by the globs, or is that of a daily note or of a
            person's file: nothing was written.
        PolicyError: A rule says never to store one: nothing was written.
        WriteError: A file would be too large (nothing was written), or could not be written (those before it are).
    """
    _check_policies(files, documents)
    with files.lock(documents[0].path if documents else NOTES_FOLDER):
        versions = _write(files, [document._replace(path=files.find(document.path)) for document in documents])
    return [version.place.path for version in versions if version.is_changed]


def update(
    files: WorkspaceFiles, path: str, change: Callable[[FrontMatter | None, os.stat_result | None], Fields | None]
) -> str | None:
    """Write the document at a path as `change` makes it from the existing one; return its path if the file has changed.

    It is at the path, or sealed at the one with that ending, and is sealed or unsealed as the fields say. No
    other process of this library writes meanwhile.

    Args:
        files: The files of the workspace.
        path: The document.
        change: Makes the new document of the existing one and its stat; None to write nothing.

    Raises:
        InvalidInputError, PathNotAllowedError, WriteError: As `write`, or as `change`.
        SealedFileError: It is sealed, or to be sealed, and cannot be.
    """
    files.check_name(path)
    with files.lock(path):
        place = _locate(files, files.find(get_plain_name(path)))
        file = _read(place, files)
        if file.info is not None and file.content is None:
            raise PathNotAllowedError(f"{place.path} is a note where a record belongs: {MOVE_NOTE}, and try again")
        document = change(file.content, file.info)
        if document is None:
            return None
        if document.is_sealed:  # nothing is written in the open first
            place = with_ending(place, sealed=True) if file.info is None else files.reseal(place, sealed=True)
        (version,) = _write(files, [document._replace(path=place.path)])
        if document.is_sealed is False and file.info is not None:
            place = files.reseal(place, sealed=False)
        return place.path if version.is_changed else None


def upsert(
    files: WorkspaceFiles,
    documents: Mapping[str, tuple[Mapping[str, Any], str]],
    look: Callable[[Iterable[str]], Whereabouts],
    vectors: Sequence[tuple[str, int]] = (),
) -> Upserted:
    """Write documents by their keys, in the files that have them or in new ones.

    If a person's file has the name of a new one, the document gets another name.

    Args:
        files: The files of the workspace.
        documents: Fields and text of each document.
        look: Finds the existing documents.
        vectors: The model whose vectors come with these documents, and their dimensions, first; and others that can be
            compared with it.

    Raises:
        InvalidInputError, PathNotAllowedError, PolicyError, WriteError: As `write`.
        EmbedderError: Other documents came with vectors that cannot be compared with these. Nothing was written.
    """
    names = {key: make_path(key) for key in documents}
    drafts = [Fields(names[key], {"id": split_key(key), **own}, text) for key, (own, text) in documents.items()]
    _check_policies(files, drafts)
    with files.lock(DOCUMENTS_FOLDER):
        existing = look(documents)
        if vectors:
            _check_comparable(vectors, existing.models)
        taken: set[str] = set()
        located: list[Fields] = []
        for key, (fields, text) in documents.items():
            collection, doc_id = split_key(key)
            paths = existing.paths.get(key)
            path = paths[0] if paths else _choose_path(names[key], existing.names, taken)
            own = {"collection": collection} if collection else {}
            located.append(Fields(files.find(path), {"id": doc_id, **own, **fields}, text))
        versions = _write(files, located)
    embeddings = ((version.place.path, get_embedding(version.text, version.fields)) for version in versions)
    return Upserted(
        {key: document.path for key, document in zip(documents, located, strict=True)},
        [version.place.path for version in versions if version.is_changed],
        {path: embedding for path, embedding in embeddings if embedding is not None},
        existing.is_followed,
    )


def remove(
    files: WorkspaceFiles,
    paths: Iterable[str],
    only: Callable[[str, FrontMatter, os.stat_result], bool] = lambda *_: True,
) -> list[str]:
    """Remove documents; return the paths of those that were removed.

    Args:
        files: The files of the workspace.
        paths: The documents.
        only: Decides with the lock held, by path, content and stat, whether to remove one.

    Raises:
        PathNotAllowedError: A path is that of a person's file: nothing was removed.
        WriteError: A file could not be removed.
    """
    files = structs.replace(files, policies=NONE)  # a document may be removed whatever its name is
    places = [_locate(files, files.find(path)) for path in paths]
    if not places:
        return []
    planned: dict[tuple[str, ...], dict[str, os.stat_result]] = {}
    with files.lock(places[0].path):
        for place in places:
            file = _read(place, files)
            if file.info is None:
                continue
            if file.content is None:
                raise _refuse_own(place.path, "removed")
            if only(place.path, file.content, file.info):
                planned.setdefault(place.parts[:-1], {})[place.parts[-1]] = file.info
        for parts, stats in planned.items():
            with open_folder(str(files.root), parts) as folder:
                folder.remove_all(list(stats.items()))
    return ["/".join((*parts, name)) for parts, stats in planned.items() for name in stats]


def find_paths(cache: DocumentCache, keys: Iterable[str] = ()) -> dict[str, list[str]]:
    """Return the files of each document by its key: several if a person has copied it, the one named after it first.

    A document whose id a person has removed or damaged is found by its file name: as the one of the `keys` that leads
    to this name, or with the name as its id, in the collection that its folder is named after. It comes after those
    that have that id.

    Raises:
        WorkspaceError: A folder or a file cannot be read.
    """
    names = {make_path(key): key for key in keys}
    paths: dict[str, list[str]] = {}
    nameless: dict[str, str] = {}
    existing: set[str] = set()
    for path, info in walk_notes(cache.files, DOCUMENTS_FOLDER):
        existing.add(path)
        document = cache.load(path, info)
        if document.doc_id is not None:
            paths.setdefault(document.doc_id, []).append(path)
        elif document.content is not None:
            nameless[path] = names.get(path, derive_key(path))
    for key, copies in paths.items():
        if len(copies) > 1:
            own = make_path(key)
            copies.sort(key=lambda path: path != own)
    for path, key in nameless.items():
        paths.setdefault(key, []).append(path)
    cache.forget_all_but(existing, DOCUMENTS_FOLDER)
    return paths


def derive_key(path: str) -> str:
    """Return the key of a document without a readable id: the name of its file, in the collection of its folder."""
    file = PurePosixPath(get_plain_name(path))
    folder = file.parent.relative_to(DOCUMENTS_FOLDER).parts
    return make_key(folder[0] if folder else "", file.stem)


def _write(files: WorkspaceFiles, documents: Sequence[Fields]) -> list[_Version]:
    """Write documents with the lock held. Everything is checked before anything is written."""
    versions = [_compose(files, document) for document in documents]
    planned: dict[tuple[str, ...], list[tuple[str, bytes, os.stat_result | None]]] = {}
    for version in versions:
        if version.is_changed:
            data = files.seal(version.text.encode(), version.place, version.info)
            parts = version.place.parts
            planned.setdefault(parts[:-1], []).append((parts[-1], data, version.info))
    for folder, contents in planned.items():
        make_folders(files.root, folder, "/".join(folder))
        with open_folder(str(files.root), folder) as opened:
            opened.replace_all(contents)
    return versions


def _compose(files: WorkspaceFiles, document: Fields) -> _Version:
    """Make the new version of a file, with the secrets in place of their masks."""
    place, policies = _locate(files, document.path), files.policies
    _check_not_a_day(files, place.path)
    fields, inner = document.fields, check_text(document.text, f"the text of {place.path}")
    file = _read(place, files)
    if (old := file.content) is not None:
        fields = _restore(fields, old.fields, policies)
        inner = _restore(inner, old.text, policies)
        if EMBEDDING in old.fields and EMBEDDING not in fields and inner == old.text:  # a vector is that of its text
            fields = {**fields, EMBEDDING: old.fields[EMBEDDING]}
    if document.seal is not None:
        fields = document.seal(fields, inner)
    text = render(fields, inner)
    if old is None and (masks := [mask for mask in find_masks(text) if mask not in file.text]):
        raise InvalidInputError(
            f"{masks[0]!r} in {place.path} masks a secret, which would be lost: add what `documents.get` returns"
        )
    is_changed = file.info is None or file.text != text
    if is_changed and file.info is not None:
        _check_replaceable(file, text, policies)
    return _Version(place, file.info, text, fields, is_changed)


def _check_policies(files: WorkspaceFiles, documents: Iterable[Fields]) -> None:
    """Check that policies let documents be stored; the identity of a vector is not a text."""
    if policies := files.policies:
        for document in documents:
            files.check_name(document.path)
            fields = {name: value for name, value in document.fields.items() if name != EMBEDDING}
            policies.check_value([fields, document.text])


def _check_comparable(vectors: Sequence[tuple[str, int]], existing: AbstractSet[tuple[str, int]]) -> None:
    (model, dims), incomparable = vectors[0], sorted(existing - {*vectors})
    if incomparable:
        name, length = incomparable[0]
        raise EmbedderError(
            f"these vectors are of {model!r} with {dims} dimensions, documents that are there came with some of "
            f"{name!r} with {length}, and the two cannot be compared: embed with the same model, or delete those "
            "documents and add them again"
        )


def _check_replaceable(file: _File, text: str, policies: Policies) -> None:
    path = file.place.path
    if file.content is None:
        raise _refuse_own(path, "overwritten")
    if policies:
        pairs = zip(file.text.split("\n"), policies.mask(file.text).split("\n"), strict=True)
        if any(line.strip() and not safe.strip() and line not in text for line, safe in pairs):
            raise InvalidInputError(f"{path} has lines that are not shown and would be lost: change it by hand")
    if masks := find_lost_secrets(file.text, text, policies):
        raise InvalidInputError(f"{masks[0]!r} masks a secret in {path}, which would be lost: change that file by hand")


def _restore(new: Any, old: Any, policies: Policies) -> Any:
    """Return a new value of JSON with the old texts in place of those that are the old ones masked."""
    if isinstance(new, str) and isinstance(old, str):
        masked = policies.mask(old)
        return old if new in {redact(old), masked, redact(masked)} else new
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return {key: _restore(inner, old[key], policies) if key in old else inner for key, inner in new.items()}
    if isinstance(new, list | tuple) and isinstance(old, list):
        return [*(_restore(*pair, policies) for pair in zip(new, old, strict=False)), *new[len(old) :]]
    return new


def find_lost_secrets(old: str, new: str, policies: Policies) -> list[str]:
    """Return the masks in a new text that would replace secrets of the old text."""
    masked = redact(policies.mask(old))
    if masked == old:
        return []
    masks = [mask for mask in _MASK.findall(masked) if mask in new and mask not in old]
    is_hidden = min(masked.count(_HIDDEN), new.count(_HIDDEN)) > old.count(_HIDDEN)
    return [*masks, _HIDDEN] if is_hidden else masks


def check_no_secret(value: Any, where: str) -> None:
    """Check that a value of JSON will be read back unmasked.

    Raises:
        InvalidInputError: A text in it holds a secret.
    """
    for text in filter(lambda leaf: isinstance(leaf, str), iterate_leaves(value)):
        if (masked := redact(text)) != text:
            raise InvalidInputError(
                f"{redact(where)} holds a secret ({masked[:60]!r}), which is masked when it is read, and would be lost "
                "when it is put again: keep secrets elsewhere, and put what leads there"
            )


def _read(place: Place, files: WorkspaceFiles) -> _File:
    try:
        data, info = files.read(place)
    except NotFoundError:
        return _File(place, None, "", None)
    try:
        text = decode(data, place.path)
    except UndecodableError:
        return _File(place, info, "", None)
    return _File(place, info, text, parse(text))


def _locate(files: WorkspaceFiles, path: str) -> Place:
    """Return the place of a path below `memory/`.

    Raises:
        PathNotAllowedError: It is somewhere else, or is excluded by the globs.
    """
    place = files.locate(path)
    if place.parts[0] != NOTES_FOLDER or place.base != str(files.root):
        raise PathNotAllowedError(f"{path!r} is not below {NOTES_FOLDER}/, where documents are kept: name a path there")
    if not place.path.endswith(NOTE_ENDINGS):
        raise PathNotAllowedError(f"{path!r} is not Markdown, which documents are: have it end in .md")
    return place


def _check_not_a_day(files: WorkspaceFiles, path: str) -> None:
    if (day := get_path_day(path)) and get_plain_name(path.lower()) == files.journal.make_path(day).lower():
        raise PathNotAllowedError(
            f"{path} is the note of a day, to which people and agents add lines that a document would lose: name a "
            f"path in a folder of {NOTES_FOLDER}/, such as {DOCUMENTS_FOLDER}/"
        )


def _refuse_own(path: str, action: str) -> PathNotAllowedError:
    return PathNotAllowedError(
        f"{path} is a person's own file and is not {action} through a framework: change it by hand"
    )


def fold_path(path: str) -> str:
    """Return the path of a file without its ending, as a disk that ignores case compares it."""
    return get_plain_name(path.casefold()).removesuffix(".md")


def _choose_path(path: str, existing: AbstractSet[str], taken: set[str]) -> str:
    """Return `path`, or if its name is taken, the first numbered one that is free; it is taken from now on."""
    name = path.removesuffix(".md")
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    free = next(candidate for candidate in numbered if candidate not in taken and candidate not in existing)
    taken.add(free)
    return f"{free}.md"
