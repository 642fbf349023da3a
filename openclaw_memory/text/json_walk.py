"""Walk over a value of JSON."""

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """Yield the names of objects, as text, and all that is neither an object nor an array, in the order of the value.

    Args:
        value: What JSON can hold.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value
