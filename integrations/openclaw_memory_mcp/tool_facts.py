"""Describe each tool for clients besides its description and arguments: its effects and its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from mcp_types import ToolAnnotations

ERASE = "memory_erase"
_FACTS: dict[str, dict[str, Any]] = json.loads(
    resources.files("openclaw_memory_mcp").joinpath("tools.json").read_text(encoding="utf-8")
)
# `stale` says that lines have changed since they were read, and comes with them.
_EVERY_ANSWER = _FACTS.pop("every_answer")
ERASE_DESCRIPTION: str = _FACTS[ERASE]["description"]

# Each by the name of its tool. A call is idempotent if making it again changes nothing more: lines that are there are
# not added again, an edit names the hash of lines that it has replaced. The lines below those that were removed may be
# the same once more. What a record has held before is in its history, until the user's word drops it.
ANNOTATIONS: Mapping[str, ToolAnnotations] = {
    name: ToolAnnotations.model_validate({**facts["effects"], "openWorldHint": False})  # a memory is a folder of files
    for name, facts in _FACTS.items()
}
# The JSON schema of the structured answer of each tool, by its name.
OUTPUT_SCHEMAS: Mapping[str, dict[str, Any]] = {
    name: {"type": "object", "properties": {**_EVERY_ANSWER, **facts["answer"]}, "required": ["status"]}
    for name, facts in _FACTS.items()
}
