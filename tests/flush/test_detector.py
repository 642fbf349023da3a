"""What is seen of conversations where only the calls of a model can be watched."""

import threading
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.config import CompactionConfig
from openclaw_memory.flush import Conversations, Reading
from openclaw_memory.flush.detector import Conversation

READING = Reading(role=lambda said: said[0], text=lambda said: said[1], is_reply=lambda said: said[0] == "assistant")


def user(text):
    return ("user", text)


def assistant(text):
    return ("assistant", text)


class Saved:
    """Keeps what was to be saved; `held` says whether a turn could be held."""

    def __init__(self):
        self.talks, self.held = [], True

    def __call__(self, key, talk, _tokens, _compacting):
        def hold():
            if self.held:
                self.talks.append((key, [text for _, text in talk]))
            return self.held

        return hold

    @property
    def texts(self):
        return {text for _, talk in self.talks for text in talk}


@pytest.fixture
def saved():
    return Saved()


def watch(saved, *, window=200_000, **options):
    options.setdefault("count", len)
    return Conversations(READING, saved, rules=CompactionConfig(), window=window, **options)


def call(watched, talk, reply="ok", key="main", tokens=0):
    watched.began(talk[-1], key, talk)
    watched.ended(talk[-1], assistant(reply), tokens)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=25),
    st.sampled_from([1_024, 200_000]),
    st.sampled_from([(1, None), (16, 2)]),
)
def test_whatever_is_dropped_of_a_conversation_was_saved_before(steps, window, kind):
    saved, numbers = Saved(), count()
    watched = watch(saved, window=window, count=lambda talk: 60 * len(talk), talks=kind[0], enough=kind[1])
    talk, said = [], set()
    for dropped, others in steps:
        talk = talk[min(dropped, max(0, len(talk) - 3)) :]  # something that was asked is still there
        talk.append(user(f"question {next(numbers)}"))
        said.add(talk[-1][1])
        for other in range(others):
            call(watched, [user(f"title {other}")])
        call(watched, talk, f"answer {next(numbers)}")
        talk.append(assistant(f"answer {next(numbers)}"))
        assert said <= saved.texts | {text for _, text in talk}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_a_conversation_that_only_grows_is_saved_once_at_most(sizes):
    saved = Saved()
    watched, talk = watch(saved, window=1_024, count=lambda talk: 60 * len(talk)), []
    for number, size in enumerate(sizes):
        talk += [user(f"{number}.{at}") for at in range(size + 1)]
        call(watched, talk)
        talk.append(assistant("ok"))
    assert len(saved.talks) <= 1


def test_a_summary_begins_a_cycle_with_a_flush_of_its_own(saved):
    watched = watch(saved, window=1_024, count=lambda talk: 200 * len(talk))
    talk = [user("a"), assistant("b"), user("c")]
    call(watched, talk)
    call(watched, [user("summary"), user("c")], "d")
    assert [texts for _, texts in saved.talks] == [["a", "b", "c", "ok"]]
    call(watched, [user("summary"), user("c"), assistant("d"), user("e")])
    assert [texts for _, texts in saved.talks][1:] == [["summary", "c", "d", "e", "ok"]]


def test_words_that_are_said_again_bring_no_conversation_out_of_its_flush(saved):
    watched = watch(saved, window=1_024, count=lambda talk: 200 * len(talk))
    call(watched, [user("a"), assistant("b"), user("Go on.")])
    call(watched, [user("new"), assistant("newer"), user("Go on.")])
    assert "newer" in saved.texts


def test_where_no_turn_was_held_the_next_call_tries_again(saved):
    watched = watch(saved)
    saved.held = False
    call(watched, [user("a")], tokens=199_000)
    assert saved.talks == []
    saved.held = True
    call(watched, [user("a"), assistant("ok"), user("b")], tokens=199_000)
    assert saved.texts == {"a", "b", "ok"}


def test_a_flush_that_was_held_is_known_when_a_later_one_could_not_be(saved):
    watched = watch(saved)
    talk = [user(str(number)) for number in range(10)]
    call(watched, talk, tokens=199_000)
    saved.held = False
    call(watched, [user("new"), *talk[5:], user("newer")], tokens=199_000)
    saved.held = True
    call(watched, talk, tokens=199_000)
    assert len(saved.talks) == 1


@pytest.mark.parametrize("ends", [[True, False], [False, True]])
def test_of_flushes_that_overlap_the_one_that_was_held_is_known(ends):
    conversation = Conversation(READING)
    one, two = [user("a")], [user("b")]
    marks = [conversation.flush_begins(talk) for talk in (one, two)]
    assert all(conversation.had_its_flush(talk) for talk in (one, two))
    for mark, held in zip(marks, ends, strict=True):
        conversation.flush_ended(mark, held=held)
    assert [conversation.had_its_flush(talk) for talk in (one, two)] == ends


def test_a_flush_that_was_broken_off_is_tried_again(saved):
    def breaks_off(*_):
        raise KeyboardInterrupt

    watched = watch(lambda *_: breaks_off)
    with pytest.raises(KeyboardInterrupt):
        call(watched, [user("a")], tokens=199_000)
    watched._saving = saved
    call(watched, [user("a")], tokens=199_000)
    assert saved.texts == {"a", "ok"}


def test_a_call_that_is_refused_as_too_long_is_flushed_and_another_failure_is_not(saved):
    watched = watch(saved)
    watched.began(1, "main", [user("a")])
    watched.failed(1, RuntimeError("down"))
    assert saved.talks == []
    watched.began(2, "main", [user("b")])
    watched.failed(2, RuntimeError("prompt is too long"))
    watched.failed(2, RuntimeError("prompt is too long"))
    assert saved.talks == [("main", ["b"])]


def test_the_largest_count_of_a_call_is_what_it_took(saved):
    watched = watch(saved)
    watched.began(1, "main", [user("a")])
    for tokens in (5, 199_000, 7):
        watched.counted(1, tokens)
        watched.counted("unknown", tokens)
    watched.ended(1, None)
    assert saved.talks == [("main", ["a"])]


def test_a_prompt_is_a_call_under_way_where_it_shows_all_of_its_messages():
    watched, prompt = watch(Saved()), "user: How are you?\nassistant: Well.\nassistant:"
    watched.began(0, "main", [user("")])
    assert not watched.asks_for("main", prompt)
    watched.began(1, "main", [user("How are you? "), assistant("Well.")])
    assert watched.asks_for("main", prompt)
    assert not watched.asks_for("main", "user: How are you?")
    assert not watched.asks_for("other", prompt)
    watched.ended(1, None)
    assert not watched.asks_for("main", prompt)


def test_a_call_that_goes_on_with_one_takes_its_place_and_another_does_not():
    watched = watch(Saved())
    watched.began(1, "main", [user("Hi."), user("I am Anna.")])
    watched.began(2, "main", [user("Hi."), user("I am Bert.")])
    watched.began(3, "main", [user("Hi."), user("I am Anna."), user("Hello?")])
    watched.began(4, "other", [user("Hi."), user("I am Anna."), user("Hello?"), user("?")])
    assert list(watched.runs) == [2, 3, 4]


def test_of_many_calls_views_and_conversations_the_oldest_are_forgotten():
    watched = watch(Saved(), talks=2)
    for number in range(300):
        call(watched, [user(f"talk {number}")])
        watched.began(number, f"session {number}", [user("a")])
    assert [len(watched.runs), len(watched.known)] == [256, 256]
    watched = watch(Saved(), talks=2)
    for number in range(20):
        call(watched, [user(f"talk {number}")])
    assert [len(conversation.views) for conversation in watched.known.values()] == [8]


@pytest.mark.parametrize(("enough", "noticed"), [(None, False), (3, False), (2, True)])
def test_a_history_that_was_rewritten_at_its_end_is_known_by_enough_messages_alike(saved, enough, noticed):
    watched = watch(saved, enough=enough)
    call(watched, [user("a"), assistant("b"), user("c"), user("scratch"), user("paper")], "d")
    call(watched, [assistant("b"), user("c"), assistant("scratch, paper, d"), user("e")])
    assert ("a" in saved.texts) == noticed


def test_calls_go_on_while_a_flush_is_held_and_the_next_one_waits_for_it(saved):
    begun, may_end, order = threading.Event(), threading.Event(), []

    def saving(key, talk, tokens, compacting):
        def hold():
            order.append("begun")
            begun.set()
            assert may_end.wait(60)
            order.append("ended")
            return saved(key, talk, tokens, compacting)()

        return hold

    threads = []

    def run(work):
        threads.append(threading.Thread(target=work))
        threads[-1].start()

    watched = watch(saving, run=run)
    talk = [user("a"), assistant("b"), user("c")]
    call(watched, talk, tokens=199_000)
    assert begun.wait(60)
    call(watched, talk, tokens=199_000)
    talk += [assistant("ok"), user("d"), assistant("ok"), user("e")]
    call(watched, talk)
    call(watched, [*talk[6:], assistant("ok"), user("f")])
    assert len(threads) == 2
    may_end.set()
    for thread in threads:
        thread.join()
    assert order == ["begun", "ended"] * 2
    assert [texts for _, texts in saved.talks] == [["a", "b", "c", "ok"], ["d", "e"]]
