"""Compaction: the older part becomes a summary, no call is parted from its answer, and a log rebuilds the same list."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation import compaction
from openclaw_memory.conversation import messages as chat
from openclaw_memory.conversation.compaction import SUMMARY, compact, cut, load_conversation
from openclaw_memory.errors import InvalidInputError, NotFoundError
from openclaw_memory.workspace import Workspace


def say(role, text, **extra):
    return {"role": role, "content": text, **extra}


def user(text="ask"):
    return say("user", text)


def reply(text="reply"):
    return say("assistant", text)


def call(*ids):
    return say("assistant", [{"type": "toolCall", "id": one, "name": "read", "arguments": {}} for one in ids])


def result(of, text="result"):
    return say("toolResult", text, toolCallId=of, toolName="read")


def openai_call(*ids):
    calls = [{"id": one, "type": "function", "function": {"name": "read", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def openai_result(of):
    return {"role": "tool", "tool_call_id": of, "content": "result"}


@pytest.fixture
def one_each(monkeypatch):
    """Every message is one token."""
    monkeypatch.setattr(compaction, "estimate_tokens", len)


def keeping(tokens):
    return CompactionConfig(keep_recent_tokens=tokens)


def summarise(messages):
    return f"{len(messages)} messages: {' '.join(chat.get_text(one)[:40] for one in messages)}"


def refuse(_messages):
    raise RuntimeError("the summariser is ill")


@pytest.fixture
def log(tmp_path):
    return Workspace.open(tmp_path).open_log("s")


# When


def test_where_compactions_are_off_nothing_is_due_and_nothing_is_shortened(log):
    off = CompactionConfig(enabled=False)
    talk = [{"role": "user", "content": "word " * 50_000}, {"role": "assistant", "content": "Fine."}]
    done = compact(talk, refuse, rules=off, window=10_000, log=log)
    assert (done.messages, done.summary) == (talk, None)
    assert "compaction.enabled" in done.reason
    assert log.size == 0


# Where


def test_the_fewest_last_messages_that_have_the_tokens_are_kept():
    for keep, at in ((1, 3), (2, 2), (3, 1), (4, 0), (5, 0), (0, 3)):
        assert cut([user("ask?"), reply("fine"), user("ask?"), reply("fine")], keep) == at
    assert cut([user(), reply(), user("x" * 4_000)], 10) == 2, "however long it is, the last one is kept"


# What


@pytest.mark.usefixtures("one_each")
def test_the_older_messages_become_a_summary_and_the_recent_ones_stay():
    messages = [user("one"), reply("two"), user("three"), reply("four")]
    before = copy.deepcopy(messages)
    done = compact(messages, summarise, rules=keeping(2))
    assert done.summary == "2 messages: one two"
    assert done.messages == [say("user", SUMMARY.format(summary=done.summary), type="compaction"), *messages[2:]]
    assert (done.tokens_after, done.reason) == (3, "")
    assert messages == before


@pytest.mark.usefixtures("one_each")
def test_what_the_user_said_last_stays_however_much_was_done_since():
    messages = [user("old"), reply(), user("tidy up"), call("a"), result("a"), call("b"), result("b")]
    done = compact(messages, summarise, rules=keeping(2))
    assert done.messages[1:] == [user("tidy up"), call("b"), result("b")]
    again = compact([*done.messages, call("c"), result("c")], summarise, rules=keeping(2))
    assert again.messages[1:] == [user("tidy up"), call("c"), result("c")]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user()],
        [say("system", "kind"), user(), reply(), user()],
        [say("user", "a summary", type="compaction"), user(), reply(), user()],
        [say("user", "a summary", type="compaction"), user("x"), call("a"), result("a"), result("a")],
        [user(), user(), reply(), reply()],
    ],
    ids=[
        "none", "one", "all recent", "only a summary before", "only a summary and the question before",
        "as many as a summary and the question are",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("one_each")
def test_where_there_is_nothing_to_summarise_nothing_happens_and_it_is_said(messages):
    done = compact(messages, refuse, rules=keeping(3), before=refuse)
    assert done.messages == messages
    assert done.messages is not messages
    assert done.summary is None
    assert "compaction.keep_recent_tokens" in done.reason


def test_of_a_small_window_no_more_is_kept_than_fits():
    messages = [user("x" * 400) for _ in range(20)]  # 100 tokens each
    done = compact(messages, lambda _: "short", rules=CompactionConfig(), window=1_000)
    assert done.messages[1:] == messages[-4:], "750 are free, of which half are kept"
    pasted = [user(), user("x" * 40_000), reply("x" * 40)]
    assert compact(pasted, lambda _: "short", rules=CompactionConfig(), window=1_000).messages[2:] == pasted[2:]


PASTE = "Summarise this log.\n" + "x" * 400_000 + "\nWhat went wrong?"  # 100,000 tokens


def after_a_paste(content=PASTE):
    work = [message for one in "abcdef" for message in (call(one), result(one, "y" * 12_000))]
    return [user("hi"), reply("hello"), user(content), *work]


@pytest.mark.parametrize(
    "content", [PASTE, [{"type": "text", "text": PASTE}, {"type": "image", "data": "A"}]], ids=["text", "blocks"]
)
def test_of_a_question_that_leaves_no_room_the_beginning_and_the_end_stay(log, content):
    messages = [log.append_message(one) for one in after_a_paste(content)]
    done = compact(messages, lambda _: "short", rules=CompactionConfig(), window=100_000, log=log)
    assert done.messages[2:] == messages[3:]
    assert done.tokens_after < 22_000
    asked = done.messages[1]
    text = chat.get_text(asked)
    assert (text[:1_500], text[-1_500:]) == (PASTE[:1_500], PASTE[-1_500:])
    assert "397,037 of 400,037 characters of this message were cut here" in text
    assert isinstance(content, str) or asked["content"][1:] == content[1:]
    assert chat.is_from_user(asked)
    assert load_conversation(log) == done.messages
    # It is said again after the next compaction, however small the window is now.
    more = [log.append_message(one) for one in (call("g"), result("g", "z" * 800), call("h"), result("h", "z" * 800))]
    again = compact([*done.messages, *more], lambda _: "short", rules=CompactionConfig(), window=1_000, log=log)
    assert again.messages[1] == asked
    assert load_conversation(log) == again.messages


@pytest.mark.parametrize("asked", [user("x" * 200), user("x" * len(SUMMARY.format(summary="so " * 200)))])
def test_a_summary_that_makes_the_conversation_no_shorter_is_not_used(log, asked):
    messages = [log.append_message(one) for one in (asked, user("three"))]
    done = compact(messages, lambda _: "so " * 200, rules=keeping(1), log=log)
    assert (done.messages, done.summary) == (messages, None)
    assert "summary of 600 characters" in done.reason
    assert load_conversation(log) == messages
    assert [entry["type"] for entry in log.read_entries()] == ["session", "message", "message"]


@pytest.mark.usefixtures("one_each")
def test_a_summariser_that_fails_or_returns_no_text_is_heard_and_changes_nothing(log):
    messages = [log.append_message(one) for one in (user("one"), reply("two"), user("three"))]
    before = copy.deepcopy(messages)
    for answer in ("", "  \n", None, ["a list"]):
        with pytest.raises(InvalidInputError, match="summary of 2 messages"):
            compact(messages, lambda _, answer=answer: answer, rules=keeping(1), log=log)
    with pytest.raises(RuntimeError, match="ill"):
        compact(messages, refuse, rules=keeping(1), log=log)
    assert messages == before == load_conversation(log)


# On disk


@pytest.mark.usefixtures("one_each")
def test_the_entry_is_openclaws(log):
    messages = [log.append_message(one) for one in (user("one"), reply("two"), user("three"))]
    done = compact(messages, summarise, rules=keeping(1), log=log)
    *_, entry = log.read_entries()
    assert entry == {
        "type": "compaction",
        "id": done.messages[0]["id"],
        "parentId": messages[-1]["id"],
        "timestamp": entry["timestamp"],
        "firstKeptEntryId": messages[2]["id"],
        "tokensBefore": 3,
        "summary": "2 messages: one two",
    }
    assert load_conversation(log) == done.messages


@pytest.mark.usefixtures("one_each")
def test_messages_that_are_not_in_the_log_are_not_compacted_into_it(log):
    strange = [user("one"), reply("two"), user("three")]
    with pytest.raises(InvalidInputError, match="append_message"):
        compact(strange, refuse, rules=keeping(1), log=log, before=refuse)
    known = [log.append_message(one) for one in strange]
    with pytest.raises(InvalidInputError, match="'of elsewhere'"):
        compact([*known, {**user(), "id": "of elsewhere"}], refuse, rules=keeping(2), log=log)
    assert [entry["type"] for entry in log.read_entries()] == ["session", "message", "message", "message"]


@pytest.mark.usefixtures("one_each")
def test_another_branch_keeps_its_own_summaries(log):
    one, two, three = (log.append_message(message) for message in (user("one"), reply("two"), user("three")))
    other = log.append_entry("message", parentId=two["id"], message=user("another three"))
    done = compact([one, two, three], summarise, rules=keeping(1), log=log)
    assert load_conversation(log, done.messages[0]["id"]) == done.messages
    assert [chat.get_text(message) for message in load_conversation(log, other)] == ["one", "two", "another three"]
    with pytest.raises(NotFoundError, match="no entry 'x'"):
        load_conversation(log, "x")


@pytest.mark.parametrize(
    ("first", "summary"), [("gone", "lost"), (None, "lost"), (7, "lost"), ("c", "lost"), ("two", None)]
)
def test_a_compaction_without_its_first_kept_message_or_its_summary_does_not_count(log, first, summary):
    log.append_entry("message", id="one", message=user("one"))
    log.append_entry("message", id="two", message=reply("two"))
    messages = [{**user("one"), "id": "one"}, {**reply("two"), "id": "two"}]
    log.append_entry("compaction", id="c", firstKeptEntryId=first, tokensBefore=1, summary=summary)
    assert load_conversation(log) == messages


def test_entries_of_openclaw_are_read_in_both_shapes_and_custom_messages_with_them(log, tmp_path):
    lines = [
        {"type": "session", "id": "s"},
        {"type": "message", "id": "1", "parentId": None, "role": "user", "content": "flat"},
        {"type": "message", "id": "2", "parentId": "1", "message": {"role": "assistant", "content": "nested"}},
        {"type": "custom_message", "id": "3", "parentId": "2", "content": "It rains.", "hidden": True},
        {"type": "message", "role": "user", "content": "without an id"},
    ]
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rebuilt = load_conversation(log)
    assert [(one["role"], chat.get_text(one), one.get("id")) for one in rebuilt] == [
        ("user", "flat", "1"),
        ("assistant", "nested", "2"),
        ("user", "It rains.", "3"),
        ("user", "without an id", None),
    ]
    assert [chat.is_from_user(one) for one in rebuilt] == [True, False, False, True]


# Laws

IDS = st.sampled_from("abcd")
TEXTS = st.one_of(st.integers(1, 60), st.integers(600, 4_000)).map(lambda length: "x" * length)
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, TEXTS),
        st.builds(reply, TEXTS),
        st.builds(lambda ids: call(*ids), st.lists(IDS, min_size=1, max_size=3, unique=True)),
        st.builds(lambda ids: openai_call(*ids), st.lists(IDS, min_size=1, max_size=3, unique=True)),
        st.builds(result, IDS, TEXTS),
        st.builds(openai_result, IDS),
        st.builds(lambda text: say("system", text), TEXTS),
    ),
    max_size=20,
)


def pairs(messages):
    """The places of each call and of its answers; an answer is to the last call of its id."""
    callers = {}
    for at, message in enumerate(messages):
        if (of := chat.get_answered_call(message)) in callers:
            yield callers[of], at
        callers.update(dict.fromkeys(chat.get_call_ids(message), at))


@given(MESSAGES, st.integers(0, 200))
def test_what_is_summarised_and_what_is_kept_are_all_in_their_order(messages, keep):
    numbered = [{**message, "at": at} for at, message in enumerate(messages)]
    before = copy.deepcopy(numbered)
    done = compact(numbered, summarise, rules=keeping(keep))
    assert numbered == before
    counts = range(len(numbered) + 1)
    first_kept = next(at for at in counts if numbered[at:] == done.messages[len(done.messages) - len(numbered) + at :])
    assert all((caller < first_kept) == (answer < first_kept) for caller, answer in pairs(numbered))
    assert [one for one in done.messages if one["role"] == "system"] == [
        one for one in numbered if one["role"] == "system"
    ]
    asked = [one for one in numbered if chat.is_from_user(one)]
    assert not asked or asked[-1]["at"] in {one.get("at") for one in done.messages}, "shortened, if it is long"
    if done.summary is not None:
        assert done.tokens_after < chat.estimate_tokens(numbered)
        assert any(chat.get_text(one) or chat.get_call_ids(one) for one in numbered[first_kept:])


@given(
    st.lists(st.tuples(MESSAGES, st.sampled_from([None, 100, 400, 2_000])), min_size=1, max_size=4), st.integers(0, 60)
)
def test_a_log_rebuilds_what_the_model_saw_after_any_number_of_compactions(tmp_path_factory, parts, keep):
    log = Workspace.open(tmp_path_factory.mktemp("law")).open_log("s")
    messages = []
    for part, window in parts:
        messages = [*messages, *(log.append_message(message) for message in part)]
        done = compact(messages, lambda _: "short", rules=keeping(keep), window=window, log=log)
        assert done.summary is None or done.tokens_after < chat.estimate_tokens(messages)
        messages = done.messages
        assert load_conversation(log) == messages
