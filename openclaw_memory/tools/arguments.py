"""Define the arguments of a tool once: the fields of a struct are its JSON schema and the check of each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import msgspec
from msgspec import Meta

from openclaw_memory._safe import clean_line
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.types.records import RecordType

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Hash = Annotated[str, Meta(pattern="^[0-9a-fA-F]{12,64}$")]


def describe(text: str) -> Meta:
    """Describe an argument to a model."""
    return Meta(description=text)


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of one call of a tool; a subclass is a tool, and its fields the schema."""

    name: ClassVar[str]
    description: ClassVar[str]


A = TypeVar("A", bound=Arguments)


def build_schema(kind: type[Arguments]) -> dict[str, Any]:
    """Build the JSON schema of the arguments of a tool: one closed object without references."""
    (schema,) = msgspec.json.schema(kind)["$defs"].values()
    properties = {name: _flatten(spec) for name, spec in schema["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _flatten(spec: dict[str, Any]) -> dict[str, Any]:
    """Write one argument as models read it best: its type first, its description last, no null."""
    spec = dict(spec["anyOf"][0] if "anyOf" in spec else spec)
    description = spec.pop("description")
    if "enum" in spec:  # which msgspec sorts
        spec["enum"] = list(get_args(RecordType))
    return {"type": spec.pop("type", "string"), **spec, "description": description}


def parse_arguments(kind: type[A], arguments: object) -> A:
    """Check the arguments of a model: numbers may be strings, and null stands for an argument that is left out.

    Args:
        kind: The tool.
        arguments: The arguments by name.

    Raises:
        InvalidInputError: One is unknown, missing, of another type or out of range; the message names it.
    """
    try:
        return msgspec.convert(arguments, kind, strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # a name may hold half a character
        problem, _, path = clean_line(str(error))[:200].partition(" - at `$.")
        schema = build_schema(kind)
        names = [name if name in schema["required"] else f"{name}?" for name in schema["properties"]]
        if not path or not isinstance(arguments, Mapping):
            raise InvalidInputError(f"{problem}: the arguments of {kind.name} are {', '.join(names)}") from None
        name = path.rstrip("`")
        spec = schema["properties"][name]
        if "enum" in spec:
            problem = f"Expected one of {', '.join(spec['enum'])}"
        value = f"{arguments[name]!r:.80}"
        raise InvalidInputError(f"{name} is {value}: {problem}. {spec['description']}") from None
