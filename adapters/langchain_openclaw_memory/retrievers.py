"""`OpenClawRetriever`: search the memory as a LangChain retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.documents import Document
from pydantic import Field, PlainValidator

from langchain_openclaw_memory._session import (
    MemoryField,
    SessionRetriever,
    describe_unknown,
    find_session,
    get_run_config,
    lease_run_memory,
)
from openclaw_memory import SearchFilter, SearchOptions
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import QueryError
from openclaw_memory.tools import search_for

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

    from openclaw_memory import Memory, SearchResults


_SETTINGS = ("k", "max_chars", "min_score", "filter", "options")  # those that a call may set


class OpenClawRetriever(SessionRetriever):
    """Retrieve the lines of a memory that answer a question, each with its citation.

    The fields but `memory` may differ for one call: `retriever.invoke(question, k=1)`. Its `filter` or `options`
    take the place of the field as a whole. The metadata of a document are `path`, `start_line`, `end_line`, `score`,
    `source`, `citation`, `mode`, `stale` and, for keywords alone, `reason`;
    of lines of a record also its fields, as `record`.

    Args:
        memory: The memory to search, or a selector of one for each run: see `memory_tools`.
        k: The most documents to return, 1..1000. By default 6 (`config.search.max_results`), or as many as fit.
        max_chars: The most characters of all documents together, as for `Memory.search`.
        min_score: The lowest score, 0..1, by default that of the memory's configuration.
        filter: Which lines count, as for `Memory.search`: `{"path": "memory/2026-*", "since": "2026-01-31"}`.
        options: How a search differs, as for `Memory.search`: `{"task": "booking a trip", "settings": {"mmr": 0.7}}`.
        session_key: Where the answer is read: in groups and channels less is shown, see `memory_tools`. By default that
            of the run: the `session_key` of its context, `configurable` or `run_values`, else its thread.

    Raises:
        pydantic.ValidationError: A field is unknown, has a wrong type or is out of range.
        QueryError: An argument of one call is unknown, or has a wrong type or value.
    """

    memory: MemoryField
    k: int | None = Field(default=None, ge=1, le=1000)
    max_chars: int | None = Field(default=None, ge=1)
    min_score: float | None = Field(default=None, ge=0, le=1)
    filter: Annotated[SearchFilter | dict[str, Any] | None, PlainValidator(SearchFilter.read)] = None
    options: Annotated[SearchOptions | dict[str, Any] | None, PlainValidator(SearchOptions.read)] = None
    session_key: str | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain hands it over by its name
        **settings: Any,
    ) -> list[Document]:
        if unknown := settings.keys() - set(_SETTINGS):
            raise QueryError(describe_unknown(unknown, _SETTINGS, "a search"))
        k = settings.get("k")
        if k is not None and (not isinstance(k, int) or isinstance(k, bool) or k < 1):
            raise QueryError(f"k must be a whole number of at least 1, not {k!r}")
        values = {name: getattr(self, name) if settings.get(name) is None else settings[name] for name in _SETTINGS}
        config = get_run_config()
        with lease_run_memory(self.memory, config) as memory:
            results = search_for(
                memory, query, session_key=find_session(self.session_key, config), max_results=values.pop("k"), **values
            )
            return to_documents(results, memory)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **wishes: Any
    ) -> list[Document]:
        return await run_in_thread(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **wishes)


class _Passage(Document):  # noqa: PLW1641 - as a document, which has no hash
    """A result as a document that is equal to that of the same lines for another question, whatever the scores.

    Chains that ask several questions, such as `MultiQueryRetriever`, drop equal documents.
    """

    def __eq__(self, document: object) -> bool:
        return isinstance(document, Document) and (self.id, self.page_content) == (document.id, document.page_content)

    def __reduce__(self) -> Any:
        return Document.model_validate, (self.model_dump(),)


# What keeps objects by the names of their classes, such as a checkpoint, has a plain document.
_Passage.__module__, _Passage.__name__ = Document.__module__, Document.__name__


def to_documents(results: SearchResults, memory: Memory | None = None) -> list[Document]:
    """Return one document per result, best first: its text is the snippet, its id the citation, the metadata JSON.

    With the memory, those of records have their fields.
    """
    names = ("path", "start_line", "end_line", "score", "confidence", "source", "citation")
    search = {"mode": results.mode, "stale": results.stale} | ({"reason": results.reason} if results.reason else {})
    return [
        _Passage(
            id=result.citation,
            page_content=result.snippet,
            metadata={
                **{name: getattr(result, name) for name in names},
                "spans": [*map(list, result.spans)],
                **search,
                **({} if memory is None else memory.records.describe_result(result)),
            },
        )
        for result in results
    ]
