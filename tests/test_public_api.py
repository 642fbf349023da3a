"""The public names: what they are, that each can be had, and that the tour in the package's docstring is true."""

import doctest
import importlib
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest
from test_architecture import PUBLIC_MODULES

import openclaw_memory
from openclaw_memory.errors import InvalidInputError, QueryError

# The front door, pinned: whoever changes it changes what programs outside rely on.
FRONT_DOOR = {
    "sync": ["force", "progress", "wait"],
    "search": ["query", "max_results", "max_chars", "min_score", "filter", "options", "now"],
    "get": ["path", "start", "lines"],
    "append": ["text", "date", "title", "skip_existing", "quoted_from"],
    "edit": ["path", "start", "end", "text", "expected"],
    "delete": ["path", "start", "end", "expected"],
    "notes.append": ["text", "date", "title", "skip_existing", "quoted_from", "path"],
    "notes.sync_soon": [],
    "notes.promote": ["path", "start", "end", "section", "expected"],
    "notes.bootstrap": ["private", "max_chars", "now"],
    "sessions.log": ["session_id", "parent_session"],
    "sessions.flush": ["session", "window"],
    "sessions.snapshot": ["session_id", "messages", "summary"],
    "sessions.snapshots": ["session_id"],
    "sessions.resume": ["session_id"],
    "heartbeat": ["budget_seconds", "ask"],
    "control.inspect": [],
    "control.forget": ["last_days", "since", "query", "key", "session", "paths", "dry_run", "expected", "now"],
    "watch": [],
    "status": ["deep"],
    "close": [],
}


NAMES = Path(__file__).parents[1] / "docs" / "reference" / "public-names.md"


def public_names() -> dict[str, set[str]]:
    """Each public module with its names, as the reference lists them."""
    sections = re.split(r"(?m)^## `([\w.]+)`$", NAMES.read_text(encoding="utf-8"))[1:]
    return {
        module: set(re.findall(r"`(\w+)`", text)) for module, text in zip(sections[::2], sections[1::2], strict=True)
    }


def test_the_reference_lists_every_public_module():
    assert set(public_names()) == PUBLIC_MODULES


@pytest.mark.parametrize(("module", "names"), public_names().items())
def test_the_reference_lists_every_public_name(module, names):
    assert names == set(importlib.import_module(module).__all__)


@pytest.mark.parametrize("name", openclaw_memory.__all__)
def test_each_public_name_can_be_had_and_is_documented(name):
    assert inspect.getdoc(getattr(openclaw_memory, name))


@pytest.mark.parametrize(("method", "parameters"), FRONT_DOOR.items())
def test_the_front_door_takes_what_it_has_always_taken(method, parameters, tmp_path):
    with openclaw_memory.Memory.open(tmp_path) as memory:
        assert list(inspect.signature(attrgetter(method)(memory)).parameters) == parameters


def test_every_error_has_one_root_and_is_in_the_tree_of_the_docstring():
    errors = importlib.import_module("openclaw_memory.errors")
    classes = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, Exception)]
    assert len(classes) > 5
    assert all(issubclass(item, openclaw_memory.OpenClawMemoryError) for item in classes)
    assert [item.__name__ for item in classes if item.__name__ not in (errors.__doc__ or "")] == []


@pytest.mark.parametrize("method", ["sync", "status"])
def test_switches_are_given_by_name(method):
    parameters = list(inspect.signature(getattr(openclaw_memory.Memory, method)).parameters.values())[1:]
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_bad_search_is_bad_input_and_a_bad_write_is_no_bad_search():
    assert issubclass(QueryError, InvalidInputError)
    assert issubclass(InvalidInputError, ValueError)


def test_the_tour_in_the_docstring_is_true():
    result = doctest.testmod(openclaw_memory)
    assert result.attempted > 5
    assert result.failed == 0
