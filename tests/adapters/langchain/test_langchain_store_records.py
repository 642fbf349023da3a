"""A LangGraph store has the memory's records below `records`: put there, a value is settled, and nothing is overwritten."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openclaw_memory.langgraph_store import OpenClawStore
from langgraph.store.base import PutOp

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import PoliciesConfig, PolicyRule
from openclaw_memory.errors import ConflictError, InvalidInputError, PathNotAllowedError, PolicyError, RecordError
from openclaw_memory.records import RecordSource

FACTS = ("records", "fact")
GROUP = "agent:main:telegram:group:42"


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return OpenClawStore(memory)


def plain_item(memory, namespace, key, path):
    """An item as the store wrote it below `records` while it did not know them."""
    moment = "2026-01-01T00:00:00+00:00"
    fields = {"namespace": [*namespace], "key": key, "value": {"text": None}, "text_at": ["text"]}
    memory.documents.files.write(path, {**fields, "created_at": moment, "updated_at": moment}, "An old item.")


def age(memory, days):
    """Let all that is remembered have been there for some days."""
    now = datetime.now(UTC)
    memory.records._clock = lambda: now - timedelta(days=days)


def today(memory):
    memory.records._clock = lambda: datetime.now(UTC)


# What is put is observed


def test_a_put_remembers_and_overwrites_no_record(store, memory):
    memory.records.remember("fact", "boat", "a blue sloop", confidence=0.9, sensitivity="medium")
    store.put(FACTS, "boat", {"value": "a red sloop", "confidence": 0.5})
    record = memory.records.get("fact", "boat")
    assert (record.value, record.version, record.sensitivity) == ("a blue sloop", 2, "medium")
    assert [one.value for one in record.waiting] == ["a red sloop"]
    store.put(FACTS, "dock", {"value": ["east", 4]})
    assert memory.records.get("fact", "dock").value == ["east", 4]
    assert memory.records.problems() == []


def test_an_item_of_a_record_has_its_fields_and_what_waits(store, memory):
    store.put((*FACTS, "anna"), "boat", {"value": "a sloop", "confidence": 0.7, "sensitivity": "medium", "ttl": 600})
    memory.records.remember("fact", "boat", "a ketch", user_id="anna", confidence=0.4)
    record = memory.records.get("fact", "boat", user_id="anna")
    item = store.get((*FACTS, "anna"), "boat")
    assert (item.namespace, item.key) == ((*FACTS, "anna"), "boat")
    assert (item.created_at, item.updated_at) == (record.created_at, record.updated_at)
    said = dict(item.value)
    assert datetime.fromisoformat(said.pop("expires_at")) == record.expires_at
    (waiting,) = said.pop("waiting")
    assert (waiting["value"], waiting["confidence"], waiting["source"]["kind"]) == ("a ketch", 0.4, "user")
    assert said == record.to_dict()
    assert json.loads(json.dumps(item.value)) == item.value
    assert store.get(FACTS, "boat") is None, "that is everybody's"


def test_what_was_read_and_changed_is_judged_as_new(store, memory):
    store.put(FACTS, "boat", {"value": "a sloop"})
    value = store.get(FACTS, "boat").value
    store.put(FACTS, "boat", {**value, "value": "a ketch"})
    assert memory.records.get("fact", "boat").value == "a ketch", "not late, though its source was that of the sloop"
    with pytest.raises(ConflictError):
        store.put(FACTS, "boat", {**value, "value": "a barge"})
    assert memory.records.get("fact", "boat").value == "a ketch"


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


REFUSED = [
    (PutOp(("records",), "a", {"value": 1}), r'\("records", type\)'),
    (PutOp(("records", "fact", "anna", "more"), "a", {"value": 1}), r'\("records", type\)'),
    (PutOp(("records", "boats"), "a", {"value": 1}), "not one of preference"),
    (PutOp(FACTS, " ", {"value": 1}), "key is"),
    (PutOp(FACTS, "a", {"text": "a sloop"}), "'value'"),
    (PutOp(FACTS, "a", {"value": 1, "sure": 0.9}), "'sure'"),
    (PutOp(FACTS, "a", {"value": 1, "key": "b"}), "key is 'b'"),
    (PutOp(FACTS, "a", {"value": 1, "user_id": "anna"}), "user_id is 'anna'"),
    (PutOp(FACTS, "a", {"value": 1, "source": "anna"}), "source is 'anna'"),
    (PutOp(FACTS, "a", {"value": 1, "source": {"kind": "user", "ref": "m", "observed_at": "noon"}}), "source is"),
    (PutOp(FACTS, "a", {"value": 1}, index=["value"]), "index="),
    (PutOp(FACTS, "a", {"value": 1}, index=False), "index="),
    (PutOp(FACTS, "a", {"value": 1}, ttl=float("inf")), "time to live"),
]


@pytest.mark.parametrize(("op", "says"), REFUSED)
def test_what_is_no_observation_is_refused_and_nothing_is_written(store, op, says):
    with pytest.raises(InvalidInputError, match=says):
        store.batch([PutOp(("users",), "good", {"n": 1}), PutOp(FACTS, "good", {"value": 1}), op])
    assert store.search(()) == []


# Who says so


@pytest.mark.parametrize("field", ["confidence", "ttl", "sensitivity", "version"])
def test_a_field_that_is_wrong_is_refused(store, field):
    with pytest.raises(InvalidInputError, match=field):
        store.put(FACTS, "a", {"value": 1, field: "much"})
    assert store.get(FACTS, "a") is None


def calling(store_call):
    """An agent that calls a tool, and says so to the memory of its store."""

    @tool
    def act(runtime: ToolRuntime) -> str:
        """Act."""
        store_call(runtime.store)
        return "done"

    @tool
    async def act_later(runtime: ToolRuntime) -> str:
        """Act."""
        await runtime.store.aput(FACTS, "boat", {"value": "a ketch"})
        return "done"

    return [act, act_later]


def run(scripted, memory, store_call, session, name="act"):
    replies = [AIMessage("", tool_calls=[{"name": name, "args": {}, "id": "1"}]), AIMessage("done")]
    agent = create_agent(scripted(*replies), calling(store_call), store=OpenClawStore(memory))
    return agent, {"configurable": {"thread_id": session}}


ASKED = {"messages": [("user", "go on")]}


def say(scripted, memory, session, value="a ketch"):
    agent, config = run(scripted, memory, lambda store: store.put(FACTS, "boat", {"value": value}), session)
    agent.invoke(ASKED, config)


def test_an_agent_settles_no_value_by_repeating_itself(memory, scripted):
    age(memory, 30)
    memory.records.remember("fact", "boat", "a sloop")
    today(memory)
    for _ in range(3):
        say(scripted, memory, "agent:main:s1")
    record = memory.records.get("fact", "boat")
    assert (record.value, [one.source.ref for one in record.waiting]) == ("a sloop", ["agent:main:s1"])
    say(scripted, memory, "agent:main:s2")
    assert memory.records.get("fact", "boat").value == "a ketch", "two sessions say so"


async def test_the_session_is_the_source_without_blocking(memory, scripted):
    agent, config = run(scripted, memory, None, "agent:main:s7", "act_later")
    await agent.ainvoke(ASKED, config)
    (item,) = await OpenClawStore(memory).asearch(FACTS)
    assert (await OpenClawStore(memory).aget(FACTS, "boat")).value == item.value
    source = memory.records.get("fact", "boat").source
    assert (source.kind, source.ref) == ("tool", "agent:main:s7")


def test_a_group_sees_and_changes_no_record(memory, scripted):
    memory.records.remember("fact", "boat", "a sloop")
    plain_item(memory, FACTS, "old", "memory/records/fact/old.md")
    seen = []

    def look(store):
        store.put(("users",), "anna", {"text": "Anna has a boat."})
        seen.extend([store.get(FACTS, "boat"), store.get(FACTS, "old"), store.list_namespaces()])
        seen.append([item.key for item in store.search(())])
        seen.append([item.key for item in store.search(FACTS, query="boat")])
        for value in ({"value": "a ketch"}, None):
            with pytest.raises(PathNotAllowedError, match="private"):
                store.batch([PutOp(FACTS, "boat", value), PutOp(("users",), "bo", {"text": "Bo has none."})])

    agent, config = run(scripted, memory, look, GROUP)
    agent.invoke(ASKED, config)
    assert seen == [None, None, [("users",)], ["anna"], []]
    assert memory.records.get("fact", "boat").version == 1


# What is there is found, and forgotten


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
    assert len(found("records")) == 4
    assert len(found(*FACTS)) == 3
    assert found(filter={"value": {"$gt": 10}}) == [(FACTS, "boat.length")]
    (first, *_) = store.search(("records",), query="Kestrel")
    assert (first.key, first.value["value"]) == ("boat.name", "Kestrel")
    assert first.score > 0


def test_what_has_expired_or_is_never_to_be_stored_is_not_there(notes):
    rules = PoliciesConfig(rules=(PolicyRule("health", "never-store", key="health.*"),))
    with Memory.open(notes, embedder=None) as memory:
        memory.records.remember("fact", "health.knee", "bad")
        age(memory, 3)
        memory.records.remember("reminder", "ferry", "at noon", ttl=86_400)
    with Memory.open(notes, embedder=None, config=MemoryConfig(policies=rules)) as memory:
        store = OpenClawStore(memory)
        assert store.search(()) == []
        assert store.list_namespaces() == []
        assert [store.get(FACTS, "health.knee"), store.get(("records", "reminder"), "ferry")] == [None, None]
        with pytest.raises(PolicyError, match="health"):
            store.put(FACTS, "health.hip", {"value": "well"})
        store.delete(FACTS, "health.knee")
        assert [one.key for one in memory.records.everything()] == ["ferry"]


def test_a_value_that_is_masked_is_not_lost_by_putting_back_what_was_read(notes):
    rules = PoliciesConfig(rules=(PolicyRule("pay", "masked", pattern=r"\w+one euros"),))
    with Memory.open(notes, embedder=None, config=MemoryConfig(policies=rules)) as memory:
        store = OpenClawStore(memory)
        store.put(FACTS, "pay.bo", {"value": "fiftyone euros"})
        store.put(FACTS, "pay.bo", {"value": "fiftyone euros"})
        value = store.get(FACTS, "pay.bo").value
        assert "fiftyone" not in str(value)
        with pytest.raises(InvalidInputError, match="masked"):
            store.put(FACTS, "pay.bo", {**value, "sensitivity": "medium"})
        assert [one.value for one in memory.records.everything()] == ["fiftyone euros"]


def test_to_delete_is_to_forget(store, memory):
    memory.records.remember("fact", "boat.name", "Kestrel")
    memory.records.remember("fact", "boat.name", "Heron", user_id="bo")
    store.delete(FACTS, "boat.name")
    store.delete(FACTS, "boat.name")
    store.delete(FACTS, " ")
    assert [record.value for record in memory.records] == ["Heron"]


def test_a_read_leaves_the_file_of_a_record_as_it_is(memory):
    store = OpenClawStore(memory, ttl={"refresh_on_read": True})
    memory.records.remember("fact", "boat", "a sloop", ttl=60)
    file = memory.workspace.root / "memory" / "records" / "fact" / "boat.md"
    age_of_file = datetime.now(UTC).timestamp() - 3000
    os.utime(file, (age_of_file, age_of_file))
    store.search(())
    store.get(FACTS, "boat")
    assert file.stat().st_mtime == pytest.approx(age_of_file)


def test_a_damaged_record_is_reported_and_can_be_deleted(store, memory):
    memory.records.remember("fact", "boat", "a sloop")
    file = memory.workspace.root / "memory" / "records" / "fact" / "boat.md"
    file.write_text(file.read_text(encoding="utf-8").replace('"fact"', '"boat"').replace("type: fact", "type: boat"))
    assert memory.records.problems()
    with pytest.raises(RecordError, match="type"):
        store.get(FACTS, "boat")
    assert store.search(FACTS) == []
    store.delete(FACTS, "boat")
    assert not file.exists()


# Items of an earlier time


OLD = [
    (FACTS, "boat", "memory/records/fact/boat.md"),
    (("records",), "boat", "memory/records/boat.md"),
    (("records", "boats", "a", "b"), "boat", "memory/records/boats/a/b/boat.md"),
]


@pytest.mark.parametrize(("namespace", "key", "path"), OLD)
def test_items_that_were_put_there_before_can_be_read_and_deleted(store, memory, namespace, key, path):
    plain_item(memory, namespace, key, path)
    assert store.get(namespace, key).value == {"text": "An old item."}
    assert [item.namespace for item in store.search(("records",))] == [namespace]
    assert store.list_namespaces() == [namespace]
    with pytest.raises(InvalidInputError, match=r"delete it first|\(\"records\", type\)"):
        store.put(namespace, key, {"value": "a sloop"})
    store.delete(namespace, key)
    assert store.get(namespace, key) is None
    assert not (memory.workspace.root / path).exists()


def test_what_waits_is_confirmed_by_no_put(store, memory):
    memory.records.remember("fact", "billing.card", "none", source=RecordSource("user", "m1", datetime.now(UTC)))
    for session in range(3):
        source = {"kind": "user", "ref": f"m{session + 2}"}
        store.put(FACTS, "billing.card", {"value": "any", "source": source, "confidence": 1.0, "waiting": []})
    assert memory.records.get("fact", "billing.card").value == "none"
    assert len(store.get(FACTS, "billing.card").value["waiting"]) == 3
