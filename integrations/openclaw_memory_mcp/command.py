"""Define the command that serves a memory over the Model Context Protocol."""

from __future__ import annotations

import click

from openclaw_memory.cli import Place, show_note, with_place

PORT = 8765


@click.command()
@click.option("--session-key", metavar="KEY", help="Who reads along; in a group nothing private is shown.")
@click.option("--edit", is_flag=True, help="Also offer memory_edit, memory_forget and memory_promote.")
@click.option("--records", is_flag=True, help="Also offer memory_remember and memory_confirm.")
@click.option("--erase", is_flag=True, help="Also offer memory_erase, which forgets for good.")
@click.option("--read-only", is_flag=True, help="Offer nothing that writes.")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of stdin and stdout.")
@click.option("--host", metavar="NAME", default="127.0.0.1", show_default=True, help="With --http: where to listen.")
@click.option("--port", metavar="N", type=int, default=PORT, show_default=True, help="With --http; 0 takes a free one.")
@click.option(
    "--token",
    metavar="TEXT",
    envvar="OPENCLAW_MEMORY_TOKEN",
    help="With --http: what clients must send, by default a new one that is shown once; OPENCLAW_MEMORY_TOKEN in the "
    "environment does not show in lists of processes.",
)
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="With --http: a further name of it.")
@with_place
def mcp(
    place: Place,
    session_key: str | None,
    edit: bool,
    records: bool,
    erase: bool,
    read_only: bool,
    http: bool,
    host: str,
    port: int,
    token: str | None,
    hosts: tuple[str, ...],
) -> int:
    """Serve the memory to MCP clients, until they are done.

    A client starts this itself: its settings name the command `openclaw-memory`, and the arguments `mcp`,
    `--workspace` and the folder. With --http it serves several clients, at http://127.0.0.1:8765/mcp, that send its
    token.

    Example: openclaw-memory mcp --workspace notes
    """
    if read_only and (edit or records or erase):
        raise click.UsageError("--read-only offers nothing that writes: leave it out, or --edit, --records and --erase")
    from openclaw_memory_mcp import MemoryServer, serve_http, serve_stdio

    include = ["search", "get", *([] if read_only else ["append"])]
    include += ["edit", "forget", "promote"] if edit else []
    include += ["remember", "confirm"] if records else []
    include += ["erase"] if erase else []
    with place.open(stays=True) as memory:
        server = MemoryServer(memory, session_key=session_key, include=include)
        if http:
            from secrets import token_urlsafe

            secret = token_urlsafe(32) if token is None else token
            hint = f"; clients send the header Authorization: Bearer {secret}" if token is None else ""

            def announce(url: str) -> None:
                show_note(f"serving {url}{hint}")

            serve_http(server, host=host, port=port, token=secret, hosts=hosts, started=announce)
        else:
            serve_stdio(server)
    return 0
