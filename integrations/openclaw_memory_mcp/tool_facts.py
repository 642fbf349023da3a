"""Describe each tool for clients besides its description and arguments: its effects and its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from mcp_types import ToolAnnotations

ERASE = "memory_erase"
ERASE_DESCRIPTION = (
    "Forget for good: what is of the last days, what says some words, records by key, or a session. Only where the "
    "user has asked for it. Name exactly one of `lastDays`, `since`, `query`, `key`, `session`. The user is shown what "
    "would go, and it goes only if they agree."
)

_FACTS: Mapping[str, dict[str, Any]] = json.loads(
    resources.files("openclaw_memory_mcp").joinpath("tools.json").read_text(encoding="utf-8")
)
_STATUS = {
    "type": "string",
    "enum": ["ok", "invalid", "not_found", "not_allowed", "stale", "unavailable", "failed"],
    "description": "ok, or what went wrong; `error` then says what to do.",
}
_TEXT = {"type": "string"}
# `stale` says that lines have changed since they were read, and comes with them.
_REFUSED = {"error": _TEXT, "path": _TEXT, "from": {"type": "integer"}, "current": _TEXT, "hash": _TEXT}

# Each by the name of its tool. A call is idempotent if making it again changes nothing more: lines that are there are
# not added again, an edit names the hash of lines that it has replaced. The lines below those that were removed may be
# the same once more. What a record has held before is in its history, until the user's word drops it.
ANNOTATIONS: Mapping[str, ToolAnnotations] = {
    name: ToolAnnotations.model_validate({**facts["effects"], "openWorldHint": False})  # a memory is a folder of files
    for name, facts in _FACTS.items()
}
# The JSON schema of the structured answer of each tool, by its name.
OUTPUT_SCHEMAS: Mapping[str, dict[str, Any]] = {
    name: {"type": "object", "properties": {"status": _STATUS, **_REFUSED, **facts["answer"]}, "required": ["status"]}
    for name, facts in _FACTS.items()
}
