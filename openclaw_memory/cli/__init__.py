"""Run the command `openclaw-memory`: its arguments, its exit codes, and how errors end it.

A plug-in's command is a click command with `@with_place`, which hands it a `Place` that opens the memory. What it
prints goes through the other names here.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.commands import commands
from openclaw_memory.cli.options import INTERRUPTED, Place, with_place
from openclaw_memory.cli.output import show_error, show_json, show_note
from openclaw_memory.config.environment import use_colours, use_one_thread
from openclaw_memory.errors import CorruptIndexError, OpenClawMemoryError

__all__ = ["Place", "clean_line", "show_json", "show_note", "with_place"]

NO_ROOM = {errno.ENOSPC, errno.EDQUOT} if os.name == "posix" else {errno.ENOSPC}
OK, FAILED = 0, 2  # 1 is a command's own: nothing found, or problems found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code.

    Codes: 0 done; 1 nothing found, or problems found; 2 wrong usage or an error, in one line on stderr, and
    with `--json` as an object on stdout; 130 interrupted.

    Args:
        arguments: The words behind the name of the command; those of this process if None.
    """
    use_one_thread()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, instead of ending the command.
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="replace")
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _drop_output()  # Python would complain once more when it flushes stdout at exit
        with suppress(OSError):  # stderr may be full too
            show_error(f"the output could not be written: {os.strerror(error.errno)}")
        code = FAILED
    sys.exit(code)


def _run(words: list[str]) -> int:
    try:
        code = commands.main(words, prog_name="openclaw-memory", standalone_mode=False, color=use_colours())
        sys.stdout.flush()
        return int(code or OK)
    except (click.ClickException, OpenClawMemoryError) as error:
        message = _format_error(error)
        # Wrong usage is found before the options are known.
        if "--json" in words[: words.index("--") if "--" in words else None]:
            kind = "UsageError" if isinstance(error, click.ClickException) else type(error).__name__
            show_json({"error": message, "kind": kind}, indent=None)
        show_error(message)
    except BrokenPipeError:
        _drop_output()  # the reader (`| head`) has seen enough
        return OK
    except (click.Abort, KeyboardInterrupt):
        show_error("interrupted")
        return INTERRUPTED
    return FAILED


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _format_error(error: Exception) -> str:
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "openclaw-memory"
        return f"{error.format_message()} (see `{where} --help`)"
    if isinstance(error, CorruptIndexError):
        return f"{error} (`openclaw-memory index --force`, with the options you gave, does both)"
    return error.format_message() if isinstance(error, click.ClickException) else str(error)
