"""Convert the items of a LangGraph store to files, and back."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import Item, get_text_at_path, tokenize_path

from openclaw_memory.documents import item_files

_LOG = logging.getLogger(__name__)


def format_item(item: Item, paths: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return front matter and body of an item; searches find its values at `paths`."""
    times = (item.created_at, item.updated_at)
    return item_files.make_file(item.namespace, item.key, item.value, times, _list_texts(item.value, paths), paths)


def parse_item(path: str, fields: Mapping[str, Any], text: str) -> Item | None:
    """Return the item in a file; None if the file is something else, or its front matter is damaged."""
    if not item_files.is_item(path, fields):
        return None
    namespace, key = tuple(fields["namespace"]), fields["key"]
    try:
        value = item_files.read_value(fields, text)
        if not fields.get("text_at") and "index" in fields and not _is_shown(value, fields["index"], text):
            _LOG.warning(
                "%r was edited below its front matter, where searches look, and the item is unchanged: its text is "
                "in several fields, so edit `value` above the text instead",
                path,
            )
        created_at, updated_at = (_parse_time(fields[name]) for name in ("created_at", "updated_at"))
    except (KeyError, TypeError, ValueError):
        _LOG.warning("%r is skipped: fix its front matter, where `value` must be a JSON object on one line", path)
        return None
    return Item(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)


def _is_shown(value: dict[str, Any], paths: Sequence[str], text: str) -> bool:
    """Tell whether a body is the unedited text of a value."""
    return item_files.trim_body(text) == item_files.trim_body(item_files.make_body(_list_texts(value, paths), paths))


def _parse_time(written: str) -> datetime:
    """Parse a point in time, in local time if it was edited to have no zone."""
    return datetime.fromisoformat(written).astimezone(UTC)


def _list_texts(value: dict[str, Any], paths: Sequence[str]) -> list[item_files.Text]:
    return [text for path in paths for text in _find_texts(value, path)]


def _find_texts(value: dict[str, Any], path: str) -> Iterator[item_files.Text]:
    if path == item_files.WHOLE:
        yield from item_files.list_texts(value)
        return
    keys = tuple(tokenize_path(path))
    yield from (item_files.Text(path, keys, text) for text in get_text_at_path(value, list(keys)))
