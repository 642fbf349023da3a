# %% [markdown]
# # The memory in LangChain
#
# Three things, from small to large:
#
# 1. a **chain** that answers from notes and names the lines it read,
# 2. an **agent** that looks things up by itself,
# 3. a **long conversation** that is summarised twice. Each time the memory is *flushed* first: what should last is
#    written into a Markdown file before the older messages go. A plot shows when that happens, and what would be lost
#    without it.
#
# It needs `pip install ".[langchain-agents,notebooks]"`. No key, no download, and nothing leaves
# the machine. All files are below `langchain-rag-notes/`, which each run makes afresh.

# %%
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_openclaw_memory import OpenClawRetriever, OpenClawSummarizationMiddleware, memory_tools
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call
from langgraph.checkpoint.memory import InMemorySaver

from openclaw_memory import Memory
from openclaw_memory.tools import recall_section


def table(frame):
    """A table whose text stands on the left."""
    left = [{"selector": "th, td", "props": "text-align: left"}]
    return frame.style.set_table_styles(left).set_uuid("table").format(precision=2, escape="html")


# %% [markdown]
# ## Notes to ask about
#
# A memory is a folder of Markdown. This one belongs to a pottery workshop.

# %%
HERE = Path("langchain-rag-notes")
NOTES = {
    "MEMORY.md": """
# Workshop

- Six wheels, two kilns, lessons on Tuesday and Thursday evening.
- Glazes are mixed by Marit. She is allergic to wool, not to dust.
""",
    "memory/2026-02-03.md": """
# 2026-02-03

The small kiln reached 1040 degrees and no more. Its lower coil is worn.
Ordered a new coil from Van Dam Ovens, 86 euros.
""",
    "memory/2026-02-17.md": """
# 2026-02-17

Celadon glaze: 42 parts feldspar, 27 silica, 18 whiting, 13 kaolin.
The batch with more whiting ran off the pots.
""",
    "memory/2026-03-02.md": """
# 2026-03-02

The coil is in. The small kiln reaches 1240 degrees again.
""",
}


def fresh_notes(name):
    """A folder with the workshop's notes and nothing else."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.lstrip(), encoding="utf-8")
    return folder


memory = Memory.open(fresh_notes("chain"))
memory.search("What goes into the celadon glaze?")

# %% [markdown]
# ## A model that needs no key
#
# A notebook that runs everywhere cannot ask a service. The model below is a real `BaseChatModel` with a small script:
# it knows nothing, and only **copies sentences that it is shown**. Nothing in it is made for the questions of this
# notebook. Change the notes, the talk or the questions, and it goes by what it then reads.
#
# | What it is asked | What it does |
# |---|---|
# | a question | copies the sentence that shares most words with it, and the source above that sentence |
# | a question to which the talk has no answer, with `memory_search` at hand | calls `memory_search` |
# | to save what should last (a flush) | calls `memory_append` with the user's sentences that hold a number or a name |
# | to summarise | keeps the three sentences made of the words that were said most often |
#
# A larger model writes better prose. In the chain and in the agent it takes the place of this one as it is:
#
# ```python
# from langchain.chat_models import init_chat_model
#
# model = init_chat_model("openai:gpt-5-mini")  # needs a key, and sends the conversation to OpenAI
# ```

# %%
SOURCE = re.compile(r"\[(\S+#L\d+\S*)\]")


def split_sentences(text):
    return [part.strip("- ") for part in re.split(r"(?<=[.?!])\s+|\n+", text) if re.search(r"\w.*[.?!\]]$", part)]


def split_words(text):
    """The beginnings of the longer words."""
    return [word[:4] for word in re.findall(r"\w{4,}", text.lower())]


def best_sentence(question, text):
    """The sentence that shares most words with the question, at least two, and the source above it."""
    best, source, most = "", "", 1
    for sentence in split_sentences(text):
        if cited := SOURCE.fullmatch(sentence):
            source = cited[0]
        shared = len(set(split_words(question)) & set(split_words(sentence)))
        if shared > most and not sentence.endswith("?"):
            best, most = f"{sentence} {source}".strip(), shared
    return best


def summarise(text):
    """The three sentences with the most frequent words, in their order."""
    sentences, count = list(dict.fromkeys(split_sentences(text))), Counter(split_words(text))
    weight = {one: sum(count[word] for word in split_words(one)) / (len(split_words(one)) or 1) for one in sentences}
    best = sorted(sentences, key=weight.__getitem__, reverse=True)[:3]
    return " ".join(one for one in sentences if one in best)


def asked_for(request):
    """What a request asks the model for."""
    if request.tools == ["memory_append"]:
        return "flush"
    return "summary" if "<messages>" in request.messages[-1].text else "answer"


def copy_sentences(request):
    """The reply to a request: a text, or the call of a tool."""
    *before, last = request.messages
    talk = "\n".join(message.text for message in before if isinstance(message, HumanMessage))
    if asked_for(request) == "flush":
        said = split_sentences("\n".join(re.findall(r"^User: (.*)", last.text, re.MULTILINE)))
        facts = [one for one in said if re.search(r"\d|\w,? [A-Z]\w", one) and "?" not in one]
        is_done = isinstance(last, ToolMessage) or not facts
        return "NO_REPLY" if is_done else make_call("memory_append", text="\n".join(f"- {one}" for one in facts))
    if asked_for(request) == "summary":
        return summarise("\n".join(re.findall(r'<message type="human">(.*?)</message>', last.text, re.DOTALL)))
    if isinstance(last, ToolMessage):
        notes = "\n".join(f"[{row['citation']}]\n{row['snippet']}" for row in json.loads(last.text)["results"])
        return best_sentence(talk.splitlines()[-1], notes) or "I looked, and do not know."
    context, _, question = last.text.rpartition("Question: ")
    if not question.endswith("?"):
        return "I see."
    if answer := best_sentence(question, f"{talk}\n{context}"):
        return answer
    return make_call("memory_search", query=question) if "memory_search" in request.tools else "I do not know."


model = ScriptedChatModel(script=copy_sentences)

# %% [markdown]
# ## A chain that cites
#
# `OpenClawRetriever` is a LangChain retriever. The `id` of each document is its citation: a path, and the lines. Placed
# above the text in the prompt, it is there for the model to name.

# %%
retriever = OpenClawRetriever(memory=memory, k=3)
prompt = ChatPromptTemplate.from_template(
    "Answer from these notes alone, and name your source in brackets.\n\n{notes}\n\nQuestion: {question}"
)


def cited(documents):
    return "\n\n".join(f"[{document.id}]\n{document.page_content}" for document in documents)


chain = {"notes": retriever | cited, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
questions = [
    "What goes into the celadon glaze?",
    "How many degrees does the small kiln reach again?",
    "Who mixes the glazes?",
    "Which colour has the front door?",
]
answers = chain.batch(questions)
table(pd.DataFrame({"question": questions, "answer": answers}))

# %% tags=["claim"]
assert answers[0].endswith("[memory/2026-02-17.md#L3-L4]")
assert answers[-1] == "I do not know."  # the notes do not tell

# %% [markdown]
# ## An agent that looks things up
#
# `memory_tools` gives an agent `memory_search`, `memory_get` and `memory_append`. What the agent needs to be told about
# them is in `recall_section`. The model decides when to call one.

# %%
tools = memory_tools(memory)
agent = create_agent(model, tools, system_prompt=recall_section([tool.name for tool in tools], citations=True))
talk = agent.invoke({"messages": [("user", "Where was the new coil ordered?")]})["messages"]


def shown(message):
    """What a message says, or which tool it calls with what; of a tool's answer, the places that it found."""
    if isinstance(message, ToolMessage):
        return ", ".join(document["id"] for document in message.artifact)
    return message.text or ", ".join(f"{call['name']}({call['args']})" for call in message.tool_calls)


table(pd.DataFrame({"message": [message.type for message in talk], "text": [shown(message) for message in talk]}))

# %% tags=["claim"]
assert [message.type for message in talk] == ["human", "ai", "tool", "ai"]
assert "memory/2026-02-03.md" in talk[-1].text

# %% [markdown]
# The artifact of the tool's message holds the documents themselves, with their scores, for whoever builds on it.

# %%
table(pd.DataFrame([document["metadata"] for document in talk[2].artifact])[["citation", "score", "mode"]])

# %% [markdown]
# ## A long conversation, and what a summary loses
#
# A model reads so many tokens and no more. LangChain's `SummarizationMiddleware` replaces the older messages by a
# summary when a conversation gets long. A summary keeps what was talked about most; a door code that was said once is
# gone.
#
# Here the workshop moves house. Most turns are about shelves and clay. Five of them tell something that will be asked
# for much later.

# %%
TURNS = """
We have to plan the move of the workshop. I worry about the shelves, and about the clay on the shelves.
The shelves are heavy with clay on them. Should the clay come off the shelves first?
The removal van comes on 14 March at half past seven.
The clay is wet, and wet clay is heavy. I would rather move the dry clay first.
Dry clay makes dust on the shelves. We could wrap the shelves before the clay is moved.
The alarm code of the new building is 7743.
Wrapping the shelves takes an evening. Without the wrapping the clay dust will be on all shelves.
The wheels can stand beside the shelves. The wheels are heavy too, like the clay.
Somebody has to carry the clay up. Maybe the shelves go first and the clay goes last.
The electrician for the kilns is Berit Solheim, and she wants a week of notice.
The clay could wait in the hall while the shelves are put up. The hall is dry.
Then the clay dries out in the hall. Wet clay should be under plastic, not on shelves.
We have plastic for the wet clay. The dry clay can stand on the shelves as it is.
The landlord keeps a deposit of 1,850 euros until the old floor is clean.
The old floor is full of clay. I hope that the shelves have left no marks.
Cleaning clay from a floor takes water and time. The shelves can be moved before that.
I think that the shelves are the smallest of our worries. The clay is the largest.
The insurance for the transport ends at 3,000 euros, and the large kiln is worth more.
So the kiln goes on its own, after the shelves. The clay goes with the wheels.
The wheels and the clay in one load, then. The shelves in the load before that.
I like that plan. First the shelves, then the clay and the wheels.
Let us look at the shelves in the new hall. The clay has to be near the water.
The water is at the back. So the clay goes to the back, and the shelves to the front.
The front has more light. The shelves can do without light, the wheels cannot.
Then the wheels get the front, and the shelves the side.
""".strip().splitlines()

# What will be asked at the end, and the word by which the answer is known.
ASKED = {
    "On which day comes the removal van?": "14 March",
    "What is the alarm code of the new building?": "7743",
    "Who is the electrician for the kilns?": "Solheim",
    "How much is the deposit that the landlord keeps?": "1,850",
    "Where does the insurance for the transport end?": "3,000",
}

# %% [markdown]
# `OpenClawSummarizationMiddleware` is LangChain's `SummarizationMiddleware` with the same settings, and saves what a
# summary is about to take away, so that no message is missed in between. The conversation is held twice: with it, and
# with LangChain's own.
#
# After each turn the function below writes down how many tokens the conversation had, what the model was asked for, and
# which of the five facts can still be read in the conversation, and which in the notes.

# %%
LIMIT = 400  # tokens; a real one is the window of the model less room for the answer, such as 180,000 of 200,000


def tokens_of(agent, thread):
    return count_tokens_approximately(agent.get_state(thread).values.get("messages", []))


def converse(folder, *, with_flush):
    """Hold the conversation and ask the questions: a row for each turn, the answers, and the messages at the end."""
    model = ScriptedChatModel(script=copy_sentences)
    summarization = SummarizationMiddleware(model, trigger=("tokens", LIMIT), keep=("messages", 4))
    with Memory.open(folder) as memory:
        if with_flush:
            summarization = OpenClawSummarizationMiddleware.of(summarization, memory)
        agent = create_agent(model, memory_tools(memory), middleware=[summarization], checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "move"}}
        rows = []
        for turn, said in enumerate(TURNS, start=1):
            model.requests.clear()
            before = tokens_of(agent, thread) + count_tokens_approximately([HumanMessage(said)])
            messages = agent.invoke({"messages": [("user", said)]}, thread)["messages"]
            rows.append(
                {
                    "turn": turn,
                    "tokens": before,
                    "tokens after": count_tokens_approximately(messages[:-1]),
                    "the model was asked for": ", ".join(dict.fromkeys(map(asked_for, model.requests))),
                    "in the talk": known_in(message.text for message in messages),
                    "in the notes": known_in(path.read_text("utf-8") for path in folder.rglob("*.md")),
                }
            )
        memory.sync()
        end = agent.get_state(thread).config  # each question is asked here, so that no answer helps the next
        answers = [agent.invoke({"messages": [("user", asked)]}, end)["messages"][-1].text for asked in ASKED]
    return pd.DataFrame(rows).set_index("turn"), answers, messages


def known_in(texts):
    text = "\n".join(texts)
    return [fact for fact in ASKED.values() if fact in text]


flushed, remembered, messages = converse(fresh_notes("with-flush"), with_flush=True)
plain, lost, messages_without = converse(fresh_notes("without-flush"), with_flush=False)
shortened = flushed[flushed["the model was asked for"].str.contains("summary")]
table(shortened)

# %% tags=["claim"]
assert len(shortened) == 2
assert set(shortened["the model was asked for"]) == {"summary, flush, answer"}  # in this order

# %% [markdown]
# In the two turns above the context was full, and the model was asked three things in this order: to summarise, to
# write down what should last of what the summary takes (flush), and only then to answer the user. The plot shows the
# whole conversation.

# %%
FLUSH, TALK, NOTED = "#e69f00", "#0072b2", "#009e73"


def line_of(rows):
    """Turns and tokens of a line that falls straight down where the conversation was shortened."""
    points = [(turn, row[column]) for turn, row in rows.iterrows() for column in ("tokens", "tokens after")]
    return zip(*points, strict=True)


def bars(axes, rows, column, height, colour, label):
    """A bar for each fact, from the first turn to the last in which it stands in `column`."""
    for lane, fact in enumerate(ASKED.values()):
        turns = [turn for turn, facts in rows[column].items() if fact in facts]
        if turns:
            axes.barh(lane + height, turns[-1] + 1 - turns[0], 0.3, turns[0], color=colour, label=label)
        label = None  # one entry in the legend is enough


figure, (above, below) = plt.subplots(2, sharex=True, figsize=(9, 7), height_ratios=(3, 2), layout="constrained")
above.plot(*line_of(flushed), color=TALK, label="the conversation that the model is shown")
above.axhline(LIMIT, color="grey", linestyle="--", label=f"a summary is due ({LIMIT} tokens), and a flush with it")
above.scatter(
    shortened.index, shortened["tokens"], 130, FLUSH, marker="^", zorder=3, label="flush: facts into the notes"
)
above.scatter(shortened.index, shortened["tokens after"], 130, "black", marker="v", zorder=3, label="summary")
for turn, row in shortened.iterrows():
    note = f"{len(row['in the notes'])} facts in the notes"
    above.annotate(note, (turn, row["tokens"]), (-12, 8), textcoords="offset points", ha="right")
above.set(title="With each summary, a flush writes the facts into the notes", ylim=(0, LIMIT * 1.4))
above.set_ylabel("size of the conversation (tokens)")
above.legend(loc="upper left", ncols=2, fontsize="small")

bars(below, flushed, "in the talk", -0.16, TALK, "in the conversation")
bars(below, flushed, "in the notes", 0.16, NOTED, "in the notes")
for turn in shortened.index:
    below.axvline(turn, color=FLUSH, linewidth=1, label="summary and flush" if turn == shortened.index[0] else None)
below.set_yticks(range(len(ASKED)), ASKED.values())
below.invert_yaxis()
below.set(title="What a summary takes from the conversation stands in the notes", xlabel="turn of the conversation")
below.set_ylabel("fact")
below.set_xlim(0, len(TURNS) + 1)
below.legend(loc="lower left", fontsize="small")
plt.show()

# %% [markdown]
# The flush is silent: the user sees none of it, and the conversation is the same, token for token, as without it.

# %%
print(messages[0].text)

# %% tags=["claim"]
assert flushed["tokens"].tolist() == plain["tokens"].tolist()
assert messages[0].text == messages_without[0].text  # the summary

# %% [markdown]
# ## Asked afterwards
#
# None of the five facts is in the conversation any more. The model has `memory_search` in both runs. (The note is named
# for the day of the flush, shown here as `TODAY`, so that this page is the same every day.)

# %%
note = max((HERE / "with-flush" / "memory").glob("*.md"))
today = note.stem
compared = pd.DataFrame(
    {"with the flush": [answer.replace(today, "TODAY") for answer in remembered], "without it": lost},
    index=pd.Index(ASKED, name="asked at the end"),
)
table(compared)

# %% tags=["claim"]
assert not any(fact in message.text for message in messages for fact in ASKED.values())
assert all(fact in answer for fact, answer in zip(ASKED.values(), remembered, strict=True))
assert not any(fact in answer for fact, answer in zip(ASKED.values(), lost, strict=True))

# %% [markdown]
# And this is what the flush wrote: plain lines in a Markdown file that you can read, mend or delete.

# %%
print(note.read_text(encoding="utf-8").replace(today, "TODAY"))

# %% [markdown]
# ## From here
#
# - A flush that fails does not break the conversation: what was about to be lost is then kept word for word.
# - `OpenClawRecallMiddleware` shows the model what is relevant without being asked; `OpenClawTranscriptMiddleware`
#   makes the conversation itself searchable; `OpenClawVectorStore` is for code that was written for a vector store.
# - All of it, with examples that run, is in the
#   [README of the adapter](../adapters/langchain_openclaw_memory/README.md).
