"""Methods that an object hands to its own parts: one that is dropped is freed at once, with what it keeps open."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def weakly(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that calls a bound method, whose object it does not keep alive: a part does not outlive it."""
    known = WeakMethod(method)

    def call(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        found = known()
        assert found is not None, f"{known} is used by a part that has outlived its object"
        return found(*args, **options)

    return call
