"""QMD as an engine: what it finds is cited as ours, it sees nothing that policies hide, and it leaves nothing behind."""

import json
import os
import re
import subprocess
import sys
import textwrap
import threading

import pytest
from msgspec.structs import replace
from openclaw_memory_qmd import QmdSettings
from openclaw_memory_qmd.copies import COPIES_FOLDER
from openclaw_memory_qmd.program import QmdProgram
from qmd_place import is_alive, wait_for

from openclaw_memory import Memory, SearchFilter, SearchOptions
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.errors import ConfigError, StoreError
from openclaw_memory.search import SearchRequest
from openclaw_memory.tools import recall


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.sampled(1)
def test_a_result_is_the_lines_that_qmd_shows_cited_as_ours(qmd, server):
    found = qmd.engine(server=server).search(SearchRequest("trains planes"))
    (hit,) = found
    assert (hit.citation, hit.source) == ("MEMORY.md#L3-L4", "memory")
    assert hit.snippet == "- Ines prefers trains to planes.\n- The ferry leaves at seven."
    assert hit.score == (1.0 if server else 0.53)
    assert (found.mode, found.provider, found.model, found.reason) == ("keyword", "qmd", "search", None)


def test_scores_are_those_of_qmd_and_only_the_threshold_of_a_search_counts(qmd):
    engine = qmd.engine(server=False)  # a word of two notes out of three scores 0
    assert [hit.score for hit in engine.search(SearchRequest("ferry"))] == [0, 0]
    found = engine.search(SearchRequest("ferry", min_score=0.1, options=SearchOptions(explain=True)))
    assert (len(found), found.filtered, len(found.rejected)) == (0, 2, 2)


def test_results_keep_to_number_budget_and_source(qmd):
    engine = qmd.engine()
    assert len(engine.search(SearchRequest("ferry", max_results=1))) == 1
    found = qmd.memory().search("ferry", max_chars=60)
    assert found.provider == "qmd"
    assert len("".join(hit.snippet for hit in found)) <= 60
    assert not engine.search(SearchRequest("ferry", filter=SearchFilter(source="sessions")))
    assert not engine.search(SearchRequest(" "))


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


def test_files_that_have_changed_are_left_out_and_indexed_again(qmd):
    engine = qmd.engine()
    assert engine.search(SearchRequest("trains planes"))
    updates = qmd.count("update")
    (qmd.notes / "MEMORY.md").write_text("# Travel\n\n- Ines prefers planes.\n", encoding="utf-8")
    found = engine.search(SearchRequest("ferry"))
    assert ([hit.path for hit in found], found.stale) == (["memory/2026-03-01.md"], True)
    assert found.reason == "results of MEMORY.md were left out: the text has changed, and is indexed again"
    wait_for(lambda: qmd.count("update") > updates)
    wait_for(lambda: not engine.search(SearchRequest("ferry")).stale)


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
    assert said == {"collections": {"memory": {"path": str(qmd.folder / COPIES_FOLDER), "pattern": "**/*.md"}}}


def test_qmd_never_has_what_policies_and_secrets_leave_out(qmd):
    key = "ghp_" + "a1B2" * 9
    (qmd.notes / "memory" / "keys.md").write_text(f"The key is {key}.\n", encoding="utf-8")
    rules = (PolicyRule("pay", "masked", pattern=r"\d{5} euros"), PolicyRule("door", "never-store", pattern="door"))
    config = replace(qmd.config(), policies=rules)
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


@pytest.mark.parametrize(
    ("before", "after"), [('"20', '"10'), ("seven", "eight")], ids=["it expired long ago", "it is forged"]
)
@pytest.mark.sampled(1)
def test_a_record_that_does_not_hold_is_not_copied(qmd, before, after):
    with Memory.open(qmd.notes, embedder=None) as memory:
        memory.records.remember("fact", "door.code", "amber seven", sensitivity="high", ttl=60)
    engine = qmd.engine()
    engine.sync()
    assert engine.status().custom["copies"] == 4
    record = next((qmd.notes / "memory" / "records").rglob("*.md"))
    record.write_text(record.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    os.utime(record, (0, 0))  # all of it long ago
    engine.sync()
    assert engine.status().custom["copies"] == 3


def test_forgetting_deletes_what_qmd_keeps(qmd):
    memory = qmd.memory()
    memory.search("salary")
    (qmd.folder / "index.sqlite").write_bytes(b"The salary of Bo")
    memory.control.forget(query="salary", dry_run=False)
    held = b"".join(file.read_bytes() for file in qmd.folder.rglob("*") if file.is_file())
    assert b"salary" not in held
    assert qmd.count("update") == 2


def test_forgetting_deletes_it_also_where_qmd_is_not_there_any_more(qmd):
    with qmd.memory() as memory:
        memory.search("salary")
    left = qmd.folder / COPIES_FOLDER / ".openclaw-memory-0123456789abcdef.tmp"  # of a process that was killed
    left.write_text("The salary of Bo", encoding="utf-8")
    (qmd.folder / "index.sqlite").write_bytes(b"The salary of Bo")
    memory = qmd.memory(command=("qmd-is-not-here",))
    memory.control.forget(query="salary", dry_run=False)
    held = b"".join(file.read_bytes() for file in qmd.folder.rglob("*") if file.is_file())
    assert b"tea" in held
    assert b"salary" not in held
    assert memory.status().fallback["from"] == "qmd"


def test_what_is_encrypted_is_not_copied_and_each_search_says_so(qmd):
    (qmd.notes / "memory" / "health.md.age").write_bytes(b"age-encryption.org/v1\n-> X25519 abc\n")
    with qmd.memory() as memory:
        for query in ("salary", "nothing of this kind"):
            assert "what is encrypted was not searched: memory/health.md.age" in str(memory.search(query).reason)
    copies = [file.read_bytes() for file in (qmd.folder / COPIES_FOLDER).iterdir()]
    assert copies
    assert [one for one in copies if b"X25519" in one] == []


# --- what goes wrong -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "how", "reason"),
    [
        ("version", "old", "has the version 'qmd 0.9.0', not 2 of QMD: install it with Node.js 22"),
        ("update", "crash", "`qmd update` failed with code 139: .*needs the Node.js on PATH"),
        ("update", "Error: the disk is full", "`qmd update` failed with code 1: Error: the disk is full"),
        ("mcp", "Error: no model", "`qmd mcp` failed with code 1: Error: no model"),
        ("http", "Internal Server Error", "status 500: 'Internal Server Error'"),
    ],
)
@pytest.mark.sampled(2)
def test_what_fails_is_told_with_what_to_do(qmd, command, how, reason):
    qmd.fails(command, how)
    assert re.search(f"qmd failed: .*{reason}", str(qmd.memory().search("ferry").reason))


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.sampled(1)
def test_nothing_by_vectors_is_a_failure_where_nothing_is_embedded(qmd, server):
    found = qmd.memory(mode="vsearch", server=server).search("ferry")
    assert "has embedded none of 3 notes" in str(found.reason)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("http", "did not answer"),
        ("search", "did not end within 2 s"),
        ("update", "`qmd update` did not end within 2 s"),
        ("mcp", "did not start in time"),
    ],
)
@pytest.mark.sampled(1)
def test_what_hangs_is_killed_in_time(qmd, command, words):
    memory = qmd.memory(server=command != "search", timeout_seconds=2.0, update_timeout_seconds=2.0)
    if command in {"http", "search"}:  # the others are called before the first answer
        memory.search("ferry")
    qmd.fails(command, "hang")
    assert words in str(memory.search("ferry").reason)
    wait_for(lambda: not is_alive(qmd.hanging()))


def test_no_search_and_no_sync_waits_for_an_embedding(qmd):
    qmd.fails("embed", "hang")
    engine = qmd.engine(mode="vsearch")
    engine.sync()
    process = qmd.hanging()
    assert engine.sync().unchanged == 3
    engine.close()
    wait_for(lambda: not is_alive(process))


def test_the_status_says_what_is_copied_and_what_fails(qmd):
    engine = qmd.engine()
    engine.search(SearchRequest("ferry"))
    state = engine.status(deep=True)
    assert (state.backend, state.problems, state.fallback) == ("qmd", (), None)
    assert state.custom == {"mode": "search", "copies": 3, "vectors": 0, "pending": 3}
    assert state.engine["qmd"] == "2.8.3"
    qmd.fails("http", "broken")
    assert "broken" in engine.status(deep=True).fallback["reason"]


def test_it_is_not_given_the_users_keys(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENCLAW_MEMORY_KEY", "ab" * 32)
    script = tmp_path / "qmd.sh"
    script.write_text("#!/bin/sh\nenv\n", encoding="utf-8")
    script.chmod(0o755)
    variables = QmdProgram(QmdSettings(command=(str(script),)), tmp_path).run("update", seconds=10).out
    assert f"QMD_CONFIG_DIR={tmp_path}" in variables
    assert "OPENCLAW_MEMORY_KEY" not in variables


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


def test_a_search_under_way_ends_when_the_memory_is_closed(qmd):
    qmd.fails("search", "hang")
    engine, told = qmd.engine(server=False), []

    def ask() -> None:
        with pytest.raises(StoreError, match="closed") as caught:
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
    config = MemoryConfig().replace({{"store": {{"backend": "qmd"}}, "plugins": {{"qmd": {settings!r}}}}})
    memory = Memory.open({notes!r}, embedder=None, config=config)
    assert memory.search("ferry").provider == "qmd"
    print(memory._backend._program._server[0].popen.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_program_that_is_killed_leaves_no_server(qmd):
    code = textwrap.dedent(KILLED).format(settings=qmd.settings, notes=str(qmd.notes))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    wait_for(lambda: not is_alive(int(done.stdout)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_is_refused_and_the_server_of_the_parent_stays(qmd):
    memory = qmd.memory()
    memory.search("ferry")
    if (child := os.fork()) == 0:
        code = 1
        try:
            memory.search("ferry")
        except StoreError as error:
            code = 0 if "open the memory in the child" in str(error) else 2
            memory.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory._backend._program._server[0].popen.poll() is None
    assert memory.search("ferry").provider == "qmd"
    assert qmd.count("mcp") == 1


def test_what_is_copied_is_private(qmd):
    before = os.umask(0)
    try:
        qmd.engine().sync()
    finally:
        os.umask(before)
    ours = [qmd.folder, *(path for path in qmd.folder.rglob("*") if path.name != "index.sqlite")]
    assert {(path.is_dir(), path.stat().st_mode & 0o777) for path in ours} == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("folder", ["qmd", "memory/../.memory"])
def test_a_folder_in_the_workspace_is_refused(qmd, folder):
    with pytest.raises(ConfigError, match="is in the workspace: name a folder outside"):
        qmd.memory(folder=folder)


def test_a_workspace_may_not_name_a_program(qmd):
    (qmd.notes / ".memory").mkdir(exist_ok=True)
    (qmd.notes / ".memory" / "config.toml").write_text(
        '[store]\nbackend = "qmd"\n[plugins.qmd]\ncommand = ["sh"]\n', encoding="utf-8"
    )
    with Memory.open(qmd.notes, embedder=None) as memory:
        state = memory.status()
    assert state.backend == "builtin"
    assert [name for name in ("store.backend", "plugins.qmd") if name not in " ".join(state.notices)] == []
