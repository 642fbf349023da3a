"""The retriever does what LlamaIndex expects of one, and says where each node comes from."""

import asyncio
import json

import pytest
from llama_index.core import Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.schema import IndexNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index_openclaw_memory import OpenClawRetriever

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, QueryError, StoreError
from openclaw_memory.text.fence import fenced

QUESTION = "Who services the boiler?"


@pytest.fixture
def retriever(household):
    return OpenClawRetriever(household)


def ids(found):
    return [node.node_id for node in found]


def test_a_node_names_its_lines_and_how_it_was_found(retriever):
    best = retriever.retrieve(QUESTION)[0]
    assert 0 < best.score <= 1
    assert best.text == "# Household\n\nThe boiler is serviced each October by Van Dam."
    assert best.node_id == "memory/household.md#L1-L3"
    assert best.node.ref_doc_id == "memory/household.md"
    assert best.metadata == {
        "path": "memory/household.md",
        "start_line": 1,
        "end_line": 3,
        "spans": [[1, 3]],
        "source": "memory",
        "citation": "memory/household.md#L1-L3",
        "mode": "hybrid",
        "stale": False,
    }


def test_a_model_is_shown_the_text_in_a_fence_with_the_citation_alone(retriever):
    best = retriever.retrieve(QUESTION)[0]
    shown = best.get_content(MetadataMode.LLM)
    assert shown == fenced(f"[memory/household.md#L1-L3 {shown[21:29]}]\n{best.text}", "memory", shown[21:37])
    assert best.get_content(MetadataMode.EMBED) == best.text


def test_what_is_found_is_what_the_memory_finds_in_its_order(retriever, household):
    found = household.search(QUESTION, max_results=6)
    nodes = retriever.retrieve(QUESTION)
    assert [(node.node_id, node.score) for node in nodes] == [(result.citation, result.score) for result in found]
    assert ids(retriever.retrieve(QueryBundle(QUESTION, embedding=[1.0]))) == ids(nodes)


def test_passages_of_one_long_line_all_arrive(tmp_path):
    passages = " ".join(f"The boiler was seen to on day {day} of the year, and nothing was found." for day in range(99))
    (tmp_path / "MEMORY.md").write_text(f"# Boiler\n\n{passages}\n")
    with Memory.open(tmp_path) as memory:
        found = memory.search("boiler", min_score=0.0)
        nodes = OpenClawRetriever(memory, min_score=0.0).retrieve("boiler")
    assert len({result.citation for result in found}) < len(found)  # else this shows nothing
    assert [node.text for node in nodes] == [result.snippet for result in found]
    assert [node.metadata["citation"] for node in nodes] == [result.citation for result in found]


def test_a_node_says_that_the_index_is_behind(retriever, household):
    household.append("Van Dam has a new van.", date="2026-03-01")
    assert retriever.retrieve(QUESTION)[0].metadata["stale"] is True


def test_a_node_says_why_keywords_alone_were_searched(notes):
    def fails(_):
        raise RuntimeError("out of order")

    with Memory.open(notes, embedder=fails) as memory:
        metadata = OpenClawRetriever(memory).retrieve(QUESTION)[0].metadata
    assert metadata["mode"] == "keyword"
    assert "out of order" in metadata["reason"]


def test_its_settings_are_kept(household):
    boiler = [node.node_id for node in OpenClawRetriever(household).retrieve("boiler")]
    assert ids(OpenClawRetriever(household, similarity_top_k=1).retrieve("boiler")) == boiler[:1]
    assert OpenClawRetriever(household, min_score=1.0).retrieve("boiler") == []
    sessions = OpenClawRetriever(household, source="sessions").retrieve("boiler")
    assert {node.metadata["source"] for node in sessions} == {"sessions"}
    notes = OpenClawRetriever(household, source="memory").retrieve("boiler")
    assert {*ids(sessions), *ids(notes)} >= set(boiler)


@pytest.mark.parametrize(
    "wrong",
    [
        {"similarity_top_k": 0}, {"similarity_top_k": 1001}, {"similarity_top_k": "3"}, {"similarity_top_k": True},
        {"min_score": 2}, {"min_score": "high"}, {"source": "web"}, {"similarity_topk": 3},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_setting_is_told_at_once_by_its_name(household, wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ConfigError, match=f"{name}(.* {value!r}|: leave it out)"):
        OpenClawRetriever(household, **wrong)


def test_a_path_is_no_memory(tmp_path):
    with pytest.raises(TypeError, match=r"memory must be a Memory, not .*Memory\.open\(folder\)"):
        OpenClawRetriever(tmp_path)


async def test_a_query_that_is_no_text_is_told(retriever):
    with pytest.raises(QueryError, match="query must be a string, not int"):
        retriever.retrieve(QueryBundle(7))
    with pytest.raises(QueryError, match="query must be a string, not int"):
        await retriever.aretrieve(QueryBundle(7))


async def test_many_questions_at_once_are_answered_as_one_by_one_inside_a_running_loop(retriever):
    questions = [QUESTION, "Where is the spare key?", "What cured E_CAL_DRIFT?"] * 5
    one_by_one = [retriever.retrieve(question) for question in questions]
    assert await asyncio.gather(*map(retriever.aretrieve, questions)) == one_by_one


async def test_a_search_does_not_hold_up_the_loop(notes):
    loop, turned = asyncio.get_running_loop(), asyncio.Event()

    def waits(texts):
        # The loop must turn for this to be answered.
        asyncio.run_coroutine_threadsafe(turned.wait(), loop).result(timeout=60)
        return [[1.0, float(len(text))] for text in texts]

    with Memory.open(notes, embedder=waits) as memory:
        loop.call_soon(turned.set)
        assert (await OpenClawRetriever(memory).aretrieve(QUESTION))[0].metadata["mode"] == "hybrid"


def test_callbacks_hear_of_a_search_and_its_nodes(household):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    found = OpenClawRetriever(household, callback_manager=CallbackManager([debug])).retrieve(QUESTION)
    ((start, end),) = debug.get_event_pairs(CBEventType.RETRIEVE)
    assert start.payload[EventPayload.QUERY_STR] == QUESTION
    assert end.payload[EventPayload.NODES] == found


def test_callbacks_of_the_settings_hear_of_it_by_default(household, monkeypatch):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    monkeypatch.setattr(Settings, "callback_manager", CallbackManager([debug]))
    OpenClawRetriever(household).retrieve(QUESTION)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_events_tell_of_a_search_from_start_to_end(retriever, events, asynchronous):
    found = await retriever.aretrieve(QUESTION) if asynchronous else retriever.retrieve(QUESTION)
    start, end = (event for event in events if event.class_name().startswith("Retrieval"))
    assert (start.class_name(), start.str_or_query_bundle) == ("RetrievalStartEvent", QUESTION)
    assert (end.class_name(), end.nodes) == ("RetrievalEndEvent", found)
    assert start.span_id == end.span_id


async def test_a_closed_memory_is_told_as_such(retriever, household, events):
    household.close()
    with pytest.raises(StoreError, match="closed"):
        await retriever.aretrieve(QUESTION)
    assert "SpanDropEvent" in [event.class_name() for event in events]


async def test_a_node_of_another_retriever_may_lead_to_it(retriever):
    class Leads(BaseRetriever):
        def _retrieve(self, _query_bundle):
            return [NodeWithScore(node=IndexNode(text="Notes of the house.", index_id="house", obj=retriever))]

    assert (
        ids(Leads().retrieve(QUESTION)) == ids(await Leads().aretrieve(QUESTION)) == ids(retriever.retrieve(QUESTION))
    )


def test_it_becomes_a_tool_that_shows_the_citations(retriever):
    tool = RetrieverTool.from_defaults(retriever, name="notes", description="Looks into notes.")
    answer = tool.call(QUESTION)
    assert "\n[memory/household.md#L1-L3 " in answer.content
    assert ids(answer.raw_output) == ids(retriever.retrieve(QUESTION))
    json.dumps(tool.metadata.to_openai_tool())


@pytest.fixture
def dated(household):
    """The memory with notes of two days, one of them with tags, and a record."""
    for name, above in (("2019-02-03", "---\ntags: [heating, noise]\n---\n"), ("2019-03-04", "")):
        text = f"{above}The boiler of {name} was loud.\n"
        (household.workspace.root / "memory" / f"{name}.md").write_text(text, encoding="utf-8")
    household.records.remember("preference", "boiler.sound", "a quiet boiler", confidence=0.6, ttl=None)
    household.sync()
    return household


def of(*filters, condition=FilterCondition.AND):
    made = [MetadataFilter(key=key, operator=operator, value=value) for key, operator, value in filters]
    return MetadataFilters(filters=made, condition=condition)


def test_rules_are_those_of_the_search(dated):
    rules = {"answer": "chunks", "fusion": "weighted"}
    expected = [result.score for result in dated.search("boiler", rules=rules)]
    assert [node.score for node in OpenClawRetriever(dated, rules=rules).retrieve("boiler")] == expected
    assert [node.score for node in OpenClawRetriever(dated).retrieve("boiler")] != expected
    with pytest.raises(QueryError, match="the index is built with chunking"):
        OpenClawRetriever(dated, rules={"tokens": 100}).retrieve("boiler")


def test_a_task_is_that_of_the_search(dated):
    def scores(retriever):
        return [node.score for node in retriever.retrieve("boiler")]

    expected = [result.score for result in dated.search("boiler", task="a quiet night")]
    assert scores(OpenClawRetriever(dated, task="a quiet night")) == expected != scores(OpenClawRetriever(dated))


IN, EQ, ALL, HAS = FilterOperator.IN, FilterOperator.EQ, FilterOperator.ALL, FilterOperator.CONTAINS
SINCE, UNTIL = FilterOperator.GTE, FilterOperator.LTE


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({"path": "memory/2019-*"}, {"memory/2019-02-03.md", "memory/2019-03-04.md"}),
        (of(("path", EQ, "memory/2019-*")), {"memory/2019-02-03.md", "memory/2019-03-04.md"}),
        (of(("path", IN, ["memory/2019-02*"]), ("until", UNTIL, "2019-02-28")), {"memory/2019-02-03.md"}),
        (of(("path", EQ, "memory/2019-*"), ("since", SINCE, "2019-03-01")), {"memory/2019-03-04.md"}),
        (of(("tags", ALL, ["heating", "noise"])), {"memory/2019-02-03.md"}),
        (of(("tags", HAS, "heating"), condition=FilterCondition.OR), {"memory/2019-02-03.md"}),
        (of(("type", EQ, "preference")), {"memory/records/preference/boiler.sound.md"}),
        (of(("type", IN, ["preference"]), ("min_confidence", SINCE, 0.9)), set()),
        (MetadataFilters(filters=[of(("tags", EQ, "noise"))]), {"memory/2019-02-03.md"}),
        ({"phrases": "the boiler of 2019 02 03"}, {"memory/2019-02-03.md"}),
        (
            of(("phrases", ALL, ["the boiler of 2019 02 03"]), ("without", FilterOperator.ANY, ["kettle"])),
            {"memory/2019-02-03.md"},
        ),
        (of(("phrases", EQ, "the boiler of 2019 02 03"), ("without", EQ, "boiler")), set()),
    ],
)
def test_filters_are_those_of_the_search_under_its_names(dated, filters, paths):
    retriever = OpenClawRetriever(dated, similarity_top_k=50, min_score=0, filters=filters)
    assert {node.metadata["path"] for node in retriever.retrieve("boiler")} == paths
    assert {node.metadata["path"] for node in asyncio.run(retriever.aretrieve("boiler"))} == paths


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"kind": "x"}, "does not filter by 'kind'"),
        (of(("kind", EQ, "x")), "does not filter by 'kind'"),
        (of(("since", EQ, "soon")), "since is 'soon'"),
        (of(("path", FilterOperator.TEXT_MATCH, "x")), "by path text_match: use == or in"),
        (of(("tags", EQ, "x"), ("tags", EQ, "y")), "two filters are about tags"),
        (of(("tags", EQ, "x"), ("type", EQ, "fact"), condition=FilterCondition.OR), "join them by AND"),
        (of(("tags", EQ, "x"), condition=FilterCondition.NOT), "join them by AND"),
        ("memory/", "is a dict"),
    ],
)
def test_filters_that_no_search_takes_are_refused_at_once(household, filters, said):
    with pytest.raises(QueryError, match=said):
        OpenClawRetriever(household, filters=filters)


def test_lines_of_a_record_have_its_fields_and_no_model_is_shown_them(dated):
    found = OpenClawRetriever(dated, similarity_top_k=50, min_score=0).retrieve("quiet boiler")
    (of_record,) = (one.node for one in found if "record" in one.metadata)
    fields = of_record.metadata["record"]
    assert of_record.metadata["path"] == "memory/records/preference/boiler.sound.md"
    assert (fields["type"], fields["key"], fields["value"]) == ("preference", "boiler.sound", "a quiet boiler")
    assert (fields["confidence"], fields["version"], fields["expires_at"]) == (0.6, 1, None)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "sensitivity" not in of_record.get_content(mode)
    assert len(found) > 1
