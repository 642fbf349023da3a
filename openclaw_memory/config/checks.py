"""Check values against the annotated types of their section: for files, programs, plug-ins and one search alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct, ValidationError, convert, inspect

from openclaw_memory.errors import ConfigError, suggest

T = TypeVar("T", bound=Struct)

# Showing more of a wrong value does not help, and it may be a key in the wrong place.
_MAX_CHARS, _BEGINNING_CHARS = 24, 12
_MAX_BITS = 64  # of a number that is shown: Python refuses to write out more than 4,300 digits


def check_keys(model: type[Struct], keys: Mapping[str, Any], place: str, origin: str = "") -> None:
    """Refuse a key that a section does not have.

    Args:
        model: The section.
        keys: The table with the keys.
        place: The name of the section, for the message.
        origin: The beginning of the message, such as a file.

    Raises:
        ConfigError: A key is unknown.
    """
    names = model.__struct_fields__
    if unknown := sorted(set(keys) - set(names)):
        hint = f"{suggest(unknown[0], names)}known are {', '.join(sorted(names))}"
        raise ConfigError(f"{origin}unknown key {place}.{unknown[0]}; {hint}")


def check_values(model: type[Struct], values: Mapping[str, Any], place: str, notices: list[str]) -> dict[str, Any]:
    """Return values in the types of their fields; a number outside its range is clamped, with a notice.

    Args:
        model: The section.
        values: The values by the names of fields.
        place: The name of the section, for messages.
        notices: Gets a sentence for each clamped number.

    Raises:
        ConfigError: A value has the wrong type, is not one of the choices, or is not a number.
    """
    kinds = read_types(model)
    checked: dict[str, Any] = {}
    for field, value in values.items():
        name, limits = f"{place}.{field}", read_range(kinds[field])
        clamped = value if limits is None else _clamp(value, limits)
        try:
            if value != value:  # NaN # noqa: PLR0124
                raise ValidationError
            checked[field] = convert(clamped, kinds[field])
        except ValidationError:
            wrong = describe_value(name, value)
            raise ConfigError(f"{name} must be {describe_type(kinds[field])}, not {wrong}") from None
        if clamped != value:
            low, high = limits  # type: ignore[misc]  # only numbers with a range differ
            notices.append(
                f"{name} = {describe_value(name, value)} is outside [{low:g}, {high:g}]: {clamped:g} is used"
            )
    return checked


def read_plugin_settings(config: Any, name: str, model: type[T]) -> T:
    """Read the settings of one plug-in.

    Args:
        config: The settings of the memory.
        name: The plug-in: `[plugins.<name>]`.
        model: A frozen `msgspec.Struct` whose fields all have defaults, with `Meta(ge=..., le=...)` for ranges and
            `Literal` for choices.

    Raises:
        ConfigError: A key is unknown, or a value has the wrong type, is out of range or is not one of the choices.
    """
    table: Mapping[str, Any] = config.plugins.get(name, {})
    check_keys(model, table, f"plugins.{name}")
    notices: list[str] = []
    settings = model(**check_values(model, table, f"plugins.{name}", notices))
    if notices:
        raise ConfigError(notices[0].rpartition(": ")[0])
    return settings


@cache
def read_types(model: type[Struct]) -> Mapping[str, Any]:
    """Return the annotations of a section by the names of its fields."""
    return get_type_hints(model, include_extras=True)


@cache
def read_range(kind: Any) -> tuple[float, float] | None:
    """Return the range of a number's type; None for any other type."""
    node = _get_inner(inspect.type_info(kind))
    if not isinstance(node, inspect.IntType | inspect.FloatType) or node.ge is None:
        return None
    return node.ge, float("inf") if node.le is None else node.le


def describe_type(kind: Any) -> str:
    """Describe the values that a field takes, for a message."""
    choices = kind if get_origin(kind) is Literal else next(iter(get_args(kind)), None)  # of `Choices | None` too
    if get_origin(choices) is Literal:
        return f"one of {', '.join(get_args(choices))}"
    node = _get_inner(inspect.type_info(kind))
    if isinstance(node, inspect.VarTupleType):
        return "a list of strings" if isinstance(node.item_type, inspect.StrType) else "a list of rules"
    if isinstance(node, inspect.StrType) and node.min_length:
        return "a string that is not empty"
    words = {
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.BoolType: "true or false",
        inspect.StrType: "a string",
    }
    return words.get(type(node), "a table of tables, such as {'openai': {'model': '...'}}")


def describe_value(name: str, value: object) -> str:
    """Describe a wrong value for a message: its type alone if it may hold a key, its beginning if it is long."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return "a number of very many digits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if (
        name.partition(".")[0] in {"embedding", "store", "defaults", "agents"}
        or name.endswith(".pattern")
        or isinstance(value, Mapping)
    ):
        return f"a value of type {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= _MAX_CHARS else f"{text[:_BEGINNING_CHARS]}... ({type(value).__name__})"


def _get_inner(node: inspect.Type) -> inspect.Type:
    """Return the type of an optional value, without its metadata."""
    if isinstance(node, inspect.UnionType):
        (node,) = (option for option in node.types if not isinstance(option, inspect.NoneType))
    return node.type if isinstance(node, inspect.Metadata) else node


def _clamp(value: Any, limits: tuple[float, float]) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return min(max(value, limits[0]), limits[1]) if is_number else value
