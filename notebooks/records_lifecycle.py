# %% [markdown]
# # The life of a record
#
# A user's theme is dark. Then the chat gets noisy: a joke, a guest, a theme that was tried for an hour. This notebook
# follows one preference for half a year: how it settles, how it is confirmed, how its confidence decays, and how it is
# forgotten. A plot shows what an agent would have answered on each day.
#
# It needs `pip install ".[notebooks]"`. No key is needed, and nothing leaves the machine. All files are below
# `records-notes/`.

# %%
import random
import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt

from openclaw_memory import Memory
from openclaw_memory.records import Records, RecordSource

HERE = Path("records-notes")
shutil.rmtree(HERE, ignore_errors=True)
HERE.mkdir()
memory = Memory.open(HERE, embedder=None)

# %% [markdown]
# ## A clock that can be turned
#
# `memory.records` lives in the present. To live through half a year in a second, the notebook makes `Records` of its
# own over the same files, with a clock that it turns. Each message of the chat is a source of its own.

# %%
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
now = {"today": START}


def clock():
    return now["today"]


records = Records(memory.workspace, memory.config.records, search=memory.search, clock=clock)


def hear(value, message):
    source = RecordSource("chat_turn", message, clock())
    return records.remember("preference", "editor.theme", value, source=source)


# %% [markdown]
# ## Flip-flopping, and settled
#
# On three days of four the user asks for the dark theme, on the others for the light one, at random. The latest
# observation changes with every whim. The record changes only where two observations in a row agree against it, once
# its value is a week old.

# %%
rng = random.Random(4)
days, latest, answers, confidences, outcomes = [], [], [], [], []


def live(value=None):
    """One day: perhaps a message, then what an agent would answer."""
    if value is not None:
        outcomes.append(hear(value, f"message {len(days) + 1}").outcome)
    record = records.get("preference", "editor.theme")
    days.append((clock() - START).days)
    latest.append(value if value is not None else latest[-1])
    answers.append(record and record.value)
    confidences.append(record.confidence if record else 0.0)
    now["today"] += timedelta(days=1)


if not days:
    live("dark")
while len(days) < 40:
    live("light" if rng.random() < 0.25 else "dark")


def changes(values):
    return sum(one != other for one, other in pairwise(values))


print("the latest observation changes", changes(latest), "times, the record", changes(answers), "times")
print({outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)})

# %% [markdown]
# The record's file is Markdown: the fourteen fields, what waits, the last values, and one sentence that `search` finds.

# %%
record = records.get("preference", "editor.theme")
print(record.path)
print((HERE / record.path).read_text(encoding="utf-8").splitlines()[-1])
for one in records.get("preference", "editor.theme").history:
    print(f"{one.value}: the value since {one.since:%d %B}")

# %% [markdown]
# ## Confirmed
#
# The user says it in so many words. The value is as sure as can be, what waited is dropped, and it is stable
# from now on. An edit of the file by hand would do the same.

# %%
confirmed = records.confirm("preference", "editor.theme", value="dark")
confirmed_on = (clock() - START).days
print(confirmed.value, confirmed.confidence, confirmed.is_confirmed)

# %% [markdown]
# ## Decaying
#
# For four months it does not come up. Confidence in a preference halves every 30 days, that in a confirmed one too. A
# heartbeat reports what has faded without ever being confirmed.

# %%
while len(days) < 160:
    live()

for number in (confirmed_on, 70, 100, 130, 159):
    print(f"day {number}: {answers[number]}, confidence {confidences[number]:.2f}")
print(len(records.find(min_confidence=0.5)), "record(s) at least 0.5 sure,", len(records.find()), "in all")

# %% [markdown]
# ## Forgotten
#
# The user asks to forget it. The file is gone at once; the next sync erases what the index had.

# %%
forgotten_on = len(days)
print("forgotten:", records.forget("preference", "editor.theme"))
while len(days) < 180:
    live()
print(records.get("preference", "editor.theme"), list((HERE / "memory/records").rglob("*.md")))

# %% [markdown]
# ## The whole life

# %%
figure, (above, below) = plt.subplots(2, 1, figsize=(9, 4.5), sharex=True, height_ratios=[1, 2])
level = {"dark": 0, "light": 1, None: float("nan")}
heard = [day for day in days if day < 40]
above.plot(heard, [level[latest[day]] for day in heard], ".", color="#bbbbbb", label="the latest observation")
above.step(days, [level[answer] for answer in answers], where="post", color="#b5341c", label="the record")
above.set_yticks([0, 1], ["dark", "light"])
above.legend(loc="upper right", frameon=False)
below.plot(days, confidences, color="#b5341c")
below.axvline(confirmed_on, color="#888888", linestyle=":")
below.text(confirmed_on + 1, 0.1, "confirmed")
below.axvline(forgotten_on, color="#888888", linestyle=":")
below.text(forgotten_on - 1, 0.6, "forgotten", ha="right")
below.set(xlabel="day", ylabel="confidence", ylim=(0, 1.05))
figure.tight_layout()
plt.show()

# %%
memory.close()
