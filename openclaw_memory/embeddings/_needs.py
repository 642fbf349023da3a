"""What providers of services share before they ask: package, key, and the options that all of them take."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from openclaw_memory.errors import EmbedderError, MissingExtraError

# What is imported of each provider that needs a key: who lacks both is told so at once.
_PACKAGES = {"openai": "openai", "gemini": "google.genai", "voyage": "voyageai"}


def package(name: str, extra: str) -> Any:
    """The module `name`, which comes with one of our extras.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"embedder {extra!r} needs a package that cannot be imported ({error}): {_installing(extra)}"
        ) from error


def required_key(provider: str, given: str | None, *variables: str) -> str:
    """The key that was given, or the first one that the environment holds.

    Raises:
        EmbedderError: there is none.
    """
    for key in (given, *map(os.environ.get, variables)):
        if key and key.strip():
            return key.strip()
    missing = "" if _is_installed(_PACKAGES.get(provider)) else f"; its package is missing too: {_installing(provider)}"
    raise EmbedderError(
        f"embedder {provider!r} has no key: set {' or '.join(variables)} in the environment, or the option api_key"
        f"{missing}"
    )


def _installing(extra: str) -> str:
    return f'pip install "openclaw-memory-index[{extra}]"'


def _is_installed(name: str | None) -> bool:
    """Whether a module can be found, without importing it: a service's own takes up to a second."""
    try:
        return name is None or find_spec(name) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def check_numbers(provider: str, **options: int | None) -> None:
    """Refuse numbers below 1; None is the provider's default.

    Raises:
        EmbedderError: it names the option.
    """
    for name, number in options.items():
        if number is not None and number < 1:
            raise EmbedderError(f"embedder {provider!r} cannot be asked with {name}={number}; it must be at least 1")


def shared_settings(
    headers: Mapping[str, str] | None, dimensions: int | None, max_input_tokens: int | None
) -> dict[str, Any]:
    """What of these options changes a vector, or may: of `headers` the names."""
    return {
        "dimensions": dimensions,
        "headers": sorted(header.lower() for header in headers or {}) or None,
        "max_input_tokens": max_input_tokens,
    }


def secrets_of(key: str, headers: Mapping[str, str] | None) -> tuple[str, ...]:
    """What no message may show: the key, and what the headers say, also without a scheme such as `Bearer`."""
    values = [str(value) for value in (headers or {}).values()]
    return (key, *values, *(value.partition(" ")[2] for value in values))
