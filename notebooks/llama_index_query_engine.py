# %% [markdown]
# # A query engine of LlamaIndex over notes, with citations
#
# You will see the notes of a rowing club behind a query engine of LlamaIndex: answers whose sources are lines of
# files, nodes that become Markdown files, a change by hand that the next answer follows, filters, and what the search
# modes find for the same questions.
#
# It needs `pip install ".[llama-index,notebooks]"`. No key, no download, nothing leaves the
# machine. All files are in `llama-index-notes/` below the current folder, which the second cell makes afresh.

# %%
import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index_openclaw_memory import OpenClawRetriever, OpenClawVectorStore

from openclaw_memory import Memory

# %% [markdown]
# ## Notes
#
# `MEMORY.md` holds what stays true, `memory/2026-04-04.md` what a day brought, other files below `memory/` a topic.

# %%
folder = Path("llama-index-notes")
shutil.rmtree(folder, ignore_errors=True)
notes = {
    "MEMORY.md": """\
# Club

- The gate code is 4471, the boathouse key hangs behind the fuse box.
- Juniors row on Wednesday, the eights on Saturday at seven.
- Treasurer is Noor Haddad; bills go to her by the tenth of the month.
""",
    "memory/2026-04-04.md": """\
# 2026-04-04

## Water

The river stood at 3.10 m, so nobody went out.
Above 2.80 m the harbour master closes the lock.

## Boats

The Heron has a crack below seat three. Tjeerd glues it, two weeks without her.
""",
    "memory/2026-04-11.md": """\
# 2026-04-11

## Regatta

The Lakeside regatta is on 16 May. Entries close on 2 May.
We enter a coxed four and two doubles, 35 euros a seat.

## Trailer

The trailer's left tyre is flat again. The garage on Mill Road has the size.
""",
    "memory/2026-04-18.md": """\
# 2026-04-18

## Boats

The Heron is back on the water, her crack is sealed.
The Kingfisher needs new rigger bolts: M8, stainless, twenty of them.
""",
    "memory/safety.md": """\
# Safety

- Below ten degrees nobody rows alone, and everybody wears a vest.
- The first-aid box is in the launch; the defibrillator hangs at the bar.
""",
    "memory/members.md": """\
# Members

- Ada coxes the eights and is allergic to wasp stings; her pen is in her bag.
- Tjeerd repairs the boats on Thursday evenings.
- Pim teaches beginners and speaks Frisian and Dutch.
""",
}
for name, text in notes.items():
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")

memory = Memory.open(folder)
memory.sync()

# %% [markdown]
# ## A stand-in for a model
#
# A query engine hands what it found to an LLM, with the question. This notebook runs without one: `QuotingLLM` reads
# the prompt that LlamaIndex makes, takes the line of it that shares the most words with the question, and names its
# source. It knows no answer by itself and it cannot phrase one. All else in here is as with a real model.


# %%
def words(text):
    common = {"the", "and", "are", "does", "what", "where"}
    return {word[:5] for word in re.findall(r"[^\W_]{3,}", text.lower())} - common


def quoted(prompt):
    """The line of the prompt's context that fits its question best, and its source."""
    context = re.split(r"^-{5,}$", prompt, flags=re.MULTILINE)[-2]
    question = words(prompt.rpartition("Query:")[2].partition("Answer:")[0])
    source, best = "", (0, "I do not find that in the notes.")
    for line in context.splitlines():
        if number := re.fullmatch(r"Source (\d+):", line.strip()):
            source = f" [{number[1]}]"
        elif line.strip() and not line.startswith(("#", "citation:")):
            shared = len(question & words(line))
            best = max(best, (shared, line.strip("- ") + source), key=lambda pair: pair[0])
    return best[1]


class QuotingLLM(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata(model_name="quoting", context_window=8000)

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=quoted(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text=quoted(prompt), delta=quoted(prompt))


llm = QuotingLLM()
# from llama_index.llms.openai import OpenAI
# llm = OpenAI(model="gpt-5-mini")  # what was found then leaves the machine
# pip install llama-index-llms-openai

# %% [markdown]
# ## A query engine
#
# `as_index()` gives a `VectorStoreIndex` that embeds with the memory's own model. Each source of an answer is a run of
# lines, and its id is the citation.

# %%
index = OpenClawVectorStore(memory).as_index()
engine = index.as_query_engine(llm=llm, similarity_top_k=3)


def sources(response):
    """The sources of a response as a table."""
    rows = [
        {
            "place": node.metadata["citation"],
            "score": f"{node.score:.2f}",
            "text": node.node.text.strip(),
        }
        for node in response.source_nodes
    ]
    cell = {"text-align": "left", "white-space": "pre-wrap", "vertical-align": "top"}
    table = pd.DataFrame(rows, index=range(1, len(rows) + 1)).style.set_uuid("sources")
    heads = [{"selector": "th", "props": list(cell.items())}]
    return table.format(escape="html").set_properties(**cell).set_table_styles(heads)


response = engine.query("When do the entries for the regatta close?")
assert "2 May" in str(response)
print(response)

# %%
sources(response)

# %% [markdown]
# A citation opens in the memory, straight from the file:

# %%
opened = memory.get(response.source_nodes[0].metadata["citation"])
assert "Entries close on 2 May" in opened.text
opened

# %% [markdown]
# ## Citations in the text of the answer
#
# `CitationQueryEngine` numbers the sources in the prompt, and the model puts the number behind what it takes from one.
# `OpenClawRetriever` is the memory's search without an index; it goes wherever a retriever goes.

# %%
retriever = OpenClawRetriever(memory, similarity_top_k=3)
citing = CitationQueryEngine.from_args(index, retriever=retriever, llm=llm)
response = citing.query("Which bolts does the Kingfisher need?")
number = int(re.search(r"\[(\d)\]", str(response))[1])
assert response.source_nodes[number - 1].metadata["citation"].startswith("memory/2026-04-18.md")
print(response)

# %%
sources(response)

# %% [markdown]
# Inside a running event loop, as here, everything works asynchronously too:

# %%
plain = RetrieverQueryEngine.from_args(retriever, llm=llm)
response = await plain.aquery("Where is the defibrillator?")
assert "bar" in str(response)
print(response, response.source_nodes[0].node_id, sep="\n")

# %% [markdown]
# ## What is added becomes Markdown
#
# A node that is inserted through LlamaIndex is written to a file of its own, with its id and metadata above the text.
# Such a file is read, edited, and deleted like any note.

# %%
index.insert_nodes(
    [
        TextNode(
            id_="bar",
            text="The bar opens at five; Sanne has the roster.",
            metadata={"topic": "bar", "year": 2026},
        ),
        TextNode(
            id_="oars",
            text="Six new oars cost 2,940 euros, paid in January.",
            metadata={"topic": "boats", "year": 2025},
        ),
        TextNode(
            id_="dinner",
            text="The club dinner is on 20 June in the boathouse.",
            metadata={"topic": "bar", "year": 2026},
        ),
    ]
)
print((folder / "memory/notes/bar.md").read_text(encoding="utf-8"))

# %%
response = engine.query("Who has the roster of the bar?")
assert "Sanne" in str(response)
sources(response)

# %% [markdown]
# ## A change by hand
#
# Pim takes over the roster. He changes the file in an editor and saves it; the node changes with it.

# %%
file = folder / "memory/notes/bar.md"
file.write_text(file.read_text(encoding="utf-8").replace("Sanne", "Pim"), encoding="utf-8")
memory.sync()

# %%
response = engine.query("Who has the roster of the bar?")
assert "Pim" in str(response)
assert index.vector_store.get_nodes(["bar"])[0].text.endswith("Pim has the roster.")
print(response)

# %% [markdown]
# `memory.sync()` is there to show the step. Without it, the first search after the change begins a sync in the
# background, and a moment later the answers follow.
#
# What people wrote is never changed or deleted through LlamaIndex:

# %%
from openclaw_memory.errors import PathNotAllowedError

try:
    index.vector_store.delete("memory/safety.md")
except PathNotAllowedError as refused:
    print(refused)
assert (folder / "memory/safety.md").exists()

# %% [markdown]
# ## Filters
#
# All operators of LlamaIndex work, on the metadata of nodes, and on the `path` and the `source` of notes. One question,
# three times: over all that is there, over the nodes of 2025, and over the daily notes of April.

# %%
paid = "What did we pay?"
of_2025 = MetadataFilter(key="year", value=2025)
in_path = FilterOperator.TEXT_MATCH
of_april = MetadataFilter(key="path", operator=in_path, value="memory/2026-04")
rows = {}
for name, filters in {"all": [], "nodes of 2025": [of_2025], "daily notes": [of_april]}.items():
    retriever = index.as_retriever(filters=MetadataFilters(filters=filters), similarity_top_k=2)
    rows[name] = {n: node.node_id for n, node in enumerate(retriever.retrieve(paid), 1)}
assert rows["nodes of 2025"] == {1: "oars"}
pd.DataFrame(rows).T.fillna("")

# %% [markdown]
# ## Modes side by side
#
# `hybrid` (what `as_index()` takes by itself) goes by words and meaning, `default` by vectors alone, `text_search` by
# words alone. Twelve questions about these notes, each with a few words that the answer must hold: on which place does
# it come?

# %%
QUESTIONS = {
    "What is the gate code?": "4471",
    "Who pays the invoices?": "Treasurer",
    "When is the lock closed?": "2.80 m",
    "What is wrong with the Heron?": "crack below seat three",
    "How much is a place in the regatta?": "35 euros a seat",
    "Where can we buy a tyre for the trailer?": "Mill Road",
    "Which screws does the Kingfisher need?": "M8",
    "When must we wear a life jacket?": "wears a vest",
    "Who must not be stung?": "wasp",
    "Which languages does Pim speak?": "Frisian",
    "When do the kids train?": "Juniors",
    "When is the party in the boathouse?": "20 June",
}
MODES = ("hybrid", "default", "text_search")


def place(question, evidence, mode):
    """On which place the evidence comes, 1..6; None where it does not."""
    retriever = index.as_retriever(vector_store_query_mode=mode, similarity_top_k=6)
    texts = [node.node.text for node in retriever.retrieve(question)]
    return next((number for number, text in enumerate(texts, 1) if evidence in text), None)


rows = [[place(question, answer, mode) for mode in MODES] for question, answer in QUESTIONS.items()]
places = pd.DataFrame(rows, index=list(QUESTIONS), columns=list(MODES), dtype="Int64")
assert places["hybrid"].max() <= 3
assert places["text_search"].isna().sum() == 3

# %%
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
axes.imshow(places.fillna(7).astype(float), cmap="Blues_r", vmin=0, vmax=7, aspect="auto")
for row, question in enumerate(places.index):
    for column, mode in enumerate(MODES):
        number = places.loc[question, mode]
        shown = "none" if pd.isna(number) else f"{number:.0f}"
        colour = "white" if shown in {"1", "2", "3"} else "black"
        axes.text(column, row, shown, ha="center", va="center", color=colour)
axes.set_xticks(range(len(MODES)), MODES)
axes.set_yticks(range(len(places)), places.index)
axes.set_xlabel("mode; the number is the place of the answer among six nodes")
axes.set_ylabel("question")
finding = "Hybrid has every answer among its first three;\nwords alone miss three of twelve"
_ = axes.set_title(finding, loc="left")

# %% [markdown]
# Twelve questions about six short files show the difference, they do not measure it. Figures of 160 questions about
# long conversations are in [the adapter's README](../adapters/llama_index_openclaw_memory/README.md#modes); to try
# your own questions on your own notes, see [the ranking lab](ranking_lab.ipynb).
#
# ## What lies on the disk
#
# Notes of people and nodes of LlamaIndex are Markdown files. What is in `.memory/` is made from them.

# %%
files = sorted(path.relative_to(folder) for path in folder.rglob("*.md"))
print(*(path.as_posix() for path in files), sep="\n")
