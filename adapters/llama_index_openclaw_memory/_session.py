"""Find the session that a query belongs to."""

from __future__ import annotations

from llama_index.core.instrumentation import dispatcher


def session_of(given: str | None) -> str | None:
    """Return the session that says who reads along: `given`, else that of the run, else None.

    LlamaIndex hands a run's context to tools alone. All parts of a run see the tags of its `instrument_tags`.
    """
    if given is not None:
        return given
    key = dispatcher.active_instrument_tags.get().get("session_key")  # type: ignore[attr-defined]  # not re-exported
    return str(key) if key else None
