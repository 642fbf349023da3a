"""Documents on disk: what a program adds to a memory, each a Markdown file with front matter."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from msgspec import structs

from openclaw_memory.errors import (
    EmbedderError,
    InvalidInputError,
    NotFoundError,
    PathNotAllowedError,
    UndecodableError,
    WriteError,
)
from openclaw_memory.text.front_matter import EMBEDDING, Embedding, FrontMatter, get_embedding, parse, render
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.text.redaction import find_masks, redact
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.workspace.atomic import make_folders, open_folder
from openclaw_memory.workspace.document_cache import DocumentCache, make_key, split_key, strip_vector
from openclaw_memory.workspace.encodings import decode
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.journal import check_text, make_day_path
from openclaw_memory.workspace.paths import (
    DOCUMENTS_FOLDER,
    MOVE_NOTE,
    NOTE_ENDINGS,
    NOTES_FOLDER,
    Place,
    parse_note_date,
    with_ending,
)
from openclaw_memory.workspace.scan import walk_notes

_NAME_CHARS = 80
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
# Windows takes these for devices, whatever follows after a dot.
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")

# What `redact` puts in the place of a secret that it shows the ends of.
_MASK = re.compile(r"""[^\s"']{6}…[^\s"']{4}""")
_HIDDEN = "***"  # and of one that it shows nothing of


class Fields(NamedTuple):
    """A document to write: its path, the fields above the text, and the text.

    `seal` makes of fields and text, as they will be in the file, the fields that vouch for them; None for none.
    `is_sealed` says whether its file is to be sealed, and have the name of one; None: as it is, or by its path.
    """

    path: str
    fields: Mapping[str, Any]
    text: str
    seal: Callable[[Mapping[str, Any], str], Mapping[str, Any]] | None = None
    is_sealed: bool | None = None


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What has to be known of the documents that are there to write others.

    `paths` are the files of those that were asked for, by their ids, `models` whose vectors came with any document, and
    `names` those of all files in the folder of documents, without their endings, as a disk that ignores case compares
    them. `is_followed` says that the index knows all of them.
    """

    paths: Mapping[str, Sequence[str]]
    models: AbstractSet[tuple[str, int]]
    names: AbstractSet[str]
    is_followed: bool = False


@dataclass(frozen=True, slots=True)
class Upserted:
    """The paths of documents by their ids, and which of the files were changed; true if any was.

    `embeddings` are what the files say of the vectors that came with them, by path. `was_followed` says that the index
    knew all documents before.
    """

    paths: Mapping[str, str]
    changed: Sequence[str]
    embeddings: Mapping[str, Embedding]
    was_followed: bool

    def __bool__(self) -> bool:
        return bool(self.changed)


@dataclass(frozen=True, slots=True)
class _File:
    """The file at a place now. It has no `content` if it is missing or a person's own."""

    place: Place
    info: os.stat_result | None
    text: str
    content: FrontMatter | None


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
        InvalidInputError: As `file_name`.
    """
    collection, doc_id = split_key(key)
    folder = f"{DOCUMENTS_FOLDER}/{make_file_name(collection)}" if collection else DOCUMENTS_FOLDER
    return f"{folder}/{make_file_name(doc_id)}.md"


def write(files: WorkspaceFiles, documents: Sequence[Fields]) -> list[str]:
    """Write documents, each file whole or not at all; return the paths of those that changed.

    What the old front matter says of the vector stays if the new fields repeat what was shown of it, or omit it while
    the text is the same.

    Raises:
        InvalidInputError: A field is not JSON, or a text is not Unicode: nothing was written.
        PathNotAllowedError: A path is not below `memory/`, is excluded by the globs, or is that of a daily note or of a
            person's file: nothing was written.
        WriteError: A file would be too large (nothing was written), or could not be written (those before it are).
    """
    _check_policies(files, documents)
    with files.lock(documents[0].path if documents else NOTES_FOLDER):
        return _write(files, [one._replace(path=files.find(one.path)) for one in documents])


def update(
    files: WorkspaceFiles,
    path: str,
    change: Callable[[FrontMatter | None, os.stat_result | None], Fields | None],
) -> str | None:
    """Write the document at a path as `change` makes it from what is there; return its path if the file has changed.

    It is at the path, or sealed at the one with that ending, and is sealed or unsealed as the fields say. No
    other process of this library writes meanwhile. Where `change` returns None, nothing is written.

    Raises:
        InvalidInputError, PathNotAllowedError, WriteError: As `write`, or as `change`.
        SealedFileError: It is sealed, or to be sealed, and cannot be.
    """
    files.check_name(path)
    with files.lock(path):
        place = _own_place(files, files.find(get_plain_name(path)))
        file = _file(place, files)
        if file.info is not None and file.content is None:
            raise PathNotAllowedError(f"{place.path} is a note where a record belongs: {MOVE_NOTE}, and try again")
        wanted = change(file.content, file.info)
        if wanted is None:
            return None
        if wanted.is_sealed:  # nothing is written in the open first
            place = with_ending(place, sealed=True) if file.info is None else files.reseal(place, sealed=True)
        changed = bool(_write(files, [wanted._replace(path=place.path)]))
        if wanted.is_sealed is False and file.info is not None:
            place = files.reseal(place, sealed=False)
        return place.path if changed else None


def upsert(
    files: WorkspaceFiles,
    documents: Mapping[str, tuple[Mapping[str, Any], str]],
    look: Callable[[Iterable[str]], Whereabouts],
    vectors: Sequence[tuple[str, int]] = (),
) -> Upserted:
    """Write documents by their keys, in the files that have them or in new ones; `look` says where these are.

    If a person's file has the name of a new one, the document gets another name. `vectors` begins with the model
    whose vectors come with these documents, and their dimensions; others can be compared with it.

    Raises:
        InvalidInputError, PathNotAllowedError, WriteError: As `write`.
        EmbedderError: Other documents came with vectors that cannot be compared with these. Nothing was written.
    """
    names = {key: make_path(key) for key in documents}
    _check_policies(
        files, [Fields(names[key], {"id": split_key(key), **one[0]}, one[1]) for key, one in documents.items()]
    )
    with files.lock(DOCUMENTS_FOLDER):
        there = look(documents)
        if vectors:
            _check_comparable(vectors, there.models)
        taken: set[str] = set()
        placed: list[Fields] = []
        for key, (fields, text) in documents.items():
            collection, doc_id = split_key(key)
            known = there.paths.get(key)
            path = known[0] if known else _free(names[key], there.names, taken)
            own = {"collection": collection} if collection else {}
            placed.append(Fields(path, {"id": doc_id, **own, **fields}, text))
        paths = {key: one.path for key, one in zip(documents, placed, strict=True)}
        embeddings: dict[str, Embedding] = {}
        return Upserted(paths, _write(files, placed, embeddings), embeddings, there.is_followed)


def remove(
    files: WorkspaceFiles,
    paths: Iterable[str],
    only: Callable[[str, FrontMatter, os.stat_result], bool] = lambda *_: True,
) -> list[str]:
    """Remove documents; return the paths of those that existed, and of which `only`, asked with the lock held, is true.

    Raises:
        PathNotAllowedError: A path is that of a person's file: nothing was removed.
        WriteError: A file could not be removed.
    """
    files = replace(files, policies=NONE)  # a document may go whatever its name is
    places = [_own_place(files, files.find(path)) for path in paths]
    if not places:
        return []
    planned: dict[tuple[str, ...], dict[str, os.stat_result]] = {}
    with files.lock(places[0].path):
        for place in places:
            file = _file(place, files)
            if file.info is None:
                continue
            if file.content is None:
                raise _not_ours(place.path, "removed")
            if only(place.path, file.content, file.info):
                planned.setdefault(place.parts[:-1], {})[place.parts[-1]] = file.info
        for folder, stats in planned.items():
            with open_folder(str(files.root), folder) as opened:
                opened.remove_all(list(stats.items()))
    return ["/".join((*folder, name)) for folder, stats in planned.items() for name in stats]


def iterate_documents(cache: DocumentCache, folder: str = DOCUMENTS_FOLDER) -> Iterator[tuple[str, FrontMatter]]:
    """Yield every document below a folder of `memory/`, in the order of paths, without a person's own files.

    Raises:
        PathNotAllowedError: The folder is not there.
        WorkspaceError: A folder or a file cannot be read.
    """
    # The globs say which files count, and nothing of a folder.
    files = cache.files
    any_file = replace(files, settings=structs.replace(files.settings, include=(), exclude=()))
    inside = any_file.locate(f"{folder}/any.md")
    inner = inside.path.rpartition("/")[0]
    seen: set[str] = set()
    for path, info in walk_notes(files, inner):
        seen.add(path)
        if (content := cache.load(path, info).content) is not None:
            yield path, content
    cache.forget_all_but(seen, inner)


def find_paths(cache: DocumentCache, wanted: Iterable[str] = ()) -> dict[str, list[str]]:
    """Return the files of each document by its key: several if a person has copied it, the one named after it first.

    A document whose id a person has removed or damaged is found by its file name: as the one of the `wanted` keys that
    leads to this name, or with the name as its id, in the collection that its folder is named after. It comes after
    those that have that id.
    """
    names = {make_path(doc_id): doc_id for doc_id in wanted}
    found: dict[str, list[str]] = {}
    nameless: dict[str, str] = {}
    seen: set[str] = set()
    for path, info in walk_notes(cache.files, DOCUMENTS_FOLDER):
        seen.add(path)
        one = cache.load_summary(path, info)
        if one.doc_id is not None:
            found.setdefault(one.doc_id, []).append(path)
        elif one.is_document:
            nameless[path] = names.get(path, derive_key(path))
    for doc_id, paths in found.items():
        if len(paths) > 1:
            own = make_path(doc_id)
            paths.sort(key=lambda path: path != own)
    for path, name in nameless.items():
        found.setdefault(name, []).append(path)
    cache.forget_all_but(seen, DOCUMENTS_FOLDER)
    return found


def derive_key(path: str) -> str:
    """Return the key of a document whose id cannot be read: the name of its file, in the collection of its folder."""
    file = PurePosixPath(get_plain_name(path))
    folder = file.parent.relative_to(DOCUMENTS_FOLDER).parts
    return make_key(folder[0] if folder else "", file.stem)


def _write(
    files: WorkspaceFiles, documents: Sequence[Fields], embeddings: dict[str, Embedding] | None = None
) -> list[str]:
    """Write documents as `write` does, with the lock held. Everything is checked before anything is written.

    What the files say of vectors is put into `embeddings`, by path.
    """
    planned: dict[tuple[str, ...], list[tuple[str, bytes, os.stat_result | None]]] = {}
    written: list[str] = []
    most = files.settings.max_bytes
    for document in documents:
        place = _own_place(files, document.path)
        _check_not_a_day(place.path)
        fields, inner = document.fields, check_text(document.text, f"the text of {place.path}")
        file = _file(place, files)
        if file.content is not None:
            fields = _unmasked(fields, file.content.fields, files.policies)
            inner = _unmasked(inner, file.content.text, files.policies)
            fields = _with_embedding(fields, inner, file.content)
        if document.seal is not None:
            fields = document.seal(fields, inner)
        text = render(fields, inner)
        if masks := [mask for mask in find_masks(text) if mask not in file.text and file.content is None]:
            raise InvalidInputError(
                f"{masks[0]!r} in {place.path} masks a secret, which would be lost: add what `documents.get` "
                "returns, and not what a search found"
            )
        data = text.encode()
        if embeddings is not None and (said := get_embedding(decode(data, place.path), fields)) is not None:
            embeddings[place.path] = said
        if len(data) > most:
            raise WriteError(
                f"{place.path} would have {len(data):,} bytes, more than files.max_bytes ({most:,}), and "
                "never be read again: part it, or raise files.max_bytes"
            )
        if file.text == text and file.info is not None:
            continue
        if file.info is not None:
            _check_replaceable(file, text, files.policies)
        data = files.seal(data, place, exists=file.info is not None)
        planned.setdefault(place.parts[:-1], []).append((place.parts[-1], data, file.info))
        written.append(place.path)
    for folder, contents in planned.items():
        make_folders(files.root, folder, "/".join(folder))
        with open_folder(str(files.root), folder) as opened:
            opened.replace_all(contents)
    return written


def _check_policies(files: WorkspaceFiles, documents: Iterable[Fields]) -> None:
    """Check that policies let documents be stored. What a program wrote of a vector is not looked at: it is no text.

    Raises:
        PolicyError: A rule says never to store one. Nothing was written.
    """
    if policies := files.policies:
        for document in documents:
            files.check_name(document.path)
            said = {name: value for name, value in document.fields.items() if name != EMBEDDING}
            policies.check_value([said, document.text])


def _with_embedding(fields: Mapping[str, Any], text: str, old: FrontMatter) -> Mapping[str, Any]:
    """Return the fields with what the old file says of the vector, if they omit it, or repeat what was shown of it."""
    if EMBEDDING not in old.fields:
        return fields
    says_nothing = EMBEDDING not in fields and text == old.text  # a vector is that of its text
    is_shown = EMBEDDING in fields and fields[EMBEDDING] == strip_vector(old.fields)[EMBEDDING]
    return {**fields, EMBEDDING: old.fields[EMBEDDING]} if says_nothing or is_shown else fields


def _check_comparable(vectors: Sequence[tuple[str, int]], there: AbstractSet[tuple[str, int]]) -> None:
    model, dims = vectors[0]
    others = sorted(there - {*vectors})
    if not others:
        return
    other = next((one for one in others if one[0] != model), None)
    if other is not None:
        words = f"are of {model!r}, the documents that are there came with some of {other[0]!r}"
    else:
        words = f"have {dims} dimensions, those of the documents that are there have {others[0][1]}"
    raise EmbedderError(
        f"these vectors {words}, and the two cannot be compared: embed with the same model, or delete those documents "
        "and add them again"
    )


def _check_replaceable(file: _File, text: str, policies: Policies) -> None:
    path, info = file.place.path, file.info
    if file.content is None or info is None:
        raise _not_ours(path, "overwritten")
    if info.st_nlink > 1:
        raise WriteError(f"{path} has {info.st_nlink} hard links, which a change would part: copy it first")
    if policies:
        pairs = zip(file.text.split("\n"), policies.mask(file.text).split("\n"), strict=True)
        if any(line.strip() and not safe.strip() and line not in text for line, safe in pairs):
            raise InvalidInputError(
                f"{path} has lines that are not shown, which would be lost: change that file by hand"
            )
    if masks := find_lost_secrets(file.text, text, policies):
        raise InvalidInputError(f"{masks[0]!r} masks a secret in {path}, which would be lost: change that file by hand")


def _unmasked(new: Any, old: Any, policies: Policies) -> Any:
    """Return a new value of JSON, in which each text that equals the old one masked is the old one again."""
    if isinstance(new, str) and isinstance(old, str):
        return old if new in {redact(old), shown := policies.mask(old), redact(shown)} else new
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return {key: _unmasked(inner, old[key], policies) if key in old else inner for key, inner in new.items()}
    if isinstance(new, list | tuple) and isinstance(old, list):
        return [*(_unmasked(*pair, policies) for pair in zip(new, old, strict=False)), *new[len(old) :]]
    return new


def find_lost_secrets(old: str, new: str, policies: Policies) -> list[str]:
    """Return the masks in a new text that would replace secrets of the old text it was made from."""
    shown = redact(policies.mask(old))
    if shown == old:
        return []
    masks = [mask for mask in _MASK.findall(shown) if mask in new and mask not in old]
    is_hidden = min(shown.count(_HIDDEN), new.count(_HIDDEN)) > old.count(_HIDDEN)
    return [*masks, _HIDDEN] if is_hidden else masks


def check_no_secret(value: Any, where: str) -> None:
    """Check that a value of JSON, called `where` in the message, will be read back unmasked.

    Raises:
        InvalidInputError: A text in it holds a secret.
    """
    if isinstance(value, str):
        if (shown := redact(value)) != value:
            raise InvalidInputError(
                f"{redact(where)} holds a secret ({shown[:60]!r}), which is masked when it is read, and would be lost "
                "when it is put again: keep secrets elsewhere, and put what leads there"
            )
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            check_no_secret(key, where)
            check_no_secret(inner, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            check_no_secret(inner, f"{where}[{number}]")


def _file(place: Place, files: WorkspaceFiles) -> _File:
    try:
        data, info = files.read(place)
    except NotFoundError:
        return _File(place, None, "", None)
    try:
        text = decode(data, place.path)
    except UndecodableError:
        return _File(place, info, "", None)
    return _File(place, info, text, parse(text))


def _own_place(files: WorkspaceFiles, path: str) -> Place:
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


def _check_not_a_day(path: str) -> None:
    day = parse_note_date(path.lower())
    if day is not None and get_plain_name(path.lower()) == make_day_path(day):
        raise PathNotAllowedError(
            f"{path} is the note of a day, to which people and agents add lines that a document would lose: name a "
            f"path in a folder of {NOTES_FOLDER}/, such as {DOCUMENTS_FOLDER}/"
        )


def _not_ours(path: str, what: str) -> PathNotAllowedError:
    return PathNotAllowedError(
        f"{path} is a person's own file and is not {what} through a framework: change it by hand, or with "
        "`edit` and `delete` of the memory"
    )


def fold_path(path: str) -> str:
    """Return the path of a file without its ending, as a disk that ignores case compares it."""
    return get_plain_name(path.casefold()).removesuffix(".md")


def _free(path: str, there: AbstractSet[str], taken: set[str]) -> str:
    """Return `path`, or if its name is taken, the first numbered one that is free; it is taken from now on."""
    name = path.removesuffix(".md")
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    free = next(one for one in numbered if one not in taken and one not in there)
    taken.add(free)
    return f"{free}.md"
