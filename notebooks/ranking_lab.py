# %% [markdown]
# # Ranking lab: which settings find more in your notes
#
# You will see the notes of a small team, questions with known answers, and what each setting of the search does to
# them: the presets, the balance of keywords and vectors, the size of chunks, the age of notes, variety (MMR), and the
# threshold below which nothing is shown. The [last section](#Your-own-notes) does the same with your notes and prints
# the setting that answers your questions best.
#
# It needs `pip install "openclaw-memory-index[notebooks]"`. No key, no download, nothing leaves the machine. All files
# are in `ranking-lab/` below the current folder.

# %% [markdown]
# ## The lab
#
# A family bakery with two shops that also builds controllers for proofing cabinets: an invented team, and the memory
# that its agent keeps. The notes are in English, Dutch, German, French and Spanish, and so are the questions. Each
# question is labelled with quotes from the notes that answer it. There are six kinds:
#
# - **keyword**: asks with a name, a number or a code that stands in the note
# - **paraphrase**: shares no word with the line that answers it
# - **dated**: asks by a day
# - **superseded**: a fact that has changed; only the newest note counts
# - **several**: the answer is in two or three notes, beside others that look alike
# - **unanswerable**: the notes do not say; the right answer is nothing

# %%
from pathlib import Path

import pandas

from openclaw_memory.evaluation import copy_lab

folder = Path("ranking-lab")
notes = folder / "notes"
questions = copy_lab(notes)  # files that are there are kept

labels = pandas.DataFrame({"kind": [q.kind for q in questions], "language": [q.language for q in questions]})
kinds, languages = list(labels["kind"].unique()), ["en", "nl", "de", "fr", "es"]
pandas.crosstab(labels["kind"], labels["language"], margins=True, margins_name="all").loc[
    [*kinds, "all"], [*languages, "all"]
]

# %% [markdown]
# One cell for what all plots share. Colours are those of Okabe and Ito, which everybody can tell apart; where lines
# meet, their markers differ too. The age of notes is counted from one fixed day, so that the figures are the same
# whenever this runs.

# %%
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from matplotlib import pyplot
from matplotlib.axes import Axes

from openclaw_memory import MemoryConfig
from openclaw_memory.evaluation import Comparison, Evaluation, Question, compare

NOW = datetime(2026, 7, 1, tzinfo=UTC)
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#767676"
pyplot.rcParams.update(
    {
        "figure.figsize": (8.5, 4.2),
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 12,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e5e5e5",
        "legend.frameon": False,
    }
)


def asked(*wanted: str) -> list[Question]:
    """The questions of these kinds."""
    return [question for question in questions if question.kind in wanted]


answerable = [question for question in questions if question.evidence]
unanswerable = asked("unanswerable")


def with_search(**changes: object) -> MemoryConfig:
    """The default settings, but for these of the search."""
    return MemoryConfig().updated({"search": changes})


def try_all(settings: Mapping[str, MemoryConfig], ask: Sequence[Question] = answerable) -> Comparison:
    """Ask with each of the settings."""
    return compare(notes, ask, settings, now=NOW)


def share(ax: Axes, label: str = "share (0 to 1)") -> None:
    """An axis for shares."""
    ax.set_ylim(0, 1.04)
    ax.set_ylabel(label)


def grouped_bars(
    ax: Axes, found: Sequence[Evaluation], label: str, groups: Sequence[str], colours: Sequence[str]
) -> None:
    """A group of bars for each kind or language of question, in it a bar for each of the settings."""
    width = 0.8 / len(found)
    counts = {group: len(part.rows) for group, part in found[0].by(label).items()}
    for number, (one, colour) in enumerate(zip(found, colours, strict=True)):
        parts = one.by(label)
        places = [at + (number - (len(found) - 1) / 2) * width for at in range(len(groups))]
        ax.bar(places, [parts[group].shown for group in groups], width * 0.92, color=colour, label=one.name)
    ax.set_xticks(range(len(groups)), [f"{group}\n(n = {counts[group]})" for group in groups])
    ax.grid(axis="x", visible=False)


# %% [markdown]
# ## The presets side by side
#
# - **default**: `MemoryConfig()`. Keywords and vectors find chunks, then the lines of the best chunks are scored.
# - **openclaw**: OpenClaw's numbers, with the model that ships. Chunks of 400 tokens, and their beginnings are shown.
# - **keywords only**: the default without an embedder.
# - **vectors only**: chunks ranked by vectors alone. They are shown as chunks, because scoring lines looks at words.
#
# `shown` is the share of the evidence that stands in what the search shows, `first` how often the first result holds
# some, `silent` how often an unanswerable question gets nothing. More characters make it easier to show the evidence,
# and cost a model more to read: the last column is part of the result.

# %%
presets = {
    "default": MemoryConfig(),
    "openclaw": MemoryConfig.openclaw().updated({"embedding": {"provider": "static"}}),
    "keywords only": MemoryConfig().updated({"embedding": {"provider": "none"}}),
    "vectors only": with_search(vector_weight=1.0, text_weight=0.0, answer="chunks"),
}
side_by_side = try_all(presets, questions)
side_by_side

# %%
fig, ax = pyplot.subplots()
grouped_bars(ax, side_by_side, "kind", kinds[:-1], [BLUE, ORANGE, GREY, GREEN])
ax.set_title(
    "Keywords suffice where the question has the words of the note;\nquestions in other words need vectors, "
    "and most of those stay unanswered"
)
share(ax, "evidence shown (share)")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
pyplot.show()

by_kind = {one.name: one.by("kind") for one in side_by_side}
assert by_kind["default"]["keyword"].shown == by_kind["keywords only"]["keyword"].shown
assert by_kind["default"]["paraphrase"].shown > 2 * by_kind["keywords only"]["paraphrase"].shown

# %% [markdown]
# Two things in this plot are not flattering. **Paraphrases** are hard for the model that ships: it knows words, not
# sentences. Vectors alone show slightly more of them than the default does, and pay for it in every other kind. An
# embedder that knows more helps most here: see `bring_your_own_embedder`. And of **several** notes, more
# than a third stays unseen with every preset.

# %%
fig, ax = pyplot.subplots()
grouped_bars(ax, side_by_side, "language", languages, [BLUE, ORANGE, GREY, GREEN])
ax.set_title("In each language the default shows as much as the best of the others, or more")
share(ax, "evidence shown (share)")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
pyplot.show()

by_language = {one.name: one.by("language") for one in side_by_side}
assert all(
    by_language["default"][language].shown >= max(parts[language].shown for parts in by_language.values())
    for language in languages
)

# %% [markdown]
# The languages are not equally hard: the English questions have most of the paraphrases, and some of them are
# answered by a note in another language. Compare colours within a language, not languages with each other.

# %% [markdown]
# ## One question under the lens
#
# `search(..., explain=True).explain()` says where each score comes from. The hydration of the country loaf has
# changed twice. All three values are found, and the newest is second: nothing in the words says which is newest.

# %%
from openclaw_memory import Memory

QUESTION = "What is the hydration of the country loaf?"
with Memory.open(notes, index_path=folder / "index.sqlite") as memory:
    explained = memory.search(QUESTION, explain=True).explain()
explained

# %%
ax = explained.plot()
ax.set_title("The newest note (2026-06-19) is second by a hair:\nvectors carry the scores, keywords decide the order")
pyplot.show()

assert [row.citation.split("#")[0] for row in explained.rows[:2]] == ["memory/2026-04-28.md", "memory/2026-06-19.md"]

# %% [markdown]
# ## Keywords or vectors: the weights
#
# `search.vector_weight` and `search.text_weight` say how much each of the two counts when **chunks** are ranked. What
# that means depends on the recipe:
#
# - With `answer = "chunks"` the weights decide the order of what is shown.
# - With `answer = "lines"`, the default, they only decide which 25 chunks have their lines scored. Lines are scored by
#   words and vectors with weights of their own. So this knob does little there, as long as it stays off the ends.

# %%
weights = [0.0, 0.25, 0.5, 0.75, 1.0]
recipes = {
    "default (lines)": MemoryConfig(),
    "default, but chunks are shown": with_search(answer="chunks"),
    "openclaw (chunks)": presets["openclaw"],
}
by_weight = {
    name: try_all({f"{w:g}": base.updated({"search": {"vector_weight": w, "text_weight": 1 - w}}) for w in weights})
    for name, base in recipes.items()
}

fig, ax = pyplot.subplots()
for (name, found), colour, marker in zip(by_weight.items(), [BLUE, GREEN, ORANGE], "os^", strict=True):
    ax.plot(weights, [one.shown for one in found], color=colour, marker=marker, label=name)
ax.set_title(
    "Where lines answer, any mix of both serves; where chunks answer,\ntoo much weight on vectors costs evidence"
)
ax.set_xlabel("vector_weight (text_weight is the rest)")
ax.set_xticks(weights)
share(ax, f"evidence shown (share), n = {len(answerable)}")
ax.legend(loc="lower left")
pyplot.show()

lines, chunks, openclaw = ([one.shown for one in found] for found in by_weight.values())
assert max(lines[1:4]) - min(lines[1:4]) < 0.02 < max(lines) - lines[0]
assert max(chunks) - chunks[-1] > 0.05
assert max(openclaw) - openclaw[-1] > 0.05

# %% [markdown]
# ## How large a chunk, how long a snippet
#
# `chunking.max_chars` is how much of a section goes into one chunk, `search.snippet_chars` how much of it is shown at
# most. The default has 700 for both. OpenClaw's chunks are set in tokens of four characters, with snippets of 700: of a
# chunk of 400 tokens, the second half is never shown.

# %%
sizes = [100, 200, 300, 700, 1500]
by_size = try_all(
    {
        f"{size}": MemoryConfig().updated({"chunking": {"max_chars": size}, "search": {"snippet_chars": size}})
        for size in sizes
    }
)
tokens = [100, 200, 400]
by_tokens = try_all(
    {
        f"{count} tokens": presets["openclaw"].updated({"chunking": {"tokens": count, "overlap_tokens": count // 5}})
        for count in tokens
    }
)

fig, ax = pyplot.subplots()
for name, found, colour, marker in (
    ("default: chunks and snippets of as many characters", by_size, BLUE, "o"),
    ("openclaw: chunks of as many tokens", by_tokens, ORANGE, "^"),
):
    ax.plot([one.chars for one in found], [one.shown for one in found], color=colour, marker=marker, label=name)
    for one in found:
        above = one.name == "200 tokens"
        ax.annotate(
            one.name,
            (one.chars, one.shown),
            (4, 6 if above else -13),
            textcoords="offset points",
            color=colour,
            fontsize=9,
        )
ax.set_title("From 300 characters on, larger chunks show hardly more evidence,\nand cost more to read")
ax.set_xlabel("characters shown for a question (mean)")
ax.set_xlim(0, 2600)
share(ax, f"evidence shown (share), n = {len(answerable)}")
ax.legend(loc="lower right")
pyplot.show()

assert by_size["1500"].shown - by_size["300"].shown < 0.03
assert by_size["1500"].chars > 1.5 * by_size["300"].chars

# %% [markdown]
# Most sections of these notes are short. Notes of long sections gain from larger chunks for longer: measure yours.

# %% [markdown]
# ## The age of notes
#
# `search.half_life_days` halves a score for every so many days of age: `score * 0.5 ** (age / half_life)`. The age is
# that of the day in the file's name. Files without one, such as `MEMORY.md` or `memory/recipes/`, never age. It is off
# unless you set it.
#
# One would expect that it helps with facts that have changed. See what it does here.

# %%
half_lives: list[float | None] = [30.0, 90.0, 180.0, 365.0, None]
names = ["30", "90", "180", "365", "off"]
by_age = try_all(
    {name: with_search(half_life_days=days) for name, days in zip(names, half_lives, strict=True)},
)
changed = [one.by("kind")["superseded"] for one in by_age]
others = [Evaluation(one.name, tuple(row for row in one.rows if row.question.kind != "superseded")) for one in by_age]

fig, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), width_ratios=[2, 3])
ages = range(181)
for days, colour, style in zip(half_lives[:4], [RED, ORANGE, GREEN, BLUE], ["-", "--", "-.", ":"], strict=True):
    factors = [0.5 ** (age / days) for age in ages]
    left.plot(ages, factors, color=colour, linestyle=style)
    left.annotate(
        f"{days:g} days", (ages[-1], factors[-1]), (4, 0), textcoords="offset points", color=colour, va="center"
    )
left.set_title("What is left of a score,\nby half-life")
left.set_xlabel("age of the note (days)")
left.set_xlim(0, 245)
left.set_xticks([0, 60, 120, 180])
share(left, "factor (0 to 1)")
for parts, colour, marker, what in ((others, BLUE, "o", "all other kinds"), (changed, RED, "s", "superseded")):
    count = len(parts[0].rows)
    shown = [one.shown for one in parts]
    first = [one.first for one in parts]
    right.plot(names, shown, color=colour, marker=marker, label=f"{what}: shown (n = {count})")
    right.plot(names, first, color=colour, marker=marker, linestyle="--", label=f"{what}: first result")
right.set_title(
    "Age takes more than it gives: a half-life of 180 days puts\nsome newest values first and loses other answers"
)
right.set_xlabel("half-life (days)")
share(right)
right.legend(loc="upper left", bbox_to_anchor=(1, 1))
pyplot.show()

assert changed[2].first > changed[4].first
assert others[2].shown < others[4].shown
assert all(one.shown <= others[4].shown for one in others)

# %% [markdown]
# Even superseded facts lose with a short half-life: the newest note of a fact may be months old itself, and files that
# never age go past it. Of all that is shown, this share is from files without a date:

# %%
import re


def share_without_date(half_life: float | None) -> float:
    """Which share of all results is from files that never age."""
    with Memory.open(notes, index_path=folder / "index.sqlite", config=with_search(half_life_days=half_life)) as memory:
        found = [result for question in answerable for result in memory.search(question.text, now=NOW)]
    return sum(re.search(r"\d{4}-\d\d-\d\d", result.path) is None for result in found) / len(found)


pandas.DataFrame(
    {"half-life": ["off", "90 days"], "from files without a date": [share_without_date(None), share_without_date(90.0)]}
).round(2)

# %% [markdown]
# What serves better for facts that change: leave it off, keep all six results, which are cited with their day, and let
# the model choose the newest.
#
# The same question as above, with a half-life of 180 days:

# %%
with Memory.open(notes, index_path=folder / "index.sqlite", config=with_search(half_life_days=180.0)) as memory:
    aged = memory.search(QUESTION, explain=True, now=NOW).explain()
ax = aged.plot()
ax.set_title("Half-life 180 days: the newest note comes first;\nthe recipe, which has no date, does not age")
pyplot.show()

assert aged.rows[0].citation.startswith("memory/2026-06-19.md")

# %% [markdown]
# ## Variety: MMR
#
# `search.mmr` is off unless you set it. It orders results so that they do not repeat one another: 1 looks at the score
# alone, 0 at variety alone. It is meant for notes that look alike. In these, a check of the ovens is written down each
# week in the same words, and a few of them hold something else.

# %%
lambdas: list[float | None] = [0.1, 0.4, 0.7, 0.9, None]
labels_of_mmr = ["0.1", "0.4", "0.7", "0.9", "off"]
by_mmr = try_all({name: with_search(mmr=value) for name, value in zip(labels_of_mmr, lambdas, strict=True)})

fig, ax = pyplot.subplots()
for kind, colour, marker in (("several", BLUE, "o"), ("superseded", RED, "s"), ("dated", GREEN, "^")):
    parts = [one.by("kind")[kind] for one in by_mmr]
    ax.plot(
        labels_of_mmr,
        [one.shown for one in parts],
        color=colour,
        marker=marker,
        label=f"{kind} (n = {len(parts[0].rows)})",
    )
ax.plot(labels_of_mmr, [one.shown for one in by_mmr], color=GREY, marker="D", label=f"all (n = {len(answerable)})")
ax.set_title(
    "A little variety (0.7 or 0.9) finds slightly more of several notes;\n"
    "much of it throws out the note that holds the newest value"
)
ax.set_xlabel("mmr (0: variety alone, 1: score alone)")
share(ax, "evidence shown (share)")
ax.legend(loc="lower right")
pyplot.show()

several = {one.name: one.by("kind")["several"].shown for one in by_mmr}
assert 0 < several["0.9"] - several["off"] < 0.1
assert by_mmr["0.1"].shown < by_mmr["off"].shown

# %% [markdown]
# ## The threshold: when to say nothing
#
# `search.min_score` is what an answer must reach to be shown. A high one keeps a search silent where the notes have no
# answer, and drops answers that were right. There is no setting that has both.

# %%
thresholds = [0.0, 0.04, 0.1, 0.2, 0.3, 0.5]
by_threshold = try_all({f"{value:g}": with_search(min_score=value) for value in thresholds}, questions)
default = MemoryConfig().search.min_score

fig, ax = pyplot.subplots()
ax.plot(
    thresholds,
    [one.shown for one in by_threshold],
    color=BLUE,
    marker="o",
    label=f"evidence shown (n = {len(answerable)})",
)
ax.plot(
    thresholds,
    [one.silent for one in by_threshold],
    color=RED,
    marker="s",
    label=f"silent where there is no answer (n = {len(unanswerable)})",
)
ax.axvline(default, color="black", linestyle="--", linewidth=1, label=f"default: {default:g}")
ax.set_title(
    "The default threshold shows nearly all that can be shown, and is seldom silent;\n"
    "0.2 is silent for most unanswerable questions and costs a tenth of the evidence"
)
ax.set_xlabel("min_score")
share(ax)
ax.legend(loc="lower right")
pyplot.show()

assert by_threshold["0"].shown - by_threshold["0.04"].shown < 0.02
assert by_threshold["0.2"].silent > 0.5 > 2 * by_threshold["0.04"].silent
assert 0.05 < by_threshold["0.04"].shown - by_threshold["0.2"].shown < 0.15

# %% [markdown]
# An agent that reads the results can tell for itself that they do not answer, and wants a low threshold. Where results
# are put before a model unasked, or a person reads them, a threshold of 0.2 to 0.3 is worth a try.

# %% [markdown]
# ## Your own notes
#
# Now the same with your notes. Ten questions are enough to begin with.
#
# 1. Set `WORKSPACE` to the folder that holds your `MEMORY.md` and `memory/`. It is only read.
# 2. Write a file with one JSON object a line, and set `QUESTIONS` to it. `evidence` are quotes from your notes, word
#    for word, a line or part of one; without `evidence` the right answer is nothing. `language` and `kind` are yours to
#    choose, or to leave out.
# 3. Ask what you would really ask, in your words and not in those of the note. Eight questions with an answer and two
#    without are a good beginning. Do not look for questions that fail.
#
# As long as there is no such file, this cell writes one: twelve questions of the lab.

# %%
import json

WORKSPACE = notes  # for example Path("~/agent").expanduser()
QUESTIONS = folder / "my-questions.jsonl"

if not QUESTIONS.exists():
    examples = [question for kind in kinds for question in asked(kind)[:: len(asked(kind)) - 1]]
    lines_of_json = [
        json.dumps(
            {"question": q.text, "evidence": q.evidence, "language": q.language, "kind": q.kind}, ensure_ascii=False
        )
        for q in examples
    ]
    QUESTIONS.write_text("\n".join(lines_of_json) + "\n", encoding="utf-8")

print(QUESTIONS.read_text(encoding="utf-8"))

# %% [markdown]
# A quote that stands in no note is an error that names it. Then each of the settings is asked everything, with indexes
# in a temporary folder. Add to `candidates` what you would like to try.

# %%
from openclaw_memory.evaluation import read_questions

with Memory.open(WORKSPACE, index_path=folder / "mine.sqlite") as memory:
    mine = read_questions(QUESTIONS, memory)

candidates = {
    "default": MemoryConfig(),
    "keywords only": presets["keywords only"],
    "short snippets": MemoryConfig().updated({"chunking": {"max_chars": 300}, "search": {"snippet_chars": 300}}),
    "long snippets": MemoryConfig().updated({"chunking": {"max_chars": 1500}, "search": {"snippet_chars": 1500}}),
    "more chunks looked into": with_search(candidates=60),
    "some variety": with_search(mmr=0.7),
    "newer notes first": with_search(half_life_days=180.0),
    "strict threshold": with_search(min_score=0.2),
    "openclaw": presets["openclaw"],
}
today = NOW if notes == WORKSPACE else None  # your notes are as old as they are today
trials = compare(WORKSPACE, mine, candidates, now=today)
trials

# %% [markdown]
# How to read it: `shown` first, then `characters shown`, then `silent`. With ten questions, one of them is a tenth: a
# difference of one question is chance, of three it is worth something. Where several settings show as much, the one
# that takes the fewest characters is the best: the same evidence, and less to read. This is what it misses:

# %%
MEASURE = "shown"  # or "first", or "silent"

best = trials.best(MEASURE)
missed = best.to_pandas()
missed[(missed["shown"] < 1) | (missed["shown"].isna() & (missed["results"] > 0))]

# %% [markdown]
# Here it is, as TOML, and in `ranking-lab/settings.toml`. This command uses it:
# `openclaw-memory search --workspace PATH --config settings.toml "a question"`. So does
# `Memory.open(PATH, config=MemoryConfig.from_toml("settings.toml"))`. Where chunks or the embedder have changed, the
# next sync builds the index again.

# %%
from dataclasses import fields


def as_toml(config: MemoryConfig) -> str:
    """What differs from the default settings, as a file for `MemoryConfig.from_toml`."""
    usual = MemoryConfig()
    changed = [
        f"{part.name}.{key.name} = {json.dumps(value)}"
        for part in fields(config)
        if part.name != "notices"
        for key in fields(getattr(config, part.name))
        if (value := getattr(getattr(config, part.name), key.name)) != getattr(getattr(usual, part.name), key.name)
    ]
    return "\n".join(["[defaults]", *(changed or ["# the default settings are best"])]) + "\n"


SETTINGS = folder / "settings.toml"
SETTINGS.write_text(f"# {best.name}\n{as_toml(candidates[best.name])}", encoding="utf-8")
assert MemoryConfig.from_toml(SETTINGS) == candidates[best.name]
print(SETTINGS.read_text(encoding="utf-8"))

# %%
with Memory.open(WORKSPACE, index_path=folder / "mine.sqlite", config=MemoryConfig.from_toml(SETTINGS)) as memory:
    memory.sync()
    found = memory.search(mine[0].text, now=today)
found
