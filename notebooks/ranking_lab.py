# %% [markdown]
# # Ranking lab: which settings find more in your notes
#
# You will see the notes of a small team, questions with known answers, and what each setting of the search does to
# them: the presets, the balance of keywords and vectors, the size of chunks, the age of notes, variety (MMR), and the
# threshold below which nothing is shown. Each difference is counted in questions, so that you can tell it from chance.
# The [last section](#Your-own-notes) does the same with your notes, and says whether another setting is worth taking.
#
# It needs `pip install ".[notebooks]"`. No key, no download, nothing leaves the machine. All files
# are in `ranking-lab/` below the current folder.

# %% [markdown]
# ## The lab
#
# A family bakery with two shops that also builds controllers for proofing cabinets: an invented team, and the memory
# that its agent keeps. The notes are in English, Dutch, German, French and Spanish, and so are the questions. Each
# question is labelled with quotes from the notes that answer it. There are seven kinds:
#
# - **keyword**: asks with a name, a number or a code that stands in the note
# - **paraphrase**: shares no word with the line that answers it
# - **dated**: asks by a day
# - **superseded**: a fact that has changed; only the newest note counts
# - **several**: the answer is in more than one note, beside others that look alike
# - **unanswerable**: asks about things that the notes tell of, but what they do not say; the right answer is nothing
# - **elsewhere**: asks about something else altogether; the right answer is nothing

# %%
from pathlib import Path

import pandas
from openclaw_memory_lab import copy_lab

folder = Path("ranking-lab")
notes = folder / "notes"
questions = copy_lab(notes)  # files that are there are kept

labels = pandas.DataFrame({"kind": [q.kind for q in questions], "language": [q.language for q in questions]})
kinds, languages = list(labels["kind"].unique()), ["en", "nl", "de", "fr", "es"]
pandas.crosstab(labels["kind"], labels["language"], margins=True, margins_name="all").loc[
    [*kinds, "all"], [*languages, "all"]
]

# %% [markdown]
# How hard the lab is has been chosen: 33 of the 110 questions with an answer are paraphrases that share no word with
# it. With fewer of them every share below would be higher. Only the differences between settings mean something.

# %% [markdown]
# One cell for what all plots share. Colours are those of Okabe and Ito, which everybody can tell apart; where lines
# meet, their markers differ too. The age of notes is counted from one fixed day, so that the figures are the same
# whenever this runs.
#
# Some differences are chance. Two settings are compared on the same questions: on how many does one do better, on how
# many worse? If a coin decided each of these, a split of 3 to 0 or 0 to 3 would come up in one of four trials, one of
# 6 to 0 or 0 to 6 in three of a hundred (this is the sign test). A title below says that something shows more or less
# only where a coin would do that in fewer than five of a hundred trials, and a test makes sure of it.

# %%
from collections.abc import Mapping
from datetime import UTC, datetime

import numpy
from matplotlib import pyplot
from matplotlib.axes import Axes
from openclaw_memory_jupyter import show_progress
from openclaw_memory_lab import (
    Comparison,
    Evaluation,
    Question,
    compare,
    is_better,
    plot_against,
    plot_explanation,
    plot_groups,
    sign_test,
)

from openclaw_memory import MemoryConfig

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


def of_kind(one: Evaluation, *wanted: str) -> Evaluation:
    """The same for the questions of these kinds alone."""
    return Evaluation(one.name, tuple(row for row in one.rows if row.question.kind in wanted))


def differ(one: Evaluation, other: Evaluation) -> bool:
    """Whether these questions tell the two apart."""
    return is_better(one, other) or is_better(other, one)


def with_search(**changes: object) -> MemoryConfig:
    """The default settings, but for these of the search."""
    return MemoryConfig().replace({"search": changes})


def try_all(settings: Mapping[str, MemoryConfig]) -> Comparison:
    """Ask all questions with each of the settings."""
    with show_progress() as bar:
        return compare(notes, questions, settings, now=NOW, progress=bar)


def share(ax: Axes, label: str = "share (0 to 1)") -> None:
    """An axis for shares."""
    ax.set_ylim(0, 1.04)
    ax.set_ylabel(label)


# %% [markdown]
# ## The presets side by side
#
# - **default**: `MemoryConfig()`. Keywords and vectors find chunks, then the lines of the best chunks are scored.
# - **openclaw**: OpenClaw's numbers, with the model that ships. Chunks of 400 tokens, and their beginnings are shown.
# - **keywords only**: the default without an embedder.
# - **vectors only**: chunks ranked by vectors alone. They are shown as chunks, because scoring lines looks at words.
#
# `shown` is the share of the evidence that stands in what the search shows, `first` how often the first result holds
# some, `silent` how often a question without an answer gets nothing. More characters make it easier to show the
# evidence, and cost a model more to read. The last column counts the questions on which a setting shows more or less
# of the evidence than the default does.

# %%
presets = {
    "default": MemoryConfig(),
    "openclaw": MemoryConfig.openclaw().replace({"embedding": {"provider": "static"}}),
    "keywords only": MemoryConfig().replace({"embedding": {"provider": "none"}}),
    "vectors only": with_search(vector_weight=1.0, answer="chunks"),
}
side_by_side = try_all(presets)
COLOURS = dict(zip(presets, [BLUE, ORANGE, GREY, GREEN], strict=True))
default = side_by_side["default"]
side_by_side

# %% tags=["claim"]
assert all(is_better(default, one) for one in side_by_side[1:3])

# %%
fig, ax = pyplot.subplots()
plot_groups(ax, side_by_side, "kind", kinds[:-2], COLOURS)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
ax.set_title(
    "Keywords suffice where the question has the words of the note;\nof questions in other words, "
    "the default shows more than keywords alone"
)
pyplot.show()


# %% tags=["claim"]
parts = {one.name: one.split_by("kind") for one in side_by_side}
assert not differ(parts["default"]["keyword"], parts["keywords only"]["keyword"])
assert is_better(parts["default"]["paraphrase"], parts["keywords only"]["paraphrase"])

# %% [markdown]
# A thin line shows between which shares the bar would lie, 95 times of 100, with as many other questions like these.
# It is long: most kinds have fewer than 20 questions. (Two settings are compared more sharply than their lines say,
# because they are asked the same questions.)
#
# Two things in this plot are not flattering. **Paraphrases** are hard for the model that ships: it knows words, not
# sentences, and most of them stay unanswered with every preset. `bring_your_own_embedder` tries others. And of
# **several** notes, a third stays unseen.

# %%
fig, ax = pyplot.subplots()
plot_groups(ax, side_by_side, "language", languages, COLOURS)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
ax.set_title(
    "In English the default shows more than OpenClaw's numbers and than keywords alone;\n"
    "ten questions in each other language tell no difference"
)
pyplot.show()


# %% tags=["claim"]
parts = {one.name: one.split_by("language") for one in side_by_side}
others = ["openclaw", "keywords only", "vectors only"]
assert all(is_better(parts["default"]["en"], parts[name]["en"]) for name in others[:2])
assert not any(differ(parts["default"][lang], parts[name][lang]) for name in others for lang in languages[1:])

# %% [markdown]
# The languages are not equally hard: the English questions have most of the paraphrases, and some of them are
# answered by a note in another language. Compare colours within a language, not languages with each other.

# %% [markdown]
# ## One question under the lens
#
# `search(..., options={"explain": True}).explain()` says where each score comes from. The hydration of the country loaf
# has changed twice. All three values are found, and the newest is second: nothing in the words says which is newest.

# %%
from openclaw_memory import Memory

QUESTION = "What is the hydration of the country loaf?"
with Memory.open(notes, index_path=folder / "index.sqlite") as memory:
    explained = memory.search(QUESTION, options={"explain": True}).explain()
explained

# %%
ax = plot_explanation(explained)
ax.set_title("Three notes hold the words of the question;\nnothing says which is newest (2026-06-19)")
pyplot.show()

# %% tags=["claim"]
assert [row.citation.split("#")[0] for row in explained.rows[:2]] == ["memory/2026-04-28.md", "memory/2026-06-19.md"]
assert all(row.keyword > 0.95 * row.score for row in explained.rows[:3])

# %% [markdown]
# ## Keywords or vectors: the weights
#
# `search.vector_weight` says how much vectors count when **chunks** are ranked, and keywords the rest. What
# that means depends on the recipe:
#
# - With `answer = "chunks"` the weights decide the order of what is shown.
# - With `answer = "lines"`, the default, they only decide which 25 chunks have their lines scored. Lines are scored by
#   words and vectors with weights of their own. So this knob does little there.
#
# The small figures say on how many questions a setting does better, and on how many worse, than the same recipe with
# half and half.

# %%
weights = [0.0, 0.25, 0.5, 0.75, 1.0]
recipes = {
    "default (lines)": MemoryConfig(),
    "default, but chunks are shown": with_search(answer="chunks"),
    "openclaw (chunks)": presets["openclaw"],
}
by_weight = {
    name: try_all({f"vector_weight = {w:g}": base.replace({"search": {"vector_weight": w}}) for w in weights})
    for name, base in recipes.items()
}

fig, axes = pyplot.subplots(1, 3, figsize=(11, 4.2), sharey=True)
for ax, (name, found), colour, marker in zip(axes, by_weight.items(), [BLUE, GREEN, RED], "os^", strict=True):
    plot_against(ax, weights, found, found[2], color=colour, marker=marker)
    ax.set_title(name, fontsize=10)
    ax.set_xticks(weights)
    ax.set_xlim(-0.15, 1.15)
    ax.set_xlabel("vector_weight (keywords have the rest)")
    share(ax, "")
share(axes[0], f"evidence shown (share), n = {len(answerable)}")
fig.suptitle(
    "Where chunks are shown, one alone shows less than half and half: keywords (0) with the default's chunks,\n"
    "vectors (1) with OpenClaw's; where lines answer, these questions tell little about the weights",
    x=0.01,
    ha="left",
)
pyplot.show()


# %% tags=["claim"]
lines, chunks, openclaw = by_weight.values()
assert not any(differ(one, lines[2]) for one in lines[1:])
assert is_better(chunks[2], chunks[0])
assert is_better(openclaw[2], openclaw[-1])

# %% [markdown]
# ## How large a chunk, how long a snippet
#
# `chunking.max_chars` is how much of a section goes into one chunk, `search.snippet_chars` how much of it is shown at
# most. The default has 700 for both. OpenClaw's chunks are set in tokens of four characters, with snippets of 700: of a
# chunk of 400 tokens, the second half is never shown. The small figures count against the default.

# %%
sizes = [100, 200, 300, 700, 1500]
by_size = try_all(
    {
        f"{size} characters": MemoryConfig().replace(
            {"chunking": {"max_chars": size}, "search": {"snippet_chars": size}}
        )
        for size in sizes
    }
)
tokens = [100, 200, 400]
by_tokens = try_all(
    {
        f"{count} tokens": presets["openclaw"].replace({"chunking": {"tokens": count, "overlap_tokens": count // 5}})
        for count in tokens
    }
)

fig, ax = pyplot.subplots()
for name, found, colour, marker in (
    ("default: chunks and snippets of as many characters", by_size, BLUE, "o"),
    ("openclaw: chunks of as many tokens", by_tokens, RED, "^"),
):
    ax.plot([one.chars for one in found], [one.shown for one in found], color=colour, marker=marker, label=name)
    for one in found:
        better, worse = one.compare_with(default)
        text = one.name.split()[0] + ("" if one.name == "700 characters" else f" (+{better} \u2212{worse})")
        at, side = ((-3, 7), "right") if found is by_size else ((8, 4), "left")  # where the line leaves room
        ax.annotate(text, (one.chars, one.shown), at, textcoords="offset points", color=colour, fontsize=9, ha=side)
ax.set_title(
    "Up to 200 characters these questions lose evidence;\nwith 1,500, only what there is to read is more than with 700"
)
ax.set_xlabel("characters shown for a question (mean)")
ax.set_xlim(0, 1.15 * max(one.chars for one in by_size))
share(ax, f"evidence shown (share), n = {len(answerable)}")
ax.legend(loc="lower right")
pyplot.show()

# %% tags=["claim"]
assert all(is_better(default, one) for one in by_size[:2])
assert not differ(by_size["1500 characters"], default)
assert by_size["1500 characters"].chars > 1.5 * by_size["300 characters"].chars

# %% [markdown]
# Most sections of these notes are short. Notes of long sections may gain from larger chunks: measure yours.

# %% [markdown]
# ## The age of notes
#
# `search.half_life_days` halves a score for every so many days of age: `score * 0.5 ** (age / half_life)`. The age is
# that of the day in the file's name. Files without one, such as `MEMORY.md` or `memory/recipes/`, never age. It is off
# unless you set it.
#
# One would expect that it helps with facts that have changed. See what it does here.

# %%
half_lives = [30.0, 90.0, 180.0, 365.0]
by_age = (*try_all({f"half_life_days = {days:g}": with_search(half_life_days=days) for days in half_lives}), default)
changed = [of_kind(one, "superseded") for one in by_age]
unchanged = [of_kind(one, "keyword", "paraphrase", "dated", "several") for one in by_age]

fig, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), width_ratios=[2, 3])
ages = range(181)
for days, colour, style in zip(half_lives, [RED, GREY, GREEN, BLUE], ["-", "--", "-.", ":"], strict=True):
    factors = [0.5 ** (age / days) for age in ages]
    left.plot(ages, factors, color=colour, linestyle=style)
    at = (ages[-1], factors[-1])
    left.annotate(f"{days:g} days", at, (4, 0), textcoords="offset points", color=colour, va="center")
left.set_title("What is left of a score,\nby half-life")
left.set_xlabel("age of the note (days)")
left.set_xlim(0, 245)
left.set_xticks([0, 60, 120, 180])
share(left, "factor (0 to 1)")
places = [0, 1, 2, 3, 4.6]
for parts, colour, marker, what in ((unchanged, BLUE, "o", "all other kinds"), (changed, RED, "s", "superseded")):
    label = f"{what} (n = {len(parts[0].rows)})"
    plot_against(right, places, parts, parts[-1], above=parts is changed, color=colour, marker=marker, label=label)
right.set_title(
    "A quarter of a year and less loses evidence, and for facts\nthat have changed these questions tell no gain"
)
right.set_xlabel("half-life (days)")
right.set_xticks(places, ["30", "90", "180", "365", "off"])
share(right, "evidence shown (share)")
right.legend(loc="lower right")
pyplot.show()

# %% tags=["claim"]
assert all(is_better(default, one) for one in by_age[:2])
assert not any(is_better(one, changed[-1]) for one in changed[:-1])
assert all(sign_test(*one.compare_with(changed[-1], "first")) > 0.05 for one in changed[1:-1])

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
# The same question as above, with a half-life of 180 days. Here the newest note does come first; it is one question.

# %%
with Memory.open(notes, index_path=folder / "index.sqlite", config=with_search(half_life_days=180.0)) as memory:
    aged = memory.search(QUESTION, options={"explain": True}, now=NOW).explain()
ax = plot_explanation(aged)
ax.set_title("With a half-life, the older note falls behind;\na recipe without a date loses nothing")
pyplot.show()

# %% tags=["claim"]
assert aged.rows[0].citation.startswith("memory/2026-06-19.md")

# %% [markdown]
# ## Variety: MMR
#
# `search.mmr` is off unless you set it. It orders results so that they do not repeat one another: 1 looks at the score
# alone, 0 at variety alone. It is meant for notes that look alike. In these, a check of the ovens is written down each
# week in the same words, and a few of them hold something else.

# %%
by_mmr = (*try_all({f"mmr = {value:g}": with_search(mmr=value) for value in (0.1, 0.4, 0.7, 0.9)}), default)

fig, ax = pyplot.subplots()
several = ("several",)
every = ("keyword", "paraphrase", "dated", "superseded", "several")
for wanted, colour, marker, what in ((every, GREY, "D", "all"), (several, BLUE, "o", "several")):
    parts = [of_kind(one, *wanted) for one in by_mmr]
    label = f"{what} (n = {len(parts[0].rows)})"
    plot_against(ax, places, parts, parts[-1], above=wanted is every, color=colour, marker=marker, label=label)
ax.set_title(
    "Much variety (0.1) loses evidence; from 0.4 on these questions tell no difference,\n"
    "not even where the answer is in several notes"
)
ax.set_xlabel("mmr (0: variety alone, 1: score alone)")
ax.set_xticks(places, ["0.1", "0.4", "0.7", "0.9", "off"])
share(ax, "evidence shown (share)")
ax.legend(loc="lower right")
pyplot.show()

# %% tags=["claim"]
assert is_better(default, by_mmr[0])
assert not any(differ(one, default) for one in by_mmr[1:-1])
assert not any(differ(one, parts[-1]) for one in parts[1:-1])

# %% [markdown]
# ## The threshold: when to say nothing
#
# `search.min_score` is what an answer must reach to be shown. A high one keeps a search silent where the notes have no
# answer, and drops answers that were right. There is no setting that has both. The small figures count questions
# against the default of 0.

# %%
thresholds = [0.0, 0.06, 0.1, 0.2, 0.3, 0.5]
by_threshold = try_all({f"min_score = {value:g}": with_search(min_score=value) for value in thresholds})
usual, strict = by_threshold["min_score = 0"], by_threshold["min_score = 0.2"]

fig, ax = pyplot.subplots()
label = f"evidence shown (n = {len(answerable)})"
plot_against(ax, thresholds, by_threshold, usual, color=BLUE, marker="o", label=label)
for kind, colour, marker in (("elsewhere", GREEN, "^"), ("unanswerable", RED, "s")):
    label = f"silent, {kind} (n = {len(asked(kind))})"
    shares = [of_kind(one, kind).silent for one in by_threshold]
    ax.plot(thresholds, shares, color=colour, marker=marker, label=label)
ax.axvline(MemoryConfig().search.min_score, color="black", linestyle="--", linewidth=1, label="default: 0")
ax.set_title(
    "0.2 is silent for all ten questions from elsewhere, for eight of seventeen that sound\n"
    "as if they had an answer, and shows less of the evidence"
)
ax.set_xlabel("min_score")
share(ax)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
pyplot.show()


# %% tags=["claim"]
def silent(one: Evaluation, kind: str) -> int:
    """For how many questions of a kind without an answer nothing was shown."""
    return sum(row.results == 0 for row in of_kind(one, kind).rows)


assert silent(strict, "elsewhere") == len(asked("elsewhere")) == 10
assert (silent(strict, "unanswerable"), len(asked("unanswerable"))) == (8, 17)
assert is_better(usual, strict)

# %% [markdown]
# An agent that reads the results can tell for itself that they do not answer, and wants a low threshold. Where results
# are put before a model unasked, or a person reads them, a threshold of 0.2 is worth a try.

# %% [markdown]
# ## All in one table
#
# Every knob against the default.

# %%
from dataclasses import replace

shown_as_chunks = [replace(one, name=f"chunks shown, {one.name}") for one in by_weight["default, but chunks are shown"]]
knobs = [
    *side_by_side,
    *[one for one in by_weight["default (lines)"] if one.name != "vector_weight = 0.5"],
    *shown_as_chunks,
    *[one for one in by_size if one.name != "700 characters"],
    *by_age[:-1],
    *by_mmr[:-1],
    *[one for one in by_threshold if one is not usual],
    *try_all({"max_results = 10": with_search(max_results=10), "candidates = 100": with_search(candidates=100)}),
]
in_one = Comparison(tuple(knobs))
in_one

# %%
told = in_one.to_pandas()[["name", "shown", "better", "worse"]]
told["a coin"] = [sign_test(*one.compare_with(default)) for one in in_one]
told[told["a coin"] < 0.05].round(3)

# %% tags=["claim"]
assert not any(is_better(one, default) for one in in_one)

# %% [markdown]
# These settings differ from the default by more than chance: all of them show less. Ten results show more than six, in
# more characters, but not by more than chance. (Of as many settings as are in the table above, one that is just below
# 0.05 may still be chance.)

# %% [markdown]
# ## How many questions does it take?
#
# Below you try settings on questions of your own. `Comparison.choose_best()` keeps the first setting, unless another
# does better on at least three questions more than it does worse on. How often that is right can be tried here: take
# some questions of the lab at random (some of them more than once), choose by them alone, and look at all 110 what was
# chosen. The table holds shares of 400 draws.

# %%
candidates = {
    "default": MemoryConfig(),
    "keywords only": presets["keywords only"],
    "short snippets": MemoryConfig().replace({"chunking": {"max_chars": 300}, "search": {"snippet_chars": 300}}),
    "long snippets": MemoryConfig().replace({"chunking": {"max_chars": 1500}, "search": {"snippet_chars": 1500}}),
    "more chunks looked into": with_search(candidates=100),
    "some variety": with_search(mmr=0.7),
    "newer notes first": with_search(half_life_days=180.0),
    "strict threshold": with_search(min_score=0.2),
    "openclaw": presets["openclaw"],
}
on_the_lab = try_all(candidates)
with_answer = [at for at, row in enumerate(default.rows) if row.coverage is not None]


def choices(first: Evaluation, count: int, margin: int = 3, draws: int = 400) -> tuple[float, float]:
    """How often a choice by `count` questions, beginning with `first`, takes what shows more on all, and what less."""
    tried = {one.name: one for one in (first, *on_the_lab)}  # each once, `first` as the first
    random, gains = numpy.random.default_rng(count), []
    for _ in range(draws):
        drawn = random.choice(with_answer, count)
        trial = [Evaluation(name, tuple(one.rows[at] for at in drawn)) for name, one in tried.items()]
        gains.append(tried[Comparison(tuple(trial)).choose_best(margin=margin).name].shown - first.shown)
    return sum(gain > 0 for gain in gains) / draws, sum(gain < 0 for gain in gains) / draws


counts = [10, 20, 40, 80]
faults = [by_age[0], on_the_lab["openclaw"], on_the_lab["keywords only"]]
usual = on_the_lab["default"]
draws = pandas.DataFrame(
    {
        **{f"from {one.name}: better found": [choices(one, n)[0] for n in counts] for one in faults},
        "from default: worse taken": [choices(usual, n)[1] for n in counts],
        "from default, margin 6: worse taken": [choices(usual, n, margin=6)[1] for n in counts],
    },
    index=pandas.Index(counts, name="questions"),
)
draws.round(2)

# %%
fig, ax = pyplot.subplots()
for column, one, colour, marker in zip(draws, [*faults, usual], [GREEN, RED, GREY, BLUE], "D^so", strict=False):
    label = column if one is usual else f"{column}\n(it shows {usual.shown - one.shown:.2f} less than the default)"
    ax.plot(counts, draws[column], color=colour, marker=marker, label=label)
ax.set_title("Ten questions hardly mislead, but most often do not find\nwhat shows a fifth more; forty do")
ax.set_xlabel("questions with an answer")
ax.set_xticks(counts)
share(ax, "share of 400 draws (0 to 1)")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), labelspacing=1.0)
pyplot.show()


# %% tags=["claim"]
large, _, small, worse, strict_worse = (draws[column] for column in draws)
assert large[10] > 0.65
assert small[10] < 0.5
assert small[40] > 0.9
assert max(*worse, *strict_worse) <= 0.02

# %% [markdown]
# So ten questions find what is badly wrong, seven times of ten: a setting that hides a third of the answers. What
# shows a sixth less they miss four times of five; that takes forty, and small differences take more than the lab
# has. In two of a hundred draws at most, a setting that is worse is taken for better than the default. Where settings
# are nearer to each other, a lead of three comes about by chance more easily with many questions: from eighty on you
# may ask for six, `best(margin=6)`.

# %% [markdown]
# ## Your own notes
#
# Now the same with your notes.
#
# 1. Set `WORKSPACE` to the folder that holds your `MEMORY.md` and `memory/`. It is only read.
# 2. Write a file with one JSON object a line, and set `QUESTIONS` to it. `evidence` are quotes from your notes, word
#    for word, a line or part of one; without `evidence` the right answer is nothing. `language` and `kind` are yours to
#    choose, or to leave out.
# 3. Ask what you would really ask, in your words and not in those of the note. Eight questions with an answer and two
#    without are a beginning, and find large faults. Do not look for questions that fail.
#
# As long as there is no such file, this cell writes one: two questions of each kind of the lab.

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
# A quote that stands in no note is an error that names it. Then each of the `candidates` above is asked everything,
# with indexes in a temporary folder. Put first what you use now, and add what you would like to try.

# %%
from openclaw_memory_lab import read_questions

with Memory.open(WORKSPACE, index_path=folder / "mine.sqlite") as memory:
    mine = read_questions(QUESTIONS, memory)

today = NOW if notes == WORKSPACE else None  # your notes are as old as they are today
with show_progress() as bar:
    trials = compare(WORKSPACE, mine, candidates, now=today, progress=bar)
trials

# %% [markdown]
# How to read it: the last column first. A setting that does better on three questions more than it does worse on is
# worth taking if these are all the questions you have (with eighty, six). With less, keep the first: that is the usual
# outcome, and a good one. Fewer characters are a wish of their own: here, snippets that are much shorter showed less
# of the evidence, and ten questions do not tell of that.

# %%
MEASURE = "shown"  # or "first": the first result alone

first = trials[0]
best = trials.choose_best(MEASURE)
if best is first:
    outcome = f"Keep {first.name}: no other setting does better on three questions more than it does worse on."
else:
    better, worse = best.compare_with(first, MEASURE)
    outcome = f"Take {best.name}: better than {first.name} on {better} questions, worse on {worse}."
print(outcome)

# %% [markdown]
# This is what it misses, or shows where it should show nothing:

# %%
missed = best.to_pandas()
missed[(missed["shown"] < 1) | (missed["shown"].isna() & (missed["results"] > 0))]

# %% [markdown]
# Here are its settings as TOML, in `ranking-lab/settings.toml` too. Of the default settings nothing needs to be
# written. This command uses the file: `openclaw-memory search --workspace PATH --config settings.toml "a question"`. So
# does `Memory.open(PATH, config=MemoryConfig.from_toml("settings.toml"))`. Where chunks or the embedder have changed,
# the next sync builds the index again.

# %%
import tomli_w
from msgspec import to_builtins


def as_toml(config: MemoryConfig) -> str:
    """What differs from the default settings, as a file for `MemoryConfig.from_toml`; keys stand there as they are."""
    now, usual = to_builtins(config), to_builtins(MemoryConfig())
    changed = {
        part: {key: value for key, value in now[part].items() if value != usual[part][key]}
        for part in now
        if isinstance(now[part], dict)
    }
    return tomli_w.dumps({"defaults": {part: values for part, values in changed.items() if values}})


SETTINGS = folder / "settings.toml"
SETTINGS.write_text(f"# {outcome}\n{as_toml(candidates[best.name])}", encoding="utf-8")
print(SETTINGS.read_text(encoding="utf-8"))

# %% tags=["claim"]
assert MemoryConfig.from_toml(SETTINGS) == candidates[best.name]

# %%
with Memory.open(WORKSPACE, index_path=folder / "mine.sqlite", config=MemoryConfig.from_toml(SETTINGS)) as memory:
    memory.sync()
    found = memory.search(mine[0].text, now=today)
found
