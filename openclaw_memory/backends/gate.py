"""Check a search that a plug-in answers, and mask its results by policies and signatures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.records.files import RecordFiles
from openclaw_memory.search.budget import fit_results
from openclaw_memory.search.request import resolve_request
from openclaw_memory.text.policies import parse_about
from openclaw_memory.types import Excerpt, SearchResult
from openclaw_memory.workspace.paths import is_record

if TYPE_CHECKING:
    from openclaw_memory.backends import Backend
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.workspace import Workspace


def search_backend(
    backend: Backend, request: SearchRequest, workspace: Workspace, config: MemoryConfig
) -> SearchResults:
    """Search with an engine that knows neither policies nor signatures, and return the results as they may be shown.

    Records that have expired or were forged are left out, and texts that policies mask as a whole.

    Args:
        backend: The engine.
        request: The search.
        workspace: The files, with the policies.
        config: The settings.

    Raises:
        QueryError: An argument of the search has a wrong type or value.
    """
    now = resolve_request(request, config).now
    answer = backend.search(request)
    records = RecordFiles(workspace)
    hidden = records.find_hidden((result.path for result in (*answer.results, *answer.rejected)), now)

    def show(results: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
        visible = (result for result in results if result.path not in hidden)
        masked = (structs.replace(result, snippet=_mask(result.snippet, result.path, workspace)) for result in visible)
        return tuple(result for result in masked if result.snippet.strip())

    answer = replace(answer, results=show(answer.results), rejected=show(answer.rejected))
    if request.max_chars is None:
        return answer
    results, omitted = fit_results(answer.results, request.max_chars)
    return replace(answer, results=results, omitted=answer.omitted + omitted)


def mask_excerpt(excerpt: Excerpt, workspace: Workspace) -> Excerpt:
    """Return lines from an engine that knows neither policies nor signatures, as they may be shown.

    Args:
        excerpt: The excerpt of the engine.
        workspace: The files, with the policies.

    Raises:
        NotFoundError: They are those of a record that has expired.
        RecordError: They are those of a record that no signature vouches for.
    """
    RecordFiles(workspace).check_visible(excerpt.path)
    return structs.replace(excerpt, text=_mask(excerpt.text, excerpt.path, workspace))


def _mask(text: str, path: str, workspace: Workspace) -> str:
    about = None
    if workspace.policies and is_record(path):
        with suppress(OpenClawMemoryError, OSError):  # only the engine has it: rules by the record cannot be asked
            about = parse_about(workspace.read(path))
    return workspace.policies.mask(text, about)
