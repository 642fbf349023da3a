"""Define the command that shows a memory in a browser."""

from __future__ import annotations

import sys

import click

from openclaw_memory.cli import Place, show_json, with_place


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

    from openclaw_memory_web import serve

    def announce(url: str) -> None:
        if place.as_json:
            show_json({"url": url})
        else:
            click.echo(f"{url}\nThe address works once. Ctrl-C ends it.")
        sys.stdout.flush()
        if not no_browser:
            webbrowser.open(url)

    with place.open(stays=True) as memory:
        serve(memory, port=port, started=announce)
    return 0
