"""QMD as an engine: what it finds is cited as ours, it sees nothing that policies hide, and it leaves nothing behind."""

import json
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from qmd_place import is_alive, wait_for

from openclaw_memory import Memory
from openclaw_memory.backends import Backend
from openclaw_memory.backends.qmd_notes import NOTES_FOLDER
from openclaw_memory.config import PoliciesConfig, PolicyRule, SyncConfig
from openclaw_memory.errors import BackendError, ConfigError, NotOfferedError, StoreError
from openclaw_memory.tools import recall
from openclaw_memory.types import SearchFilter, SearchRequest


def test_it_is_an_engine(qmd):
    assert isinstance(qmd.engine(), Backend)


@pytest.mark.parametrize("server", [True, False])
def test_a_result_is_the_lines_that_qmd_shows_cited_as_ours(qmd, server):
    found = qmd.engine(server=server).search(SearchRequest("trains planes"))
    (hit,) = found
    assert (hit.citation, hit.source) == ("MEMORY.md#L3-L4", "memory")
    assert hit.snippet == "- Ines prefers trains to planes.\n- The ferry leaves at seven."
    assert hit.score == (1.0 if server else 0.53)
    assert (found.mode, found.provider, found.model, found.reason) == ("keyword", "qmd", "search", None)


def test_blank_lines_at_the_ends_are_not_cited(qmd):
    assert [hit.citation for hit in qmd.engine().search(SearchRequest("gauges"))] == ["memory/2026-03-01.md#L3-L5"]


def test_scores_are_those_of_qmd_and_only_the_threshold_of_a_search_counts(qmd):
    engine = qmd.engine(server=False)  # a word of two notes out of three scores 0
    assert [hit.score for hit in engine.search(SearchRequest("ferry"))] == [0, 0]
    found = engine.search(SearchRequest("ferry", min_score=0.1, explain=True))
    assert (len(found), found.filtered, len(found.rejected)) == (0, 2, 2)


def test_results_keep_to_number_budget_and_source(qmd):
    engine = qmd.engine()
    assert len(engine.search(SearchRequest("ferry", max_results=1))) == 1
    found = engine.search(SearchRequest("ferry", max_chars=60))
    assert len("".join(hit.snippet for hit in found)) <= 60
    assert not engine.search(SearchRequest("ferry", source="sessions"))
    assert not engine.search(SearchRequest(" "))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"only": SearchFilter(path=("*",))}, "path"),
        ({"only": SearchFilter(phrases=("the ferry",), without=("blue",))}, "phrases, without"),
        ({"only": SearchFilter(min_confidence=0.0)}, "min_confidence"),
        ({"task": "a journey", "rules": {"mmr": 0.7}}, "task, rules"),
    ],
)
def test_what_qmd_does_not_offer_is_refused_by_name(qmd, given, named):
    with pytest.raises(NotOfferedError, match=f"QMD offers no {named} of a search: leave it out"):
        qmd.engine().search(SearchRequest("ferry", **given))


def test_a_question_is_one_line_with_quotes_in_pairs_and_never_an_option(qmd):
    engine = qmd.engine(server=False)
    engine.search(SearchRequest('--full\n"ferry'))
    assert qmd.calls[-1].endswith("-- --full ferry")
    engine.search(SearchRequest('"the ferry" -blue'))
    assert qmd.calls[-1].endswith('-- "the ferry" -blue')


def test_a_question_by_vectors_has_no_signs(qmd):
    engine = qmd.engine(server=False, mode="vsearch")
    assert not engine.search(SearchRequest('-not "the submarine"'))
    assert "vsearch --json -n 16 -c memory -- not the submarine" in qmd.calls


def test_a_second_engine_answers_from_the_index_at_once_and_updates_it_behind(qmd):
    qmd.engine().search(SearchRequest("ferry"))
    qmd.fails("update", "hang")
    assert qmd.engine().search(SearchRequest("ferry"))
    assert is_alive(qmd.hanging())


def test_files_that_have_changed_are_left_out_and_indexed_again(qmd):
    engine = qmd.engine()
    assert engine.search(SearchRequest("trains planes"))
    updates = qmd.count("update")
    (qmd.notes / "MEMORY.md").write_text("# Travel\n\n- Ines prefers planes.\n", encoding="utf-8")
    found = engine.search(SearchRequest("trains planes"))
    assert (len(found), found.stale) == (0, True)
    assert found.reason == "results of MEMORY.md were left out: the text has changed, and is indexed again"
    wait_for(lambda: qmd.count("update") > updates)
    wait_for(lambda: not engine.search(SearchRequest("trains planes")).stale)


def test_a_new_file_is_noticed_by_a_search(qmd):
    engine = qmd.engine()
    assert not engine.search(SearchRequest("ferry")).stale
    (qmd.notes / "memory" / "new.md").write_text("The quay.\n", encoding="utf-8")
    assert engine.search(SearchRequest("ferry")).stale
    wait_for(lambda: not engine.search(SearchRequest("ferry")).stale)
    assert "memory-new" in " ".join(os.listdir(qmd.folder / NOTES_FOLDER))


def test_notes_that_have_not_changed_are_indexed_once(qmd):
    engine = qmd.engine()
    engine.search(SearchRequest("ferry"))
    engine._cycle()
    engine._cycle()
    assert qmd.count("update") == 1


def test_files_outside_are_never_read(qmd, tmp_path):
    (tmp_path / "secret.md").write_text("Over the drawbridge.\n", encoding="utf-8")
    (qmd.notes / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    (qmd.notes / ".qmd").mkdir()
    (qmd.notes / ".qmd" / "index.yaml").write_text(
        "collections: {all: {path: /, update: touch /tmp/x}}\n", encoding="utf-8"
    )
    qmd.engine().sync()
    assert b"drawbridge" not in b"".join(file.read_bytes() for file in qmd.folder.rglob("*") if file.is_file())
    said = json.loads((qmd.folder / "openclaw-memory.yml").read_text(encoding="utf-8"))
    assert said == {"collections": {"memory": {"path": str(qmd.folder / NOTES_FOLDER), "pattern": "**/*.md"}}}


def test_qmd_never_has_what_policies_and_secrets_leave_out(qmd):
    key = "ghp_" + "a1B2" * 9
    (qmd.notes / "memory" / "keys.md").write_text(f"The key is {key}.\n", encoding="utf-8")
    rules = (
        PolicyRule("pay", "masked", pattern=r"\d{5} euros"),
        PolicyRule("door", "never-store", pattern="door"),
    )
    config = replace(qmd.config(), policies=PoliciesConfig(rules=rules))
    with Memory.open(qmd.notes, embedder=None, config=config) as memory:
        (hit,) = memory.search("salary")
        assert (hit.citation, hit.snippet) == ("memory/2026-03-02.md#L6", "The salary of Bo is ***.")
    held = b"".join(file.read_bytes() for file in qmd.folder.rglob("*.md"))
    assert b"***" in held
    assert [word for word in (key.encode(), b"61234", b"door") if word in held] == []
    with qmd.memory() as memory:  # the copies are of other rules: they are made anew
        assert "61234" in memory.search("salary")[0].snippet


def test_a_group_is_shown_no_private_note(qmd):
    memory = qmd.memory()
    alone, group = (recall(memory, "ferry", session_key=f"agent:main:{kind}") for kind in ("main", "telegram:group:1"))
    assert "leaves at seven" in alone
    assert "leaves at seven" not in group
    assert "The ferry is blue" in group


def test_an_expired_record_is_not_copied(qmd):
    with Memory.open(qmd.notes, embedder=None) as memory:
        memory.records.remember("fact", "tea", "green", ttl=60)
    engine = qmd.engine()
    engine.sync()
    assert engine._notes.count == 4
    record = next((qmd.notes / "memory" / "records").rglob("*.md"))
    record.write_text(record.read_text(encoding="utf-8").replace('"20', '"10'), encoding="utf-8")
    os.utime(record, (0, 0))  # all of it long ago
    engine.sync()
    assert engine._notes.count == 3


def test_forgetting_deletes_what_qmd_keeps(qmd):
    memory = qmd.memory()
    memory.search("salary")
    (qmd.folder / "index.sqlite").write_bytes(b"The salary of Bo")
    memory.forget(query="salary", dry_run=False)
    held = b"".join(file.read_bytes() for file in qmd.folder.rglob("*") if file.is_file())
    assert b"salary" not in held
    assert qmd.count("update") == 2


def test_forgetting_deletes_it_also_where_qmd_is_not_there_any_more(qmd):
    with qmd.memory() as memory:
        memory.search("salary")
    left = next((qmd.folder / NOTES_FOLDER).glob("memory-2026-03-02-*.md"))
    left.with_name(f"{left.name}.0a1b2c3d.tmp").write_text("The salary of Bo", encoding="utf-8")
    (qmd.folder / "index.sqlite").write_bytes(b"The salary of Bo")
    memory = qmd.memory(command=("qmd-is-not-here",))
    memory.forget(query="salary", dry_run=False)
    held = b"".join(file.read_bytes() for file in qmd.folder.rglob("*") if file.is_file())
    assert b"tea" in held
    assert b"salary" not in held
    assert memory.status().fallback["from"] == "qmd"


def test_several_memories_of_one_folder_copy_at_the_same_time(qmd):
    engines = [qmd.engine() for _ in range(4)]

    def copy(engine):
        for number in range(20):
            (qmd.notes / "memory" / f"n{number}.md").write_text(f"{number} {id(engine)}\n", encoding="utf-8")
            engine._notes.copy()

    with ThreadPoolExecutor(len(engines)) as pool:
        list(pool.map(copy, engines))  # raises what a copy raises
    engines[0]._notes.copy()
    assert len(list((qmd.folder / NOTES_FOLDER).iterdir())) == 23


def test_a_damaged_index_is_built_again(qmd):
    engine = qmd.engine()
    engine.sync()
    (qmd.folder / "index.sqlite").write_bytes(b"this is no database")
    report = engine.sync()
    assert report.rebuilt == "QMD's index was damaged"
    assert (qmd.folder / "index.sqlite").read_bytes() == b""


def test_a_sync_says_what_it_has_copied(qmd):
    engine, seen = qmd.engine(), []
    first = engine.sync(progress=seen.append)
    assert (len(first.added), first.unchanged, seen[0].completed) == (3, 0, 3)
    (qmd.notes / "MEMORY.md").write_text("Another text.\n", encoding="utf-8")
    (qmd.notes / "memory" / "2026-03-01.md").unlink()
    second = engine.sync()
    assert (second.changed, second.removed, second.unchanged) == (("MEMORY.md",), ("memory/2026-03-01.md",), 1)
    assert len(engine.sync(force=True).added) == 2


def test_what_is_encrypted_is_not_copied_and_each_search_says_so(qmd):
    (qmd.notes / "memory" / "health.md.age").write_bytes(b"age-encryption.org/v1\n-> X25519 abc\n")
    with qmd.memory() as memory:
        for query in ("salary", "nothing of this kind"):
            assert "what is encrypted was not searched: memory/health.md.age" in str(memory.search(query).reason)
    copies = [file.read_bytes() for file in (qmd.folder / NOTES_FOLDER).iterdir()]
    assert copies
    assert [one for one in copies if b"X25519" in one] == []


def test_files_of_others_in_its_folder_stay(qmd):
    mine = qmd.folder / NOTES_FOLDER / "mine.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("Of somebody else.\n", encoding="utf-8")
    qmd.engine().sync(force=True)
    assert mine.exists()


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_missing_program_is_named_with_what_to_do(qmd):
    with pytest.raises(BackendError, match=r"no program 'qmd-is-not-here'.*npm install -g @tobilu/qmd@2.8.3"):
        qmd.engine(command=("qmd-is-not-here",)).search(SearchRequest("ferry"))


@pytest.mark.parametrize(
    ("command", "how", "said"),
    [
        ("version", "old", "'qmd 0.9.0', and is no QMD 2: install it with Node.js 22"),
        ("update", "crash", r"crashed \(code 139: .*Node.js 22 or later"),
        ("update", "Error: NODE_MODULE_VERSION 115", "another Node.js than that which it was installed for"),
        ("update", "Error: the disk is full", "`qmd update` failed with code 1: Error: the disk is full"),
        ("mcp", "Error: no model", "`qmd mcp` failed with code 1: Error: no model"),
        ("http", "Internal Server Error", "status 500: 'Internal Server Error'"),
    ],
)
def test_what_fails_is_an_error_that_says_what_to_do(qmd, command, how, said):
    qmd.fails(command, how)
    with pytest.raises(BackendError, match=said):
        qmd.engine().search(SearchRequest("ferry"))


def test_a_script_without_node_is_named_with_what_to_do(qmd, tmp_path):
    script = tmp_path / "qmd.sh"
    script.write_text("#!/usr/bin/env node-is-not-here\n", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(BackendError, match=r"does not run .*put Node.js 22 or later on PATH"):
        qmd.engine(command=(str(script),)).search(SearchRequest("ferry"))


def test_another_program_of_that_name_is_noticed(qmd):
    with pytest.raises(BackendError, match="is no QMD 2"):
        qmd.engine(command=("echo", "hello")).search(SearchRequest("ferry"))


@pytest.mark.parametrize("server", [True, False])
def test_nothing_by_vectors_is_an_error_where_nothing_is_embedded(qmd, server):
    with pytest.raises(BackendError, match="has embedded none of 3 notes"):
        qmd.engine(mode="vsearch", server=server).search(SearchRequest("ferry"))


@pytest.mark.parametrize("command", ["update", "http", "search"])
def test_what_hangs_is_killed_in_time(qmd, command):
    engine = qmd.engine(server=command == "http", timeout_seconds=2.0, update_timeout_seconds=2.0)
    engine.search(SearchRequest("ferry"))
    qmd.fails(command, "hang")
    with pytest.raises(BackendError, match=r"did not (end|answer) within"):
        engine.sync() if command == "update" else engine.search(SearchRequest("ferry"))
    wait_for(lambda: not is_alive(qmd.hanging()))


def test_a_server_that_never_listens_is_killed_in_time(qmd):
    qmd.fails("mcp", "hang")
    engine = qmd.engine(timeout_seconds=2.0)
    with pytest.raises(BackendError, match=r"did not start within 2 s.*backend.server"):
        engine.search(SearchRequest("ferry"))
    wait_for(lambda: not is_alive(qmd.hanging()))


def test_no_search_and_no_sync_waits_for_an_embedding(qmd):
    qmd.fails("embed", "hang")
    engine = qmd.engine(mode="vsearch")
    engine.sync()
    process = qmd.hanging()
    assert engine.sync().unchanged == 3
    engine.close()
    wait_for(lambda: not is_alive(process))


def test_a_failed_embedding_is_in_the_status(qmd):
    qmd.fails("embed", "Error: no network")
    engine = qmd.engine(mode="vsearch")
    engine.sync()
    wait_for(lambda: engine.status().notices)
    assert "no network" in engine.status().notices[0]


def test_the_status_says_what_is_copied_and_what_fails(qmd):
    engine = qmd.engine()
    engine.search(SearchRequest("ferry"))
    state = engine.status(deep=True)
    assert (state.backend, state.files, state.problems, state.dirty) == ("qmd", 3, (), {})
    assert state.custom == {"mode": "search", "copies": 3, "vectors": 0, "pending": 3}
    assert state.engine == {"qmd": "2.8.3"}
    qmd.fails("http", "broken")
    assert "broken" in engine.status(deep=True).problems[0]


def test_the_status_says_that_it_is_missing_before_any_search(qmd):
    state = qmd.memory(command=("qmd-is-not-here",)).status()
    assert state.notices[-1].startswith("there is no program 'qmd-is-not-here'")


def test_a_server_that_has_died_is_started_again(qmd):
    engine = qmd.engine()
    engine.search(SearchRequest("ferry"))
    engine._program._server.running.process.kill()
    engine._program._server.running.process.wait()
    assert engine.search(SearchRequest("ferry"))
    assert qmd.count("mcp") == 2


def test_one_server_answers_searches_at_once(qmd):
    engine = qmd.engine()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(len(engine.search(SearchRequest("ferry"))))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 6
    assert (qmd.count("mcp"), qmd.count("update")) == (1, 1)


def test_a_closed_engine_has_no_processes_and_answers_nothing(qmd):
    engine = qmd.engine()
    engine.search(SearchRequest("ferry"))
    process = engine._program._server.running.process
    engine.close()
    engine.close()
    assert process.poll() is not None
    with pytest.raises(StoreError, match="closed"):
        engine.search(SearchRequest("ferry"))


def test_a_search_under_way_ends_when_the_engine_is_closed(qmd):
    qmd.fails("search", "hang")
    engine, told = qmd.engine(server=False), []

    def ask() -> None:
        with pytest.raises(BackendError) as caught:
            engine.search(SearchRequest("ferry"))
        told.append(caught)

    asking = threading.Thread(target=ask)
    asking.start()
    process = qmd.hanging()
    engine.close()
    asking.join(20)
    assert told
    wait_for(lambda: not is_alive(process))


KILLED = """
    import os, signal
    from openclaw_memory import Memory, MemoryConfig
    from openclaw_memory.config import BackendConfig
    config = MemoryConfig(backend=BackendConfig(name="qmd", command={command!r}, folder={folder!r}, update_minutes=0))
    memory = Memory.open({notes!r}, embedder=None, config=config)
    assert memory.search("ferry").provider == "qmd"
    print(memory._backend.primary._program._server.running.process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_program_that_is_killed_leaves_no_server(qmd):
    code = textwrap.dedent(KILLED).format(command=qmd.backend.command, folder=str(qmd.folder), notes=str(qmd.notes))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    wait_for(lambda: not is_alive(int(done.stdout)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_a_server_of_its_own_and_leaves_that_of_its_parent(qmd):
    engine = qmd.engine()
    engine.search(SearchRequest("ferry"))
    if (child := os.fork()) == 0:
        code = 1
        try:
            code = 0 if len(engine.search(SearchRequest("ferry"))) == 2 else 2
            engine.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert qmd.count("mcp") == 2
    assert engine._program._server.running.process.poll() is None
    assert engine.search(SearchRequest("ferry"))
    assert qmd.count("mcp") == 2


# --- settings --------------------------------------------------------------------------------------------------------


def test_the_settings_choose_the_engine(qmd):
    memory = qmd.memory()
    assert memory.search("ferry").provider == "qmd"
    assert (memory.status().backend, memory.status().custom["copies"]) == ("qmd", 3)
    assert Memory.open(qmd.notes, embedder=None).status().backend == "builtin"
    assert memory.records.find() == []
    assert memory.get("MEMORY.md", start=3, lines=1).text == "- Ines prefers trains to planes."


def test_an_agents_qmd_is_in_the_folder_of_the_agent(qmd, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "state"))
    config = qmd.config(folder="")
    with Memory.for_agent("Work", workspace=qmd.notes, embedder=None, config=config) as memory:
        memory.search("ferry")
    assert (tmp_path / "state" / "agents" / "work" / "qmd" / "index.sqlite").exists()


def test_by_default_it_is_in_the_users_cache_folder(qmd, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert (tmp_path / "cache") in qmd.engine(folder="").folder.parents


def test_a_workspace_may_not_name_a_program(qmd):
    (qmd.notes / ".memory").mkdir(exist_ok=True)
    (qmd.notes / ".memory" / "config.toml").write_text('[backend]\nname = "qmd"\ncommand = ["sh"]\n', encoding="utf-8")
    with Memory.open(qmd.notes, embedder=None) as memory:
        state = memory.status()
    assert state.backend == "builtin"
    assert any("backend.command" in notice for notice in state.notices)


def test_a_collection_of_another_name_than_letters_is_refused(qmd):
    with pytest.raises(ConfigError, match=r"backend.collection '\.\./x'"):
        qmd.engine(collection="../x")


def test_without_a_sync_nothing_is_indexed_where_searches_may_not_sync(qmd):
    config = replace(qmd.config(), sync=SyncConfig(before_search=False))
    with pytest.raises(NotOfferedError, match="call sync"):
        qmd.engine(config).search(SearchRequest("ferry"))
    assert qmd.calls == []


def test_notes_are_handed_over_at_an_interval(qmd):
    engine = qmd.engine(update_minutes=0.002)
    engine.search(SearchRequest("ferry"))
    (qmd.notes / "memory" / "new.md").write_text("The quay.\n", encoding="utf-8")
    wait_for(lambda: qmd.count("update") > 1)
    engine.close()
