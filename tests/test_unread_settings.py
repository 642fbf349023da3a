"""A setting that is set and not read is a notice, by one rule for all settings."""

import sys

import pytest
from msgspec.structs import replace

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.config import READ_WHEN
from openclaw_memory.config.sections import SECTIONS, ChunkingConfig, CompactionConfig
from openclaw_memory.records import RecordSource
from openclaw_memory.tools import memory_tools

FIELDS = {f"{part}.{name}" for part, model in SECTIONS.items() for name in model.__struct_fields__}
OFF = {
    "chunking": {"style": "tokens"},
    "search": {"answer": "chunks"},
    "sessions": {"index": False},
    "compaction": {"enabled": False},
    "embedding": {"provider": "none"},
}
# These are handed on, and what they are handed to makes nothing of them.
HANDED_ON = {
    "embedding.fallback",
    "embedding.max_entries",
    "search.vector_weight",
    "embedding.batch_size",
    "embedding.model",
}
# What reads these is a watcher, a framework's middleware, or another program's command.
READ_BY_OTHERS = {
    "sync.debounce_seconds", "recall.get_lines", "recall.max_chars",
}  # fmt: skip


def use(folder, config):
    """Do with a memory what programs do: index, search, write, remember, talk, flush and end a session."""
    (folder / "MEMORY.md").write_text("# Ferry\n\nThe ferry leaves at seven.\n")
    with Memory.open(folder, config=config) as memory:
        log = memory.sessions.log("talk")
        log.append("user", "When does the ferry leave?")
        memory.append("The ferry is late.")
        for number, value in enumerate(["seven", "eight", "nine", "ten"]):
            source = RecordSource("tool", str(number), memory.sessions.flush().get_time())
            memory.records.remember("fact", "ferry.time", value, source=source)
            if value == "nine":
                memory.records.confirm("fact", "ferry.time")
        memory.sync()
        for _ in range(5):
            memory.search("ferry", options={"task": "the timetable"})
        for tool in memory_tools(memory):
            tool({"query": "ferry", "path": "MEMORY.md", "text": "The ferry is blue."})
        memory.notes.bootstrap()
        memory.sessions.flush("talk", window=8_000).begin(7_000, messages=list)
        memory.sessions.snapshot("talk")
        memory.status()


@pytest.fixture
def reads(monkeypatch):
    """The settings that something outside of `openclaw_memory.config` reads."""
    seen = set()

    def spy_on(part, model):
        names = set(model.__struct_fields__)

        def get(self, name):
            code = sys._getframe(1).f_code
            is_ours = "openclaw_memory" in code.co_filename and "/openclaw_memory/config/" not in code.co_filename
            if name in names and (
                is_ours or code.co_name in {"flushes", "get_reserve", "get_soft_threshold", "pattern"}
            ):
                seen.add(f"{part}.{name}")
            return object.__getattribute__(self, name)

        monkeypatch.setattr(model, "__getattribute__", get)

    for part, model in SECTIONS.items():
        spy_on(part, model)
    return seen


@pytest.mark.parametrize("tables", [{}, OFF], ids=["by default", "turned off"])
def test_a_setting_is_read_unless_a_condition_says_when_it_is_not(tmp_path, reads, tables):
    config = MemoryConfig().replace(tables)
    unread = {name for name, (holds, _) in READ_WHEN.items() if not holds(config)}
    use(tmp_path, config)
    assert (unread & reads) - HANDED_ON == set()
    if not tables:
        assert READ_WHEN.keys() <= FIELDS
        assert FIELDS - reads - READ_WHEN.keys() - READ_BY_OTHERS == READ_BY_OTHERS & reads == set()


def test_no_preset_sets_what_is_not_read():
    for config in (MemoryConfig(), MemoryConfig.openclaw(), MemoryConfig.openclaw("2026.2"), MemoryConfig.opencode()):
        assert config.find_unread_settings() == ()


@pytest.mark.parametrize(
    ("config", "name", "reader"),
    [
        (MemoryConfig(chunking=ChunkingConfig(tokens=300)), "chunking.tokens", {"chunking": {"style": "lines"}}),
        (MemoryConfig(compaction=CompactionConfig(flush=False, prompt="x")), "compaction.prompt", {"compaction": {"flush": True}}),
        (MemoryConfig().replace({"chunking": {"overlap_tokens": 80}}), "chunking.overlap_tokens", {"chunking": {"style": "tokens"}}),
        (MemoryConfig().replace({"embedding": {"provider": "none"}, "search": {"vector_weight": 0.9}}), "search.vector_weight", {"embedding": {"provider": "static"}}),
        (MemoryConfig().replace({"embedding": {"query_seconds": 2}}), "embedding.query_seconds", {"embedding": {"provider": "openai"}}),
    ],
)  # fmt: skip
def test_a_setting_counts_as_set_if_it_differs_or_was_written_out(config, name, reader):
    (notice,) = config.find_unread_settings()
    assert notice.startswith(f"{name} is set and not read: it needs ")
    assert config.replace(reader).find_unread_settings() == ()
    assert replace(config).find_unread_settings() == (notice,)


def test_the_status_names_what_is_not_read(tmp_path):
    with Memory.open(tmp_path, config=MemoryConfig(chunking=ChunkingConfig(tokens=300))) as memory:
        notices = memory.status().notices
    assert [one.split()[0] for one in notices if "not read" in one] == ["chunking.tokens"]


def test_a_table_of_no_plugin_is_named(tmp_path):
    with Memory.open(tmp_path, config=MemoryConfig(plugins={"adit": {"enabled": True}}), embedder=None) as memory:
        assert "plugins.adit is set and not read: no installed plug-in has this name" in memory.status().notices
