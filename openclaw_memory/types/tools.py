"""What a model can call: a tool with its JSON schema, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: `data` for the model, and `artifact`, the Python object, for the calling program.

    `data["status"]` is `ok`, or says what went wrong: what a model can fix is returned, and not raised.
    """

    data: Mapping[str, Any]
    artifact: Any = None

    @property
    def ok(self) -> bool:
        return self.data.get("status") == "ok"

    @property
    def text(self) -> str:
        """`data` as compact JSON."""
        import json

        return json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. `parameters` is the JSON schema of the arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], ToolAnswer]

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a call, as compact JSON."""
        return self.run(arguments).text
