"""A LangGraph store has the memory's records below `records`: put there, a value is settled, and nothing is overwritten."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from chat_scripts import says, thread
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.tools import tool
from langchain_openclaw_memory.langgraph_store import OpenClawStore
from langchain_openclaw_memory.testing import make_call
from langgraph.store.base import PutOp

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.errors import ConflictError, InvalidInputError, PathNotAllowedError, PolicyError, RecordError

FACTS = ("records", "fact")


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return OpenClawStore(memory)


def set_clock(memory, days_ago):
    now = datetime.now(UTC)
    memory.records._clock = lambda: now - timedelta(days=days_ago)


def values(records):
    return [one.value for one in records]


# --- what is put is observed


def test_a_put_remembers_and_overwrites_no_record(store, memory):
    memory.records.remember("fact", "boat", "a blue sloop", confidence=0.9, sensitivity="medium")
    store.put(FACTS, "boat", {"value": "a red sloop", "confidence": 0.5})
    record = memory.records.get("fact", "boat")
    assert (record.value, record.version, record.sensitivity) == ("a blue sloop", 2, "medium")
    assert values(record.waiting) == ["a red sloop"]
    store.put(FACTS, "dock", {"value": ["east", 4]})
    assert memory.records.get("fact", "dock").value == ["east", 4]
    assert memory.records.list_problems() == []


def test_an_item_of_a_record_has_its_fields_and_what_waits(store, memory):
    store.put((*FACTS, "anna"), "boat", {"value": "a sloop", "confidence": 0.7, "sensitivity": "medium", "ttl": 600})
    memory.records.remember("fact", "boat", "a ketch", user_id="anna", confidence=0.4)
    record = memory.records.get("fact", "boat", user_id="anna")
    item = store.get((*FACTS, "anna"), "boat")
    assert (item.namespace, item.key) == ((*FACTS, "anna"), "boat")
    assert (item.created_at, item.updated_at) == (record.created_at, record.updated_at)
    shown = json.loads(json.dumps(item.value))
    assert datetime.fromisoformat(shown.pop("expires_at")) == record.expires_at
    (waiting,) = shown.pop("waiting")
    assert (waiting["value"], waiting["confidence"], waiting["source"]["kind"]) == ("a ketch", 0.4, "user")
    assert shown == record.to_dict()
    assert store.get(FACTS, "boat") is None, "that is everybody's"


def test_what_was_read_and_changed_is_judged_as_new(store, memory):
    store.put(FACTS, "boat", {"value": "a sloop"})
    value = store.get(FACTS, "boat").value
    store.put(FACTS, "boat", {**value, "value": "a ketch"})
    assert memory.records.get("fact", "boat").value == "a ketch", "not late, though its source was that of the sloop"
    with pytest.raises(ConflictError):
        store.put(FACTS, "boat", {**value, "value": "a barge"})
    assert memory.records.get("fact", "boat").value == "a ketch"


def test_a_confidence_that_comes_back_as_it_was_read_is_not_that_of_the_new_value(store, memory):
    memory.records.remember("fact", "boat", "a sloop", confidence=0.31)
    value = store.get(FACTS, "boat").value
    for confidence, expected in ((value["confidence"], False), (0.5, True)):
        store.put(FACTS, "dock", {"value": "east"})
        given = {**value, "value": f"a ketch {confidence}", "version": None, "confidence": confidence}
        store.put(FACTS, "boat", {name: one for name, one in given.items() if one is not None})
        record = memory.records.get("fact", "boat")
        put = next(one for one in (record, *record.waiting) if one.value == f"a ketch {confidence}")
        assert (put.confidence == pytest.approx(confidence)) is expected


def test_a_source_that_is_given_counts(store, memory):
    store.put(FACTS, "boat", {"value": "a sloop", "source": {"kind": "file", "ref": "harbour.md"}})
    assert memory.records.get("fact", "boat").source.ref == "harbour.md"
    source = {"kind": "user", "ref": "m1", "observed_at": "2020-01-01T00:00:00Z"}
    store.put(FACTS, "boat", {"value": "a ketch", "source": source})
    assert memory.records.get("fact", "boat").value == "a sloop", "what was observed before it is late"


def test_minutes_of_a_put_and_seconds_of_a_value_say_when_a_record_expires(memory):
    store = OpenClawStore(memory, ttl={"default_ttl": 5})
    store.put(FACTS, "a", {"value": 1}, ttl=1.5)
    store.put(FACTS, "b", {"value": 1, "ttl": 7200})
    store.put(FACTS, "c", {"value": 1, "ttl": None})
    store.put(FACTS, "d", {"value": 1})
    store.put(FACTS, "e", {"value": 1, "ttl": 7200}, ttl=1)
    store.put(FACTS, "f", {"value": 1}, ttl=None)
    assert [memory.records.get("fact", key).ttl for key in "abcdef"] == [90, 7200, None, 300, 60, 365 * 86_400]
    assert OpenClawStore(memory).sweep_ttl() == 0


def put(value=1, *, key="a", namespace=FACTS, **more):
    return PutOp(namespace, key, value if isinstance(value, dict) else {"value": value}, **more)


BAD_SOURCE = {"value": 1, "source": {"kind": "user", "ref": "m", "observed_at": "noon"}}
REFUSED = [
    (put(namespace=("records",)), r'\("records", type\)'), (put(namespace=(*FACTS, "anna", "more")), r'\("records", type\)'),
    (put(namespace=("records", "boats")), "not one of preference"), (put(key=" "), "key is"),
    (put({"text": "a sloop"}), "'value'"), (put({"value": 1, "sure": 0.9}), "'sure'"),
    (put({"value": 1, "key": "b"}), "key is 'b'"), (put({"value": 1, "user_id": "anna"}), "user_id is 'anna'"),
    (put({"value": 1, "source": "anna"}), "source is 'anna'"), (put(BAD_SOURCE), "source is"),
    (put(index=["value"]), "index="), (put(index=False), "index="), (put(ttl=float("inf")), "time to live"),
]  # fmt: skip


def test_what_is_no_observation_is_refused_and_nothing_is_written(store):
    for op, words in REFUSED:
        with pytest.raises(InvalidInputError, match=words):
            store.batch([PutOp(("users",), "good", {"n": 1}), put(key="good"), op])
        assert store.search(()) == []
    for field in ("confidence", "ttl", "sensitivity", "version"):
        with pytest.raises(InvalidInputError, match=field):
            store.put(FACTS, "a", {"value": 1, field: "much"})
    assert store.get(FACTS, "a") is None


# --- who says so


async def act(scripted, memory, session, store_call):
    """Have an agent of a session call a tool that calls the store."""

    @tool
    async def act(runtime: ToolRuntime) -> str:
        """Act."""
        await store_call(runtime.store)
        return "done"

    agent = create_agent(scripted(make_call("act"), "done"), [act], store=OpenClawStore(memory))
    await agent.ainvoke(says("go on"), thread(session))


async def test_an_agent_settles_no_value_by_repeating_itself(memory, scripted):
    set_clock(memory, 30)
    memory.records.remember("fact", "boat", "a sloop")
    set_clock(memory, 0)
    for _ in range(3):
        await act(scripted, memory, "agent:main:s1", lambda store: store.aput(FACTS, "boat", {"value": "a ketch"}))
    record = memory.records.get("fact", "boat")
    assert record.value == "a sloop"
    assert [(one.source.kind, one.source.ref) for one in record.waiting] == [("tool", "agent:main:s1")]
    await act(scripted, memory, "agent:main:s2", lambda store: store.aput(FACTS, "boat", {"value": "a ketch"}))
    assert memory.records.get("fact", "boat").value == "a ketch", "two sessions say so"


async def test_a_group_sees_and_changes_no_record(memory, scripted):
    memory.records.remember("fact", "boat", "a sloop")
    seen = []

    async def look(store):
        await store.aput(("users",), "anna", {"text": "Anna has a boat."})
        seen.extend([await store.aget(FACTS, "boat"), await store.alist_namespaces()])
        seen.append([item.key for item in await store.asearch(())])
        seen.append([item.key for item in await store.asearch(FACTS, query="boat")])
        for value in ({"value": "a ketch"}, None):
            with pytest.raises(PathNotAllowedError, match="private"):
                await store.abatch([PutOp(FACTS, "boat", value), PutOp(("users",), "bo", {"text": "Bo has none."})])

    await act(scripted, memory, "agent:main:telegram:group:42", look)
    assert seen == [None, [("users",)], ["anna"], []]
    assert memory.records.get("fact", "boat").version == 1


# --- what is there is found, and forgotten


def test_records_are_found_with_items_by_prefix_filter_and_query(store, memory):
    store.put(("users",), "anna", {"text": "Anna has a garden."})
    memory.records.remember("fact", "boat.name", "Kestrel")
    memory.records.remember("fact", "boat.length", 12)
    memory.records.remember("fact", "boat.name", "Heron", user_id="bo")
    memory.records.remember("preference", "tea", "green")

    def found(*prefix, **how):
        return [(item.namespace, item.key) for item in store.search(prefix, **how)]

    every = [(*FACTS,), (*FACTS, "bo"), ("records", "preference"), ("users",)]
    assert store.list_namespaces() == every
    assert store.list_namespaces(prefix=["records"], max_depth=2) == [FACTS, ("records", "preference")]
    assert {namespace for namespace, _ in found()} == {*every}
    assert found("records", "fact", "bo") == [((*FACTS, "bo"), "boat.name")]
    assert (len(found("records")), len(found(*FACTS))) == (4, 3)
    assert found(filter={"value": {"$gt": 10}}) == [(FACTS, "boat.length")]
    (first, *_) = store.search(("records",), query="Kestrel")
    assert (first.key, first.value["value"], first.score > 0) == ("boat.name", "Kestrel", True)
    for key in ("boat.name", "boat.name", "boat.length", " "):
        store.delete(FACTS, key)  # to delete is to forget
    assert sorted(values(memory.records)) == ["Heron", "green"]


def test_what_has_expired_or_is_never_to_be_stored_is_not_there(notes):
    rules = (PolicyRule("health", "never-store", key="health.*"),)
    with Memory.open(notes, embedder=None) as memory:
        memory.records.remember("fact", "health.knee", "bad")
        set_clock(memory, 3)
        memory.records.remember("reminder", "ferry", "at noon", ttl=86_400)
    with Memory.open(notes, embedder=None, config=MemoryConfig(policies=rules)) as memory:
        store = OpenClawStore(memory)
        assert store.search(()) == []
        assert store.list_namespaces() == []
        assert [store.get(FACTS, "health.knee"), store.get(("records", "reminder"), "ferry")] == [None, None]
        with pytest.raises(PolicyError, match="health"):
            store.put(FACTS, "health.hip", {"value": "well"})
        store.delete(FACTS, "health.knee")
        assert [one.key for one in memory.records.list_all()] == ["ferry"]


def test_a_value_that_is_masked_is_not_lost_by_putting_back_what_was_read(notes):
    rules = (PolicyRule("pay", "masked", pattern=r"\w+one euros"),)
    with Memory.open(notes, embedder=None, config=MemoryConfig(policies=rules)) as memory:
        store = OpenClawStore(memory)
        store.put(FACTS, "pay.bo", {"value": "fiftyone euros"})
        value = store.get(FACTS, "pay.bo").value
        assert "fiftyone" not in str(value)
        with pytest.raises(InvalidInputError, match="masked"):
            store.put(FACTS, "pay.bo", {**value, "sensitivity": "medium"})
        assert values(memory.records.list_all()) == ["fiftyone euros"]


def test_a_damaged_record_is_reported_and_can_be_deleted(store, memory):
    memory.records.remember("fact", "boat", "a sloop")
    file = memory.workspace.root / "memory" / "records" / "fact" / "boat.md"
    file.write_text(file.read_text(encoding="utf-8").replace('"fact"', '"boat"').replace("type: fact", "type: boat"))
    assert memory.records.list_problems()
    with pytest.raises(RecordError, match="type"):
        store.get(FACTS, "boat")
    assert store.search(FACTS) == []
    store.delete(FACTS, "boat")
    assert not file.exists()
