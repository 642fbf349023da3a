"""A state machine that changes one memory in one process and compares each search with a dictionary."""

from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openclaw_memory import Memory
from openclaw_memory.store.sqlite import SEARCHES_BEFORE

NAMES = [f"2026-01-0{day}" for day in range(1, 6)]
WORDS = ["fox", "owl", "elk"]
names = st.sampled_from(NAMES)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True).map(
    lambda words: f"On the hill sleeps the {' beside the '.join(words)}."
)
SETTINGS = settings(max_examples=2, stateful_step_count=10, deadline=None)


class MemoryLaws(RuleBasedStateMachine):
    """Add, replace, delete and forget, beside a dictionary of what is there.

    A subclass says how its store does so: `put`, `remove`, and `answers`, which returns the names that each way of
    searching gives for a word.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.memory = Memory.open(self.folder.name, embedder="hashing")
        self.open()
        self.texts: dict[str, str] = {}
        self.add(NAMES[0], "On the hill sleeps the fox.")
        for _ in range(SEARCHES_BEFORE + 1):  # from now on the index is kept in memory
            self.searches_follow_the_dictionary()

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    @rule(name=names, text=texts)
    def add(self, name: str, text: str) -> None:
        self.put(name, text)
        self.texts[name] = text

    @rule(name=names)
    def delete(self, name: str) -> None:
        if self.texts.pop(name, None) is not None:
            self.remove([name])

    @rule()
    def delete_all(self) -> None:
        self.remove([*self.texts])
        self.texts.clear()

    @rule(word=st.sampled_from(WORDS))
    def forget(self, word: str) -> None:
        self.memory.control.forget(query=word, dry_run=False)
        self.texts = {name: text for name, text in self.texts.items() if word not in text}

    @invariant()
    def searches_follow_the_dictionary(self) -> None:
        for word in WORDS:
            texts = {text for text in self.texts.values() if word in text}
            for names in self.answers(word):
                assert names <= self.texts.keys()
                assert texts <= {self.texts[name] for name in names}, "copies of a text take one place"
