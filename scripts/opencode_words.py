"""Write what OpenCode reads of the library's own words: the schemas of the tools, and the skill.

    python scripts/opencode_words.py

A test compares the files with what the library says now.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from openclaw_memory import Memory
from openclaw_memory.tools import memory_tools, recall_section

PLUGIN = Path(__file__).parents[1] / "integrations" / "opencode_memory"
NAMES = ("memory_search", "memory_get")

SKILL = """\
---
name: opencode-memory
description: {description}
---

# Memory

{section}
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
    """Return the files by their names in the folder of the plugin."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        tools = {tool.name: tool for tool in memory_tools(memory) if tool.name in NAMES}
    schemas = {name: {"description": tool.description, "parameters": tool.parameters} for name, tool in tools.items()}
    section = recall_section(NAMES, citations=True).replace("## Memory Recall\n", "")
    skill = SKILL.format(
        description=json.dumps(section.partition("\n")[0]),
        section="\n".join(f"- {line}" for line in section.splitlines()),
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
        ),
    )
    return {
        "tools.js": SCHEMAS.format(schemas=json.dumps(schemas, indent=2, ensure_ascii=False)),
        "skill/opencode-memory/SKILL.md": skill,
    }


if __name__ == "__main__":
    for name, text in texts().items():
        (PLUGIN / name).write_text(text, encoding="utf-8")
