"""What a provider needs before it can ask a service: its package, and a key."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from openclaw_memory.errors import EmbedderError, MissingExtraError


def package(name: str, extra: str) -> Any:
    """The module `name`, which comes with one of our extras.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"embedder {extra!r} needs a package that cannot be imported ({error}): "
            f'pip install "openclaw-memory-index[{extra}]"'
        ) from error


def required_key(provider: str, given: str | None, *variables: str) -> str:
    """The key that was given, or the first one that the environment holds.

    Raises:
        EmbedderError: there is none.
    """
    for key in (given, *map(os.environ.get, variables)):
        if key and key.strip():
            return key.strip()
    raise EmbedderError(
        f"embedder {provider!r} has no key: set {' or '.join(variables)} in the environment, or the option api_key"
    )
