"""A search has other rules than the configuration where its caller gives them, and nothing else changes by it."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_files import write_files
from msgspec.structs import asdict, replace

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.aio import AsyncMemory
from openclaw_memory.errors import QueryError
from openclaw_memory.search.request import SETTINGS_OF_A_SEARCH
from openclaw_memory.tools import search_for

NOTES = {
    f"memory/2026-0{month}-1{month}.md": f"The ferry to Texel leaves at {month} from {place}.\n\n{more}\n"
    for month, place, more in (
        (1, "Den Helder", "Buy a ticket for the ferry before."),
        (3, "Den Helder", "The ferry carries bicycles, and dogs."),
        (5, "Harlingen", "Anna wants to see the seals of Texel."),
        (7, "Den Oever", "The museum of Texel is closed on Mondays."),
    )
} | {"MEMORY.md": "Anna is afraid of ferries.\n"}
NOW = datetime(2026, 8, 1, tzinfo=UTC)
QUESTION = "When does the ferry to Texel leave?"
RULES = st.fixed_dictionaries(
    {},
    optional={
        "mmr": st.none() | st.floats(0, 1),
        "half_life_days": st.none() | st.floats(1, 1000),
        "vector_weight": st.floats(0.1, 1),
        "candidates": st.integers(1, 60),
        "candidate_multiplier": st.none() | st.integers(1, 8),
        "fusion": st.sampled_from(["standardised", "weighted"]),
        "answer": st.sampled_from(["lines", "chunks"]),
        "snippet_chars": st.integers(40, 200),
    },
)
AGED, OTHER = {"half_life_days": 90, "mmr": None}, {"mmr": 0.2, "fusion": "weighted", "answer": "chunks"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("rules")
    write_files(root, NOTES)
    with Memory.open(root) as memory:
        memory.sync()
    return root


@pytest.fixture(scope="module")
def memory(folder):
    with Memory.open(folder) as opened:
        yield opened


@given(rules=RULES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_search_with_rules_answers_as_a_memory_that_is_configured_so(folder, memory, rules):
    options = {"explain": True, "task": "a day with Anna"}
    with Memory.open(folder, config=MemoryConfig().replace({"search": rules})) as configured:
        wanted = configured.search(QUESTION, options=options, now=NOW)
    assert memory.search(QUESTION, options={**options, "settings": rules}, now=NOW) == wanted


@pytest.mark.parametrize("config", [MemoryConfig(), MemoryConfig.openclaw(), MemoryConfig.openclaw("2026.2")])
def test_the_rules_of_the_configuration_change_nothing(folder, config):
    config = replace(config, embedding=MemoryConfig().embedding, chunking=MemoryConfig().chunking)
    own = {name: value for name, value in asdict(config.search).items() if name in SETTINGS_OF_A_SEARCH}
    with Memory.open(folder, config=config) as memory:
        plain = memory.search(QUESTION, options={"explain": True})
        assert plain
        assert memory.search(QUESTION, options={"explain": True, "settings": own}) == plain


def test_rules_hold_for_their_search_alone_also_of_searches_at_the_same_time(memory):
    def ask(rules):
        return memory.search(QUESTION, now=NOW, options={"settings": rules})

    each = [None, AGED, OTHER]
    alone = [ask(rules) for rules in each]
    assert len({tuple((one.citation, one.score) for one in found) for found in alone}) == 3
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, each * 12)) == alone * 12


def test_the_arguments_of_a_search_count_over_its_rules(memory):
    settings = {"snippet_chars": 200, "mmr": 0.5}
    found = memory.search(QUESTION, options={"settings": settings}, max_chars=60, max_results=2)
    assert 0 < sum(len(one.snippet) for one in found) <= 60
    assert len(memory.search(QUESTION, options={"settings": OTHER}, max_results=1)) == 1
    assert all(one.score >= 0.5 for one in memory.search(QUESTION, options={"settings": OTHER}, min_score=0.5))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"mmr": 2}, r"search.mmr = 2 is outside \[0, 1\]"),
        ({"mmr": "0.5"}, "search.mmr must be a number"),
        ({"mmr": math.nan}, "search.mmr must be a number"),
        ({"fusion": "best"}, "search.fusion must be one of standardised, weighted"),
        ({"half_life": 30}, "no setting 'half_life': did you mean 'half_life_days'"),
        ({7: 30}, "no setting '7'"),
        ({"memory_mb": 1}, "no setting 'memory_mb'"),
        ({"min_score": 0.1}, "no setting 'min_score': .*settings are answer"),
        ("mmr=0.5", "settings must be a dict, not a value of type str"),
        ([("mmr", 0.5)], "settings must be a dict"),
    ],
)
def test_what_is_no_rule_of_a_search_is_refused_with_its_name(memory, rules, words):
    with pytest.raises(QueryError, match=words):
        memory.search(QUESTION, options={"settings": rules})
    with pytest.raises(QueryError, match=words):
        search_for(memory, QUESTION, session_key="agent:main:discord:group:7", options={"settings": rules})


def test_all_doors_take_rules(memory):
    wanted = memory.search(QUESTION, options={"settings": OTHER})
    assert asyncio.run(AsyncMemory(memory).search(QUESTION, options={"settings": OTHER})) == wanted
    assert search_for(memory, QUESTION, session_key=None, options={"settings": OTHER}) == wanted
    in_a_group = search_for(memory, QUESTION, session_key="agent:main:discord:group:7", options={"settings": OTHER})
    assert [one.citation for one in in_a_group] == [one.citation for one in wanted if one.path != "MEMORY.md"]
