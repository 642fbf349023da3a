"""When conversations are flushed of which only the calls of a model can be watched."""

import threading
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.flush import ConversationDetector


def user(text):
    return ("user", text)


def assistant(text):
    return ("assistant", text)


class Saved:
    """Keeps what was to be saved; `held` says whether a turn could be held."""

    def __init__(self):
        self.flushes, self.held = [], True

    def __call__(self, key, messages, _tokens, _compacting):
        if self.held:
            self.flushes.append((key, [text for _, text in messages]))
        return self.held

    @property
    def texts(self):
        return {text for _, texts in self.flushes for text in texts}


@pytest.fixture
def saved():
    return Saved()


def watch(saved, *, window=200_000, **options):
    options.setdefault("count", len)
    return ConversationDetector(tuple, saved, rules=CompactionConfig(), window=window, **options)


def call(detector, messages, reply="ok", key="main", tokens=0):
    detector.begin_call(messages[-1], key, messages)
    detector.end_call(messages[-1], assistant(reply), tokens)


@given(st.integers(5, 12), st.lists(st.integers(0, 3), max_size=40))
def test_what_a_window_of_the_latest_messages_drops_was_saved_before(kept, steps):
    """The window of the detector is what the history is cut to, as its documentation asks for."""
    saved, numbers = Saved(), count()
    detector = watch(saved, window=300 * kept, count=lambda messages: 300 * len(messages))
    history, said = [], set()
    for others in steps:
        history = [*history, user(f"question {next(numbers)}")][-kept:]
        said.add(history[-1][1])
        for other in range(others):
            call(detector, [user(f"title {other}")])
        answer = f"answer {next(numbers)}"
        call(detector, history, answer)
        history = [*history, assistant(answer)][-kept:]
        assert said <= saved.texts | {text for _, text in history}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_a_conversation_that_only_grows_to_its_window_is_saved_once_at_most(sizes):
    saved = Saved()
    detector, messages = watch(saved, window=200_000, count=lambda messages: 2_000 * len(messages)), []
    for number, size in enumerate(sizes):
        messages += [user(f"{number}.{at}") for at in range(size)]
        if len(messages) > 100:
            break
        call(detector, messages)
        messages.append(assistant("ok"))
    assert len(saved.flushes) <= 1


def test_after_a_compaction_a_flush_comes_once_most_of_the_conversation_is_new(saved):
    detector = watch(saved, window=1_024, count=lambda messages: 200 * len(messages))
    call(detector, [user("a"), assistant("b"), user("c")])
    call(detector, [user("c"), assistant("ok")], "ok")
    assert [texts for _, texts in saved.flushes] == [["a", "b", "c", "ok"]]
    call(detector, [user("summary"), user("c"), assistant("d"), user("e")])
    assert [texts for _, texts in saved.flushes][1:] == [["summary", "c", "d", "e", "ok"]]


def test_where_no_turn_was_held_the_next_call_tries_again(saved):
    detector = watch(saved)
    saved.held = False
    call(detector, [user("a")], tokens=199_000)
    assert saved.flushes == []
    saved.held = True
    call(detector, [user("a"), assistant("ok"), user("b")], tokens=199_000)
    assert saved.texts == {"a", "b", "ok"}


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
    detector.begin_summary("main", [user("Summarise: bread")])  # its beginning was trimmed
    assert saved.flushes == [("main", ["apple", "bread"])]
    detector.begin_summary("main", [user("Summarise: apple, bread")])
    assert len(saved.flushes) == 1
    call(detector, [user("summary"), user("cake"), assistant("date"), user("egg")])
    detector.begin_summary("main", [user("Sum up: cake, date")])
    assert saved.flushes[1:] == [("main", ["summary", "cake", "date"])]
    detector.begin_summary("other", [user("What was before a restart.")])
    assert saved.flushes[-1] == ("other", ["What was before a restart."])


@pytest.mark.parametrize("ends", ["And?", "Shall I go on?", "continue"])
def test_a_conversation_that_begins_and_ends_like_another_one_is_not_taken_for_it(saved, ends):
    detector = watch(saved)
    for number in range(3):
        talk = [user("Hello."), assistant("Hi."), user(f"Fact {number}."), assistant("Noted."), user(ends)]
        call(detector, talk, tokens=199_000)
        detector.begin_summary("main", [user("Sum up: " + " ".join(text for _, text in talk))])
    assert {"Fact 0.", "Fact 1.", "Fact 2."} <= saved.texts
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


def test_the_largest_count_of_a_call_is_what_it_took(saved):
    detector = watch(saved)
    detector.begin_call(1, "main", [user("a")])
    for tokens in (5, 199_000, 7):
        detector.count_tokens(1, tokens)
        detector.count_tokens("unknown", tokens)
    detector.end_call(1, None)
    assert saved.flushes == [("main", ["a"])]


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
