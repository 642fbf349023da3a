"""Define the command that turns PDF, HTML, DOCX and Org into Markdown, and keeps it as documents of the memory."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, placed, synced
from openclaw_memory.cli.output import note, paint, say, say_json
from openclaw_memory.errors import InvalidInputError, MissingExtraError, remedy

NOT_ALL = 1  # the exit code where a file was not taken
READ_BY_MARKITDOWN = (".pdf", ".html", ".htm", ".docx")
READ_BY_PANDOC = (".org",)  # markitdown leaves its markup as it is
_ORG = (
    "Org files are read by pandoc, which is not installed: install it (pandoc.org, or `pip install pypandoc_binary`), "
    "or export the file as Markdown in Emacs"
)
# Before what the file itself says: deadlines are kept, tags are no part of a heading, and a_b is no a with an index.
_ORG_OPTIONS = b"#+OPTIONS: p:t tags:nil ^:{}\n"
_ORG_TITLE = re.compile(r"^#\+title:[ \t]*(\S.*?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
# A day of Org, which is nothing else to Markdown.
_ESCAPED_DAY = re.compile(r"\\([<\[])(\d{4}-\d\d-\d\d[^<>\[\]\n\\]*)\\([>\]])")
_NO_LETTER = re.compile(r"\(cid:\d+\)")  # what the reader of PDF writes for a sign whose letter the file does not say
_DIGITS = 8
_SECONDS = 120  # that pandoc may take for one file


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--own", is_flag=True, help="You wrote them: lines may be promoted.")
@placed
def ingest(place: Place, files: tuple[Path, ...], own: bool) -> int:
    """Keep PDF, HTML, DOCX or Org files in the memory, as Markdown.

    FILES is what to read, one file or several, which stay as they are. Each becomes a document in memory/notes/, whose
    front matter names its source and the day, and says that it comes from outside: its lines are never copied to
    MEMORY.md. With --own it does not say so. The same file again takes the place of its document. PDF, HTML and DOCX
    need the extra `ingest` (markitdown), Org needs the program pandoc. Pictures are not read. Exit code 1: a file was
    not taken.

    Example: openclaw-memory ingest --workspace notes page.html
    """
    from openclaw_memory.text.quotation import EXTERNAL
    from openclaw_memory.types import Document

    today = datetime.datetime.now().astimezone().date().isoformat()
    found: list[tuple[Path, Document]] = []
    left_out: list[tuple[Path, str]] = []
    with place.open() as memory:
        for file in files:
            try:
                read = as_markdown(file)
            except InvalidInputError as error:
                left_out.append((file, str(error)))
            except OSError as error:
                left_out.append((file, f"{error.strerror}; {remedy(error)}"))
            else:
                metadata = {"source": str(file.absolute()), "title": read.title or file.stem, "ingested": today}
                found.append(
                    (file, Document(_id_of(file), read.text, metadata if own else {**metadata, "origin": EXTERNAL}))
                )
        memory.documents.add([document for _, document in found])
        written = [{"file": str(file), "id": document.id, "chars": len(document.text)} for file, document in found]
        followed = synced(memory, hidden=place.as_json)
    if place.as_json:
        skipped = [{"file": str(file), "reason": reason} for file, reason in left_out]
        say_json({"ingested": written, "left_out": skipped, "sync_error": followed.trouble})
    else:
        for one in written:
            kept = paint(str(one["id"]), fg="cyan")
            say(f"kept {clean_line(str(one['file']))} as {kept}, {one['chars']:,} characters")
        for file, reason in left_out:
            note(f"{file} was left out: {reason}")
        if followed.trouble:
            note(followed.trouble)
    return NOT_ALL if left_out else 0


class Read(NamedTuple):
    """What a file says, as Markdown, and its title if it names one."""

    text: str
    title: str | None = None


def as_markdown(file: Path) -> Read:
    """Return what a file says, as Markdown.

    Raises:
        InvalidInputError: It is of another kind, cannot be read, or says nothing.
        OSError: It cannot be opened.
        MissingExtraError: markitdown is not installed.
    """
    suffix = file.suffix.lower()
    if suffix not in (*READ_BY_MARKITDOWN, *READ_BY_PANDOC):
        kinds = ", ".join((*READ_BY_MARKITDOWN, *READ_BY_PANDOC))
        raise InvalidInputError(f"files of the kind {suffix or '(none)'!r} are not read: {kinds} are")
    text, title = _by_pandoc(file) if suffix in READ_BY_PANDOC else _by_markitdown(file, suffix)
    if not text.strip():
        raise InvalidInputError("it holds no text: a scan needs a program that reads pictures first")
    return Read(text.strip() + "\n", " ".join(title.split()) if title else None)


def _by_markitdown(file: Path, suffix: str) -> Read:
    """Return what the one converter makes of a file that is for its kind: others would take a broken file for text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it imports, for machines without ffmpeg
            from markitdown import StreamInfo, converters
    except ImportError as error:
        from openclaw_memory.embeddings.vectors import installing

        raise MissingExtraError(f"reading {suffix} needs markitdown ({error}): {installing('ingest')}") from error
    kinds: dict[str, Any] = {".pdf": converters.PdfConverter, ".docx": converters.DocxConverter}
    converter = kinds.get(suffix, converters.HtmlConverter)()
    with file.open("rb") as stream:
        try:
            made = converter.convert(stream, StreamInfo(extension=suffix, filename=file.name))
            return Read(_NO_LETTER.sub("", str(made.markdown)).replace("\f", "\n\n"), made.title)
        except Exception as error:  # whatever its parsers raise of a file from anywhere
            why = f"it cannot be read ({type(error).__name__}): is it a whole {suffix} file?"
            raise InvalidInputError(why) from error


def _by_pandoc(file: Path) -> Read:
    if (pandoc := _pandoc()) is None:
        raise InvalidInputError(_ORG)
    said = file.read_bytes()
    # What HTML alone could say is left out: its tags would be text. Nothing else is read, whatever the file includes.
    command = [pandoc, "--sandbox", "--from=org", "--to=gfm-raw_html", "--wrap=none"]
    try:
        done = subprocess.run(  # noqa: S603
            command, input=_ORG_OPTIONS + said, capture_output=True, check=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = remedy(error) if isinstance(error, OSError) else "look at it with pandoc yourself"
        raise InvalidInputError(f"pandoc cannot read it: {why}") from error
    title = _ORG_TITLE.search(said.decode("utf-8", "replace"))
    return Read(_ESCAPED_DAY.sub(r"\1\2\3", done.stdout.decode("utf-8", "replace")), title[1] if title else None)


def _pandoc() -> str | None:
    """Return the program pandoc, of the system or of the package `pypandoc_binary`; None if there is none."""
    if (found := shutil.which("pandoc")) is not None:
        return found
    try:
        from pypandoc import get_pandoc_path  # pyright: ignore[reportMissingImports]  # in no extra

        return str(get_pandoc_path())
    except (ImportError, OSError):
        return None


def _id_of(file: Path) -> str:
    from hashlib import sha256

    digest = sha256(str(file.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{file.stem}-{digest}"
