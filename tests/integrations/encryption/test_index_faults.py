"""An encrypted index under faults: flipped bits, missing keys, kills, many processes; its text is nowhere on the disk."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import processes
import pytest
from damages import DAMAGES, bit_flip
from encrypted import ENCRYPTED, kept_keys, key_of, open_store
from index_files import copy_workspace, index_file, index_folder
from openclaw_memory_encryption import AgeCodec, decrypt_index, encrypt_index, rotate_index_key
from openclaw_memory_encryption.keys import State
from processes import QUIET, points, python, synced, traced, why_not_traced

from openclaw_memory import Memory
from openclaw_memory.config.environment import locate_user_data
from openclaw_memory.errors import IndexLockedError, UserKeyError
from openclaw_memory.security.keys import VARIABLE

CONFIG = QUIET.replace({"plugins": ENCRYPTED.plugins})
WORDS = 20
SENTENCE = "The marmalade boathouse belongs to Quillfeather."
# The beginnings of its words, as the index holds stems.
SECRETS = (b"marmal", b"boathous", b"quillfeath")
needs_strace = pytest.mark.skipif(why_not_traced() is not None, reason=str(why_not_traced()))


@pytest.fixture(scope="module", autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keys of these tests alone, for other processes too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path_factory.mktemp("data")))
        patch.delenv(VARIABLE, raising=False)
        yield


def workspace(notes: Path) -> Path:
    (notes / "memory").mkdir(parents=True)
    for number in range(WORDS):
        lines = [f"memo word{number}x line {line} of apples and pears" for line in range(30)]
        (notes / f"memory/{number}.md").write_text("\n".join(lines) + "\n")
    (notes / "MEMORY.md").write_text(f"memo {SENTENCE}\n")
    return notes


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synced notes with an encrypted index."""
    notes = workspace(tmp_path_factory.mktemp("encrypted") / "notes")
    with Memory.open(notes, embedder="hashing", config=CONFIG) as memory:
        assert memory.sync().ok
    return notes


@pytest.fixture
def notes(begun: Path, tmp_path: Path) -> Path:
    return copy_workspace(begun, tmp_path / "notes")


def content(notes: Path) -> dict[str, Any]:
    """What the index of notes says."""
    return processes.content(index_file(notes), AgeCodec(notes, QUIET).make_hook(index_file(notes)))


def telling(folder: Path) -> list[str]:
    """The files below a folder whose bytes hold a word of the sentence."""
    return [
        str(file.relative_to(folder))
        for file in sorted(folder.rglob("*"))
        if file.is_file() and any(word in file.read_bytes().lower() for word in SECRETS)
    ]


# --- bits and pages
@pytest.mark.fault(7)
def test_each_of_a_hundred_flipped_bits_of_an_encrypted_index_is_detected(notes):
    index = index_file(notes)
    sound = index.read_bytes()
    missed = []
    for number in range(100):
        data = bytearray(sound)
        bit_flip(data, random.Random(number))
        index.write_bytes(data)
        if not problems(notes):
            missed.append(number)
    assert missed == []


@pytest.mark.fault(7)
@pytest.mark.nightly
def test_a_flipped_bit_at_the_beginning_of_an_encrypted_index_is_detected_or_means_nothing(notes):
    """The first 16 bytes are a salt for passwords, which a raw key has no use for; byte 19 is set right again."""
    index = index_file(notes)
    sound, right, missed = index.read_bytes(), content(notes), set()
    for bit in range(8 * 32):
        data = bytearray(sound)
        data[bit // 8] ^= 1 << bit % 8
        index.write_bytes(data)
        if not problems(notes):
            missed.add(bit // 8)
            if bit % 8 == 1:
                assert content(notes) == right, f"bit {bit}"
    assert missed == {*range(16), 19}


def problems(notes: Path) -> tuple[str, ...]:
    """What is wrong with an index, by a look at each of its pages."""
    with closing(open_store(index_file(notes), root=notes)) as store:
        return store.verify()


@pytest.mark.fault(7)
@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.sampled(2)
def test_a_damaged_encrypted_index_is_built_again_with_its_key(tmp_path, begun, damage, times):
    key, right = key_of(begun), content(begun)
    for number in range(times):
        dice = random.Random(f"{damage.__name__} {number}")
        notes = copy_workspace(begun, tmp_path / str(number))
        index = index_file(notes)
        data = bytearray(index.read_bytes())
        damage(data, dice)
        index.write_bytes(data)
        asked = dice.randrange(WORDS)
        with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
            assert memory.search(f"word{asked}x")[0].path == f"memory/{asked}.md"
            memory.sync()
            memory.sync(force=True)
            assert telling(index_folder(notes)) == []
        assert not list(index.parent.glob("*.damaged-*"))
        assert key_of(notes) == key
        assert content(notes) == right
        shutil.rmtree(notes)


# --- keys
@pytest.mark.fault(38)
@pytest.mark.parametrize("way", ["no key", "no data folder", "another key and no data folder"])
def test_without_its_key_a_memory_says_so_and_leaves_the_index_as_it_is(notes, way, tmp_path, monkeypatch):
    index = index_file(notes)
    if way == "no key":
        shutil.move(locate_user_data() / "keys", tmp_path / "keys")
    else:
        monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "another"))
    if "another key" in way:
        monkeypatch.setenv(VARIABLE, os.urandom(32).hex())
    before = index.read_bytes()
    with Memory.open(notes, embedder="hashing", config=CONFIG, index_path=index) as memory:
        for call in (lambda: memory.search("word7x"), memory.status, memory.sync, lambda: memory.sync(force=True)):
            with pytest.raises(UserKeyError, match="keys" if way == "no key" else "delete the index"):
                call()
        assert memory.get("memory/7.md", start=1, lines=1).text.startswith("memo word7x")
    assert index.read_bytes() == before
    assert telling(index.parent) == []
    if way == "no key":
        shutil.move(tmp_path / "keys", locate_user_data() / "keys")
    monkeypatch.undo()
    assert content(notes)


DOING = """
import logging, os, sys
from pathlib import Path
logging.basicConfig(level=logging.DEBUG, filename=sys.argv[2])
from openclaw_memory import Memory, MemoryConfig
from openclaw_memory_encryption import encrypt_index, rotate_index_key
from openclaw_memory.config.environment import locate_workspace_data
notes = Path(sys.argv[1])
index = locate_workspace_data(notes) / "index.sqlite"
def memory():
    return Memory.open(notes, embedder="hashing", config=MemoryConfig(plugins={'encryption': {'enabled': True}}))
os.getpgid(0)
if index.exists():
    encrypt_index(notes, index)
with memory() as one:
    one.sync()
    assert len(one.search("who owns the marmalade boathouse"))
    one.sync(force=True)
    one.append("memo of plums", date="2026-11-21")
    one.sync()
    one.status(deep=True)
rotate_index_key(notes, index)
content = bytearray(index.read_bytes())
content[40_000:41_000] = bytes(1000)
index.write_bytes(content)
with memory() as one:
    one.search("who owns the marmalade boathouse")
    one.sync(force=True)
    (notes / "MEMORY.md").unlink()
    one.sync()
os.getpgid(0)
"""


@pytest.mark.fault(38)
@needs_strace
@pytest.mark.nightly
@pytest.mark.parametrize("was_plain", [False, True])
def test_no_text_is_written_to_any_file_by_whatever_is_done_with_an_encrypted_index(tmp_path, was_plain):
    notes = workspace(tmp_path / "notes")
    if was_plain:
        synced(notes)
        assert telling(index_folder(notes)) == ["index.sqlite"]
    log, writes = tmp_path / "log", tmp_path / "writes"
    calls = "trace=write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,getpgid"
    done = traced(DOING, notes, log, options=("-o", writes, "-s", str(1 << 20), "-e", calls))
    assert done.returncode == 0, done.stderr
    _, inside, _ = re.split(r"getpgid\(0\)", writes.read_text(encoding="latin-1"))
    assert inside.count("pwrite64(") > 100
    assert [word for word in SECRETS if word.decode() in inside.lower()] == []
    assert telling(tmp_path) == []


# --- kills

CHANGES = {"encrypt": encrypt_index, "decrypt": decrypt_index, "rotate": rotate_index_key}
CHANGE = """
import os, sys
import filelock, secrets
from pathlib import Path
from openclaw_memory.config.environment import locate_workspace_data
from openclaw_memory_encryption import decrypt_index, encrypt_index, rotate_index_key
notes = Path(sys.argv[1])
index = locate_workspace_data(notes) / "index.sqlite"
os.getpgid(0)
{change}(notes, index)
os.getpgid(0)
"""


@pytest.fixture(params=CHANGES)
def change(request) -> str:
    return request.param


@pytest.fixture
def before(notes: Path, change: str) -> Path:
    """An index as the change finds it."""
    if change == "encrypt":
        decrypt_index(notes, index_file(notes))
    return notes


@pytest.mark.fault(38)
@needs_strace
@pytest.mark.parametrize("is_all", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_change_of_the_key_killed_at_any_system_call_leaves_the_old_key_or_the_new_and_is_finished(
    tmp_path, before, change, is_all
):
    code = CHANGE.format(change=CHANGES[change].__name__)
    old, right = key_of(before), content(before)
    traced(code, copy_workspace(before, tmp_path / "warm"), options=("-o", os.devnull))  # it may write byte code
    calm = traced(code, copy_workspace(before, tmp_path / "calm"), options=("-o", tmp_path / "calls"))
    assert calm.returncode == 0, calm.stderr
    found = list(points((tmp_path / "calls").read_text(encoding="utf-8")))
    assert {"pwrite64", "fsync", "rename", "unlink"} <= {call for call, _ in found}
    renames = (point for point in found if point[0] == "rename")
    at = found if is_all else sorted({found[0], *renames, *found[-8::3], found[-1]}, key=found.index)

    there = kept_keys()

    def killed_at(point: tuple[str, int]) -> tuple[str | None, str | None]:
        call, number = point
        notes = copy_workspace(before, tmp_path / f"{call}-{number}")
        index = index_file(notes)
        options = ("-o", os.devnull, "-e", f"inject={call}:signal=KILL:when={number}")
        assert traced(code, notes, options=options).returncode, f"was not killed at {call} {number}"
        with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
            results = memory.search("word7x")
            assert results[0].path == "memory/7.md", f"killed at {call} {number}"
            assert results.reason is None, f"killed at {call} {number}"
        now = key_of(notes)
        CHANGES[change](notes, index)
        after = key_of(notes)
        assert (after is None) == (change == "decrypt")
        assert after != old
        assert State(notes).key_ids == ((after,) if after else ())
        assert content(notes) == right
        assert not list(index.parent.glob("*.rebuild-*"))
        assert after is None or telling(index.parent) == []
        shutil.rmtree(notes)
        return now, after

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(killed_at, at))
    assert {now != old for now, _ in ends} == {False, True}
    assert kept_keys() - there == {key for end in ends for key in end} - {old, None}, "a key belongs to nothing"


# --- many processes

SEARCHING = """
import sys
from pathlib import Path
from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.errors import IndexLockedError
config = MemoryConfig(sync=SyncConfig(on_search=False, before_search=False))
print("ready", flush=True)
done = 0
while not Path(sys.argv[2]).exists():
    with Memory.open(sys.argv[1], embedder="hashing", config=config) as memory:
        results = memory.search("word7x")
        assert results[0].path == "memory/7.md" and results.reason is None, results
        done += 1
print(done)
"""


@pytest.mark.fault(38)
@pytest.mark.parametrize("times", [2, pytest.param(60, marks=pytest.mark.nightly)])
def test_processes_that_open_an_index_while_its_key_changes_find_what_is_there(tmp_path, notes, times):
    index, stop = index_file(notes), tmp_path / "stop"
    right = content(notes)
    children = [python(SEARCHING, notes, stop, stderr=subprocess.PIPE) for _ in range(1 + times // 60)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    try:
        for _ in range(times):
            rotate_at_last(notes, index)
    finally:
        stop.touch()
        said = [child.communicate(timeout=120) for child in children]
    assert [error for _, error in said] == [""] * len(children)
    assert all(int(done) > 0 for done, _ in said)
    assert content(notes) == right


def rotate_at_last(notes: Path, index: Path) -> None:
    """Change the key as soon as no search has the index open."""
    while True:
        with suppress(IndexLockedError):
            rotate_index_key(notes, index, wait=10)
            return
