"""Hand methods of an object to its parts without keeping it alive, so that it is freed with its last reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

from openclaw_memory.errors import StoreError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def bind_weakly(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that calls a bound method, and raises StoreError once its object is gone."""
    name, reference = type(getattr(method, "__self__", method)).__name__, WeakMethod(method)

    def call(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        method = reference()
        if method is None:
            raise StoreError(
                f"the {name} that this is a part of is gone: keep it in a variable while its parts are used"
            )
        return method(*args, **options)

    return call
