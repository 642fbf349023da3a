"""When conversations are flushed of which only the calls of a model can be watched."""

import threading
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.flush import ConversationDetector
from openclaw_memory.text.fence import fence_text


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


class Saved:
    """Keeps what was to be saved; `held` says whether a turn could be held."""

    def __init__(self):
        self.flushes, self.held = [], True

    def __call__(self, key, messages, _tokens, _is_cut):
        if self.held:
            self.flushes.append((key, [message["content"] for message in messages]))
        return self.held

    @property
    def texts(self):
        return [text for _, texts in self.flushes for text in texts]


@pytest.fixture
def saved():
    return Saved()


def watch(saved, *, window=200_000, **options):
    return ConversationDetector(saved, rules=lambda _: CompactionConfig(), window=window, **options)


def call(detector, messages, reply="ok", key="main", tokens=0):
    detector.begin_call("run", key, messages)
    detector.end_call("run", assistant(reply), tokens)


@given(st.integers(2, 12), st.lists(st.integers(0, 3), max_size=40))
def test_what_a_history_is_cut_by_is_saved_once_whatever_else_is_asked(kept, steps):
    saved, numbers = Saved(), count()
    detector = watch(saved)
    history, told = [], set()
    for others in steps:
        history = view = [*history, user(f"question {next(numbers)}")][-kept:]
        told.add(history[-1]["content"])
        for other in range(others):
            call(detector, [user(f"title {other}")], f"a title {other}")
        answer = f"answer {next(numbers)}"
        call(detector, history, answer)
        history = [*history, assistant(answer)][-kept:]
        assert told <= {*saved.texts} | {message["content"] for message in view}
    assert max(Counter(text for text in saved.texts if "title" not in text).values(), default=1) == 1


def test_after_a_compaction_only_what_is_new_is_shown_and_nothing_that_is_made_of_the_rest(saved):
    detector = watch(saved)
    call(detector, [user("a"), assistant("b"), user("c")], tokens=199_000)
    call(detector, [user("c"), assistant("ok")], "ok", tokens=199_000)
    assert [texts for _, texts in saved.flushes] == [["a", "b", "c", "ok"]]
    call(detector, [user("summary of a and b"), user("c"), assistant("d"), user("e" * 99)], tokens=199_000)
    assert [texts for _, texts in saved.flushes][1:] == [["d", "e" * 99, "ok"]]


def test_what_was_recalled_into_a_message_does_not_make_it_another_one(saved):
    detector = watch(saved)
    fences = [fence_text(f"memory {number}", "memory") for number in range(2)]
    call(detector, [user(f"{fences[0]}\n\nWhat is the code?")], tokens=199_000)
    call(detector, [user(f"{fences[1]}\n\nWhat is the code?"), assistant("ok"), user("Why? " * 99)], tokens=199_000)
    assert [texts for _, texts in saved.flushes] == [[f"{fences[0]}\n\nWhat is the code?", "ok"], ["Why? " * 99, "ok"]]


def test_a_prompt_that_quotes_the_conversation_is_none(saved):
    detector, talk = watch(saved), []
    for number in range(4):
        history = "\n".join(message["content"] for message in talk)
        call(detector, [user(f"Write the question so that it can be understood alone: {history}")])
        talk += [user(f"question number {number}"), assistant(f"answer number {number}")]
        call(detector, talk[:-1], talk[-1]["content"])
    assert len(saved.flushes) == 1, "the first prompt, which quotes nothing, was taken for a conversation that ended"


def test_another_conversation_under_the_key_ends_the_one_before(saved):
    detector = watch(saved)
    call(detector, [user("one"), assistant("two"), user("three")])
    call(detector, [user("other one")], "other two")
    assert saved.flushes == []
    call(detector, [user("other one"), assistant("other two"), user("other three")])
    assert saved.flushes == [("main", ["one", "two", "three", "ok", "other one", "other two", "other three", "ok"])]


def test_where_no_turn_was_held_the_next_call_tries_again(saved):
    detector = watch(saved)
    saved.held = False
    call(detector, [user("a")], tokens=199_000)
    assert saved.flushes == []
    saved.held = True
    call(detector, [user("a"), assistant("ok"), user("b")], tokens=199_000)
    assert {*saved.texts} == {"a", "b", "ok"}


def test_a_call_that_is_refused_as_too_long_is_flushed_once_and_another_failure_is_not(saved):
    detector = watch(saved)
    for run_id, error in enumerate(["down", "prompt is too long", "prompt is too long"]):
        detector.begin_call(run_id, "main", [user("down" if error == "down" else "long")])
        detector.fail_call(run_id, RuntimeError(error))
        detector.fail_call(run_id, RuntimeError(error))
    assert saved.flushes == [("main", ["long"])]


def test_before_a_summary_what_it_takes_is_flushed_unless_it_was(saved):
    detector = watch(saved)
    call(detector, [user("apple"), assistant("bread"), user("cake")], "date")
    detector.begin_summary("main", [user("Summarise: bread")])
    assert saved.flushes == [("main", ["apple", "bread", "cake", "date"])]
    detector.begin_summary("main", [user("Summarise: apple, bread")])
    assert len(saved.flushes) == 1
    call(detector, [user("summary"), user("cake"), assistant("date"), user("egg")])
    detector.begin_summary("main", [user("Sum up: cake, date")])
    assert saved.flushes[1:] == [("main", ["egg", "ok"])]
    detector.begin_summary("other", [user("What was before a restart.")])
    assert saved.flushes[-1] == ("other", ["What was before a restart."])


@pytest.mark.parametrize("ends", ["And?", "Shall I go on?", "continue"])
def test_a_conversation_that_begins_and_ends_like_another_one_is_not_taken_for_it(saved, ends):
    detector = watch(saved)
    for number in range(3):
        talk = [user("Hello."), assistant("Hi."), user(f"Fact {number}."), assistant("Noted."), user(ends)]
        call(detector, talk, tokens=199_000)
        detector.begin_summary("main", [user("Sum up: " + " ".join(message["content"] for message in talk))])
    assert {"Fact 0.", "Fact 1.", "Fact 2."} <= {*saved.texts}
    assert len(saved.flushes) == 3


def test_a_call_of_a_tool_without_words_does_not_make_the_rest_new(saved):
    detector = watch(saved)
    talk = [user("a"), assistant(""), user("b"), assistant("c")]
    call(detector, talk, "d", tokens=199_000)
    detector.begin_summary("main", [user("Sum up: a, b, c")])
    assert len(saved.flushes) == 1


def test_a_finished_conversation_is_flushed_of_what_is_new(saved):
    detector = watch(saved)
    call(detector, [user("a")], key="one", tokens=199_000)
    call(detector, [user("a"), assistant("ok"), user("b")], "c", key="one")
    call(detector, [user("x")], "y", key="two")
    detector.finish("one")
    detector.finish("one")
    assert saved.flushes == [("one", ["a", "ok"]), ("one", ["b", "c"])]
    detector.finish()
    assert saved.flushes[2:] == [("two", ["x", "y"])]


def test_calls_go_on_while_a_flush_is_held_and_the_next_one_waits_for_it(saved):
    begun, may_end, order, threads = threading.Event(), threading.Event(), [], []

    def save(*arguments):
        order.append("begun")
        begun.set()
        assert may_end.wait(60)
        order.append("ended")
        return saved(*arguments)

    def run(work):
        threads.append(threading.Thread(target=work))
        threads[-1].start()

    detector = watch(save, run=run)
    messages = [user("a"), assistant("b"), user("c")]
    for _ in range(2):
        call(detector, messages, tokens=199_000)
        assert begun.wait(60)
    new = [user(f"new {number}") for number in range(5)]
    call(detector, [*messages, *new], tokens=199_000)
    assert len(threads) == 2
    may_end.set()
    for thread in threads:
        thread.join()
    assert order == ["begun", "ended"] * 2
    assert len(saved.flushes) == 2
