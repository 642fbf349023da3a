"""Names of a package that are imported when they are first asked for, so that a program pays for what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def late_names(
    package: str, modules: Mapping[str, Sequence[str]], public: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package (PEP 562); `modules` says in which module each name lives.

    A module is named below the package, or in full where it lies in another package of the library.

    `public` are the names that an error lists, and `dir` besides those that are there already.
    """

    def get(name: str) -> Any:
        for module, names in modules.items():
            if name in names:
                in_full = module if module.startswith("openclaw_memory.") else f"{package}.{module}"
                value = getattr(import_module(in_full), name)
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(public)}")

    return get, lambda: sorted({*vars(sys.modules[package]), *public})
