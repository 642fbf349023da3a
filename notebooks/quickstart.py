# %% [markdown]
# # Quickstart: from a folder of notes to a cited answer
#
# You will see a folder of Markdown files, a question answered from it with the lines named, a change made by hand in
# one of the files, and the answer that follows it. At the end: what lies on the disk.
#
# It needs `pip install ".[notebooks]"`. No key, no download, nothing leaves the machine. All files
# are in `quickstart-notes/` below the current folder, which the first cell makes afresh.

# %% [markdown]
# ## Notes
#
# The notes of a theatre company on tour. `MEMORY.md` holds what stays true, `memory/2026-03-02.md` what a day brought,
# and any other file below `memory/` a topic. You write such files with an editor; here, Python does.

# %%
import shutil
from pathlib import Path

folder = Path("quickstart-notes")
shutil.rmtree(folder, ignore_errors=True)

notes = {
    "MEMORY.md": """\
# The company

- Six people. Ines does the lights, Bo drives the van, Marit keeps the books.
- The van is 2.90 m high and has room for the set and four people.
- Ines must not eat peanuts or cashews.
""",
    "memory/2026-03-02.md": """\
# 2026-03-02

## Utrecht

Load-in at the Kikker begins at 13:00, through the back door in the alley.
The stage is 8 m wide, so the big flat stays in the van.

## Costs

Diesel to Groningen and back was 94 euros.
""",
    "memory/2026-03-09.md": """\
# 2026-03-09

## Antwerp

The theatre has no parking. Bo leaves the van at Park and Ride Linkeroever, for 7 euros a day.
Curtain is at 20:15, the bar closes at one.

## Lights

Two of the twelve spots flicker; Ines orders new lamps from Van Dam.
""",
    "memory/props.md": """\
# Props

- The glass in act two is made of sugar: order six a month, they break.
- The letter is in the red folder, a spare one in the drawer of the sound desk.
""",
}
for name, text in notes.items():
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")

# %% [markdown]
# ## A memory
#
# `Memory.open` takes the folder. `sync` reads the files and makes the index: keywords, and vectors of a small model
# that comes with the package. What it returns says what it did.

# %%
from openclaw_memory import Memory

memory = Memory.open(folder)
memory.sync()

# %% [markdown]
# ## A question
#
# The answer is the few lines that matter, best first. The *place* is the citation: the file, and the lines in it.

# %%
question = "When can we load in at Utrecht?"
answers = memory.search(question, max_results=3)
answers

# %% [markdown]
# `answers` is a sequence; each item has `citation`, `snippet`, `score`, `path`, `start_line` and `end_line`.
# `answers.to_pandas()` makes a data frame of it. A citation opens with `memory.get`, which reads the file itself:

# %%
best = answers[0]
opened = memory.get(best.citation)
opened

# %% tags=["claim"]
assert "13:00" in opened.text

# %% [markdown]
# Words and meaning count together. The note says *diesel*, this question says *fuel*:

# %%
fuel = memory.search("What did the fuel cost?", max_results=3)
fuel

# %% tags=["claim"]
assert "Diesel" in fuel[0].snippet

# %% [markdown]
# What the notes do not answer gets low scores, all of them `weak`. The model that ships with the package is small. A
# question that has hardly a word in common with the note that answers it may get a low score too; [a larger
# model](bring_your_own_embedder.ipynb) helps there.

# %%
unanswered = memory.search("What is the Wi-Fi password?")
unanswered

# %% tags=["claim"]
assert all(result.confidence == "weak" for result in unanswered)

# %% [markdown]
# ## Where a score comes from
#
# `explain()` takes a score apart: what the words brought, what the meaning brought, and what age took. Here age takes
# nothing: notes lose weight with it only where `search.half_life_days` is set.

# %%
explained = fuel.explain()
explained

# %% tags=["claim"]
assert explained.rows[0].vector > explained.rows[0].keyword

# %%
from openclaw_memory_lab import plot_explanation

axes = plot_explanation(explained)
_ = axes.set_title("“fuel” found “diesel”: most of the score is meaning", loc="left")

# %% [markdown]
# ## A change by hand
#
# The theatre calls: the load-in is at 11:30. Whoever keeps the notes changes the file in an editor, which writes it
# anew:

# %%
note = folder / "memory/2026-03-02.md"
note.write_text(note.read_text(encoding="utf-8").replace("13:00", "11:30"), encoding="utf-8")
memory.get("memory/2026-03-02.md")

# %% [markdown]
# `sync` reads the one file that has changed. Of its two chunks only the one with the changed line is embedded again:
# vectors go by the text they were made of.

# %%
memory.sync()

# %%
answers = memory.search(question, max_results=1)
answers

# %% tags=["claim"]
assert "11:30" in answers[0].snippet

# %% [markdown]
# ## Without a word to the memory
#
# A search notices by itself that files have changed. In Antwerp the curtain moves to 19:30. An answer that comes at
# once, from the index as it was, says that it is *stale*; a sync has begun in the background, and a moment later the
# answer is the new one:

# %%
import time

note = folder / "memory/2026-03-09.md"
note.write_text(note.read_text(encoding="utf-8").replace("20:15", "19:30"), encoding="utf-8")
for _ in range(200):
    time.sleep(0.05)  # searches look at the files now and then, so that looking costs little
    curtain = memory.search("When is the curtain in Antwerp?", max_results=1)
    if not curtain.stale and "19:30" in curtain[0].snippet:
        break
curtain

# %% tags=["claim"]
assert "19:30" in curtain[0].snippet

# %% [markdown]
# ## In a notebook
#
# The extension brings three magics. They use the variable `memory`, and `%memory` syncs before it searches.

# %%
# %load_ext openclaw_memory_jupyter

# %% magic_args="--date 2026-03-16" language="memory_append"
# Ghent: the rider asks for a black floor and forty chairs.
# Marit paid the deposit of 250 euros.

# %% [markdown]
# The text of the cell now stands in `memory/2026-03-16.md`. Run the cell twice and it still stands there once.

# %%
# %memory -n 2 "What was the deposit for Ghent?"

# %% [markdown]
# ## What lies on the disk
#
# The Markdown files are all there is to know. The index, in your data folder, is made from them: delete it, and
# the next `sync` makes it again.

# %% tags=["varies"]
# %memory_status

# %%
files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
print(*(path.as_posix() for path in files), sep="\n")

# %% [markdown]
# ## On to
#
# - your own notes: `Memory.open("path/to/your/notes")`, or `%memory -w path/to/your/notes QUESTION`
# - [the same memory behind a query engine of LlamaIndex](llama_index_query_engine.ipynb), or
#   [in a chain and an agent of LangChain](langchain_rag.ipynb)
# - [which settings find more](ranking_lab.ipynb), and [another embedder](bring_your_own_embedder.ipynb)
