"""The retriever does what LlamaIndex expects of one, and says where each node comes from."""

import pytest
from contract_search import QUESTION, Found, RetrieverContract
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index_openclaw_memory import OpenClawRetriever

from openclaw_memory.errors import ConfigError, QueryError
from openclaw_memory.text.fence import fence_text


@pytest.fixture
def retriever(household):
    return OpenClawRetriever(household)


def ids(found):
    return [node.node_id for node in found]


def of(*filters, condition=FilterCondition.AND):
    made = [MetadataFilter(key=key, operator=operator, value=value) for key, operator, value in filters]
    return MetadataFilters(filters=made, condition=condition)


IN, EQ, ALL, HAS = FilterOperator.IN, FilterOperator.EQ, FilterOperator.ALL, FilterOperator.CONTAINS
SINCE, UNTIL = FilterOperator.GTE, FilterOperator.LTE
THEIRS = [
    (of(("path", EQ, "memory/2019-*")), {"memory/2019-02-03.md", "memory/2019-03-04.md"}),
    (of(("path", IN, ["memory/2019-02*"]), ("until", UNTIL, "2019-02-28")), {"memory/2019-02-03.md"}),
    (of(("path", EQ, "memory/2019-*"), ("since", SINCE, "2019-03-01")), {"memory/2019-03-04.md"}),
    (of(("tags", ALL, ["heating", "noise"])), {"memory/2019-02-03.md"}),
    (of(("tags", HAS, "heating"), condition=FilterCondition.OR), {"memory/2019-02-03.md"}),
    (of(("type", EQ, "preference")), {"memory/records/preference/boiler.sound.md"}),
    (of(("type", IN, ["preference"]), ("min_confidence", SINCE, 0.9)), set()),
    (MetadataFilters(filters=[of(("tags", EQ, "noise"))]), {"memory/2019-02-03.md"}),
    (
        of(("phrases", ALL, ["the boiler of 2019 02 03"]), ("without", FilterOperator.ANY, ["kettle"])),
        {"memory/2019-02-03.md"},
    ),
    (of(("phrases", EQ, "the boiler of 2019 02 03"), ("without", EQ, "boiler")), set()),
]


class TestContract(RetrieverContract):
    wrong = ConfigError, QueryError, TypeError

    @staticmethod
    def of(memory, k=None, **settings):
        return OpenClawRetriever(memory, **({} if k is None else {"similarity_top_k": k}), **settings)

    @staticmethod
    def as_found(nodes):
        return [
            Found(one.node_id, one.text, one.score, {**one.node.source_node.metadata, **one.metadata}) for one in nodes
        ]

    def asked(self, retriever, question):
        return self.as_found(retriever.retrieve(question))

    async def awaited(self, retriever, question):
        return self.as_found(await retriever.aretrieve(question))

    # The same filters in LlamaIndex's form.
    def test_filters_of_llama_index_are_those_of_the_search(self, dated):
        for filters, paths in THEIRS:
            retriever = OpenClawRetriever(dated, similarity_top_k=50, min_score=0, filters=filters)
            assert {node.metadata["path"] for node in retriever.retrieve("boiler")} == paths

    def test_no_model_is_shown_the_fields_of_a_record(self, dated):
        found = OpenClawRetriever(dated, similarity_top_k=50, min_score=0).retrieve("quiet boiler")
        (of_record,) = (one.node for one in found if "record" in one.metadata)
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert "sensitivity" not in of_record.get_content(mode)


def test_a_node_has_its_file_as_source_and_a_query_with_a_vector_finds_the_same(retriever):
    nodes = retriever.retrieve(QUESTION)
    assert nodes[0].node.ref_doc_id == "memory/household.md"
    assert ids(retriever.retrieve(QueryBundle(QUESTION, embedding=[1.0]))) == ids(nodes)


def test_a_model_is_shown_the_text_in_a_fence_with_the_citation_alone(retriever):
    best = retriever.retrieve(QUESTION)[0]
    shown = best.get_content(MetadataMode.LLM)
    assert shown == fence_text(f"[memory/household.md#L1-L3 {shown[21:29]}]\n{best.text}", "memory", shown[21:37])
    assert best.get_content(MetadataMode.EMBED) == best.text


def test_a_wrong_setting_is_told_at_once_by_its_name(household):
    for name, value in (("similarity_top_k", 1001), ("similarity_top_k", True), ("similarity_topk", 3)):
        with pytest.raises(ConfigError, match=f"{name}(.* {value!r}|: leave it out)"):
            OpenClawRetriever(household, **{name: value})
    with pytest.raises(QueryError, match="query must be a string, not int"):
        OpenClawRetriever(household).retrieve(QueryBundle(7))


def test_filters_that_no_search_takes_are_refused_at_once(household):
    for filters, said in (
        (of(("kind", EQ, "x")), "filter has no 'kind'"),
        (of(("since", EQ, "soon")), "since is 'soon'"),
        (of(("path", FilterOperator.TEXT_MATCH, "x")), "by path text_match: use == or in"),
        (of(("tags", EQ, "x"), ("tags", EQ, "y")), "two filters are about tags"),
        (of(("tags", EQ, "x"), ("type", EQ, "fact"), condition=FilterCondition.OR), "join them by AND"),
        (of(("tags", EQ, "x"), condition=FilterCondition.NOT), "join them by AND"),
        ("memory/", "filter must be a SearchFilter"),
    ):
        with pytest.raises(QueryError, match=said):
            OpenClawRetriever(household, filters=filters)
