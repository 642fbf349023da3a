"""Settings that a stranger put into a workspace: they hang nothing, open nothing else and cost next to nothing."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from cpu_time import least_seconds
from faults.hostile_workspace import HOSTILE_SETTINGS as HOSTILE
from faults.hostile_workspace import STARS
from processes import bind_socket

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.backends.workspace_setup import MAX_BYTES, MAX_CHARS, MAX_ENTRIES, with_settings_inside
from openclaw_memory.config.path_rules import is_matched, read_globs
from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import ConfigError

# The longest path of Linux, and the globs that were found to be the slowest for it.
LONG = "/".join(["a" * 255] * 16)[:4095]
SLOW = [STARS, "*" + "a" * 126 + "b", "**/" + "*a*/" * 30 + "b", "**/" + "a/**/" * 20 + "b", "*" + "[a-z]" * 25 + "b"]


@pytest.fixture
def planted(notes):
    def plant(content: str | bytes) -> Path:
        (notes / ".memory").mkdir(exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        (notes / ".memory/config.toml").write_bytes(data)
        return notes

    return plant


def _peak(work: Callable[[], MemoryConfig]) -> tuple[int, MemoryConfig]:
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


# --- what it says
@pytest.mark.fault(47)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(4)
def test_a_memory_opens_and_answers_whatever_its_folder_says(planted, name):
    folder = planted(HOSTILE[name])
    peak, _ = _peak(lambda: with_settings_inside(folder, MemoryConfig()))
    with Memory.open(folder, embedder=None) as memory:
        memory.sync()
        assert memory.search("boiler")
        settings = str(folder / ".memory/config.toml")
        told = [notice for notice in memory.status().notices if settings in notice]
    assert told or name in {"stars", "stars in include", "one folder, many names", "surrogate"}
    assert sum(map(len, told)) < 8000
    assert peak < 16 * 1024**2


def test_what_the_caller_says_himself_is_refused_with_a_typed_error(tmp_path):
    file = tmp_path / "settings.toml"
    for name in ("arrays", "digits", "unclosed", "NUL", "tables"):
        content = HOSTILE[name]
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(ConfigError, match=r"settings\.toml cannot be read as TOML"):
            MemoryConfig.from_toml(file)
    with pytest.raises(ConfigError, match=r"files\.exclude holds a pattern"):
        MemoryConfig(files=FilesConfig(exclude=("[",)))


def _fuzzed(seed: int) -> bytes:
    """Return a settings file, or a piece of one, with some of its bytes changed, repeated or left out."""
    chance = random.Random(seed)
    names = [name for name in HOSTILE if isinstance(HOSTILE[name], str)]
    texts = [str(HOSTILE[chance.choice(names)])[: chance.randrange(1, 4000)] for _ in range(chance.randrange(1, 4))]
    plain = '[chunking]\nmax_chars = 300\n[files]\nexclude = ["a/", "*.b"]\nextra_paths = ["docs"]\n[sync]\n'
    data = bytearray("\n".join([*texts, plain] if chance.random() < 0.5 else [plain, *texts]).encode())
    for _ in range(chance.randrange(20)):
        at = chance.randrange(len(data))
        if chance.random() < 0.5:
            data[at : at + chance.randrange(3)] = bytes([chance.choice(b"[]{}\"'.=\n#\\,! *0ax\xff")]) * chance.choice(
                [1, 1, 9]
            )
        else:
            piece = data[at : at + chance.randrange(1, 200)]
            data[at:at] = piece * chance.choice([1, 2, 30])
    return bytes(data[: MAX_BYTES + chance.choice([0, -1, 1])] if chance.random() < 0.9 else data)


@pytest.mark.fault(47)
@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_fuzzed_settings_open_within_fifty_milliseconds_of_a_processor(planted, count):
    with_settings_inside(planted("[files]"), MemoryConfig())  # loads the parser
    gc.collect()
    gc.freeze()  # what this process of tests holds besides takes longer to be looked through than any settings
    slowest = 0.0
    for seed in range(count):
        folder = planted(_fuzzed(seed))
        took = least_seconds(lambda folder=folder: with_settings_inside(folder, MemoryConfig()), enough=0.05)
        slowest = max(slowest, took)
        config = with_settings_inside(folder, MemoryConfig())
        assert sum(map(len, config.notices)) < 8000
        assert len(config.files.exclude) <= MAX_ENTRIES
    gc.unfreeze()
    print(f"\n{count:,} fuzzed settings: {slowest * 1000:.1f} ms at most")
    assert slowest < 0.05 or count < 10_000


# --- what lies in its place
IN_ITS_PLACE = {
    "a symlink": lambda place, secret: place.symlink_to(secret),
    "a folder": lambda place, _: place.mkdir(),
    "a FIFO": lambda place, _: os.mkfifo(place),
    "a socket": lambda place, _: bind_socket(place),
    "a sparse file of 2 GB": lambda place, _: place.touch() or os.truncate(place, 2 * 1024**3),
}


@pytest.mark.fault(47)
@pytest.mark.parametrize("kind", IN_ITS_PLACE)
def test_settings_that_are_no_small_regular_file_are_not_read(notes, tmp_path, kind):
    secret = tmp_path / "theirs.toml"
    secret.write_text("files.exclude = ['memory']\n")
    (notes / ".memory").mkdir()
    place = notes / ".memory/config.toml"
    IN_ITS_PLACE[kind](place, secret)
    peak, config = _peak(lambda: with_settings_inside(notes, MemoryConfig()))
    assert config.files == FilesConfig()
    assert [str(place) in notice for notice in config.notices] == [True]
    assert peak < 1024**2


def test_settings_below_a_workspace_that_is_itself_reached_through_a_symlink_count(notes, tmp_path):
    (notes / ".memory").mkdir()
    (notes / ".memory/config.toml").write_text("files.exclude = ['memory']\n")
    (tmp_path / "way").symlink_to(notes)
    with Memory.open(tmp_path / "way", embedder=None) as memory:
        assert memory.config.files.exclude == ("memory",)
        assert memory.config.notices == ()


def test_without_settings_nothing_is_changed(notes):
    config = MemoryConfig()
    assert with_settings_inside(notes, config) is config
    (notes / ".memory").write_text("a file in the place of the folder")
    assert with_settings_inside(notes, config) is config


# --- globs
@pytest.mark.fault(47)
@pytest.mark.parametrize("glob", SLOW, ids=lambda glob: glob[:12])
@pytest.mark.sampled(1)
def test_no_glob_keeps_a_path_waiting(glob):
    assert len(glob) <= MAX_CHARS
    for path in (LONG, "/".join(["a"] * 2048), "/".join(["aaa"] * 1024)):
        assert not is_matched(read_globs("files.exclude", (glob,) * MAX_ENTRIES), path)


def test_a_caller_may_give_slow_globs_too(notes):
    config = MemoryConfig(files=FilesConfig(exclude=(STARS, "*a" * 2000 + "b")))
    (notes / "memory" / f"{'a' * 200}.md").write_text("The boiler is old.\n")
    with Memory.open(notes, embedder=None, config=config) as memory:
        assert f"memory/{'a' * 200}.md" in memory.sync().added


PARTS = ["a", "b", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "\\*", "ab", "a*", "*b", ".md", "*.md"]


@pytest.mark.fault(47)
def test_globs_say_what_they_say_to_git(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    chance = random.Random(7)
    for _ in range(20):
        globs = tuple("".join(chance.choices(PARTS, k=chance.randrange(1, 7))) for _ in range(chance.randrange(1, 4)))
        names = [
            "".join(chance.choices(["a", "b", "ab", "c", ".md", "*"], k=chance.randrange(1, 4))) for _ in range(99)
        ]
        paths = {"/".join(chance.choices(names, k=chance.randrange(1, 6))) for _ in range(60)}
        (tmp_path / ".gitignore").write_text("\n".join(globs) + "\n")
        asked = subprocess.run(
            ["git", "-C", tmp_path, "check-ignore", "--no-index", "--stdin", "-z"],
            input="\0".join(sorted(paths)), capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        found = {path for path in paths if is_matched(read_globs("files.exclude", globs), path)}
        assert found == set(asked.stdout.split("\0")) - {""}, globs


@pytest.mark.parametrize(
    ("globs", "path", "expected"),
    [
        (("old/*", "!old/a.md"), "old/a.md", False),
        (("old/", "!old/a.md"), "old/a.md", False),  # git leaves a file out where its folder is
        (("old/", "!a.md"), "old/b.md", True),
        (("*.md", "!keep/"), "keep/a.md", True),
        (("!keep/a.md", "keep/"), "keep/a.md", True),
        (("old/", "!old/"), "old/a.md", False),
        (("*", "!*.md"), "a.md", False),
        (("a[!b]c",), "a/c", False),
        (("# a", "", "  ", "\\#b", "\\!c", "d\\ "), "#b", True),
        (("\\!c",), "!c", True),
        (("d\\ ",), "d ", True),
        (("/*.md",), "x/a.md", False),
        (("../ext/*.md",), "../ext/c.md", True),
    ],
)
def test_a_later_glob_brings_back_what_it_names(globs, path, expected):
    assert is_matched(read_globs("files.exclude", globs), path) is expected
