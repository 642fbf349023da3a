"""Records of high sensitivity: signed when they are written, checked at every door, and shown nowhere once forged."""

import secrets
import shutil

import pytest

from openclaw_memory import Memory, errors
from openclaw_memory.records import RecordSource
from openclaw_memory.security import keys
from openclaw_memory.security.keys import VARIABLE, Key
from openclaw_memory.tools import memory_tools

DOOR = "memory/records/fact/door.code.md"
SECRET = bytes(range(32))


@pytest.fixture(autouse=True)
def key(tmp_path, monkeypatch):
    """A user whose data folder is new, and who has set no key."""
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "2026-02-09.md").write_text("# 2026-02-09\n\nThe door was painted.\n")
    return folder


@pytest.fixture
def memory(root):
    with Memory.open(root, embedder=None) as memory:
        memory.records.remember("fact", "door.code", "amber seven", sensitivity="high")
        memory.sync()
        yield memory


def change(root, *pairs, path=DOOR):
    """Edit a file as another program does."""
    file = root / path
    text = file.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)


def without(root, *names, path=DOOR):
    """Take fields out of a file."""
    file = root / path
    kept = [line for line in file.read_text().split("\n") if line.partition(":")[0] not in names]
    file.write_text("\n".join(kept))


def test_a_record_of_high_sensitivity_is_signed_and_found_like_others(memory, root):
    assert "signature: " in (root / DOOR).read_text()
    assert memory.records.get("fact", "door.code").value == "amber seven"
    assert memory.search("door code").results[0].path == DOOR
    assert "amber seven" in memory.get(DOOR).text
    assert memory.status(deep=True).notices == ()
    assert memory.records.list_unsigned() == []


def test_records_of_less_sensitivity_are_not_signed_and_may_be_edited_by_hand(memory, root):
    memory.records.remember("fact", "tea", "green", sensitivity="medium")
    path = "memory/records/fact/tea.md"
    assert "signature" not in (root / path).read_text()
    change(root, ("green", "black"), path=path)
    assert memory.records.get("fact", "tea").value == "black"


@pytest.mark.parametrize("syncs", [False, True])
def test_a_status_names_forged_records_that_nothing_has_read_before_also_while_a_sync_is_under_way(memory, root, syncs):
    memory.close()
    change(root, ("amber", "copper"))
    shutil.copy(root / DOOR, root / DOOR.replace("door.code", "gate.code"))
    with Memory.open(root, embedder=None) as other, Memory.open(root, embedder=None) as third:
        if syncs:
            other.sync()
        with third._builtin.service.store().lock("sync", 0):
            said = other.status().notices
        for path in (DOOR, DOOR.replace("door.code", "gate.code")):
            assert [line for line in said if line.startswith(f"{path} has changed since it was signed")], said
        assert "a sync is under way" in said
        other.records.sign(DOOR)
        assert not [line for line in other.status().notices if DOOR in line]


@pytest.mark.fault(63)
def test_every_field_is_signed(memory, root):
    whole = (root / DOOR).read_text()
    names = {line.partition(":")[0] for line in whole.split("---")[1].split("\n") if line} - {"openclaw_memory"}
    assert {"memory_id", "value", "sensitivity", "ttl", "version", "history", "tokens", "waiting"} <= names
    for name in names:
        without(root, name)
        with pytest.raises(errors.RecordError, match="sign"):
            memory.get(DOOR)
        (root / DOOR).write_text(whole)


def test_after_a_record_was_forgotten_another_may_have_its_place(memory, root):
    memory.records.forget("fact", "door.code")
    memory.records.remember("fact", "door.code", "birch", sensitivity="low")
    assert "signature" not in (root / DOOR).read_text()
    assert memory.records.get("fact", "door.code").value == "birch"


def test_a_record_that_was_lowered_by_the_library_stays_signed(memory, root):
    memory.records.remember("fact", "door.code", "amber seven", sensitivity="low")
    assert memory.records.get("fact", "door.code").sensitivity == "low"
    change(root, ("amber", "copper"))
    with pytest.raises(errors.RecordError, match="sign"):
        memory.get(DOOR)


@pytest.mark.fault(63)
def test_nothing_that_an_agent_calls_vouches_for_a_forged_record(memory, root):
    change(root, ("door.code: amber seven", "door.code: amber eight"))
    before = (root / DOOR).read_bytes()
    with pytest.raises(errors.RecordError, match="openclaw-memory sign"):
        memory.records.remember("fact", "door.code", "amber eight", sensitivity="high")
    with pytest.raises(errors.RecordError, match="sign"):
        memory.records.confirm("fact", "door.code")
    tools = {tool.name: tool for tool in memory_tools(memory, include="append remember confirm".split())}
    for name in ("memory_remember", "memory_confirm"):
        answer = tools[name].run({"type": "fact", "key": "door.code", "value": "amber eight"})
        assert answer.data["status"] == "unavailable"
    memory.heartbeat()
    assert (root / DOOR).read_bytes() == before


@pytest.mark.fault(63)
def test_a_forged_expiry_has_no_record_deleted(memory, root):
    change(root, ("ttl: ", "ttl: 1"), ("updated_at: ", 'updated_at: "2001-01-01T00:00:00Z"\nother: '))
    assert memory.records.expire() == []
    assert memory.heartbeat().tasks
    assert (root / DOOR).exists()


def test_a_person_looks_at_a_changed_record_and_signs_it(memory, root):
    change(root, ("door.code: amber seven", "door.code: amber eight"))
    [one] = memory.records.list_unsigned()
    assert (one.path, one.value) == (DOOR, "amber eight")
    signed = memory.records.sign(one.path, expected=one)
    assert (signed.value, signed.problem) == ("amber eight", None)
    assert memory.records.get("fact", "door.code").value == "amber eight"
    assert memory.records.get("fact", "door.code").history[-1].source.kind == "user"
    memory.sync()
    assert memory.search("amber eight").results[0].path == DOOR
    assert memory.status(deep=True).notices == ()


def test_what_changes_after_it_was_looked_at_is_not_signed(memory, root):
    change(root, ("door.code: amber seven", "door.code: amber eight"))
    [one] = memory.records.list_unsigned()
    change(root, ("door.code: amber eight", "door.code: amber nine"))
    for seen in (one, one.digest):
        with pytest.raises(errors.ConflictError):
            memory.records.sign(DOOR, expected=seen)
    assert len(memory.records.list_unsigned()) == 1


def test_what_needs_no_signature_is_not_signed(memory):
    memory.records.remember("fact", "tea", "green")
    with pytest.raises(errors.InvalidInputError, match="needs no signature"):
        memory.records.sign("memory/records/fact/tea.md")
    with pytest.raises(errors.NotFoundError):
        memory.records.sign("memory/records/fact/coffee.md")


def test_a_record_of_before_there_were_signatures_is_reported_and_signed_by_one_command(memory, root, run):
    path = "memory/records/fact/safe.md"
    memory.records.remember("fact", "safe", "under the stairs", sensitivity="medium")
    change(root, ('sensitivity: "medium"', 'sensitivity: "high"'), path=path)
    notices = "\n".join(memory.status(deep=True).notices)
    assert f"openclaw-memory sign {path}" in notices
    code, out, _ = run("sign", "-w", root)
    assert (code, "under the stairs" in out, "not signed" in out) == (1, True, True)
    assert run("sign", "-w", root, path, "--yes").code == 0
    assert memory.records.get("fact", "safe").value == "under the stairs"


def test_another_key_is_reported_with_what_to_do(memory, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "of another user"))
    [one] = memory.records.list_unsigned()
    assert VARIABLE in one.problem
    memory.records.sign(DOOR, expected=one)
    assert memory.records.get("fact", "door.code").value == "amber seven"


def test_one_key_in_the_environment_of_two_machines_vouches_on_both(root, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, secrets.token_hex(32))
    with Memory.open(root, embedder=None) as memory:
        memory.records.remember("fact", "door.code", "amber seven", sensitivity="high")
        monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "other machine"))
        assert memory.records.get("fact", "door.code").value == "amber seven"
        change(root, ("amber seven", "amber eight"))
        with pytest.raises(errors.RecordError, match="sign"):
            memory.records.get("fact", "door.code")


def test_a_key_that_is_set_later_leaves_what_was_signed_without_it(memory, monkeypatch):
    monkeypatch.setenv(VARIABLE, secrets.token_hex(32))
    assert memory.records.get("fact", "door.code").value == "amber seven"
    memory.records.confirm("fact", "door.code", value="cedar nine")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(errors.RecordError, match=VARIABLE):
        memory.records.get("fact", "door.code")


def test_a_key_that_cannot_be_read_hides_what_it_signed_and_says_so(memory, monkeypatch):
    monkeypatch.setenv(VARIABLE, "no key")
    with pytest.raises(errors.RecordError, match=VARIABLE):
        memory.records.get("fact", "door.code")


def test_nothing_is_signed_where_no_key_can_be_kept(root, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "file"))
    with Memory.open(root, embedder=None, index_path=tmp_path / "index.sqlite") as memory:
        with pytest.raises(errors.StoreError, match="OPENCLAW_MEMORY_HOME"):
            memory.records.remember("fact", "door.code", "amber seven", sensitivity="high")
        assert not (root / DOOR).exists()
        memory.records.remember("fact", "tea", "green")


def test_other_ends_of_lines_are_no_forgery(memory, root):
    (root / DOOR).write_bytes((root / DOOR).read_bytes().replace(b"\n", b"\r\n"))
    assert memory.records.get("fact", "door.code").value == "amber seven"


def test_a_token_keeps_a_record_signed(memory):
    memory.records.remember("preference", "tea", "green", sensitivity="high", token="call-1")
    memory.records.remember("preference", "tea", "green", sensitivity="high", token="call-1")
    assert memory.records.get("preference", "tea").value == "green"
    source = RecordSource("chat_turn", "turn-9", memory.records.get("preference", "tea").source.observed_at)
    memory.records.remember("preference", "tea", "black", source=source)
    assert memory.records.get("preference", "tea").waiting[0].value == "black"


def test_a_backend_of_ones_own_shows_no_forged_record(memory, root):
    class Engine:
        def search(self, *_, **__):
            return memory_found

        def get(self, *_, **__):
            return memory_read

        def sync(self, **_):
            raise NotImplementedError

        def status(self, **_):
            raise NotImplementedError

        def close(self):
            pass

    memory_found, memory_read = memory.search("door code"), memory.get(DOOR)
    with Memory(memory.workspace, backend=Engine()) as other:
        assert DOOR in [hit.path for hit in other.search("door code").results]
        change(root, ("amber seven", "amber eight"))
        assert DOOR not in [hit.path for hit in other.search("door code").results]
        with pytest.raises(errors.RecordError, match="sign"):
            other.get(DOOR)


# --- keys
@pytest.mark.parametrize("given", ["no hex", "ab", "ab" * 33])
def test_an_environment_that_holds_no_key_is_an_error(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(errors.UserKeyError):
        Key.read_environment()


def test_purposes_have_keys_of_their_own_which_are_always_the_same():
    key = Key(SECRET)
    derived = {purpose: key.derive(purpose) for purpose in ("index", "age", "log", "signature")}
    assert len({*derived.values(), key.secret}) == 5
    assert derived["index"].hex() == Key(SECRET).derive("index").hex()


def test_a_key_shows_its_id_alone():
    key = Key(SECRET)
    assert key.id in repr(key)
    assert SECRET.hex() not in repr(key)
    assert repr(SECRET) not in repr(key)


def test_a_user_signs_with_a_secret_of_their_own_until_a_key_is_given(monkeypatch):
    before = keys.load_signing_key()
    assert keys.load_signing_key() == before
    monkeypatch.setenv(VARIABLE, SECRET.hex())
    assert keys.load_signing_key() == Key(SECRET)
