"""An index that someone else made or changed shows no text that the notes do not hold, and nothing in it is run."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import apsw
import pytest
from index_files import index_file

from openclaw_memory import Memory
from openclaw_memory.config.environment import locate_user_data
from openclaw_memory.store import SqliteStore

TRUE, FALSE = "The spare key is with Mrs. Groen.", "The spare key is with Mr. Mallory."
QUESTION = "Who has the spare key?"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "MEMORY.md").write_text(f"# Long-term memory\n\n- {TRUE}\n", encoding="utf-8")
    return tmp_path / "agent"


def change(index, statement):
    db = apsw.Connection(str(index))
    db.execute(statement)
    db.close()


@pytest.mark.fault(48)
def test_a_text_that_was_altered_is_not_shown(folder):
    with Memory.open(folder) as memory:
        memory.sync()
    change(index_file(folder), f"UPDATE chunks SET text = replace(text, '{TRUE}', '{FALSE}'), checksum = checksum + 1")
    with Memory.open(folder) as memory:
        results = memory.search(QUESTION)
    assert [TRUE in result.snippet for result in results] == [True]
    assert "is not what was written" in results.reason


@pytest.mark.fault(48)
def test_the_rows_of_another_index_are_not_shown(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "MEMORY.md").write_text(f"# Long-term memory\n\n- {FALSE}\n", encoding="utf-8")
    with Memory.open(other) as memory:
        memory.sync()
    with Memory.open(folder, index_path=index_file(other)) as memory:
        assert not any(FALSE in result.snippet for result in memory.search(QUESTION))


@pytest.mark.fault(48)
def test_what_a_schema_says_is_not_run_by_any_connection(folder):
    with Memory.open(folder) as memory:
        memory.sync()
    with closing(SqliteStore.open(index_file(folder))) as store, store._connections.open() as db:
        for setting, value in {"DEFENSIVE": 1, "TRUSTED_SCHEMA": 0, "ENABLE_TRIGGER": 0, "ENABLE_VIEW": 0}.items():
            assert db.config(getattr(apsw, f"SQLITE_DBCONFIG_{setting}"), -1) == value


@pytest.mark.fault(48)
def test_processes_that_start_together_make_one_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "home"))
    code = "from openclaw_memory.security import Key; print(Key.load_user_key().secret.hex())"

    def load(_):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    with ThreadPoolExecutor(2) as several:
        keys = set(several.map(load, range(2)))
    assert keys == {(locate_user_data() / "user.key").read_bytes().hex()}
    assert [file.name for file in locate_user_data().iterdir()] == ["user.key"]
    assert (locate_user_data() / "user.key").stat().st_mode & 0o777 == 0o600
