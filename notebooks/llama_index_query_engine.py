# %% [markdown]
# # LlamaIndex: replace your vector store in two lines
#
# You will see an index of LlamaIndex move from the store that it has by default to Markdown files, by two lines; how
# much more it finds there with the same embedding model; how it is kept, and brought up to date; and an agent that
# loses nothing of a long conversation.
#
# It needs `pip install ".[llama-index,notebooks]"`. No key, no download, nothing leaves the machine. All files are in
# `llama-index-notes/` below the current folder, which the first cell makes afresh.

# %%
import shutil
from pathlib import Path

import pandas as pd
from llama_index.core import Settings, SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory as ChatMemory
from llama_index.core.node_parser import SentenceSplitter
from llama_index_openclaw_memory import OpenClawEmbedding, OpenClawMemoryBlock, OpenClawVectorStore
from llama_index_openclaw_memory.testing import ScriptedLLM, quote_sentence
from openclaw_memory_lab import copy_lab

from openclaw_memory import Memory

folder = Path("llama-index-notes")
shutil.rmtree(folder, ignore_errors=True)

# %% [markdown]
# ## What you have
#
# Documents in a folder, a model that embeds, an index. The documents are the notes of an invented bakery supplier, with
# labelled questions about them, which come with the library. The model is the one that ships with it too; put your own
# in its place.

# %%
questions = copy_lab(folder / "pages")
Settings.embed_model = OpenClawEmbedding()  # or OpenAIEmbedding(model="text-embedding-3-small"), or any other
Settings.node_parser = SentenceSplitter(id_func=lambda number, document: f"{Path(document.id_).stem}-{number}")


def load():
    """The documents, each known by the name of its file."""
    reader = SimpleDirectoryReader(
        folder / "pages", recursive=True, file_metadata=lambda path: {"file_name": Path(path).name}
    )
    documents = reader.load_data()
    for document in documents:
        document.id_ = document.metadata["file_name"]
    return documents


documents = load()
before = VectorStoreIndex.from_documents(documents)
type(before.vector_store).__name__, len(documents)

# %% [markdown]
# ## The two lines
#
# A memory is a folder. Its store takes the nodes, and the model that you have.

# %%
(folder / "memory").mkdir(exist_ok=True)
memory = Memory.open(folder / "memory")

store = OpenClawVectorStore(memory, embed_model=Settings.embed_model)
context = StorageContext.from_defaults(vector_store=store)

after = VectorStoreIndex.from_documents(documents, storage_context=context)
type(after.vector_store).__name__, len(store.get_nodes())

# %% [markdown]
# From here on all goes as before: query engines, chat engines, retrievers. The mode `hybrid` goes by words as well as
# by meaning.

# %%
HYBRID = {"vector_store_query_mode": "hybrid"}


def found(index, question, **mode):
    """The first nodes for a question, as a table."""
    nodes = index.as_retriever(similarity_top_k=2, **mode).retrieve(question)
    rows = [{"file": node.metadata["file_name"], "score": f"{node.score:.2f}", "text": node.text} for node in nodes]
    style = pd.DataFrame(rows, index=range(1, len(rows) + 1)).style.set_uuid("found").format(escape="html")
    return style.set_properties(**{"text-align": "left", "white-space": "pre-wrap", "vertical-align": "top"})


found(after, "What does E-52 mean?", **HYBRID)

# %% [markdown]
# ## What the difference is
#
# The same nodes and the same vectors, in LlamaIndex's `SimpleVectorStore` and here, and all questions of the lab that
# the notes answer. Of each it is known by which words: are these among the first two nodes, as many as LlamaIndex takes
# by default?

# %%
KINDS = {
    "keyword": "a name or a number",
    "paraphrase": "in other words",
    "dated": "a day",
    "superseded": "what holds now",
    "several": "several notes",
}


def is_found(index, question, **mode):
    texts = [node.text for node in index.as_retriever(similarity_top_k=2, **mode).retrieve(question.text)]
    return any(quote in text for quote in question.evidence for text in texts)


asked = [question for question in questions if question.evidence]
shares = pd.DataFrame(
    {
        "question": [KINDS[question.kind] for question in asked],
        "SimpleVectorStore": [is_found(before, question) for question in asked],
        "OpenClawVectorStore": [is_found(after, question, **HYBRID) for question in asked],
    }
)
by_kind = shares.groupby("question").mean().sort_values("SimpleVectorStore")
simple, ours = shares["SimpleVectorStore"].mean(), shares["OpenClawVectorStore"].mean()

# %% tags=["claim"]
assert ours > simple + 0.1

# %%
axes = by_kind.plot.barh(color=["#b8c4d0", "#1f5fa8"], figsize=(7, 3.6), width=0.75)
axes.xaxis.set_major_formatter("{x:.0%}")
axes.set_xlabel("questions whose answer is among the first two nodes")
axes.set_ylabel("the question asks for")
axes.set_title(f"Of {len(asked)} questions, {ours:.0%} are answered instead of {simple:.0%}", loc="left")
axes.legend(loc="lower right", reverse=True)
axes.figure.tight_layout()

# %% [markdown]
# Figures on other data, and of other modes, are in
# [the guide](../docs/how-to/llama-index.md#modes); [the ranking lab](ranking_lab.ipynb)
# measures your own notes.
#
# ## Kept, and brought up to date
#
# The nodes are kept by the memory; `persist` keeps which documents were seen. When the program starts again, the
# documents are loaded again, and `refresh_ref_docs` embeds those that have changed.

# %%
context.persist(folder / "kept")
memory.close()

page = folder / "pages/memory/2026-02-03.md"
page.write_text(page.read_text(encoding="utf-8").replace("six Gist-2", "nine Gist-2"), encoding="utf-8")

memory = Memory.open(folder / "memory")
store = OpenClawVectorStore(memory, embed_model=Settings.embed_model)
context = StorageContext.from_defaults(persist_dir=folder / "kept", vector_store=store)
index = store.as_index(context)
refreshed = index.refresh_ref_docs(load())
sum(refreshed), len(refreshed)

# %% [markdown]
# An index of `as_index` takes `hybrid` by itself.

# %%
found(index, "How many Gist-2 did Gareth Hobbs order?")

# %% tags=["claim"]
assert "Gist-2 for his two shops" in index.as_retriever().retrieve("How many Gist-2 did Gareth Hobbs order?")[0].text

# %% [markdown]
# Each node is a file that people read, search and change, named by its id. Here somebody corrects one in an editor:

# %%
file = folder / "memory/memory/notes/2026-02-03-0.md"
file.write_text(file.read_text(encoding="utf-8").replace("nine Gist-2", "ten Gist-2"), encoding="utf-8")
memory.sync()
print(file.read_text(encoding="utf-8").split("---\n")[-1])

# %% tags=["claim"]
assert "ten Gist-2" in store.get_nodes(["2026-02-03-0"])[0].text

# %% [markdown]
# ## An agent that loses nothing
#
# LlamaIndex's `Memory` ejects the oldest messages when they no longer fit. `OpenClawMemoryBlock` keeps each word for
# word in a transcript, has a model write down what should last, and shows the agent what is relevant to a question. The
# same conversation is held with the block and without it; five of its turns tell what will be asked for at the end.
#
# This notebook runs without a service: its `llm` knows nothing, and **quotes the sentence that it is shown** which
# shares most words with the question. Any other takes its place as it is.

# %%
TURNS = """
We have to plan the new kitchen. I worry about the shelves, and about the boxes on the shelves.
The shelves are heavy with boxes. Should the boxes come off the shelves first?
The removal van comes on 14 March at half past seven.
The boxes are full of flour, and flour makes dust. I would rather move the small boxes first.
Dust on the shelves again. We could wrap the shelves before the boxes are moved.
The alarm code of the new kitchen is 7743.
Wrapping takes an evening. Without the wrapping there will be dust on all shelves.
The mixers can stand beside the shelves. The mixers are heavy too, like the boxes.
The electrician for the ovens wants 9 days of notice, and is called Berit Solheim.
Somebody has to carry the boxes up. Maybe the shelves go first and the boxes go last.
The boxes could wait in the hall while the shelves are put up. The hall is dry.
The landlord keeps a deposit of 1850 euros until the old floor is clean.
The old floor is full of flour. I hope that the shelves have left no marks.
The insurance for the transport ends at 3000 euros.
So the mixers go on their own, after the shelves. The boxes go last.
I like that plan. First the shelves, then the mixers and the boxes.
""".strip().splitlines()
ASKED = [
    "When does the removal van come?",
    "What is the alarm code of the new kitchen?",
    "How is the electrician for the ovens called?",
    "How large is the deposit that the landlord keeps?",
    "Where does the insurance for the transport end?",
]
llm = ScriptedLLM(script=quote_sentence)  # or OpenAI(model="gpt-5-mini"), which needs a key
agent = FunctionAgent(llm=llm, system_prompt="You help a bakery to move.")


async def converse(*blocks):
    """Hold the conversation, and return the answers to what is asked at its end."""
    chat = ChatMemory.from_defaults(session_id="move", token_limit=250, token_flush_size=50, memory_blocks=list(blocks))
    for said in TURNS:
        await agent.run(said, memory=chat)
    for block in blocks:
        await block.asettle()
    memory.sync()  # or a moment later by itself
    return [str(await agent.run(question, memory=chat)) for question in ASKED]


block = OpenClawMemoryBlock(memory, llm=llm, flush_tokens=100)
answers = pd.DataFrame({"without the block": await converse(), "with it": await converse(block)}, index=ASKED)
answers.style.set_uuid("answers").set_properties(**{"text-align": "left"})

# %% tags=["claim"]
assert "I do not know." not in list(answers["with it"])

# %% [markdown]
# What the flushes wrote into today's note is found by every search from now on, also by that of the index:

# %%
await block.aflush()
memory.sync()
print(memory.search("removal van, alarm code, deposit")[0].snippet)
