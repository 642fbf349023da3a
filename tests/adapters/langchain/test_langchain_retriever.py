"""The retriever does what LangChain expects of one, and says where each document comes from."""

import pickle
from typing import ClassVar

import pytest
from contract_search import FILTERS, QUESTION, Found, RetrieverContract
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.runnables import ConfigurableField
from langchain_openclaw_memory import OpenClawRetriever, OpenClawVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import ValidationError

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError


@pytest.fixture
def retriever(household):
    return OpenClawRetriever(memory=household)


class TestContract(RetrieverContract):
    wrong = ValidationError, ValidationError, ValidationError
    more: ClassVar = {"confidence": "strong"}

    @staticmethod
    def of(memory, filters=None, **settings):
        return OpenClawRetriever(memory=memory, filter=filters, **settings)

    @staticmethod
    def as_found(documents):
        return [Found(one.id, one.page_content, one.metadata.pop("score"), one.metadata) for one in documents]

    def asked(self, retriever, question):
        return self.as_found(retriever.invoke(question))

    async def awaited(self, retriever, question):
        return self.as_found(await retriever.ainvoke(question))

    # What is set once may be said for one call instead.
    async def test_one_call_has_its_own_settings(self, dated):
        every = OpenClawRetriever(memory=dated)
        for settings in (
            {"options": {"settings": {"answer": "chunks", "fusion": "weighted"}}}, {"options": {"task": "a quiet night"}},
            {"filter": {"source": "memory"}}, {"filter": {"source": "sessions"}}, {"k": 1}, {"min_score": 1.0},
            *({"filter": filters, "k": 50, "min_score": 0} for filters, _ in FILTERS),
        ):  # fmt: skip
            once = OpenClawRetriever(memory=dated, **settings).invoke("boiler")
            assert every.invoke("boiler", **settings) == await every.ainvoke("boiler", **settings) == once
            assert [one.metadata for one in every.invoke("boiler")] != [one.metadata for one in once]

    def test_a_filter_of_one_call_or_of_the_run_takes_the_place_of_the_field(self, dated):
        nowhere = OpenClawRetriever(memory=dated, k=50, min_score=0, filter={"path": "nowhere/"})
        configurable = nowhere.configurable_fields(filter=ConfigurableField(id="only"))
        for filters, paths in FILTERS:
            run = configurable.with_config(configurable={"only": filters})
            for found in (nowhere.invoke("boiler", filter=filters), run.invoke("boiler")):
                assert {document.metadata["path"] for document in found} == paths

    async def test_a_setting_of_one_call_that_no_search_takes_is_refused(self, household):
        for settings, said in (
            ({"options": {"settings": {"mmr": 7}}}, "mmr = 7 is outside"),
            ({"options": {"settings": {"tokens": 100}}}, "a search has no setting .tokens.: settings are"),
            ({"filter": {"kind": "x"}}, "filter has no 'kind'"), ({"filter": {"since": "soon"}}, "since is 'soon'"),
            ({"filters": {}}, "did you mean 'filter'"), ({"min_score": 2}, "2"), ({"filter": {"source": "web"}}, "web"),
            *[({"k": k}, f"k must be a whole number of at least 1, not {k!r}") for k in (0, True, "3", 2.0)],
        ):  # fmt: skip
            with pytest.raises(QueryError, match=said):
                OpenClawRetriever(memory=household).invoke("boiler", **settings)
            with pytest.raises(QueryError, match=said):
                await OpenClawRetriever(memory=household).ainvoke("boiler", **settings)


def test_what_several_questions_find_is_equal_whatever_the_scores(household):
    retriever = OpenClawRetriever(memory=household, k=3)
    questions = (QUESTION, "The boiler is serviced by whom?", "boiler service in October")
    every = [document for question in questions for document in retriever.invoke(question)]
    # As `MultiQueryRetriever` drops what it has.
    once = [document for number, document in enumerate(every) if document not in every[:number]]
    assert len(once) == len({document.id for document in every}) < len(every)
    assert len({document.metadata["score"] for document in every if document == every[0]}) > 1


def test_what_is_kept_of_a_result_is_a_plain_document(retriever, caplog):
    (best, *_) = retriever.invoke(QUESTION)
    serde = JsonPlusSerializer()
    for kept in (
        serde.loads_typed(serde.dumps_typed(best)),
        pickle.loads(pickle.dumps(best)),
        best.model_copy(deep=True),
    ):
        assert (kept.metadata, kept == best) == (best.metadata, True)
        assert isinstance(kept, Document)
    assert best != Document("other", id=best.id)
    assert not caplog.records


class TestStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _three_notes(self, tmp_path):
        notes = tmp_path / "three" / "memory"
        notes.mkdir(parents=True)
        for day, guest in enumerate(["Ines", "Mrs. Groen", "Van Dam", "Anna"], 1):
            (notes / f"2026-02-0{day}.md").write_text(f"# Day {day}\n\n{guest} came to dinner.\n", encoding="utf-8")
        with Memory.open(notes.parent) as self.memory:
            self.memory.sync()
            yield

    @property
    def retriever_constructor(self):
        return OpenClawRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self.memory, "min_score": 0.0}

    @property
    def retriever_query_example(self):
        return "Who came to dinner?"


class Witness(BaseCallbackHandler):
    def __init__(self):
        self.starts, self.ends, self.errors = [], [], []

    def on_retriever_start(self, serialized, query, **more):
        self.starts.append({"serialized": serialized, "query": query, **more})

    def on_retriever_end(self, documents, **_):
        self.ends.append(documents)

    def on_retriever_error(self, error, **_):
        self.errors.append(error)


def test_the_memory_is_part_of_no_dump_and_no_trace(retriever, notes):
    witness = Witness()
    retriever.invoke(QUESTION, config={"callbacks": [witness]})
    shown = [str(retriever), str(retriever.model_dump()), retriever.model_dump_json(), dumps(retriever)]
    shown.append(str(witness.starts))
    assert not [text for text in shown if "memory=" in text or str(notes) in text]
    properties = OpenClawRetriever.model_json_schema()["properties"]
    assert {"k", "min_score", "filter"} <= set(properties)
    assert "memory" not in properties


def test_an_argument_that_it_does_not_take_is_refused_with_the_one_that_was_meant(retriever, household):
    for wrong, hint in (
        ("top_k", "mean 'k'"),
        ("fliter", "mean 'filter'"),
        ("score_threshold", "'min_score'"),
        ("x", "it takes"),
    ):
        with pytest.raises(ValidationError, match=f"OpenClawRetriever takes no '{wrong}': .*{hint}"):
            OpenClawRetriever(memory=household, **{wrong: 3})
        with pytest.raises(QueryError, match=f"a search takes no '{wrong}': .*{hint}"):
            retriever.invoke("boiler", **{wrong: 3})
    with pytest.raises(ValidationError, match=r"search_kwargs=\{'k': ...\}"):
        OpenClawVectorStore(household).as_retriever(top_k=3)
