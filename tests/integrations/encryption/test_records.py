"""Records of high sensitivity are encrypted where the index is: the file moves with the sensitivity, and is never two."""

import subprocess
import sys

import pytest
from encrypted import ENCRYPTED, KEY, OTHER
from openclaw_memory_encryption import age
from processes import KILLED

from openclaw_memory import Memory
from openclaw_memory.errors import ConflictError, RecordError, SealedFileError

pytestmark = pytest.mark.usefixtures("with_key")
PLAIN_PATH, PATH = "memory/records/fact/health.blood.md", "memory/records/fact/health.blood.md.age"


def files(folder):
    return sorted(str(file.relative_to(folder)) for file in (folder / "memory" / "records").rglob("*.md*"))


def test_a_record_of_high_sensitivity_is_encrypted(memory, folder):
    done = memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    assert [done.record.path] == files(folder) == [PATH]
    assert b"negative" not in (folder / PATH).read_bytes()
    assert memory.records.get("fact", "health.blood").value == "O negative"
    assert [one.path for one in memory.records.find(key="health.*")] == [PATH]
    assert memory.records.find("blood")[0].path == PATH
    assert memory.search("blood", filter={"type": "fact"})[0].path == PATH
    assert [item.path for item in memory.control.inspect() if item.sensitivity == "high"] == [PATH]
    assert memory.records.list_problems() == []


def test_it_is_observed_confirmed_and_forgotten_like_others(memory, folder):
    memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    again = memory.records.remember("fact", "health.blood", "O negative")
    assert (again.record.path, again.record.sensitivity) == (PATH, "high")
    confirmed = memory.records.confirm("fact", "health.blood", value="A positive")
    assert (confirmed.path, confirmed.value) == (PATH, "A positive")
    assert len(memory.records.get("fact", "health.blood").history) == 2
    with pytest.raises(ConflictError):
        memory.records.remember("fact", "health.blood", "B", expected_version=1)
    assert memory.records.forget("fact", "health.blood")
    assert files(folder) == []


def test_the_file_moves_with_the_sensitivity(memory, folder):
    memory.records.remember("fact", "health.blood", "O negative", sensitivity="low")
    assert files(folder) == [PLAIN_PATH]
    raised = memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    assert (raised.record.path, files(folder)) == (PATH, [PATH])
    memory.sync()
    assert memory.search("blood")[0].path == PATH
    lowered = memory.records.remember("fact", "health.blood", "O negative", sensitivity="low")
    assert (lowered.record.path, files(folder)) == (PLAIN_PATH, [PLAIN_PATH])
    assert "O negative" in (folder / PLAIN_PATH).read_text()
    memory.sync()
    assert memory.search("blood")[0].path == PLAIN_PATH


def test_a_record_that_a_person_has_encrypted_stays_so(memory, folder):
    memory.records.remember("fact", "health.blood", "O negative", sensitivity="low")
    file = folder / PLAIN_PATH
    (folder / PATH).write_bytes(age.seal(file.read_bytes(), KEY))
    file.unlink()
    assert memory.records.remember("fact", "health.blood", "O negative").record.path == PATH
    assert files(folder) == [PATH]


def test_where_the_index_is_plain_nothing_is_encrypted(folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
        assert files(folder) == [PLAIN_PATH]


def test_an_encrypted_record_in_a_plain_memory_is_left_as_it_is(folder, tmp_path, monkeypatch):
    with Memory.open(folder, embedder=None, config=ENCRYPTED) as memory:
        memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    before = (folder / PATH).read_bytes()
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "of another user"))
    with Memory.open(folder, embedder=None) as memory:
        with pytest.raises(SealedFileError, match="openclaw-memory encrypt"):
            memory.records.remember("fact", "health.blood", "A")
        with pytest.raises(RecordError, match="openclaw-memory encrypt"):
            memory.records.get("fact", "health.blood")
    assert (folder / PATH).read_bytes() == before
    assert files(folder) == [PATH]


def test_a_record_without_its_key_is_a_problem_and_hides_no_other(memory, folder):
    memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    memory.records.remember("fact", "city", "Utrecht")
    (folder / PATH).write_bytes(age.seal(b"---\n", OTHER))
    assert [one.key for one in memory.records] == ["city"]
    assert "a key that is not here" in memory.records.list_problems()[0]


CHILD = f"""{KILLED}
import sys
from openclaw_memory import Memory, MemoryConfig
config = MemoryConfig(plugins={{'encryption': {{'enabled': True}}}})
memory = Memory.open(sys.argv[1], embedder=None, config=config)
killed(int(sys.argv[3]), 'replace', 'rename', 'unlink')
memory.records.remember('fact', 'health.blood', 'O negative', sensitivity=sys.argv[2])
os._exit(0)
"""


@pytest.mark.nightly
@pytest.mark.parametrize(("before", "after"), [("low", "high"), ("high", "low")])
def test_a_move_that_is_killed_leaves_one_file_that_can_be_read(tmp_path, before, after):
    ended = None
    for calls in range(8):
        folder = tmp_path / str(calls)
        (folder / "memory").mkdir(parents=True)
        with Memory.open(folder, embedder=None, config=ENCRYPTED) as memory:
            memory.records.remember("fact", "health.blood", "O negative", sensitivity=before)
        ended = subprocess.run([sys.executable, "-c", CHILD, folder, after, str(calls)], check=False).returncode
        with Memory.open(folder, embedder=None, config=ENCRYPTED) as memory:
            assert len(files(folder)) == 1
            assert memory.records.get("fact", "health.blood").value == "O negative"
            memory.records.remember("fact", "health.blood", "O negative", sensitivity=after)
            assert files(folder) in ([[PATH]] if after == "high" else [[PLAIN_PATH], [PATH]])
        if ended == 0:
            break
        assert ended == 9
    assert ended == 0
    assert calls >= 3
