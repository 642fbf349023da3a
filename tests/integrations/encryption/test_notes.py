"""Encrypted notes: read, searched, cited, edited and added to like others, and never in the open while doing so."""

import base64
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from encrypted import ENCRYPTED, KEY, OTHER, decrypt, encrypt, holding, unsealed, with_settings
from index_files import index_folder
from openclaw_memory_encryption import age

from openclaw_memory import Memory, errors
from openclaw_memory.errors import InvalidInputError, NotFoundError, SealedFileError, WriteError
from openclaw_memory.security.keys import VARIABLE, Key
from openclaw_memory.store.sqlite import SqliteStore
from openclaw_memory.tools import find_audience
from openclaw_memory.types import Document

pytestmark = pytest.mark.usefixtures("with_key")
HEALTH = "# Health\n\nThe blood group is O negative.\nThe allergy is against pollen.\n"
TODAY = datetime.date(2026, 11, 21)
# Made by the program age for the passphrase "open sesame": it takes nine seconds.
FOR_A_PASSPHRASE = base64.b64decode(
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBHWCsvelVJK1VvZG5LdGRkbmhNck1nIDE3Cm9YUGs5L1hSL1RDZVp0N2FTa3pRektvbHN2"
    "b2sxSE9OekE5TVJxbzNNM1EKLS0tIDRxb1FFRmtJZXhoQ25xSzhSVzhEbTZuNHY0c2RKSldZS1cxK3hDRlIvd3cKnR5Z1ujedKsRY0H2UDaUP9sk"
    "9TSs5XEviQLfuuUmP/VWCSRJO4c="
)


def seal(file: Path, text: str = HEALTH, key: Key = KEY) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(age.seal(text.encode(), key))
    return file


def reasons(memory: Memory) -> dict[str, str]:
    return {file.path: file.reason for file in memory.status().skipped}


# --- like other notes ----------------------------------------------------------------------------------------------
def test_an_encrypted_note_is_found_cited_and_read(memory, folder):
    seal(folder / "memory" / "health.md.age")
    found = memory.search("which blood group?")[0]
    assert found.citation.startswith("memory/health.md.age#L")
    assert "O negative" in found.snippet
    assert memory.get("memory/health.md.age#L3").text == "The blood group is O negative."
    assert memory.search("health.md")[0].path == "memory/health.md.age"
    assert memory.search("blood", filter={"path": "memory/health*"})[0].path == "memory/health.md.age"


def test_an_encrypted_note_of_a_day_is_of_that_day(memory, folder):
    seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n\nThe plumber came.\n")
    assert memory.search("plumber", filter={"since": TODAY, "until": TODAY})
    assert not memory.search("plumber", filter={"until": TODAY - datetime.timedelta(days=1)})


def test_an_encrypted_note_is_edited_and_lines_are_deleted(memory, folder):
    file = seal(folder / "memory" / "health.md.age")
    seen = memory.get("memory/health.md.age", start=3, lines=1)
    memory.edit("memory/health.md.age", 3, 3, "The blood group is A.", expected=seen)
    assert unsealed(file) == HEALTH.replace("O negative", "A")
    memory.delete("memory/health.md.age", 4, 4, expected=memory.get("memory/health.md.age#L4"))
    assert unsealed(file) == "# Health\n\nThe blood group is A.\n"


def test_what_is_appended_goes_to_the_encrypted_note_of_the_day(memory, folder):
    file = seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n\nThe plumber came.\n")
    written = memory.append("He comes again on Monday.", date=TODAY)
    assert written.citation == "memory/2026-11-21.md.age#L4"
    assert unsealed(file) == "# 2026-11-21\n\nThe plumber came.\nHe comes again on Monday.\n"
    assert memory.append("He comes again on Monday.", date=TODAY, skip_existing=True).existed
    memory.append("plum " * 4000, date=TODAY)
    assert unsealed(file).endswith("plum \n")
    assert not (folder / "memory" / "2026-11-21.md").exists()


def test_a_session_starts_with_encrypted_notes_too(memory, folder):
    seal(folder / "MEMORY.md.age", "# Long-term memory\n\n- Ines prefers trains.\n")
    seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n\nThe plumber came.\n")
    now = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
    shown = memory.notes.bootstrap(now=now)
    assert [file.path for file in shown.files] == ["MEMORY.md.age", "memory/2026-11-21.md.age"]
    assert "trains" in shown.text
    assert "plumber" in shown.text
    assert "trains" not in memory.notes.bootstrap(private=False, now=now).text


def test_lines_are_promoted_to_an_encrypted_long_term_memory_alone(memory, folder):
    seal(folder / "memory" / "health.md.age")
    (folder / "MEMORY.md").write_text("# Long-term memory\n")
    with pytest.raises(InvalidInputError, match=r"encrypt that file first, with `openclaw-memory encrypt MEMORY\.md`"):
        memory.notes.promote("memory/health.md.age", 3, 3)
    assert (folder / "MEMORY.md").read_text() == "# Long-term memory\n"
    (folder / "MEMORY.md").unlink()
    file = seal(folder / "MEMORY.md.age", "# Long-term memory\n")
    assert memory.notes.promote("memory/health.md.age", 3, 3).path == "MEMORY.md.age"
    assert "O negative" in unsealed(file)


def test_a_private_note_stays_private_where_it_is_encrypted(memory):
    group = find_audience(memory, "agent:main:whatsapp:group:1")
    visible = filter(group.may_see, ["MEMORY.md.age", "USER.md.age", "memory/a.md.age"])
    assert list(visible) == ["memory/a.md.age"]


def test_documents_are_read_and_written_where_a_person_has_encrypted_them(memory, folder):
    memory.documents.add([Document("a-1", "The vault is in the cellar.", {})])
    path = "memory/notes/a-1.md"
    encrypt(memory, path)
    assert memory.documents.get(["a-1"])[0].text == "The vault is in the cellar."
    memory.documents.add([Document("a-1", "The vault is in the attic.", {})])
    assert "attic" in unsealed(folder / f"{path}.age")
    assert not (folder / path).exists()
    memory.documents.delete(["a-1"])
    assert not (folder / f"{path}.age").exists()


def test_each_new_note_is_encrypted_where_the_settings_say_so(folder):
    (folder / "memory" / "old.md").write_text("The boiler is serviced in October.\n")
    with Memory.open(folder, embedder=None, config=with_settings(enabled=True, notes=True)) as memory:
        written = memory.append("The tea is secret.", date=TODAY)
        assert written.path == memory.append("So is the jam.", date=TODAY).path == "memory/2026-11-21.md.age"
        assert memory.notes.promote(written.path, 3, 3).path == "MEMORY.md.age"
        memory.documents.add([Document("tea", "The tea is secret.", {})])
        for level in ("high", "low"):
            memory.records.remember("fact", "tea", "The tea is secret.", sensitivity=level)
        assert holding(folder, b"tea is secret") == []
        assert "though new ones are encrypted: 1;" in "\n".join(memory.status().notices)


# --- never in the open ---------------------------------------------------------------------------------------------
@pytest.mark.fault(38)
def test_no_text_of_an_encrypted_note_is_in_any_file(memory, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seal(folder / "memory" / "health.md.age")
    seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n")
    assert memory.search("blood")
    memory.append("marmalade " * 1000, date=TODAY)
    memory.edit("memory/health.md.age", 4, 4, "quicksilver", expected=memory.get("memory/health.md.age#L4"))
    memory.sync()
    assert memory.search("quicksilver")
    for words in (b"negative", b"pollen", b"marmalade", b"quicksilver"):
        assert holding(tmp_path, words) == []


def test_an_index_that_is_decrypted_has_nothing_of_encrypted_notes(folder):
    from openclaw_memory_encryption import decrypt_index

    seal(folder / "memory" / "health.md.age")
    (folder / "memory" / "other.md").write_text("The boiler is serviced in October.\n")
    with Memory.open(folder, config=ENCRYPTED) as memory:
        assert memory.search("pollen")
        index = memory.index_path
    decrypt_index(folder, index)
    assert holding(index_folder(folder), b"boiler")
    for words in (b"negative", b"pollen", b"health.md"):
        assert holding(index_folder(folder), words) == []


def test_a_write_that_is_killed_leaves_no_text_in_the_open(folder):
    seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n")
    code = (
        "import os, sys\nfrom openclaw_memory import Memory, MemoryConfig\n"
        "from openclaw_memory.workspace import atomic\n"
        "memory = Memory.open(sys.argv[1], embedder=None, config=MemoryConfig(plugins={'encryption': {'enabled': True}}))\n"
        "memory.sync()\n"
        "os.replace = lambda *_, **__: os._exit(9)\n"
        "memory.append('marmalade ' * 1000, date='2026-11-21')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert done.returncode == 9
    assert len(list((folder / "memory").glob(".openclaw-memory-*.tmp"))) == 1
    assert holding(folder, b"marmalade") == []


# --- where it cannot be read ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["memory/health.md.age", "memory/health.md"])
@pytest.mark.parametrize("store", ["the usual", "a store", "a function"])
def test_a_plain_index_refuses_encrypted_notes_and_says_why(folder, store, path):
    seal(folder / path)
    (folder / "memory" / "other.md").write_text("The boiler is serviced in October.\n")
    plain = SqliteStore(folder.parent / "plain.sqlite")
    given = {"the usual": None, "a store": plain, "a function": lambda: plain}[store]
    with Memory.open(folder, embedder=None, store=given) as memory:
        found = memory.search("blood group negative")
        assert not found
        assert f"what is encrypted was not searched: {path}" in str(found.reason)
        assert memory.search("boiler")
        remedy = "openclaw-memory encrypt" if given is None else "the index is not|encrypt the index too"
        assert re.search(remedy, reasons(memory)[path])
        for ask in (lambda: memory.get(path), lambda: memory.edit(path, 1, 1, "x", expected="0" * 64)):
            with pytest.raises(SealedFileError):
                ask()
    assert holding(folder, b"negative") == []


@pytest.mark.parametrize(
    "wrong", ["a stranger's", "a passphrase", "cut", "flipped", "empty", "plain text", "of another version"]
)
def test_what_cannot_be_decrypted_is_reported_and_never_shown(memory, folder, wrong):
    file = seal(folder / "memory" / "health.md.age")
    whole = file.read_bytes()
    file.write_bytes(
        {
            "a stranger's": age.seal(HEALTH.encode(), OTHER),
            "a passphrase": FOR_A_PASSPHRASE,
            "cut": whole[:-1],
            "flipped": whole[:-20] + bytes([whole[-20] ^ 4]) + whole[-19:],
            "empty": b"",
            "plain text": HEALTH.encode(),
            "of another version": whole.replace(b"age-encryption.org/v1", b"age-encryption.org/v9"),
        }[wrong]
    )
    (folder / "memory" / "other.md").write_text("The boiler is serviced in October.\n")
    assert not memory.search("blood group negative pollen")
    assert memory.search("boiler")
    reason = reasons(memory)["memory/health.md.age"]
    assert re.search("encrypted with a key that is not here|is damaged|not a file of age", reason)
    assert "\n" not in reason
    for read in (memory.get, memory.workspace.read):
        with pytest.raises(SealedFileError):
            read("memory/health.md.age")
    before = file.read_bytes()
    with pytest.raises(SealedFileError):
        memory.edit("memory/health.md.age", 1, 1, "x", expected="0" * 64)
    assert file.read_bytes() == before


def test_a_note_that_is_damaged_later_is_shown_no_more_and_found_again_once_it_is_restored(memory, folder):
    file = seal(folder / "memory" / "health.md.age")
    assert memory.search("blood")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    memory.sync()
    assert "is damaged" in reasons(memory)["memory/health.md.age"]
    found = memory.search("blood")
    assert not found
    assert "memory/health.md.age is damaged" in str(found.reason)
    file.write_bytes(whole)
    assert memory.search("blood")  # the encrypted index has kept its text, as that of any file that cannot be read


def test_another_key_of_the_users_reads_and_the_one_of_the_index_writes(memory, folder, monkeypatch):
    memory.sync()
    monkeypatch.setenv(VARIABLE, f"{KEY.secret.hex()},{OTHER.secret.hex()}")
    file = seal(folder / "memory" / "health.md.age", key=OTHER)
    assert "negative" in memory.get("memory/health.md.age").text
    memory.edit("memory/health.md.age", 4, 4, "None.", expected=memory.get("memory/health.md.age#L4"))
    assert unsealed(file, KEY).endswith("None.\n")


def test_a_day_whose_note_cannot_be_decrypted_takes_nothing(memory, folder):
    file = seal(folder / "memory" / "2026-11-21.md.age", key=OTHER)
    before = file.read_bytes()
    with pytest.raises(SealedFileError):
        memory.append("x", date=TODAY)
    assert file.read_bytes() == before
    assert not (folder / "memory" / "2026-11-21.md").exists()


def test_a_note_is_as_large_as_others_and_no_larger(folder):
    config = ENCRYPTED.replace({"files": {"max_bytes": 2048}})
    with Memory.open(folder, embedder=None, config=config) as memory:
        seal(folder / "memory" / "large.md.age", "x" * 2049)
        seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n")
        memory.sync()
        assert "files.max_bytes" in reasons(memory)["memory/large.md.age"]
        before = (folder / "memory" / "2026-11-21.md.age").read_bytes()
        with pytest.raises(WriteError, match=r"more than files\.max_bytes \(2,048\)"):
            memory.append("y" * 2000, date=TODAY)
        assert (folder / "memory" / "2026-11-21.md.age").read_bytes() == before


# --- two at once ---------------------------------------------------------------------------------------------------
@pytest.mark.nightly
@pytest.mark.parametrize("where", ["memory/2026-11-21.md.age", "sessions/s1.jsonl.age"])
def test_four_processes_add_to_one_encrypted_file(folder, where):
    code = (
        "import sys\nfrom openclaw_memory import Memory, MemoryConfig\n"
        "config = MemoryConfig(plugins={'encryption': {'enabled': True, 'transcripts': True}})\n"
        "memory = Memory.open(sys.argv[1], embedder=None, config=config)\n"
        "log = memory.sessions.log('s1')\n"
        "for at in range(15):\n"
        "    text = f'who {sys.argv[2]} {at} was'\n"
        "    log.append('user', text) if 'jsonl' in sys.argv[3] else memory.append(text, date='2026-11-21')\n"
    )
    seal(folder / "memory" / "2026-11-21.md.age", "# 2026-11-21\n")
    running = [subprocess.Popen([sys.executable, "-c", code, str(folder), str(name), where]) for name in range(4)]
    assert [one.wait() for one in running] == [0] * 4
    said = re.findall(r"who (\d+ \d+) was", unsealed(folder / where))
    assert sorted(said) == sorted(f"{name} {at}" for name in range(4) for at in range(15))


# --- in place ------------------------------------------------------------------------------------------------------
def test_a_note_is_encrypted_and_decrypted_where_it_is(memory, folder):
    file = folder / "memory" / "health.md"
    file.write_text(HEALTH)
    os.chmod(file, 0o640)
    path = encrypt(memory, "memory/health.md")
    assert path == "memory/health.md.age"
    assert unsealed(folder / path) == HEALTH
    assert not file.exists()
    assert encrypt(memory, path) == path
    assert memory.search("blood")[0].path == "memory/health.md.age"
    assert decrypt(memory, path) == "memory/health.md"
    assert file.read_text() == HEALTH
    assert file.stat().st_mode & 0o777 == 0o640
    assert not (folder / path).exists()


def test_a_file_with_the_other_name_is_not_overwritten(memory, folder):
    (folder / "memory" / "health.md").write_text("mine\n")
    seal(folder / "memory" / "health.md.age")
    with pytest.raises(WriteError, match="is there next to"):
        encrypt(memory, "memory/health.md")
    with pytest.raises(WriteError, match="is there next to"):
        decrypt(memory, "memory/health.md.age")
    assert (folder / "memory" / "health.md").read_text() == "mine\n"
    assert unsealed(folder / "memory" / "health.md.age") == HEALTH


def test_what_a_killed_process_left_half_renamed_is_read_edited_and_finished(memory, folder):
    file = folder / "memory" / "health.md"
    seal(file)  # the content of an encrypted note under the name of a plain one
    assert memory.search("blood")[0].path == "memory/health.md"
    memory.edit("memory/health.md", 4, 4, "None.", expected=memory.get("memory/health.md#L4"))
    assert unsealed(file).endswith("None.\n")  # and nothing was decrypted on the way
    assert encrypt(memory, "memory/health.md") == "memory/health.md.age"
    seal(file.rename(folder / "memory" / "health.md.age").rename(file) if file.exists() else file)
    (folder / "memory" / "health.md.age").unlink()
    decrypt(memory, "memory/health.md")
    assert file.read_text() == HEALTH


def test_a_file_gets_the_present_key_once(memory, folder, monkeypatch):
    memory.sync()
    monkeypatch.setenv(VARIABLE, f"{KEY.secret.hex()},{OTHER.secret.hex()}")
    file = seal(folder / "memory" / "health.md.age", key=OTHER)
    encrypt(memory, "memory/health.md.age")
    assert unsealed(file, KEY) == HEALTH
    before = file.read_bytes()
    encrypt(memory, "memory/health.md.age")
    assert file.read_bytes() == before


def test_the_name_of_before_leads_to_the_one_of_now(memory, folder):
    seal(folder / "memory" / "health.md.age")
    memory.sync()
    for ask in (
        lambda: memory.get("memory/health.md#L3"),
        lambda: memory.edit("memory/health.md", 3, 3, "x", expected="0" * 12),
    ):
        with pytest.raises(NotFoundError, match=r"memory/health\.md is encrypted: its name is memory/health\.md\.age"):
            ask()


RECORD = "memory/records/fact/health.blood.md.age"
WRITES = {
    "memory/2026-11-21.md.age": lambda memory: memory.append("The tea is secret.", date=TODAY),
    "MEMORY.md.age": lambda memory: memory.notes.promote("memory/tea.md", 1, 1),
    "sessions/talk.jsonl.age": lambda memory: memory.sessions.log("talk").append("user", "The tea is secret."),
    "memory/tea/x.md.age": lambda one: one.documents.files.write(
        ("memory/tea/x.md", {"id": "tea"}, "The tea is secret.")
    ),
    RECORD: lambda memory: memory.records.remember("fact", "health.blood", "The tea", sensitivity="high"),
}


@pytest.mark.parametrize("path", WRITES)
def test_a_planted_plain_file_takes_nothing_that_belongs_into_the_encrypted_one(memory, folder, path):
    (folder / "memory" / "tea.md").write_text("The tea is secret.\n")
    memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    if path != RECORD:
        seal(folder / path, '---\nopenclaw_memory: 1\nid: "tea"\n---\n' if "x.md" in path else "")
    before, planted = (folder / path).read_bytes(), folder / path.removesuffix(".age")
    planted.touch()
    with pytest.raises(WriteError, match=r"is there next to .*: compare the two, and delete or rename one of them"):
        WRITES[path](memory)
    assert (planted.read_bytes(), (folder / path).read_bytes()) == (b"", before)
    planted.unlink()
    WRITES[path](memory)
    assert b"tea" not in (folder / path).read_bytes()
    assert "tea" in unsealed(folder / path)
    assert not planted.exists()


def test_a_planted_plain_file_hides_nothing_of_the_encrypted_one(memory, folder):
    seal(folder / "MEMORY.md.age", "The long term.\n")
    seal(folder / "memory" / "2026-11-21.md.age", "The plumber came.\n")
    memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    for path in ("MEMORY.md", "memory/2026-11-21.md", RECORD.removesuffix(".age")):
        (folder / path).touch()
    started = memory.notes.bootstrap(now=TODAY).text
    assert "The long term." in started
    assert "The plumber came." in started
    assert memory.records.get("fact", "health.blood").value == "O negative"


def test_a_planted_note_in_the_place_of_a_record_says_how_the_record_can_be_kept(memory, folder):
    planted = folder / RECORD.removesuffix(".age")
    planted.parent.mkdir(parents=True)
    planted.write_text("Mine.\n")
    with pytest.raises(errors.PathNotAllowedError, match="move it elsewhere in memory/, or delete it"):
        memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
    with pytest.raises(errors.RecordError, match="move it elsewhere in memory/, or delete it"):
        memory.records.get("fact", "health.blood")
    planted.unlink()
    assert memory.records.remember("fact", "health.blood", "O negative", sensitivity="high").record.path == RECORD
