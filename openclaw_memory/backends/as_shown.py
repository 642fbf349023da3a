"""Show what an engine that knows no policies and no signatures has found and read as these let it be shown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_memory.errors import OpenClawMemoryError, SignatureError
from openclaw_memory.text.policies import about_in
from openclaw_memory.types import Excerpt, SearchResult
from openclaw_memory.workspace.paths import is_record
from openclaw_memory.workspace.vouched import why_withheld

if TYPE_CHECKING:
    from openclaw_memory.search import SearchResults
    from openclaw_memory.workspace import Workspace


def results_as_shown(found: SearchResults, workspace: Workspace) -> SearchResults:
    """Return the results of an engine that knows no policies, as these let them be shown.

    Empty ones are left out, and records that no signature vouches for.

    Args:
        found: What the engine found.
        workspace: The files, with the policies.
    """
    if not workspace.policies and not any(is_record(one.path) for one in (*found.results, *found.rejected)):
        return found

    def shown(results: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
        vouched = (one for one in results if _problem(one.path, workspace) is None)
        seen = (replace(one, snippet=_as_shown(one.snippet, one.path, workspace)) for one in vouched)
        return tuple(one for one in seen if one.snippet.strip())

    return replace(found, results=shown(found.results), rejected=shown(found.rejected))


def excerpt_as_shown(excerpt: Excerpt, workspace: Workspace) -> Excerpt:
    """Return lines from an engine that knows no policies, as these let them be shown.

    Args:
        excerpt: What the engine read.
        workspace: The files, with the policies.

    Raises:
        SignatureError: They are those of a record that no signature vouches for.
    """
    if (problem := _problem(excerpt.path, workspace)) is not None:
        raise SignatureError(problem)
    if not workspace.policies:
        return excerpt
    return replace(excerpt, text=_as_shown(excerpt.text, excerpt.path, workspace))


def _problem(path: str, workspace: Workspace) -> str | None:
    if is_record(path):
        with suppress(OpenClawMemoryError, OSError):  # only the engine has it
            return why_withheld(workspace.root, path, workspace.read(path))
    return None


def _as_shown(text: str, path: str, workspace: Workspace) -> str:
    about = None
    if is_record(path):
        with suppress(OpenClawMemoryError, OSError):  # only the engine has it: rules by the record cannot be asked
            about = about_in(workspace.read(path))
    return workspace.policies.shown(text, about)
