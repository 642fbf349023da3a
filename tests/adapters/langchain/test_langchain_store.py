"""A LangGraph store over Markdown: its files are for people to read and correct, and searches find items by meaning."""

import json
import re
import shutil
import time
from datetime import UTC, datetime

import pytest
from langchain_openclaw_memory import store as store_module
from langchain_openclaw_memory.store import OpenClawStore
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchItem, SearchOp

from openclaw_memory import Memory, errors
from openclaw_memory.indexing.service import IndexService

USERS = ("users", "anna")


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return OpenClawStore(memory)


@pytest.fixture
def anna(memory):
    """The folder of Anna's items."""
    return memory.workspace.root / "memory/users/anna"


@pytest.fixture
def edit(anna, memory):
    """Changes a file of Anna's, as a person does in an editor."""

    def edit(key, change):
        (anna / f"{key}.md").write_bytes(change((anna / f"{key}.md").read_text(encoding="utf-8")).encode())
        memory.sync()

    return edit


def files(memory):
    return sorted(
        str(path.relative_to(memory.workspace.root)) for path in memory.workspace.root.rglob("memory/*/**/*.md")
    )


def body(path):
    return path.read_text(encoding="utf-8").split("\n---\n", 1)[1].removesuffix("\n")


def keys(items):
    return [item.key for item in items]


# --- what is put is there again


def test_times_are_those_of_the_first_and_the_last_put(store):
    before = datetime.now(UTC)
    store.put(USERS, "prefs", {"n": 1})
    first = store.get(USERS, "prefs")
    store.put(USERS, "prefs", {"n": 2})
    second = store.get(USERS, "prefs")
    assert before <= first.created_at == first.updated_at <= second.updated_at <= datetime.now(UTC)
    assert second.created_at == first.created_at < second.updated_at
    store.delete(USERS, "prefs")
    store.put(USERS, "prefs", {"n": 3})
    assert store.get(USERS, "prefs").created_at > second.updated_at


ODD_NAMES = [
    "Anna", "anna", "ANNA", "con", "lpt1", "-", " ", "a b", "a ", "../../etc/passwd", "/absolute", "c:\\windows", "~", "%41",
    "*", "ünï", "u\u0308ni\u0308", "日本語のキー", "🦄" * 100, "x" * 5000, "line\nfeed", "- --", "notes", "null",
    "a~0123456789abcdef",
]  # fmt: skip


def test_any_names_are_safe_and_distinct_file_names(store, memory):
    namespaces = [(name, "of") for name in ODD_NAMES if "." not in name]
    store.batch([PutOp(namespace, "k", {"name": namespace[0]}) for namespace in namespaces])
    store.batch([PutOp(("odd",), name, {"name": name}) for name in ["", ".", *ODD_NAMES]])
    for namespace in namespaces:
        assert [item.value for item in store.search(namespace[:1])] == [{"name": namespace[0]}]
    assert keys(store.search(("odd",), limit=100)) == ["", ".", *ODD_NAMES]
    assert all(store.get(("odd",), name).value == {"name": name} for name in ODD_NAMES)
    assert set(store.list_namespaces()) == {*namespaces, ("odd",)}
    assert len({path.casefold() for path in files(memory)}) == len(namespaces) + len(ODD_NAMES) + 2
    for path in files(memory):
        assert all(len(part.encode()) <= 255 and not part.startswith((".", " ")) for part in path.split("/"))
        assert not path.startswith("memory/notes/"), "what vector stores add lies there"


def test_a_namespace_called_records_is_like_any_other(store, memory):
    memory.records.remember("fact", "boat", "a blue sloop")
    for value in ({"value": "a red sloop"}, {"value": "a ketch", "confidence": 0.1}):
        store.put(("records", "fact"), "boat", value)
        assert store.get(("records", "fact"), "boat").value == value
    assert keys(store.search(("records",))) == ["boat"]
    store.delete(("records", "fact"), "boat")
    assert (memory.records.get("fact", "boat").value, store.search(())) == ("a blue sloop", [])


SECRET = "ghp_" + "a1B2" * 9
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
GOOD = PutOp(USERS, "good", {"n": 1})


def deep():
    value = {}
    for _ in range(3000):
        value = {"a": value}
    return value


WRONG = [
    *((PutOp(USERS, "bad", value), ".") for value in (
        {"n": float("nan")}, {1: "a"}, {"s": {1, 2}}, {"s": "\ud800"}, {"a": [{"b": object()}]}
    )),
    (PutOp(USERS, SECRET, {"n": 1}), "secret"),
    *((PutOp(USERS, "bad", value), "deeper than 64") for value in (deep(), {"a": json.loads("[" * 65 + "]" * 65)})),
    *((PutOp(USERS, "bad", {"n": 1}, ttl=ttl), "minutes") for ttl in (0, -1, "ten")),
    (PutOp(USERS, "bad", ["text"]), "a value must be a dict"),
    (PutOp(USERS, "bad", {"text": "b"}, index="text"), r"such as \['text'\]"),
    ("get", "not an operation"), (SearchOp(USERS, filter={"n": {"$near": 1}}), r"\$near"),
    (PutOp((), "k", {}), "empty"), (PutOp(("a.b",), "k", {}), "."), (GetOp(("",), "k"), "."), (SearchOp(("a.b",)), "."),
]  # fmt: skip


@pytest.mark.parametrize("value", [{"text": f"The token is {SECRET}"}, {"a": [{"jwt": TOKEN}], "text": "The token"}])
def test_a_secret_is_returned_as_it_was_put_and_masked_in_searches(store, value):
    store.put(USERS, "token", value)
    assert store.get(USERS, "token").value == value
    found = store.search(USERS, query="token")
    assert (len(found), SECRET in repr(found), TOKEN in repr(found)) == (1, False, False)
    store.put(USERS, "token", found[0].value)
    assert store.get(USERS, "token").value == value


def test_what_is_wrong_is_refused_and_nothing_of_the_batch_is_written(store, memory):
    for wrong, words in WRONG:
        with pytest.raises(
            (errors.InvalidInputError, InvalidNamespaceError, errors.QueryError), match=words
        ) as refused:
            store.batch([GOOD, wrong])
        assert SECRET not in str(refused.value)
        assert files(memory) == []


def test_a_store_says_what_it_is_made_with(memory):
    for make, words in (
        (lambda: OpenClawStore(memory, fields="text"), r"give a list of paths, such as \['text'\]"),
        (lambda: OpenClawStore(memory, ttl={"default": 5}), "default_ttl"),
        (lambda: OpenClawStore("notes"), r"Memory\.open\(folder\)"),
    ):
        with pytest.raises((errors.ConfigError, TypeError), match=words):
            make()


def test_invalid_namespaces_are_refused(store, memory):
    for namespace in (("",), ("a.b",), ("langgraph",), ("a", 3), ("nul\0",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"n": 1})
    with pytest.raises(errors.OpenClawMemoryError):  # too deep for the disk
        store.put(("x" * 80,) * 100, "a", {"n": 1})
    assert store.search(()) == []
    assert files(memory) == []


async def test_the_asynchronous_batch_does_the_same(store):
    ops = [PutOp(USERS, "a", {"n": 1}), PutOp(USERS, "a", {"n": 2}), GetOp(USERS, "a")]
    assert await store.abatch(op for op in ops) == [None, None, None]
    assert (await store.aget(USERS, "a")).value == {"n": 2}
    await store.aput(USERS, "b", {"n": 3})
    assert keys(await store.asearch(("users",), filter={"$or": [{"n": {"$gt": 2}}, {"n": {"$in": ["x"]}}]})) == ["b"]
    assert await store.alist_namespaces(prefix=("*",), suffix=("anna",), max_depth=1) == [("users",)]
    await store.adelete(USERS, "b")
    assert await store.aget(USERS, "b") is None


def test_what_is_put_and_what_is_returned_are_the_callers(store):
    value = {"tags": ["x"]}
    store.put(USERS, "a", {"tags": ("x",)})
    assert store.get(USERS, "a").value == value, "a tuple is a list"
    store.put(USERS, "a", value)
    value["tags"].append("mine")
    for item in (store.get(USERS, "a"), store.search(USERS)[0]):
        item.value["tags"].append("mine")
    assert store.search(USERS)[0].value == store.get(USERS, "a").value == {"tags": ["x"]}


# --- for a time


@pytest.fixture
def later(monkeypatch):
    """A function that lets minutes pass."""
    passed = [0.0]
    monkeypatch.setattr(store_module, "_now", lambda: time.time() + 60 * passed[0])

    def wait(minutes):
        passed[0] += minutes

    return wait


def test_an_item_with_a_time_to_live_is_gone_after_it(store, memory, later):
    store.put(USERS, "short", {"text": "Anna is on the train."}, ttl=10)
    store.put(USERS, "long", {"text": "Anna likes trains."})
    first = store.get(USERS, "short", refresh_ttl=False)
    later(11)
    assert store.get(USERS, "short") is None
    assert keys(store.search(USERS)) == keys(store.search(USERS, query="train")) == ["long"]
    assert files(memory) == ["memory/users/anna/long.md", "memory/users/anna/short.md"]
    assert [store.sweep_ttl(), store.sweep_ttl()] == [1, 0]
    assert files(memory) == ["memory/users/anna/long.md"]
    store.put(USERS, "short", {"n": 1})
    assert store.get(USERS, "short").created_at > first.created_at, "what had expired is new"


@pytest.mark.parametrize("reads", ["get", "search"])
def test_a_read_begins_the_time_again_unless_it_is_not_to(store, later, reads):
    def read(**how):
        return store.get(USERS, "a", **how) if reads == "get" else store.search(USERS, **how)

    store.put(USERS, "a", {"n": 1}, ttl=10)
    later(6)
    assert read()
    later(6)
    assert read(refresh_ttl=False)
    later(6)
    assert not read()


def test_the_settings_of_the_store_count_where_a_call_says_nothing(memory, later):
    ttl = {"default_ttl": 10, "refresh_on_read": False, "sweep_interval_minutes": 0}
    store = OpenClawStore(memory, ttl=ttl)
    store.put(USERS, "a", {"n": 1})
    store.put(USERS, "forever", {"n": 1}, ttl=None)
    later(6)
    assert store.get(USERS, "a")
    later(6)
    assert store.get(USERS, "a") is None
    store.put(USERS, "b", {"n": 2}, ttl=None)
    assert files(memory) == ["memory/users/anna/b.md", "memory/users/anna/forever.md"], "a write sweeps"


def test_a_sweep_leaves_records_and_notes_whatever_their_ttl_says(store, memory, later):
    memory.records.remember("reminder", "ferry", "at noon", ttl=86_400)
    note = memory.workspace.root / "memory" / "plans" / "a.md"
    note.parent.mkdir()
    note.write_text("---\nttl: 1\n---\nAnna's own words.\n", encoding="utf-8")
    store.put(USERS, "short", {"n": 1}, ttl=10)
    later(100 * 1_440)
    assert store.sweep_ttl() == 1
    assert files(memory) == ["memory/plans/a.md", "memory/records/reminder/ferry.md"]


# --- search by meaning


def test_a_namespace_among_many_others_is_found_first_with_scores(store):
    store.batch([PutOp(("users", f"u{at}"), "ferry", {"text": f"The ferry leaves at {at}."}) for at in range(200)])
    store.put(USERS, "boat", {"text": "A boat lies in the harbour."})
    store.put(USERS, "late", {"text": "The last ferry leaves at ten."})
    for _ in range(5):  # from the fourth search on the index is kept in memory
        (found,) = store.search(USERS, query="When does the ferry leave?", limit=1)
        assert (found.key, found.score > 0) == ("late", True)


@pytest.fixture
def people(store):
    texts = {
        "boiler": "The boiler is serviced each October by Van Dam.",
        "train": "Anna prefers trains to planes.",
        "key": "The spare key of the flat is with Mrs. Groen.",
    }
    store.batch([PutOp(USERS, key, {"text": text, "kind": key[0]}, index=["text"]) for key, text in texts.items()])
    store.put(("users", "ben"), "train", {"text": "Ben takes the train to work.", "kind": "t"}, index=["text"])
    return store


def test_a_query_ranks_the_items_that_it_finds_before_the_others_within_namespace_and_filter(people):
    found = people.search(USERS, query="who has the spare key?")
    assert sorted(keys(found)) == ["boiler", "key", "train"]
    assert isinstance(found[0], SearchItem)
    assert (found[0].key, 0 < found[0].score <= 1) == ("key", True)
    assert [item.score for item in found if item.score is None] == [None, None]
    assert {item.namespace for item in people.search(("users", "ben"), query="train")} == {("users", "ben")}
    assert keys(people.search(USERS, query="spare key", filter={"kind": "t"})) == ["train"]
    assert people.search(("users",), query="train to work")[0].namespace == ("users", "ben")


def test_pages_of_a_query_are_parts_of_one_list(people):
    whole = people.search((), query="Anna's train")
    pages = [people.search((), query="Anna's train", limit=1, offset=number) for number in range(5)]
    assert [keys(page) for page in pages] == [*([item.key] for item in whole), []]
    assert people.search((), query="Anna's train", limit=0) == []
    assert {item.score for item in people.search(())} == {None}, "without a query nothing is scored"


def test_notes_of_people_are_not_items_and_items_are_found_by_the_memory_itself(people, memory):
    found = people.search((), query="gauges of the GEO-1000 model")
    assert {item.namespace for item in found} == {USERS, ("users", "ben")}
    assert ("household",) not in people.list_namespaces()
    memory.sync()
    assert memory.search("spare key of the flat")[0].path == "memory/users/anna/key.md"


@pytest.mark.parametrize(
    ("index", "shown"),
    [
        (None, "- title: Trip\n- parts.text: By train.\n- parts.text: By boat.\n- days: 3"),
        (False, ""),
        (["title"], "Trip"),
        (["parts[-1].text", "title"], "## parts[-1].text\n\nBy boat.\n\n## title\n\nTrip"),
        (["days"], "## days\n\n3"),
        (["nothing"], ""),
    ],
)
def test_the_body_shows_what_can_be_found(store, anna, index, shown):
    value = {"title": "Trip", "parts": [{"text": "By train."}, {"text": "By boat."}], "days": 3, "no": None}
    store.put(USERS, "trip", value, index=index)
    assert body(anna / "trip.md") == shown
    assert store.get(USERS, "trip").value == value


def test_what_is_not_to_be_searched_is_not_found(memory):
    store = OpenClawStore(memory, fields=["title"])
    store.put(USERS, "secret", {"title": "The vault opens with marmalade."}, index=False)
    store.put(USERS, "title", {"title": "Breakfast", "text": "Marmalade on toast."})
    assert [item.score for item in store.search(USERS, query="marmalade")] == [None, None]
    assert not memory.search("marmalade")
    assert store.search(USERS, query="breakfast")[0].key == "title"


def test_a_search_does_not_wait_for_the_long_sync_of_another_process(people, monkeypatch):
    people.search(USERS, query="boiler")

    def busy(*_, wait, **__):
        raise errors.SyncBusyError(f"busy for {wait} s")

    monkeypatch.setattr(IndexService, "sync", busy)
    people.put(USERS, "new", {"text": "The boiler was painted red."})
    found = people.search(USERS, query="boiler")
    assert found[0].key == "boiler"
    assert (found[-1].key, found[-1].score) == ("new", None)


# --- files are for people


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"text": "Anna eats no nuts.", "n": 2}, "Anna eats no nuts."),
        ({"diet": {"rule": "no nuts"}, "since": 2019, "strict": True}, "diet.rule: no nuts"),
        ({"n": 1, "rule": "rule: nuts"}, "rule: rule: nuts"),
    ],
)
def test_the_only_string_of_a_value_is_corrected_in_the_body(store, edit, anna, value, shown):
    store.put(USERS, "diet", value)
    assert body(anna / "diet.md") == shown
    assert store.get(USERS, "diet").value == value
    edit("diet", lambda file: file.replace("nuts", "eggs"))
    corrected = json.loads(json.dumps(value).replace("nuts", "eggs"))
    assert store.get(USERS, "diet").value == corrected
    assert store.search(USERS, query="eggs")[0].value == corrected


@pytest.mark.parametrize("index", [None, ["name", "city"]])
def test_an_edit_that_changes_no_value_is_reported_once(store, edit, caplog, index):
    value = {"name": "Anna", "city": "Utrecht"}
    store.put(USERS, "who", value, index=index)
    edit("who", lambda file: "Delft".join(file.rsplit("Utrecht", 1)))
    for _ in range(2):
        assert store.get(USERS, "who").value == value
        assert store.search(USERS, query="Delft")[0].value == value
    assert [("who.md" in said, "`value` above the text" in said) for said in caplog.messages] == [(True, True)]


@pytest.mark.parametrize("value", [{"name": " Anna ", "city": "U\r\nt\n", "n": 1}, {"name": "Anna"}, {"n": [1, 2]}, {}])
def test_what_no_one_edited_is_not_reported(store, edit, caplog, value):
    for index in (None, False, ["name"], ["name", "city"], ["n"], ["$", "name"]):
        store.put(USERS, "who", value, index=index)
        edit("who", lambda file: file.replace("\n", "\r\n") + "\r\n \r\n")
        assert store.get(USERS, "who").value == value
    assert caplog.messages == []


def test_what_is_corrected_in_an_editor_is_the_new_value_and_a_time_keeps_its_order(store, edit):
    before, after = (
        {"kind": "way", "deep": {"text": f"Anna prefers {way}.\n\nAlways."}} for way in ("trains", "planes")
    )
    for saved in (str, lambda file: file.replace("\n", "\r\n"), str.rstrip, lambda file: file + "\n \n"):
        store.put(USERS, "travel", before, index=["deep.text"])
        edit("travel", lambda file, saved=saved: saved(file.replace("trains", "planes")))
        assert store.get(USERS, "travel").value == after
        assert store.search(USERS, query="planes")[0].score is not None
    store.put(USERS, "b", {"favourite": "blue"})
    edit(
        "b", lambda file: re.sub('created_at: ".*"', 'created_at: "2020-01-01"', file).replace("favourite: blue", "red")
    )
    assert keys(store.search(USERS)) == ["b", "travel"]
    assert store.get(USERS, "b").value == {"favourite": "red"}, "a label that is deleted was no part of the value"


def test_a_persons_own_file_is_neither_read_nor_overwritten_nor_deleted(store, anna):
    anna.mkdir(parents=True)
    (anna / "prefs.md").write_text("# Mine\n\nI wrote this.\n", encoding="utf-8")
    assert store.get(USERS, "prefs") is None
    assert store.search(("users",)) == []
    for operation in (lambda: store.put(USERS, "prefs", {"n": 1}), lambda: store.delete(USERS, "prefs")):
        with pytest.raises(errors.PathNotAllowedError, match=r"memory/users/anna/prefs\.md"):
            operation()
    assert (anna / "prefs.md").read_text(encoding="utf-8") == "# Mine\n\nI wrote this.\n"


def test_a_copy_is_no_second_item_and_a_damaged_one_is_passed_over_and_reported(store, edit, anna, caplog):
    store.batch([PutOp(USERS, "a", {"n": 1}), PutOp(USERS, "b", {"n": 2})])
    shutil.copy(anna / "a.md", anna / "copy.md")
    assert keys(store.search(())) == ["a", "b"]
    assert store.get(USERS, "copy") is None
    edit("a", lambda file: file.replace('{"n":', '{"n"'))
    assert keys(store.search(())) == ["b"]
    assert "memory/users/anna/a.md" in caplog.text


def test_a_secret_that_a_person_wrote_is_masked_and_not_lost_by_putting_it_back(store, edit, anna):
    store.put(USERS, "door", {"text": "The token is here.", "n": 1})
    edit("door", lambda file: file.replace("here", SECRET))
    (found,) = store.search(USERS)
    value = found.value
    assert SECRET not in str(value)
    store.put(USERS, "door", value | {"n": 2})
    assert store.search(USERS)[0].value == value | {"n": 2}
    assert store.get(USERS, "door").value == {"text": f"The token is {SECRET}.", "n": 2}
    with pytest.raises(errors.InvalidInputError, match="masks a secret"):
        store.put(USERS, "door", {"text": f"Changed: {value['text']}"})
    assert SECRET in (anna / "door.md").read_text(encoding="utf-8")
