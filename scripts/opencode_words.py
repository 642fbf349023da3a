"""Write what coding agents read of the library's own words: OpenCode's schemas of the tools, and the skill.

    python scripts/opencode_words.py

A test compares the files with what the library says now.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

from openclaw_memory_hooks.opencode import TOOLS, WRITING

from openclaw_memory import Memory
from openclaw_memory.tools import memory_tools, recall_section

PLUGIN = Path(__file__).parents[1] / "integrations" / "opencode_memory"
INCLUDED = ("search", "get", "append", "edit", "forget", "promote")

SKILL = """\
---
name: {name}
description: {description}
---

# Memory

{section}

{writing}

## Without These Tools

An agent that may run commands, and has none of the tools below, does the same by these, in the folder of the memory, or
with `--workspace PATH` at the end:

| Tool | Command |
|---|---|
| `memory_search` | `openclaw-memory search "When is the launch?"` |
| `memory_get` | `openclaw-memory show "memory/2026-11-21.md#L3-L9"` |
| `memory_append` | `openclaw-memory add "Anna moved the launch to Friday."` |
{tools}"""

TOOL = """
## `{name}`

{description}

| Argument | What it is |
|---|---|
{arguments}
"""

SCHEMAS = """\
/** @typedef {{Record<string, unknown>}} Json */

/**
 * The tools of the memory as the library describes them; written by scripts/opencode_words.py.
 * @type {{Record<string, {{description: string, parameters: {{properties: Json, [key: string]: unknown}}}}>}}
 */
export const TOOLS = {schemas}
"""


def texts() -> dict[str, str]:
    """Return the files by their paths from the folder of OpenCode's plugin."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        tools = {tool.name: tool for tool in memory_tools(memory, include=INCLUDED)}
    schemas = {name: {"description": tool.description, "parameters": tool.parameters} for name, tool in tools.items()}
    section = recall_section(TOOLS, citations=True).replace("## Memory Recall\n", "")
    skill = functools.partial(
        SKILL.format,
        description=json.dumps(section.partition("\n")[0]),
        section="\n".join(f"- {line}" for line in section.splitlines()),
        writing=WRITING,
        tools="".join(
            TOOL.format(
                name=name,
                description=tool.description,
                arguments="\n".join(
                    f"| `{argument}`{'' if argument in tool.parameters['required'] else ' (optional)'} "
                    f"| {schema['description']} |"
                    for argument, schema in tool.parameters["properties"].items()
                ),
            )
            for name, tool in tools.items()
            if name in TOOLS
        ),
    )
    return {
        "tools.js": SCHEMAS.format(schemas=json.dumps(schemas, indent=2, ensure_ascii=False)),
        "skill/opencode-memory/SKILL.md": skill(name="opencode-memory"),
        "../claude_code/skills/memory/SKILL.md": skill(name="memory"),
    }


if __name__ == "__main__":
    for name, text in texts().items():
        (PLUGIN / name).write_text(text, encoding="utf-8")
