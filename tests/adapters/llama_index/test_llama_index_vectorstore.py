"""LlamaIndex's vector store over a memory: every mode, whose vectors, and what only Markdown can promise."""

import asyncio
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import Document, ImageNode, IndexNode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index_openclaw_memory import LlamaIndexEmbedder, OpenClawEmbedding, OpenClawVectorStore
from some_nodes import WordEmbedding, node

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, EmbedderError, PathNotAllowedError, QueryError, WriteError

FACTS = {
    "launch": "The launch of the ferry was moved to Friday.",
    "again": "The launch of the ferry is on Friday now.",
    "venue": "The venue is the old mill by the river.",
    "cook": "Piotr cooks for forty people.",
}
WORDS = WordEmbedding()


def facts(embedding=None):
    """A node of each fact, of two sources, with the vectors of an embedding."""
    nodes = [
        node(name, text, "party" if name in {"venue", "cook"} else "boat", n=n)
        for n, (name, text) in enumerate(FACTS.items())
    ]
    for one in nodes if embedding is not None else []:
        one.excluded_embed_metadata_keys = ["n"]  # the fact alone is embedded
        one.embedding = embedding.get_text_embedding(one.get_content("embed"))
    return nodes


def bare(one):
    """A node without its embedding, as a store returns it."""
    return one.model_copy(update={"embedding": None})


def asking(text, k=2, mode="default", embedding=None, **fields):
    vector = None if embedding is None else embedding.get_query_embedding(text)
    return VectorStoreQuery(vector, k, query_str=text, mode=VectorStoreQueryMode(mode), **fields)


def one_filter(**wanted):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value) for key, value in wanted.items()])


def identity(memory):
    return memory.documents.precomputed.identity


@pytest.fixture
def given(memory):
    """A store in a memory without an embedder, filled with vectors of a model that nobody named."""
    store = OpenClawVectorStore(memory)
    store.add(facts(WORDS))
    return store


@pytest.fixture
def static_memory(tmp_path):
    """A memory with the embedder that ships."""
    with Memory.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def own(static_memory):
    """A store filled with vectors of the memory's own embedder."""
    store = OpenClawVectorStore(static_memory)
    store.add(facts(store.embedding))
    return store


@pytest.fixture
def note(static_memory):
    """The citation of a person's own line."""
    path = static_memory.workspace.root / "memory" / "boat.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("Anna's boat is called Zeppelin.\n")
    static_memory.sync()
    return "memory/boat.md#L1"


# --- as LlamaIndex sees it ---------------------------------------------------------------------------------------


def test_it_is_a_vector_store_of_llama_index_that_keeps_texts(memory):
    store = OpenClawVectorStore(memory)
    assert isinstance(store, BasePydanticVectorStore)
    assert (store.stores_text, store.is_embedding_query, store.client) == (True, True, memory)
    assert store.to_dict() == {
        "stores_text": True,
        "is_embedding_query": True,
        "class_name": "OpenClawVectorStore",
    }
    assert OpenClawVectorStore(memory=memory, embed_model=WORDS).embed_model is WORDS


def test_what_is_no_memory_or_no_embedding_is_refused(memory):
    with pytest.raises(ConfigError, match=r"Memory\.open"):
        OpenClawVectorStore("notes")
    with pytest.raises(ConfigError, match="embed_model"):
        OpenClawVectorStore(memory, embed_model="local")


def test_a_memory_without_an_embedder_has_no_embedding_and_says_what_to_do(memory):
    for call in (lambda store: store.embedding, lambda store: store.as_index()):
        with pytest.raises(ConfigError, match=r'embedder="static".*embed_model='):
            call(OpenClawVectorStore(memory))
    assert OpenClawVectorStore(memory, embed_model=WORDS).embedding is WORDS


@pytest.mark.parametrize("call", ["add", "delete", "delete_nodes", "query"])
async def test_what_a_call_does_not_take_is_no_silence(given, call):
    arguments = {"add": [[]], "delete": ["x"], "delete_nodes": [["x"]], "query": [asking("x", embedding=WORDS)]}[call]
    twin = {"add": "async_add"}.get(call, f"a{call}")
    with pytest.raises(TypeError, match="fitler"):
        getattr(given, call)(*arguments, fitler=1)
    with pytest.raises(TypeError, match="fitler"):
        await getattr(given, twin)(*arguments, fitler=1)


# --- nodes are files ---------------------------------------------------------------------------------------------


def test_nodes_are_markdown_and_come_back_when_the_index_is_gone(tmp_path):
    nodes = [
        *facts(WORDS),
        ImageNode(id_="Image/Ä 1", text="a picture\r\n\n", image="aGk=", embedding=WORDS.vector("picture")),
        IndexNode(id_="outer", text="the mill", index_id="venue", embedding=WORDS.vector("the mill")),
        Document(
            id_="whole", text="A whole document.", metadata={"tags": ["a", None]}, embedding=WORDS.vector("whole")
        ),
    ]
    question = asking("the old mill", 7, embedding=WORDS)
    with Memory.open(tmp_path, embedder=None) as memory:
        store = OpenClawVectorStore(memory)
        assert store.add(nodes) == [one.node_id for one in nodes]
        before = store.query(question)
    assert len(list((tmp_path / "memory" / "notes").glob("*.md"))) == len(nodes)
    assert FACTS["venue"] in (tmp_path / "memory" / "notes" / "venue.md").read_text()
    shutil.rmtree(tmp_path / ".memory")
    with Memory.open(tmp_path, embedder=None) as memory:
        store = OpenClawVectorStore(memory)
        assert store.get_nodes([one.node_id for one in nodes]) == [bare(one) for one in nodes]
        assert store.query(question) == before
        assert {type(one) for one in before.nodes} == {TextNode, ImageNode, IndexNode, Document}


@pytest.mark.parametrize("embed_model", [None, WORDS], ids=["own", "theirs"])
def test_vectors_that_can_be_made_again_are_not_in_the_files(tmp_path, embed_model, caplog):
    answers = []
    for _ in range(2):
        with Memory.open(tmp_path) as memory:
            store = OpenClawVectorStore(memory, embed_model)
            if not answers:
                store.add(facts(store.embedding))
            question = asking("Where is the old mill?", 4, embedding=store.embedding)
            answers.append(store.query(question))
        assert '"vector"' not in (tmp_path / "memory" / "notes" / "venue.md").read_text()
        shutil.rmtree(tmp_path / ".memory")
    assert answers[0].ids == answers[1].ids
    assert answers[0].similarities == pytest.approx(answers[1].similarities, abs=1e-6)
    assert not caplog.records, "nothing was ever missing"


def test_a_node_takes_the_place_of_the_one_with_its_id(given):
    changed = node("venue", "The venue is a barn now.", "party", WORDS.vector("barn"), n=9)
    assert given.add([*facts(WORDS), changed]) == [*FACTS, "venue"]
    assert given.get_nodes(["venue"]) == [bare(changed)]
    assert given.query(asking("barn", 1, embedding=WORDS)).ids == ["venue"]
    assert len(given.get_nodes()) == len(FACTS)


def test_a_person_may_change_a_node_and_delete_one(own, static_memory):
    notes = static_memory.workspace.root / "memory" / "notes"
    text = (notes / "venue.md").read_text()
    (notes / "venue.md").write_text(text.replace("the old mill by the river", "a barn full of hay"))
    (notes / "cook.md").unlink()
    static_memory.sync()
    assert own.query(asking("a barn full of hay", 1)).ids == ["venue"]
    (changed,) = own.get_nodes(["venue", "cook"])
    assert changed.text == "The venue is a barn full of hay."
    assert changed.ref_doc_id == "party"
    vector = own.embedding.get_text_embedding(changed.get_content("embed"))
    assert own.query(VectorStoreQuery(vector, 1)).similarities == pytest.approx([1.0], abs=1e-5)


def test_nodes_with_vectors_of_an_unknown_model_keep_them_when_a_person_changes_the_text(given, memory):
    path = memory.workspace.root / "memory" / "notes" / "cook.md"
    path.write_text(path.read_text().replace("forty", "fifty"))
    memory.sync()
    found = given.query(asking(FACTS["cook"], 1, embedding=WORDS))
    assert found.nodes[0].text == "Piotr cooks for fifty people."
    assert found.similarities == pytest.approx([1.0], abs=1e-6)


def test_another_process_adds_and_deletes(given, memory):
    script = (
        "import sys; from openclaw_memory import Memory; from openclaw_memory.types import Document, Maker\n"
        "with Memory.open(sys.argv[1], embedder=None) as memory:\n"
        "    memory.documents.delete(['cook'])\n"
        "    memory.documents.add([Document('new', 'The band plays.')], [[float(n == 7) for n in range(64)]],"
        " Maker('given', 'given'))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(memory.workspace.root)], check=True, timeout=60)
    found = given.query(VectorStoreQuery([float(n == 7) for n in range(64)], 9))
    assert found.ids[0] == "new"
    assert found.nodes[0] == TextNode(id_="new", text="The band plays.")
    assert set(found.ids) == {"launch", "again", "venue", "new"}


@pytest.mark.parametrize("odd", [object(), float("nan")], ids=["object", "nan"])
def test_nothing_is_written_where_one_node_cannot_be(given, odd):
    with pytest.raises(QueryError, match=r"metadata\['odd'\]"):
        given.add([node("new", embedding=WORDS.vector("new")), node("bad", embedding=WORDS.vector("x"), odd=odd)])
    with pytest.raises((QueryError, WriteError)):
        given.add([node("new", embedding=WORDS.vector("new")), node(" ", embedding=WORDS.vector("x"))])
    assert given.get_nodes(["new", "bad"]) == []


# --- whose vectors -----------------------------------------------------------------------------------------------


def test_vectors_that_the_memorys_embedder_makes_are_its_own(static_memory):
    embedder = static_memory.embedder
    store = OpenClawVectorStore(static_memory)
    store.add(facts(OpenClawEmbedding(embedder)))
    assert identity(static_memory) == embedder.identity


@pytest.mark.parametrize("mode", ["embed", "none"])
def test_they_may_be_of_the_text_with_the_metadata_or_without(static_memory, mode):
    store = OpenClawVectorStore(static_memory)
    nodes = [node("a", "The venue is the old mill.", title="Everything about the celebration of the year")]
    nodes[0].embedding = [3 * one for one in store.embedding.get_text_embedding(nodes[0].get_content(mode))]
    store.add(nodes)
    assert identity(static_memory) == static_memory.embedder.identity


def test_vectors_of_a_model_that_is_named_have_its_identity(static_memory):
    store = OpenClawVectorStore(static_memory, embed_model=WORDS)
    store.add(facts(WORDS))
    assert identity(static_memory) == LlamaIndexEmbedder(WORDS).identity
    assert store.query(asking("Piotr cooks", 1)).ids == ["cook"]


@pytest.mark.parametrize("dims", [256, 64], ids=["other", "theirs"])
def test_vectors_of_a_model_that_nobody_knows_are_given(static_memory, dims):
    store = OpenClawVectorStore(static_memory)
    store.add([node("a", "Piotr cooks.", embedding=WordEmbedding(dims=dims).vector("Piotr cooks."))])
    assert identity(static_memory) == "given"


def test_vectors_of_other_dimensions_are_refused_and_nothing_is_written(given):
    with pytest.raises(EmbedderError, match=r"7 dimensions.*64"):
        given.add([node("new", embedding=[1.0] * 7)])
    with pytest.raises(EmbedderError, match="64"):
        given.query(VectorStoreQuery([1.0] * 7, 1))
    assert given.get_nodes(["new"]) == []


def test_vectors_of_another_model_are_refused_and_nothing_is_written(given, memory):
    other = OpenClawVectorStore(memory, embed_model=MockEmbedding(embed_dim=64))
    with pytest.raises(EmbedderError, match=r"given.*cannot be compared"):
        other.add([node("new", embedding=[1.0] * 64)])
    assert given.get_nodes(["new"]) == []


def test_nodes_without_vectors_get_them_where_something_makes_them(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        store = OpenClawVectorStore(memory, embed_model=WORDS)
        store.add(facts())
        found = store.query(asking(FACTS["cook"], 1))
        assert found.ids == ["cook"]


def test_nodes_without_vectors_are_found_by_words_where_nothing_makes_them(memory):
    store = OpenClawVectorStore(memory)
    store.add([*facts(), node("new", "The mill has a new roof.", embedding=WORDS.vector("roof"))])
    assert store.query(asking("roof", 9, embedding=WORDS)).ids == ["new"]
    assert set(store.query(asking("mill", 9, mode="text_search")).ids) == {"new", "venue"}


# --- queries -----------------------------------------------------------------------------------------------------


def test_a_store_in_which_nothing_is_finds_nothing(memory, static_memory):
    for mode in ("default", "hybrid", "sparse", "mmr"):
        assert OpenClawVectorStore(memory).query(asking("mill", mode=mode, embedding=WORDS)).nodes == []
        assert OpenClawVectorStore(static_memory).query(asking("mill", mode=mode, embedding=WORDS)).nodes == []


@pytest.mark.usefixtures("note")
def test_before_the_first_node_a_vector_of_another_model_finds_nothing(static_memory):
    assert OpenClawVectorStore(static_memory).query(asking("Zeppelin", embedding=WORDS)).ids == []


def test_the_question_is_embedded_where_no_vector_comes_with_it(own):
    with_vector = own.query(asking("the old mill", embedding=own.embedding))
    assert own.query(asking("the old mill")) == with_vector
    assert with_vector.ids[0] == "venue"
    with pytest.raises(QueryError, match="query_embedding"):
        own.query(VectorStoreQuery())


def test_people_s_notes_are_found_by_vectors_of_the_memorys_own_model(own, note):
    found = own.query(asking("Anna's boat is called Zeppelin.", 3))
    assert found.ids[0] == note
    assert found.nodes[0].ref_doc_id == "memory/boat.md"
    assert found.similarities == sorted(found.similarities, reverse=True)
    assert found.similarities[0] > 0.9
    assert len(set(found.ids)) == 3


def test_people_s_notes_are_not_compared_with_vectors_of_another_model(static_memory, note):
    store = OpenClawVectorStore(static_memory, embed_model=WordEmbedding(dims=256))
    assert store.query(asking("Zeppelin", 9)).ids == []
    store.add(facts(store.embedding))
    assert set(store.query(asking("Zeppelin", 9)).ids) == set(FACTS)
    assert store.query(asking("Zeppelin", 9, mode="text_search")).ids == [note]


@pytest.mark.parametrize("mode", ["default", "text_search", "sparse", "hybrid", "semantic_hybrid", "mmr"])
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_restrictions_hold_in_every_mode(own, note, mode, alpha):
    def ids(**fields):
        return set(
            own.query(asking("the launch of the ferry, the mill, Piotr, Zeppelin", 9, mode, alpha=alpha, **fields)).ids
        )

    assert ids() == {*FACTS, note} == ids(node_ids=[], doc_ids=[], filters=MetadataFilters(filters=[]))
    assert ids(node_ids=["venue", "nobody"]) == {"venue"}
    assert ids(doc_ids=["party"]) == {"venue", "cook"}
    assert ids(doc_ids=["memory/boat.md"]) == {note}
    assert ids(doc_ids=["party"], node_ids=["cook", "launch"]) == {"cook"}
    assert ids(filters=one_filter(n=1)) == {"again"}
    nested = MetadataFilters(filters=[one_filter(n=1), one_filter(ref_doc_id="party")], condition=FilterCondition.OR)
    assert ids(filters=nested) == {"again", "venue", "cook"}


@pytest.mark.parametrize(
    "wanted",
    [{"filters": one_filter(source="memory")}, {"doc_ids": ["memory/boat.md"]}, {"node_ids": ["memory/boat.md#L1"]}],
    ids=["filters", "doc_ids", "node_ids"],
)
def test_a_restriction_finds_what_many_nearer_nodes_hide(own, note, wanted):
    text = "The launch of the ferry is on Friday"
    own.add([node(f"ferry-{n}", text, embedding=own.embedding.get_text_embedding(text)) for n in range(20)])
    assert own.query(asking(text, 1, **wanted)).ids == [note]


def test_words_are_searched_by_as_many_as_are_asked_for(own):
    assert len(own.query(asking("the", 2, "text_search")).ids) <= 2
    assert own.query(asking("launch ferry", 2, "text_search")).ids == own.query(asking("launch ferry", 2, "sparse")).ids
    assert len(own.query(asking("launch ferry", 2, "sparse", sparse_top_k=1)).ids) == 1
    with pytest.raises(QueryError, match="query_str"):
        own.query(VectorStoreQuery([1.0], mode=VectorStoreQueryMode.SPARSE))


@pytest.mark.usefixtures("note")
def test_hybrid_is_the_memorys_own_search(own, static_memory):
    question = "When is the launch of the ferry, and what is the boat called?"
    expected = static_memory.search(question, max_results=5, min_score=0.0)
    found = own.query(asking(question, 2, "hybrid", hybrid_top_k=5))
    by_path = {one.path: one.id for one in static_memory.documents.get(list(FACTS))}
    assert found.ids[: len(expected)] == [by_path.get(one.path, one.citation) for one in expected]
    assert found.similarities[: len(expected)] == pytest.approx([one.score for one in expected])
    assert len(own.query(asking(question, 2, "semantic_hybrid")).ids) == 2


def test_alpha_leads_from_the_order_of_words_to_that_of_vectors(own):
    question = "When is the launch, Piotr?"
    by_words = own.query(asking(question, 4, "sparse"))
    by_vectors = own.query(asking(question, 4))
    assert own.query(asking(question, 4, "hybrid", alpha=0)).ids == by_words.ids
    assert own.query(asking(question, 4, "hybrid", alpha=1)).ids == by_vectors.ids
    between = own.query(asking(question, 4, "hybrid", alpha=0.5))
    scaled = []
    for found in (by_words, by_vectors):
        least, largest = min(found.similarities), max(found.similarities)
        scaled.append(
            {one: (score - least) / (largest - least) for one, score in zip(found.ids, found.similarities, strict=True)}
        )
    for node_id, score in zip(between.ids, between.similarities, strict=True):
        assert score == pytest.approx(sum(0.5 * leg.get(node_id, 0.0) for leg in scaled))
    assert between.similarities == sorted(between.similarities, reverse=True)


def test_hybrid_with_vectors_of_another_model_weighs_them_with_0_7(given):
    question = {"mode": "hybrid", "embedding": WORDS}
    by_default = given.query(asking("the launch by the river", 3, **question))
    assert by_default == given.query(asking("the launch by the river", 3, alpha=0.7, **question))
    assert len(given.query(asking("the launch by the river", 3, hybrid_top_k=1, **question)).ids) == 1


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "half", True], ids=str)
def test_shares_lie_between_0_and_1(given, wrong):
    with pytest.raises(QueryError, match=r"alpha.*from 0 to 1"):
        given.query(asking("mill", mode="hybrid", alpha=wrong, embedding=WORDS))
    for named in ({"mmr_threshold": wrong}, {}):
        with pytest.raises(QueryError, match=r"mmr_threshold.*from 0 to 1"):
            given.query(asking("mill", mode="mmr", mmr_threshold=wrong, embedding=WORDS), **named)


@pytest.mark.usefixtures("note")
def test_marginal_relevance_does_not_say_the_same_twice(own):
    question = "When is the launch of the ferry on Friday?"
    assert set(own.query(asking(question)).ids) == {"launch", "again"}
    assert len({"launch", "again"} & set(own.query(asking(question, mode="mmr", mmr_threshold=0.3)).ids)) == 1
    assert own.query(asking(question, 5, "mmr"), mmr_threshold=1).ids == own.query(asking(question, 5)).ids


@pytest.mark.parametrize("mode", ["svm", "logistic_regression", "linear_regression"])
def test_a_mode_that_is_not_here_is_refused_with_those_that_are(given, mode):
    with pytest.raises(QueryError, match=rf"{mode}.*default.*text_search.*hybrid.*mmr"):
        given.query(asking("mill", mode=mode, embedding=WORDS))


@pytest.mark.parametrize("k", [0, -1, None], ids=str)
def test_a_count_of_nothing_is_refused(given, k):
    with pytest.raises(QueryError, match="at least 1"):
        given.query(asking("mill", k, embedding=WORDS))


@pytest.mark.usefixtures("note")
@pytest.mark.parametrize("wrong", [[float("nan")] * 64, [float("inf")] * 64, ["one"] * 64, "one"], ids=str)
def test_a_vector_that_is_none_is_refused(given, static_memory, wrong):
    for store in (given, OpenClawVectorStore(static_memory)):
        with pytest.raises((EmbedderError, QueryError)):
            store.query(VectorStoreQuery(wrong, 1))


# --- deleting ----------------------------------------------------------------------------------------------------


def test_deleting_a_source_deletes_its_nodes_alone(given):
    given.delete("party")
    given.delete("nobody")
    given.delete("launch")  # the id of a node is none of a source
    assert [one.node_id for one in given.get_nodes()] == ["again", "launch"]


@pytest.mark.parametrize(
    "call",
    [
        lambda store, citation: store.delete(citation.partition("#")[0]),
        lambda store, citation: store.delete(citation),
        lambda store, citation: store.delete_nodes(["venue", citation]),
        lambda store, citation: store.delete_nodes(["venue", citation.partition("#")[0]]),
        lambda store, citation: store.delete_nodes([citation], one_filter(source="memory")),
    ],
    ids=["path", "citation", "nodes", "node-path", "filtered"],
)
def test_a_persons_lines_are_never_deleted(own, static_memory, note, call):
    with pytest.raises(PathNotAllowedError, match=r"boat\.md"):
        call(own, note)
    assert "Zeppelin" in static_memory.get("memory/boat.md").text
    assert own.get_nodes(["venue"])
    assert own.get_nodes([note])[0].text == "Anna's boat is called Zeppelin."


def test_a_source_that_a_reader_named_after_a_file_elsewhere_is_deleted(given, tmp_path):
    there = tmp_path / "report.md"
    there.write_text("elsewhere")
    given.add([node("part", source=f"{there}_part_0", embedding=WORDS.vector("part"))])
    given.delete(f"{there}_part_0")
    given.delete(str(there))
    assert given.get_nodes(["part"]) == []


def test_nodes_are_deleted_by_ids_by_filters_and_by_both(given):
    given.delete_nodes([])
    given.delete_nodes(["launch", "nobody"])
    given.delete_nodes(["again", "venue"], one_filter(doc_id="party"))
    given.delete_nodes(filters=one_filter(n=3))
    assert [one.node_id for one in given.get_nodes()] == ["again"]


@pytest.mark.parametrize("filters", [None, MetadataFilters(filters=[])], ids=["none", "empty"])
def test_deleting_without_saying_what_is_refused(given, filters):
    with pytest.raises(QueryError, match=r"clear\(\)"):
        given.delete_nodes(filters=filters)
    assert len(given.get_nodes()) == len(FACTS)


def test_all_nodes_can_be_cleared_and_people_s_notes_stay(own, static_memory, note):
    own.clear()
    assert own.get_nodes() == []
    assert own.query(asking("Zeppelin", 9)).ids == [note]
    own.add([node("new", embedding=[1.0, 0.0])])  # what was there decides no more whose vectors may come
    assert identity(static_memory) == "given"


# --- beside each other -------------------------------------------------------------------------------------------


async def test_in_an_event_loop_both_twins_work(given):
    nodes = facts(WORDS)
    question = asking("the old mill", embedding=WORDS)
    assert await given.async_add(nodes) == given.add(nodes)
    assert await given.aquery(question) == given.query(question)
    diverse = asking("the ferry", mode="mmr", embedding=WORDS)
    assert await given.aquery(diverse, mmr_threshold=1) == given.query(diverse, mmr_threshold=1)
    assert await given.aget_nodes(["venue"]) == given.get_nodes(["venue"])
    await given.adelete("party")
    await given.adelete_nodes(filters=one_filter(n=0))
    assert [one.node_id for one in given.get_nodes()] == ["again"]
    await given.aclear()
    assert given.get_nodes() == []


async def test_searches_in_an_event_loop_run_beside_each_other(given):
    found = await asyncio.gather(*(given.aquery(asking(text, 1, embedding=WORDS)) for text in FACTS.values()))
    assert [one.ids for one in found] == [[name] for name in FACTS]


def test_several_threads_add_and_search_at_once(given):
    def work(n):
        given.add([node(f"row-{n}", f"number {n}", embedding=[float(at == n) for at in range(64)])])
        return given.query(VectorStoreQuery([float(at == n) for at in range(64)], 1)).ids

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [[f"row-{n}"] for n in range(8)]
    assert len(given.get_nodes([f"row-{n}" for n in range(8)])) == 8
