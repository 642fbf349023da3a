"""All commands by name, those included that are loaded when they are asked for."""

import click

from openclaw_memory.cli.commands import commands

_CONTEXT = click.Context(commands)
COMMANDS = {name: commands.get_command(_CONTEXT, name) for name in commands.list_commands(_CONTEXT)}
