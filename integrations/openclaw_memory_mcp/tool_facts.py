"""Describe each tool for clients besides its description and arguments: its effects and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import ToolAnnotations

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_WHOLE = {"type": "integer"}
_TRUTH = {"type": "boolean"}


def _annotate(title: str, *, reads: bool = False, destroys: bool = False, repeats: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        title=title,
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=repeats,
        open_world_hint=False,  # a memory is a folder of files
    )


# Each by the name of its tool. A call is idempotent if making it again changes nothing more: lines that are there are
# not added again, an edit names the hash of lines that it has replaced. The lines below those that were removed may be
# the same once more. What a record has held before is in its history, until the user's word drops it.
ANNOTATIONS: Mapping[str, ToolAnnotations] = {
    "memory_search": _annotate("Search the memory", reads=True),
    "memory_get": _annotate("Read lines of the memory", reads=True),
    "memory_append": _annotate("Save to today's note"),
    "memory_edit": _annotate("Replace lines of a note", destroys=True),
    "memory_forget": _annotate("Remove lines of a note", destroys=True, repeats=False),
    "memory_promote": _annotate("Copy lines to MEMORY.md"),
    "memory_remember": _annotate("Remember a fact"),
    "memory_confirm": _annotate("Confirm a fact", destroys=True),
    "memory_erase": _annotate("Forget for good", destroys=True),
}


def _make_schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an answer: its status, the fields of an error, and the tool's own fields."""
    # `from` is a keyword of Python, and a field all the same.
    own = {name.removesuffix("_"): schema for name, schema in properties.items()}
    status = {
        "type": "string",
        "enum": ["ok", "invalid", "not_found", "not_allowed", "stale", "unavailable", "failed"],
        "description": "ok, or what went wrong; `error` then says what to do.",
    }
    # `stale` says that lines have changed since they were read, and comes with them.
    refused = {"error": _TEXT, "path": _TEXT, "from": _WHOLE, "current": _TEXT, "hash": _TEXT}
    return {"type": "object", "properties": {"status": status, **refused, **own}, "required": ["status"]}


def _make_rows(**fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": fields, "required": [*fields]}}


_RESULTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "path": _TEXT,
            "lines": {"type": "string", "description": "3-4, or 3-4,9-9 where lines in between are left out."},
            "score": _NUMBER,
            "confidence": {"type": "string", "enum": ["strong", "in other words"]},
            "snippet": _TEXT,
            "citation": _TEXT,
        },
        "required": ["path", "lines", "score", "confidence", "snippet"],
    },
}
_RECORD = {"outcome": _TEXT, "record": _TEXT, "confidence": _NUMBER, "version": _WHOLE, "waiting": _WHOLE}

# The JSON schema of the structured answer of each tool, by its name.
OUTPUT_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "memory_search": _make_schema(
        results=_RESULTS,
        provider={"type": ["string", "null"]},
        model={"type": ["string", "null"]},
        mode=_TEXT,
        stale={"type": "boolean", "description": "The index is behind the files."},
        note=_TEXT,
        filtered={"type": "integer", "description": "How many scored too little."},
        omitted={
            "type": "integer",
            "description": "How many did not fit, or are less sure: ask for maxResults.",
        },
    ),
    "memory_get": _make_schema(
        lines=_WHOLE,
        text=_TEXT,
        citation=_TEXT,
        nextFrom={"type": "integer", "description": "Where to read on."},
        truncated=_TRUTH,
    ),
    "memory_append": _make_schema(lines=_TEXT, existed=_TRUTH, redacted=_TRUTH, citation=_TEXT),
    "memory_edit": _make_schema(lines=_WHOLE, redacted=_TRUTH, citation=_TEXT),
    "memory_forget": _make_schema(removed=_WHOLE),
    "memory_promote": _make_schema(lines=_WHOLE, existed=_TRUTH, redacted=_TRUTH, citation=_TEXT),
    "memory_remember": _make_schema(**_RECORD, note=_TEXT),
    "memory_confirm": _make_schema(**_RECORD),
    "memory_erase": _make_schema(
        outcome={"type": "string", "enum": ["planned", "nothing", "forgotten"]},
        files=_WHOLE,
        lines=_WHOLE,
        messages=_WHOLE,
        sessions=_WHOLE,
        goes=_make_rows(where=_TEXT, what=_TEXT, why=_TEXT),
        goesOmitted=_WHOLE,
        lookAt=_make_rows(where=_TEXT, why=_TEXT),
        lookAtOmitted=_WHOLE,
        note=_TEXT,
        erased=_TRUTH,
        forgotten={"type": "array", "items": _TEXT},
        forgottenOmitted=_WHOLE,
        remaining=_make_rows(where=_TEXT, why=_TEXT),
        remainingOmitted=_WHOLE,
    ),
}
