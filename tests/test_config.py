"""Settings: what is clamped with a word, what is refused, and which file may set what."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from openclaw_memory import MemoryConfig
from openclaw_memory.backends.workspace_setup import MAX_CHARS, MAX_ENTRIES, apply_workspace_file
from openclaw_memory.config.checks import read_range, read_types
from openclaw_memory.config.config import check_config
from openclaw_memory.config.environment import locate_state
from openclaw_memory.config.sections import SECTIONS, EmbeddingConfig, FilesConfig, SearchConfig
from openclaw_memory.errors import ConfigError


def get(config: MemoryConfig, name: str) -> Any:
    part, key = name.split(".")
    return getattr(getattr(config, part), key)


def tell(notices: tuple[str, ...]) -> None:
    raise ConfigError("; ".join(notices))


def toml(folder: Path, text: str) -> Path:
    file = folder / "settings.toml"
    file.write_text(text, encoding="utf-8")
    return file


# --- values
def test_the_defaults_are_within_their_ranges_and_need_no_word():
    assert MemoryConfig().notices == ()
    assert MemoryConfig.openclaw().notices == ()


@pytest.mark.parametrize("end", [0, 1], ids=["low", "high"])
def test_the_ends_of_a_range_are_taken_as_they_are_and_numbers_beyond_are_clamped_with_a_notice(end):
    kinds = {(part, key): kind for part, section in SECTIONS.items() for key, kind in read_types(section).items()}
    ranges = {name: limits for name, kind in kinds.items() if (limits := read_range(kind)) is not None}
    assert len(ranges) > 20
    for (part, key), limits in ranges.items():
        limit = limits[end]
        if limit == float("inf"):
            continue
        at = MemoryConfig().replace({part: {key: limit}})
        beyond = MemoryConfig().replace({part: {key: limit - 1 if end == 0 else limit + 1}})
        assert (get(at, f"{part}.{key}"), get(beyond, f"{part}.{key}"), at.notices) == (limit, limit, ()), key
        assert any(f"{part}.{key}" in notice and "is used" in notice for notice in beyond.notices), key


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"search": {"max_results": "6"}}, "search.max_results must be a whole number, not '6'"),
        ({"search": {"max_results": True}}, "search.max_results"),
        ({"search": {"min_score": float("nan")}}, "search.min_score"),
        ({"search": {"min_score": "low"}}, "search.min_score must be a number, not 'low'"),
        ({"search": {"fusion": "rrf"}}, "search.fusion must be one of standardised, weighted, boosted, not 'rrf'"),
        ({"chunking": {"style": "words"}}, "chunking.style"),
        ({"files": {"extra_paths": "x"}}, "files.extra_paths must be a list of strings, not 'x'"),
        ({"sync": {"on_open": 1}}, "sync.on_open must be true or false, not 1"),
        ({"embedding": {"model": 3}}, "embedding.model must be a string, not 3"),
        ({"serch": {}}, "serch"),
        ({"search": {"max_result": 6}}, "search.max_result"),
        ({"search": 6}, "search"),
    ],
    ids=str,
)
def test_a_wrong_type_choice_or_name_is_refused_by_name(part, named):
    with pytest.raises(ConfigError, match=re.escape(named)):
        MemoryConfig().replace(part)


KEY = "sk-proj-4rX9kQ7zAb12Cd34Ef56"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _: check_config({"embedding": {"providers": {"openai": {"api_key": KEY}}}}),
        lambda _: MemoryConfig(embedding={"providers": {"openai": {"api_key": KEY}}}),
        lambda _: MemoryConfig().replace({"embedding": {"providers": {"openai": KEY}}}),
        lambda _: MemoryConfig().replace({"search": {"openai": KEY}}),
        lambda _: MemoryConfig().replace({"search": {"openai": {"api_key": KEY}}}),
        lambda _: MemoryConfig().replace({"search": {"api_key": KEY}, "providers": KEY}),
        lambda _: MemoryConfig().replace({"search": {"fusion": KEY * 2}}),
        lambda _: MemoryConfig().replace({"search": {"min_score": {"api_key": KEY}}}),
        lambda file: MemoryConfig.from_toml(file(f'[defaults]\nembedding.providers.openai = "{KEY}"\n')),
        lambda file: MemoryConfig.from_toml(file(f'defaults = "{KEY}{KEY}"\n')),
        lambda file: MemoryConfig.from_toml(file(f'[agents]\na = {{ key = "{KEY}" }}\n'), agent="a"),
        lambda file: tell(of_workspace(MemoryConfig(), file(f'[chunking]\nstyle = {{ key = "{KEY}" }}\n')).notices),
    ],
)  # fmt: skip
def test_no_message_about_settings_shows_a_key(tmp_path, wrong):
    with pytest.raises(ConfigError) as told:
        wrong(lambda text: toml(tmp_path, text))
    assert KEY[8:] not in str(told.value)


def test_a_part_of_another_kind_is_refused():
    with pytest.raises(ConfigError, match="chunking must be a Chunking"):
        MemoryConfig(chunking=SearchConfig())  # type: ignore[arg-type]


# --- weights
@pytest.mark.parametrize(
    ("vector", "expected"), [(0.7, (0.7, 0.3)), (1, (1, 0)), (0, (0, 1)), (7.0, (1, 0)), (-1, (0, 1))]
)
def test_weights_sum_to_one(vector, expected):
    config = MemoryConfig(search=SearchConfig(vector_weight=vector))
    assert (config.search.vector_weight, config.search.text_weight) == pytest.approx(expected)
    assert bool(config.notices) == (vector not in (0.7, 1, 0))


@pytest.mark.parametrize(
    ("name", "config", "numbers"),
    [
        (
            "openclaw",
            MemoryConfig.openclaw("2026.9"),
            {
                "chunking.style": "tokens",
                "chunking.tokens": 400,
                "search.vector_weight": 0.7,
                "search.min_score": 0.35,
                "search.max_results": 6,
                "search.snippet_chars": 700,
                "search.answer": "chunks",
                "embedding.provider": "auto",
            },
        ),
        ("openclaw-2026.9", MemoryConfig.openclaw(), {}),
        (
            "openclaw-2026.2",
            MemoryConfig.openclaw("2026.2"),
            {"chunking.style": "lines", "search.candidates": 200, "search.fusion": "weighted", "recall.get_lines": 50},
        ),
        ("opencode", MemoryConfig.opencode(), {"search.max_results": 10, "embedding.max_entries": 10_000}),
    ],
)
def test_a_preset_has_the_numbers_of_its_program_and_is_named_in_a_file(tmp_path, name, config, numbers):
    assert {key: get(config, key) for key in numbers} == numbers
    assert config.notices == ()
    assert MemoryConfig.from_toml(toml(tmp_path, f'[defaults]\npreset = "{name}"\n')) == config


@pytest.mark.parametrize("version", ["2026.3", "", None, 2026.2])
def test_another_version_of_openclaw_is_refused_with_those_that_there_are(version):
    with pytest.raises(ConfigError, match=r"2026\.9, 2026\.2"):
        MemoryConfig.openclaw(version)


def test_a_chunk_of_the_default_fits_a_snippet():
    assert MemoryConfig().chunking.max_chars == MemoryConfig().search.snippet_chars


def test_settings_cannot_be_changed_once_made():
    config = MemoryConfig()
    with pytest.raises(AttributeError, match="immutable"):
        config.search = SearchConfig()  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        config.search.mmr = 0.5  # type: ignore[misc]


def test_an_update_replaces_what_it_names_and_nothing_else():
    before = MemoryConfig(search=SearchConfig(max_results=3), files=FilesConfig(exclude=("x",)))
    after = before.replace({"search": {"min_score": 0.2}})
    assert after.search == SearchConfig(max_results=3, min_score=0.2)
    assert after.files == before.files
    assert before.search == SearchConfig(max_results=3)


# --- TOML ---

LAYERS = """
[defaults]
search.max_results = 4
search.min_score = 0.1
files.extra_paths = ["docs", "more"]

[agents.research]
search.max_results = 9
embedding.provider = "none"

[agents.classic]
preset = "openclaw"
search.mmr = 0.7
"""


def test_an_agents_table_lies_over_the_defaults_key_by_key(tmp_path):
    file = toml(tmp_path, LAYERS)
    config = MemoryConfig.from_toml(file, agent="research")
    assert (config.search.max_results, config.search.min_score) == (9, 0.1)
    assert config.files.extra_paths == ("docs", "more")
    assert config.embedding == EmbeddingConfig(provider="none")


@pytest.mark.parametrize("agent", [None, "unheard-of"])
def test_without_a_table_of_its_own_an_agent_has_the_defaults(tmp_path, agent):
    config = MemoryConfig.from_toml(toml(tmp_path, LAYERS), agent=agent)
    assert (config.search.max_results, config.embedding.provider) == (4, "static")


def test_an_agent_that_the_file_does_not_name_is_told_so(tmp_path):
    file = toml(tmp_path, LAYERS)
    assert any("[agents.unheard-of]" in notice for notice in MemoryConfig.from_toml(file, agent="unheard-of").notices)
    assert MemoryConfig.from_toml(file, agent="research").notices == MemoryConfig.from_toml(file).notices == ()


def test_a_preset_lies_below_both_layers(tmp_path):
    config = MemoryConfig.from_toml(toml(tmp_path, LAYERS), agent="classic")
    assert config.chunking.style == "tokens"
    assert (config.search.max_results, config.search.min_score, config.search.mmr) == (4, 0.1, 0.7)


def test_an_agent_can_go_back_to_the_default_preset(tmp_path):
    file = toml(tmp_path, '[defaults]\npreset = "openclaw"\n[agents.new]\npreset = "default"\n')
    assert MemoryConfig.from_toml(file) == MemoryConfig.openclaw()
    assert MemoryConfig.from_toml(file, agent="new") == MemoryConfig()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[defaults", "settings.toml"),
        ("[default]\n", r"\[default\]"),
        ("[defaults]\nsearch.results = 3\n", r"search\.results"),
        ("[defaults]\nsearch = 3\n", r"\[search\]"),
        ("[agents]\na = 3\n", r"\[a\]"),
        ('[defaults]\npreset = "fast"\n', "fast"),
        ('[defaults]\nsearch.max_results = "many"\n', r"search\.max_results"),
    ],
    ids=lambda value: value.replace("\n", " ") if "[" in value else None,
)
def test_a_file_that_says_nothing_sensible_is_refused_by_name(tmp_path, text, named):
    with pytest.raises(ConfigError, match=named):
        MemoryConfig.from_toml(toml(tmp_path, text), agent="a")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml"):
        MemoryConfig.from_toml(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        MemoryConfig.from_toml(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(ConfigError, match=r"latin\.toml"):
        MemoryConfig.from_toml(tmp_path / "latin.toml")


# --- a file inside a workspace
def of_workspace(config, file):
    return apply_workspace_file(config, file.read_text(encoding="utf-8"), str(file))


def test_a_workspace_may_set_globs(tmp_path):
    config = of_workspace(MemoryConfig(), toml(tmp_path, '[files]\ninclude = ["a/*"]\nexclude = ["b"]\n'))
    assert (config.files.include, config.files.exclude) == (("a/*",), ("b",))
    assert config.notices == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[embedding]\nprovider = "openai"\n', "embedding.provider"),
        ('[files]\nextra_paths = ["/etc"]\n', "files.extra_paths '/etc'"),
        ('[files]\nextra_paths = ["docs/../../other"]\n', "files.extra_paths 'docs/../../other'"),
        ('[files]\nextra_paths = [".git"]\n', "files.extra_paths '.git'"),
        ('[files]\nextra_paths = ["./web/node_modules/x"]\n', "files.extra_paths './web/node_modules/x'"),
        ('[files]\nextra_paths = ["AGENTS.md"]\n', "files.extra_paths 'AGENTS.md'"),
        ('[files]\nextra_paths = ["a\\u001bb"]\n', r"files.extra_paths 'a\x1bb'"),
        ("[search]\nmin_score = 0.9\n", "search.min_score"),
        ('[embedding]\nbase_url = "http://evil"\n', "embedding.base_url"),
        ('[defaults]\nembedding.provider = "openai"\n', "defaults.embedding"),
        ('command = "rm"\n', "command"),
    ],
)
def test_a_workspace_may_set_nothing_that_leads_out_and_is_told_so(tmp_path, text, named):
    config = of_workspace(MemoryConfig(), toml(tmp_path, text))
    assert structs.replace(config, notices=()) == MemoryConfig()
    assert any(f": {named} may not be set" in notice for notice in config.notices)


@pytest.mark.parametrize(
    "table",
    [
        'folder = "../out"',
        'folder = "/tmp"',
        'folder = ".git"',
        'folder = "a\\\\b"',
        'name = "AGENTS"',
        'name = "../../YYYY-MM-DD"',
    ],
)
def test_a_journal_outside_or_of_no_day_is_an_error_and_from_a_workspace_ignored(tmp_path, table):
    with pytest.raises(ConfigError, match="journal"):
        MemoryConfig().replace({"journal": tomllib.loads(table)})
    config = of_workspace(MemoryConfig(), toml(tmp_path, f"[journal]\n{table}\n"))
    assert config.journal == MemoryConfig().journal
    assert "journal" in config.notices[0]
    own = MemoryConfig().replace({"journal": {"folder": "Diary"}})
    assert of_workspace(own, toml(tmp_path, '[journal]\nfolder = "Daily"\n')).journal.folder == "Diary"


@pytest.mark.parametrize(
    ("files", "text", "expected", "refused"),
    [
        (FilesConfig(exclude=("private/",)), "exclude = []", FilesConfig(exclude=("private/",)), None),
        (FilesConfig(exclude=("private/",)), 'exclude = ["old/"]', FilesConfig(exclude=("private/", "old/")), None),
        (
            FilesConfig(exclude=("private/",)),
            'exclude = ["!private/x.md"]',
            FilesConfig(exclude=("private/",)),
            "files.exclude '!",
        ),
        (FilesConfig(), 'exclude = ["old/*", "!old/a.md"]', FilesConfig(exclude=("old/*", "!old/a.md")), None),
        (FilesConfig(include=("a/",)), 'include = ["b/"]', FilesConfig(include=("a/",)), "files.include"),
        (FilesConfig(include=("a/",)), "include = 5", FilesConfig(include=("a/",)), "files.include"),
        (FilesConfig(include=("a/",)), "include = []", FilesConfig(include=("a/",)), "files.include"),
        (FilesConfig(), 'include = ["b/"]', FilesConfig(include=("b/",)), None),
    ],
    ids=str,
)
def test_the_globs_of_a_workspace_leave_out_more_and_never_less(tmp_path, files, text, expected, refused):
    file = toml(tmp_path, f"[files]\n{text}\n")
    config = of_workspace(MemoryConfig(files=files), file)
    assert config.files == expected
    assert [refused] == [refused for notice in config.notices if f": {refused}" in notice] or not refused
    assert bool(config.notices) is bool(refused)
    again = of_workspace(config, file)
    assert (again.files, again.notices) == (config.files, config.notices)


@pytest.mark.parametrize("path", ["docs", "./docs/", "a.b/c", "ア　イ", "memory", "docs/AGENTS.md", "plan.md"])
def test_a_workspace_may_add_what_lies_inside_and_is_named_by_itself(tmp_path, path):
    config = of_workspace(MemoryConfig(), toml(tmp_path, f'[files]\nextra_paths = ["{path}"]\n'))
    assert (config.files.extra_paths, config.notices) == ((path,), ())


@pytest.mark.parametrize("part", [{"files": {"extra_paths": ["a\0"]}}, {"sessions": {"folder": "\0"}}], ids=str)
def test_no_path_holds_a_nul(part):
    with pytest.raises(ConfigError, match="holds a NUL"):
        MemoryConfig().replace(part)


def test_a_workspace_names_so_many_globs_and_no_longer_ones(tmp_path):
    globs = [f"{number}/" for number in range(MAX_ENTRIES + 2)]
    config = of_workspace(MemoryConfig(), toml(tmp_path, f"files.exclude = {['x' * MAX_CHARS + 'y', *globs]}\n"))
    assert config.files.exclude == tuple(globs[:MAX_ENTRIES])
    assert [words in notice for words, notice in zip(("xxx", "2 entries"), config.notices, strict=True)] == [True] * 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[chunking]\nmax_chars = 300\n", "chunking.max_chars may not be set"),
        ("[chunking", "cannot be read as TOML"),
        ('files.exclude = "b"', "files.exclude must be a list"),
        ('files.exclude = ["a", 1]', "files.exclude must be a list"),
        ('files.exclude = ["[z-a]"]', r"files.exclude holds a pattern that cannot be read: '\[z-a\]'"),
    ],
)
def test_what_is_wrong_in_a_workspace_is_ignored_and_the_rest_counts(tmp_path, text, named):
    config = of_workspace(MemoryConfig(), toml(tmp_path, f"files.extra_paths = ['docs']\n{text}"))
    assert config.files.extra_paths == (() if text == "[chunking" else ("docs",))
    assert structs.replace(config, notices=(), files=FilesConfig()) == MemoryConfig()
    assert [re.search(named, notice) is not None for notice in config.notices] == [True]


# --- the environment
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "/home/ines/.openclaw"),
        ({"OPENCLAW_HOME": "/data"}, "/data/.openclaw"),
        ({"OPENCLAW_STATE_DIR": "/state", "OPENCLAW_HOME": "/data"}, "/state"),
        ({"OPENCLAW_STATE_DIR": "~/state"}, "/home/ines/state"),
        ({"OPENCLAW_STATE_DIR": ""}, "/home/ines/.openclaw"),
    ],
    ids=str,
)
def test_the_state_folder_is_where_openclaw_keeps_it(monkeypatch, variables, expected):
    for name in ("OPENCLAW_STATE_DIR", "OPENCLAW_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ines")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert locate_state() == Path(expected)
