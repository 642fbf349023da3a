"""Define the command that shows a memory in a browser."""

from __future__ import annotations

import sys
import threading

import click

from openclaw_memory.cli import Place, show_json, with_place

# The browser is started with the name of a file that only the user reads: all users see the arguments of a process.
_REDIRECT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}">'
    '<title>Memory</title><p><a href="{0}">To the memory</a></p></html>'
)


@click.command()
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="Where to listen; 0 takes a free one."
)
@click.option("--no-browser", is_flag=True, help="Only print the address; do not open it.")
@with_place
def web(place: Place, port: int, no_browser: bool) -> int:
    """Look at the memory in a browser, until Ctrl-C.

    The page shows all of it: search, notes, days, records, the index; lines can be changed there, and things forgotten.
    Only this machine reaches it. The address that is printed works once, for the browser that opens it first.

    Example: openclaw-memory web --workspace notes
    """
    import webbrowser

    from openclaw_memory.workspace import SafeFolder
    from openclaw_memory_web import serve

    with place.open(stays=True) as memory:
        from secrets import token_hex

        folder, name = SafeFolder.locate_data(memory.workspace.root), f"web-{token_hex(8)}.html"

        def announce(url: str) -> None:
            if place.as_json:
                show_json({"url": url})
            else:
                click.echo(f"{url}\nThe address works once. Ctrl-C ends it.")
            sys.stdout.flush()
            if not no_browser:
                with folder.lock():
                    folder.replace(name, _REDIRECT.format(url).encode())
                # A browser without a window runs until it is closed.
                threading.Thread(target=webbrowser.open, args=[(folder.base / name).as_uri()], daemon=True).start()

        def remove_redirect() -> None:
            if not no_browser:
                with folder.lock():
                    folder.remove(name)

        try:
            serve(memory, port=port, started=announce, entered=remove_redirect)
        finally:
            remove_redirect()
    return 0
