"""The retriever does what LangChain expects of one, and says where each document comes from."""

import asyncio
import json

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_openclaw_memory import OpenClawRetriever, OpenClawVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError, StoreError

QUESTION = "Who services the boiler?"


@pytest.fixture
def memory(notes):
    (notes / "sessions").mkdir()
    said = {"role": "user", "content": "The boiler man rang twice about the boiler."}
    entries = [{"type": "session", "id": "talk"}, {"type": "message", "id": "a", "message": said}]
    (notes / "sessions" / "talk.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with Memory.open(notes) as memory:
        memory.sync()
        yield memory


@pytest.fixture
def retriever(memory):
    return OpenClawRetriever(memory=memory)


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


def test_a_document_names_its_lines_and_how_it_was_found(retriever):
    best = retriever.invoke(QUESTION)[0]
    assert best.page_content == "# Household\n\nThe boiler is serviced each October by Van Dam."
    assert best.id == "memory/household.md#L1-L3"
    score = best.metadata.pop("score")
    assert 0 < score <= 1
    assert best.metadata == {
        "path": "memory/household.md",
        "start_line": 1,
        "end_line": 3,
        "spans": [[1, 3]],
        "confidence": "strong",
        "source": "memory",
        "citation": "memory/household.md#L1-L3",
        "mode": "hybrid",
        "stale": False,
    }


@pytest.mark.parametrize("k", [0, -1, True, "3", 2.0])
async def test_a_wrong_k_of_one_call_is_reported_by_its_name(retriever, k):
    with pytest.raises(QueryError, match=f"k must be a whole number of at least 1, not {k!r}"):
        retriever.invoke(QUESTION, k=k)
    with pytest.raises(QueryError, match="k must be"):
        await retriever.ainvoke(QUESTION, k=k)


def test_its_fields_have_a_schema_without_the_memory():
    properties = OpenClawRetriever.model_json_schema()["properties"]
    assert {"k", "min_score", "source"} <= set(properties)
    assert "memory" not in properties


def test_a_path_is_no_memory():
    with pytest.raises(ValidationError, match="memory must be a Memory"):
        OpenClawRetriever(memory="notes")


def test_what_is_found_is_what_the_memory_finds_in_its_order(retriever, memory):
    found = memory.search(QUESTION, max_results=6)
    assert [document.id for document in retriever.invoke(QUESTION)] == [result.citation for result in found]


def test_a_document_says_that_the_index_is_behind(retriever, memory):
    memory.append("Van Dam has a new van.", date="2026-03-01")
    assert retriever.invoke(QUESTION)[0].metadata["stale"] is True


def test_a_document_says_why_keywords_alone_were_searched(notes):
    def fails(_):
        raise RuntimeError("out of order")

    with Memory.open(notes, embedder=fails) as memory:
        metadata = OpenClawRetriever(memory=memory).invoke(QUESTION)[0].metadata
    assert metadata["mode"] == "keyword"
    assert "out of order" in metadata["reason"]


@pytest.mark.parametrize("source", ["memory", "sessions"])
def test_the_source_may_be_chosen_once_or_for_one_call(memory, source):
    chosen = OpenClawRetriever(memory=memory, source=source).invoke("boiler")
    assert {document.metadata["source"] for document in chosen} == {source}
    assert OpenClawRetriever(memory=memory).invoke("boiler", source=source) == chosen


def test_wishes_of_one_call_win_and_are_forgotten(retriever):
    assert len(retriever.invoke("boiler", k=1)) == 1
    assert retriever.invoke(QUESTION, min_score=1.0) == []
    assert len(retriever.invoke("boiler")) > 1


async def test_wishes_of_one_call_count_asynchronously_too(retriever):
    assert len(await retriever.ainvoke("boiler", k=1)) == 1
    assert await retriever.ainvoke(QUESTION, min_score=1.0) == []
    notes = await retriever.ainvoke("boiler", source="memory")
    assert {document.metadata["source"] for document in notes} == {"memory"}


async def test_many_questions_at_once_are_answered_as_one_by_one(retriever):
    questions = [QUESTION, "Where is the spare key?", "What cured E_CAL_DRIFT?"] * 5
    one_by_one = [retriever.invoke(question) for question in questions]
    assert await retriever.abatch(questions) == one_by_one
    assert await asyncio.gather(*map(retriever.ainvoke, questions)) == one_by_one
    assert retriever.batch(questions) == one_by_one


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": "many"}, {"min_score": 2}, {"source": "web"}, {"memory": "notes"}])
def test_a_wrong_setting_is_reported_at_once_by_its_name(memory, wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        OpenClawRetriever(**{"memory": memory, **wrong})


@pytest.mark.parametrize("wrong", [{"k": 0}, {"min_score": 2}, {"source": "web"}])
def test_a_wrong_wish_of_one_call_is_reported(retriever, wrong):
    with pytest.raises(QueryError, match=str(next(iter(wrong.values())))):
        retriever.invoke(QUESTION, **wrong)


def test_settings_may_be_left_to_the_configuration_of_a_run(retriever):
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"), source=ConfigurableField(id="where"))
    found = configurable.with_config(configurable={"k": 1, "where": "sessions"}).invoke("boiler")
    assert [document.metadata["source"] for document in found] == ["sessions"]
    assert len(configurable.invoke("boiler")) > 1


class Witness(BaseCallbackHandler):
    def __init__(self):
        self.starts, self.ends, self.errors = [], [], []

    def on_retriever_start(self, serialized, query, *, tags=None, metadata=None, name=None, **_):
        self.starts.append({"serialized": serialized, "query": query, "tags": tags, "metadata": metadata, "name": name})

    def on_retriever_end(self, documents, **_):
        self.ends.append(documents)

    def on_retriever_error(self, error, **_):
        self.errors.append(error)


def test_callbacks_hear_of_a_search_with_its_tags_and_its_documents(memory):
    witness = Witness()
    retriever = OpenClawRetriever(memory=memory, tags=["mine"], metadata={"team": "heating"})
    named = retriever.with_config(run_name="look up", tags=["run"], callbacks=[witness])
    found = named.invoke(QUESTION)
    (start,) = witness.starts
    assert start["query"] == QUESTION
    assert start["name"] == "look up"
    assert set(start["tags"]) == {"mine", "run"}
    assert start["metadata"]["team"] == "heating"
    assert start["metadata"]["ls_retriever_name"] == "openclaw"
    assert witness.ends == [found]


async def test_callbacks_hear_of_an_error(memory):
    witness = Witness()
    retriever = OpenClawRetriever(memory=memory)
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        await retriever.ainvoke(QUESTION, config={"callbacks": [witness]})
    assert len(witness.errors) == 1


def test_the_memory_is_part_of_no_dump_and_no_trace(retriever, notes):
    witness = Witness()
    retriever.invoke(QUESTION, config={"callbacks": [witness]})
    shown = [str(retriever), str(retriever.model_dump()), retriever.model_dump_json(), dumps(retriever)]
    shown.append(str(witness.starts))
    assert not [text for text in shown if "memory=" in text or str(notes) in text]


def test_it_becomes_a_tool_with_the_documents_as_artifact(retriever):
    tool = create_retriever_tool(retriever, "notes", "Looks into notes.", response_format="content_and_artifact")
    call = {"name": "notes", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
    message = tool.invoke(call)
    assert "Van Dam" in message.content
    assert message.artifact == retriever.invoke(QUESTION)


def with_citations(documents):
    return "\n\n".join(f"[{document.metadata['citation']}]\n{document.page_content}" for document in documents)


def test_a_chain_answers_with_the_citation(retriever):
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from:\n{context}"), ("human", "{question}")])
    # A model that says what it was shown: the first passage and where that stands.
    model = RunnableLambda(lambda shown: shown.to_messages()[0].content.split("\n", 1)[1])
    inputs = {"context": retriever | with_citations, "question": RunnablePassthrough()}
    chain = inputs | prompt | model | StrOutputParser()
    answer = chain.invoke(QUESTION)
    assert answer.startswith("[memory/household.md#L1-L3]\n# Household\n\nThe boiler is serviced each October")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("top_k", "did you mean 'k'"),
        ("sorce", "did you mean 'source'"),
        ("score_threshold", "'min_score'"),
        ("x", "it takes"),
    ],
)
def test_an_argument_that_it_does_not_take_is_refused_with_the_one_that_was_meant(retriever, memory, wrong, hint):
    with pytest.raises(ValidationError, match=f"OpenClawRetriever takes no '{wrong}': .*{hint}"):
        OpenClawRetriever(memory=memory, **{wrong: 3})
    with pytest.raises(QueryError, match=f"a search takes no '{wrong}': .*{hint}"):
        retriever.invoke("boiler", **{wrong: 3})


def test_a_retriever_of_a_vector_store_says_where_k_belongs(memory):
    with pytest.raises(ValidationError, match=r"search_kwargs=\{'k': ...\}"):
        OpenClawVectorStore(memory).as_retriever(top_k=3)


@pytest.fixture
def dated(memory):
    """The memory with notes of two days, one of them with a tag, and a record."""
    for name, above in (("2019-02-03", "---\ntags: [heating]\n---\n"), ("2019-03-04", "")):
        text = f"{above}The boiler of {name} was loud.\n"
        (memory.workspace.root / "memory" / f"{name}.md").write_text(text, encoding="utf-8")
    memory.records.remember("preference", "boiler.sound", "a quiet boiler", confidence=0.6, ttl=None)
    memory.sync()
    return memory


def test_rules_are_those_of_the_search_set_once_or_for_one_call(dated):
    rules = {"answer": "chunks", "fusion": "weighted"}
    expected = [result.score for result in dated.search("boiler", rules=rules)]
    once, every = OpenClawRetriever(memory=dated, rules=rules), OpenClawRetriever(memory=dated)
    for found in (once.invoke("boiler"), every.invoke("boiler", rules=rules)):
        assert [one.metadata["score"] for one in found] == expected
    assert [one.metadata["score"] for one in every.invoke("boiler")] != expected
    with pytest.raises(QueryError, match="mmr = 7 is outside"):
        OpenClawRetriever(memory=dated, rules={"mmr": 7}).invoke("boiler")
    with pytest.raises(QueryError, match="the index is built with chunking"):
        every.invoke("boiler", rules={"tokens": 100})


def test_a_task_is_that_of_the_search_set_once_or_for_one_call(dated):
    def scores(retriever, **wishes):
        return [document.metadata["score"] for document in retriever.invoke("boiler", **wishes)]

    every = OpenClawRetriever(memory=dated)
    expected = [result.score for result in dated.search("boiler", task="a quiet night")]
    assert scores(OpenClawRetriever(memory=dated, task="a quiet night")) == expected != scores(every)
    assert scores(every, task="a quiet night") == expected


@pytest.mark.parametrize(
    ("only", "paths"),
    [
        ({"path": "memory/2019-*"}, {"memory/2019-02-03.md", "memory/2019-03-04.md"}),
        ({"path": "memory/2019-*", "since": "2019-03-01"}, {"memory/2019-03-04.md"}),
        ({"until": "2019-02-28", "path": ["memory/"]}, {"memory/2019-02-03.md"}),
        ({"tags": "Heating"}, {"memory/2019-02-03.md"}),
        ({"type": "preference"}, {"memory/records/preference/boiler.sound.md"}),
        ({"type": "preference", "min_confidence": 0.9}, set()),
        ({"phrases": "the boiler of 2019 02 03"}, {"memory/2019-02-03.md"}),
        ({"phrases": ["the boiler of 2019 02 03"], "without": "boiler"}, set()),
    ],
)
def test_a_filter_is_that_of_the_search_set_once_for_one_call_or_by_the_run(dated, only, paths):
    def found(retriever, **wishes):
        return {document.metadata["path"] for document in retriever.invoke("boiler", **wishes)}

    every = OpenClawRetriever(memory=dated, k=50, min_score=0)
    configurable = every.configurable_fields(filter=ConfigurableField(id="only"))
    assert len(found(every)) > len(paths)
    assert found(OpenClawRetriever(memory=dated, k=50, min_score=0, filter=only)) == paths
    assert found(every, filter=only) == paths
    assert found(configurable.with_config(configurable={"only": only})) == paths
    assert {one.metadata["path"] for one in asyncio.run(every.ainvoke("boiler", filter=only))} == paths
    set_once = OpenClawRetriever(memory=dated, k=50, min_score=0, filter={"path": "nowhere/"})
    assert found(set_once, filter=only) == paths  # in place of the field, as the other arguments


def test_a_filter_that_no_search_takes_is_refused(retriever, memory):
    for wrong, said in (({"kind": "x"}, "does not filter by 'kind'"), ({"since": "soon"}, "since is 'soon'")):
        with pytest.raises(ValidationError, match=said):
            OpenClawRetriever(memory=memory, filter=wrong)
        with pytest.raises(QueryError, match=said):
            retriever.invoke("boiler", filter=wrong)
    with pytest.raises(QueryError, match="did you mean 'filter'"):
        retriever.invoke("boiler", filters={})


def test_lines_of_a_record_have_its_fields(dated):
    found = OpenClawRetriever(memory=dated, k=50, min_score=0).invoke("quiet boiler")
    (of_record,) = (one for one in found if "record" in one.metadata)
    fields = of_record.metadata["record"]
    assert of_record.metadata["path"] == "memory/records/preference/boiler.sound.md"
    assert (fields["type"], fields["key"], fields["value"]) == ("preference", "boiler.sound", "a quiet boiler")
    assert (fields["confidence"], fields["version"], fields["expires_at"]) == (0.6, 1, None)
    assert fields["source"]["kind"] == "user"
    assert len(found) > 1
    json.dumps(fields)
