"""The memories of many agents in one database: a tenant each, one pool of connections, one embedder."""

import pytest

from openclaw_memory import Memories, Memory, MemoryConfig
from openclaw_memory.config.sections import StoreConfig
from openclaw_memory.errors import ConfigError, StoreError
from openclaw_memory.testing import RecordingEmbedder


def connections(database):
    """How many connections others than this one have to a database."""
    import psycopg

    with psycopg.connect(database) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    return count


def in_database(url):
    return MemoryConfig(store=StoreConfig(url=url))


def test_agents_share_the_connections_and_find_nothing_of_each_other(database, tmp_path):
    embedder = RecordingEmbedder()
    with Memories(tmp_path, config=in_database(database), embedder=embedder, max_open=4) as agents:
        for number in range(8):
            with agents.use(f"agent-{number}") as memory:
                memory.append(f"Only agent {number} knows word{number}.")
                assert memory.search(f"word{number}")[0].snippet.endswith(f"word{number}.")
                assert memory.index_path is None
        with agents.use("agent-3") as again:  # it was closed meanwhile
            assert again.sync().unchanged == 1
            assert [hit.snippet for hit in again.search("word7 word3", min_score=0)] == ["Only agent 3 knows word3."]
        assert connections(database) <= 8  # those of one pool
    assert not [*tmp_path.rglob("*.sqlite")]
    assert len(embedder.documents) == 8


def test_another_worker_finds_the_index_by_the_name_of_the_agent(database, tmp_path):
    with Memories(tmp_path, config=in_database(database), embedder=None) as agents, agents.use("Anna") as memory:
        memory.append("Anna takes the ferry.")
        memory.sync()
    with Memories(tmp_path, config=in_database(database), embedder=None) as others, others.use("Anna") as memory:
        assert memory.sync().unchanged == 1
        folder = memory.workspace.root
    joint = "&" if "?" in database else "?"
    with Memory.open(folder, embedder=None, store=f"{database}{joint}tenant=%2541nna") as memory:
        assert memory.sync().unchanged == 1


def test_a_database_that_is_not_there_is_said_by_each_memory(tmp_path):
    address = f"postgresql://nobody@/nothing?host={tmp_path}&connect_timeout=1"
    with Memories(tmp_path, config=in_database(address), embedder=None) as agents, agents.use("anna") as memory:
        assert memory.append("Anna takes the ferry.").path
        with pytest.raises(StoreError):
            memory.sync()


def test_the_settings_say_where_the_index_is_kept(database, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f'[defaults.store]\nurl = "{database}"\n')
    config = MemoryConfig.from_toml(path)
    assert database not in repr(config)
    with Memories(tmp_path / "agents", embedder=None, config=config) as agents:
        for name in ("anna", "bob"):
            with agents.use(name) as memory:
                memory.append(f"{name} takes the ferry.")
                assert [hit.snippet for hit in memory.search("ferry")] == [f"{name} takes the ferry."]
                assert memory.status().store == "postgres"
    (tmp_path / "notes").mkdir()
    with Memory.open(tmp_path / "notes", embedder=None, config=config) as memory:
        assert memory.index_path is None
    with Memory.open(tmp_path / "notes", embedder=None, config=config, store="sqlite") as memory:
        assert memory.index_path is not None
    with Memory.open(tmp_path / "notes", embedder=None, config=config, index_path=tmp_path / "own.sqlite") as memory:
        assert memory.index_path is not None
    named = MemoryConfig(store=StoreConfig(url=f"{database}&tenant=anna"))
    with pytest.raises(ConfigError, match="tenant"):
        Memories(tmp_path / "agents", embedder=None, config=named)


def test_a_file_inside_a_workspace_names_no_server(tmp_path):
    (tmp_path / ".memory").mkdir()
    (tmp_path / ".memory" / "config.toml").write_text('[store]\nurl = "postgresql://elsewhere/stolen"\n')
    with Memory.open(tmp_path, embedder=None) as memory:
        assert memory.status().store == "sqlite"
        assert any("store.url may not be set" in notice for notice in memory.status().notices)
