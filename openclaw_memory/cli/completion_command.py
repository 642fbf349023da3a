"""Define the command that prints what makes a shell complete the others."""

from __future__ import annotations

import click

from openclaw_memory.cli.output import say_json

PROGRAM, VARIABLE = "openclaw-memory", "_OPENCLAW_MEMORY_COMPLETE"  # as click makes the one of the other
_PLACES = {
    "bash": 'eval "$(openclaw-memory completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(openclaw-memory completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "openclaw-memory completion fish | source  # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_PLACES)))
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> int:
    """Print what has a shell complete commands and options.

    SHELL is bash, zsh or fish; bash must be 4.4 or newer. Put this line into your settings: eval "$(openclaw-memory
    completion bash)", the same for zsh, and for fish: openclaw-memory completion fish | source.

    Example: openclaw-memory completion zsh
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    root = context.find_root().command
    if made is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    # `source` would also run bash to look at its version: the script says so itself where it is too old.
    script = made(root, {}, PROGRAM, VARIABLE)
    text = script.source_template % script.source_vars()
    if as_json:
        say_json({"shell": shell, "script": text, "place": _PLACES[shell]})
    else:
        click.echo(text)
    return 0
