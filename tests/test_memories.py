"""A pool of memories: opened once, closed when nobody uses them, in folders that no name leaves, one for each name."""

import asyncio
import doctest
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import openclaw_memory.memories
from openclaw_memory import AsyncMemory, Memories, Memory, MemoryConfig
from openclaw_memory.aio import run_in_thread
from openclaw_memory.config.sections import PolicyRule, StoreConfig, SyncConfig
from openclaw_memory.errors import ConfigError, PathNotAllowedError, StoreError
from openclaw_memory.memories import encode_folder_name
from openclaw_memory.runs import RunMemory, run_values
from openclaw_memory.store import SqliteStore
from openclaw_memory.testing import RecordingEmbedder


@pytest.fixture
def users(tmp_path):
    with Memories(tmp_path / "users", embedder=None, max_open=3) as users:
        yield users


def opened(users):
    """The names of the folders whose memory is open, the least recently used first."""
    return ["/".join(key.folders) for key, entry in users._entries.items() if entry.memory is not None]


def test_the_example_in_the_docstring_is_true():
    result = doctest.testmod(openclaw_memory.memories)
    assert (result.attempted > 3, result.failed) == (True, 0)


# --- opening and closing
def test_each_name_has_a_memory_of_its_own(users):
    with users.use("anna") as anna, users.use("bob") as bob:
        anna.append("Anna takes the ferry.")
        bob.append("Bob takes the train.")
        assert [hit.snippet for hit in bob.search("ferry train")] == ["Bob takes the train."]
    with users.use("anna") as again:
        assert again is anna


def test_fifty_threads_that_ask_at_once_open_a_memory_once(users):
    barrier = threading.Barrier(50)

    def ask(_):
        barrier.wait()
        with users.use("anna") as memory:
            return memory

    with ThreadPoolExecutor(50) as threads:
        assert len(set(threads.map(ask, range(50)))) == 1


def test_the_least_recently_used_is_closed_above_the_bound(users):
    kept = []
    for name in ("anna", "bob", "carol", "anna", "dan"):
        with users.use(name) as memory:
            kept.append(memory)
    assert opened(users) == ["carol", "anna", "dan"]
    with pytest.raises(StoreError, match="closed"):
        kept[1].search("ferry")


def test_a_memory_in_use_is_never_closed_and_one_too_many_is_closed_when_it_is_given_back(users):
    names = ["anna", "bob", "carol", "dan", "eve"]
    with ExitStack() as stack:
        memories = [stack.enter_context(users.use(name)) for name in names]
        assert opened(users) == names
        with users.use("fay"):
            pass
        assert opened(users) == names  # there was room for no more
        for memory in memories:
            memory.append("The ferry leaves at seven.")
            assert memory.search("ferry")
    assert len(opened(users)) == 3


def test_closing_closes_all_and_those_in_use_when_they_are_given_back(tmp_path):
    embedder = RecordingEmbedder()
    users = Memories(tmp_path, embedder=embedder)
    with users.use("bob") as bob:
        pass
    with users.use("anna") as anna:
        users.close()
        users.close()
        assert anna.append("The ferry leaves at seven.").path
        with pytest.raises(StoreError):
            bob.search("ferry")
        with pytest.raises(StoreError, match="is closed: make another one"), users.use("carol"):
            pass
    with pytest.raises(StoreError):
        anna.search("ferry")
    assert not embedder.closed  # as with a memory: who hands one in closes it


# --- what a memory is kept by
def ruled(pattern):
    """Settings with a rule that is not shown."""
    return MemoryConfig(policies=(PolicyRule(name="a", action="masked", pattern=pattern),))


def test_a_memory_is_kept_by_agent_workspace_and_settings(users, tmp_path):
    (tmp_path / "own").mkdir()
    settings = MemoryConfig(sync=SyncConfig(on_search=False))
    asked = [
        users.use("anna"),
        users.use("bob"),
        users.use("anna", workspace=tmp_path / "own"),
        users.use("anna", config=settings),
    ]
    kept = []
    for lease in asked:
        with lease as memory:
            kept.append(memory)
            assert memory.workspace.root == lease.folder
            assert memory.config.sync == lease.config.sync
    assert len({id(memory) for memory in kept}) == 4
    with users.use("anna", config=MemoryConfig(sync=SyncConfig(on_search=False))) as again:
        assert again is kept[3]
    with users.use("anna") as plain, users.use("anna", config=users.config) as same:
        assert same is plain
    with users.use("anna", config=ruled("ferry")) as one, users.use("anna", config=ruled("train")) as other:
        assert one is not other
    assert kept[3].config.sync.on_search is False
    assert kept[2].workspace.root == tmp_path / "own"


def test_each_agent_may_have_a_store_of_its_own(tmp_path):
    kept = {}

    def store(agent):
        return lambda: kept.setdefault(agent, SqliteStore(tmp_path / f"{len(kept)}.sqlite"))

    (tmp_path / "own").mkdir()
    with Memories(tmp_path / "agents", embedder=None, store=store) as agents:
        leases = [
            agents.use("anna"),
            agents.use("a/b"),
            agents.use("anna", workspace=tmp_path / "own"),
            agents.use_template("{a}/{b}").use({"a": "a", "b": "b"}),
        ]
        for lease in leases:
            with lease as memory:
                memory.append("The ferry leaves at seven.")
                assert memory.search("ferry")
                assert memory.index_path.parent == tmp_path
    assert set(kept) == {"anna", "a%2fb", f"anna {tmp_path / 'own'}", "a/b"}
    assert {path.parent for path in tmp_path.rglob("*.sqlite")} == {tmp_path}


def test_in_a_database_each_agent_is_a_tenant(tmp_path):
    url = "postgresql://me:secret@db.example/agents?sslmode=require"
    users = Memories(tmp_path, embedder=None, config=MemoryConfig(store=StoreConfig(url=url)))
    assert users._store("anna") == f"{url}&tenant=anna"
    with pytest.raises(ConfigError, match="names a tenant") as error:
        Memories(tmp_path, config=MemoryConfig(store=StoreConfig(url=f"{url}&tenant=anna")))
    assert "secret" not in str(error.value)


# --- event loops
async def test_leases_are_awaited(users):
    async def ask(name):
        async with users.use(name) as memory:
            await run_in_thread(memory.append, f"{name} takes the ferry.")
            return (await AsyncMemory(memory).search("ferry"))[0].snippet

    names = [f"user-{number}" for number in range(10)]
    assert await asyncio.gather(*map(ask, names)) == [f"{name} takes the ferry." for name in names]
    assert len(opened(users)) <= 3


IDS = st.text(min_size=1) | st.text("aA.%/\\~-", min_size=1, max_size=4) | st.text("a", min_size=100, max_size=300)


@given(IDS, IDS)
@example("a" * 121, "a" * 122)
@example("é", "e\u0301")
def test_names_that_differ_have_folders_that_differ_on_every_disk(one, other):
    mine, others = encode_folder_name(one), encode_folder_name(other)
    assert (mine.casefold() == others.casefold()) == (one == other)
    assert mine.isascii()
    assert len(mine) <= 120
    assert not {*mine} & {*'/\\:*?"<>| \0'}
    assert not mine.startswith(".")
    assert not mine.endswith(".")


@pytest.mark.parametrize(
    "name", ["..", "../..", "/etc", "a/../../b", "\0", "x" * 5000, "con", ".", "\ud800"], ids=ascii
)
def test_what_strangers_send_stays_in_one_folder_below_the_root(users, name):
    with users.use(name) as memory:
        memory.append("A stranger was here.")
        assert memory.workspace.root.parent == users.root
    assert [path.name for path in users.root.parent.iterdir()] == ["users"]


@pytest.mark.parametrize("depth", [1, 2])
def test_no_link_is_followed(users, tmp_path, depth):
    outside = tmp_path / "outside"
    (outside / "bob").mkdir(parents=True)
    users.root.mkdir()
    (users.root / "anna").symlink_to(outside)
    lease = users.use("anna") if depth == 1 else users.use_template("{a}/{b}").use({"a": "anna", "b": "bob"})
    with pytest.raises(PathNotAllowedError, match="symlink"), lease:
        pass
    assert [path.name for path in outside.rglob("*")] == ["bob"]


@pytest.mark.parametrize(
    "options",
    [
        {"max_open": 0},
        {"max_open": True},
        {"embedder": "nonsense"},
        {"config": 3},
        {"root": ""},
        {"root": "https://example.com/memories"},
    ],
)
def test_wrong_settings_are_told_at_once(tmp_path, options):
    with pytest.raises(ConfigError):
        Memories(**{"root": tmp_path, **options})


# --- what a run chooses
def test_a_template_takes_the_values_of_the_run(users):
    template = users.use_template("{tenant}/user-{user_id}")
    with template.use({"tenant": "Acme", "user_id": 7, "more": object()}) as memory:
        assert memory.workspace.root == users.root / "%41cme" / "user-7"
    with template.use({"tenant": "acme", "user_id": UUID(int=7)}) as memory:
        assert memory.workspace.root.name == "user-00000000-0000-0000-0000-000000000007"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "user_id is missing from this run, and chooses its memory ('{user_id}'): give it by hand"),
        ({"user_id": None}, "user_id is missing"),
        ({"user_id": ["anna"]}, "user_id=['anna'] chooses no memory: pass a text, a whole number or a UUID"),
    ],
)
def test_a_value_that_is_missing_is_named_with_how_to_give_it(users, values, words):
    with pytest.raises(ConfigError) as error:
        users.use_template("{user_id}").use(values, "give it by hand")
    assert words in str(error.value)


@pytest.mark.parametrize("template", ["users", "{}", "{a.b}", "{a}{b}", "{a}-{b}", "../{a}", "{a", "a b/{a}"])
def test_a_template_that_could_mix_people_up_is_refused(users, template):
    with pytest.raises(ConfigError, match="template of memories"):
        users.use_template(template)


def test_a_text_alone_is_a_template_below_its_fixed_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text, root in (("a/users/{user_id}", tmp_path / "a/users"), (f"{tmp_path}/{{user_id}}", tmp_path)):
        choice = RunMemory.read_choice(text)
        assert RunMemory.read_choice(text).memories is choice.memories  # the parts of an agent share the open memories
        with RunMemory.lease(choice, values={"user_id": "anna"}) as memory:
            assert memory.workspace.root == root / "anna"
    assert RunMemory.read_choice("{user_id}").memories.root == tmp_path


def test_values_of_a_block_reach_its_threads_and_tasks_alone(users):
    choice = RunMemory.read_choice(users.use_template("{tenant}/{user_id}"))

    def root():
        with RunMemory.lease(choice) as memory:
            return str(memory.workspace.root.relative_to(users.root))

    async def ask(name):
        with run_values(user_id=name):
            await asyncio.sleep(0)
            return await run_in_thread(root)

    async def main():
        with run_values(tenant="acme"):
            return await asyncio.gather(ask("anna"), ask("bob"))

    assert asyncio.run(main()) == ["acme/anna", "acme/bob"]
    with pytest.raises(ConfigError, match=r"tenant is missing from this run.*run_values"):
        root()


def test_a_function_returns_a_memory_or_a_lease(users, tmp_path):
    with Memory.open(tmp_path, embedder=None) as own:
        with RunMemory.lease(RunMemory.read_choice(lambda _: own), "run") as memory:
            assert memory is own
        assert own.append("It is open.")  # the block has not closed what it did not open
        with RunMemory.lease(RunMemory.read_choice(own)) as memory:
            assert memory is own
    with RunMemory.lease(RunMemory.read_choice(users.use), "anna") as memory:
        assert memory.workspace.root.name == "anna"
    with pytest.raises(ConfigError, match=r"returned 'anna': return a Memory, or the lease of one"):
        RunMemory.lease(lambda: "anna")


@pytest.mark.parametrize("memory", ["users", 7, None, Memory], ids=repr)
def test_what_chooses_no_memory_is_refused(memory):
    with pytest.raises(TypeError, match="memory must be a Memory"):
        RunMemory.read_choice(memory)


# --- nobody sees the notes of another


def open_files():
    return len(os.listdir("/proc/self/fd"))


def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="files are counted on Linux")
@pytest.mark.parametrize(
    ("people", "bound"), [(14, 4), pytest.param(1000, 64, marks=pytest.mark.nightly)], ids=["few", "many"]
)
def test_what_is_open_is_bounded_however_many_people_come(tmp_path, people, bound):
    config = MemoryConfig(sync=SyncConfig(on_search=False))
    with Memories(tmp_path, embedder="hashing", config=config, max_open=bound) as users:

        def visit(number):
            with users.use(f"user-{number}") as memory:
                memory.append(f"The word is zebra{number}x.")
                assert memory.search("zebra word")

        for number in range(2 * bound):
            visit(number)
        files, bytes_before = open_files(), resident()
        for number in range(2 * bound, people):
            visit(number)
        assert open_files() <= files + 4
        assert len(opened(users)) == bound
        if people > 100:
            assert resident() <= bytes_before * 1.1
    assert open_files() < files - bound
