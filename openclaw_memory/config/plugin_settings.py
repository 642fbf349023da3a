"""Check the settings of plug-ins, `[plugins.<name>]`, against the dataclass that each hands over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory.config.sections import check_type, shown
from openclaw_memory.errors import ConfigError, nearest

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig

T = TypeVar("T")


def read_plugin_settings(config: MemoryConfig, name: str, model: type[T]) -> T:
    """Read the settings of one plug-in.

    Args:
        config: The settings of the memory.
        name: The plug-in: `[plugins.<name>]`.
        model: A frozen dataclass whose fields all have defaults. `metadata` of a field may have `range`, a pair of
            numbers, and `choices`, a sequence of strings.

    Raises:
        ConfigError: A key is unknown, or a value has the wrong type, is out of range or is not one of the choices.
    """
    table: Mapping[str, Any] = config.plugins.get(name, {})
    specs = {spec.name: spec for spec in fields(model)}  # type: ignore[arg-type]  # a dataclass
    values: dict[str, Any] = {}
    for key, item in table.items():
        value = tuple(item) if isinstance(item, list) else item
        label = f"plugins.{name}.{key}"
        if key not in specs:
            raise ConfigError(f"unknown key {label}; {nearest(key, specs)}known are {', '.join(sorted(specs))}")
        metadata = specs[key].metadata
        if (choices := metadata.get("choices")) is not None:
            if value not in choices:
                raise ConfigError(f"{label} must be one of {', '.join(choices)}, not {shown(label, value)}")
        else:
            kind = specs[key].type
            check_type(label, value, kind.__name__ if isinstance(kind, type) else str(kind))
        if (limits := metadata.get("range")) is not None and not limits[0] <= value <= limits[1]:
            raise ConfigError(f"{label} = {shown(label, value)} is outside [{limits[0]:g}, {limits[1]:g}]")
        values[key] = value
    return model(**values)
