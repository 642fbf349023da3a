"""Commands that encrypt files, decrypt them, and give them another key; killed at any step, they are run again."""

import json
import subprocess
import sys

import pyrage
import pytest
from encrypted import KEY, OTHER, unsealed
from index_files import write_files
from openclaw_memory_encryption import age
from openclaw_memory_encryption.keys import State
from processes import KILLED

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.security.keys import VARIABLE

pytestmark = pytest.mark.usefixtures("with_key")
HEALTH = "# Health\n\nThe blood group is O negative.\n"


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, {"memory/health.md": HEALTH, "memory/boiler.md": "The boiler is serviced in October.\n"})
    return tmp_path


def encrypt_health(run, folder):
    run("encrypt", "-w", folder)
    run("encrypt", "-w", folder, "memory/health.md")


def notes(folder):
    return sorted(file.name for file in (folder / "memory").rglob("*.md*"))


def test_a_note_is_encrypted_found_and_decrypted(run, folder):
    assert run("encrypt", "-w", folder).code == 0
    done = run("encrypt", "-w", folder, "memory/health.md")
    assert (done.code, done.out) == (0, "memory/health.md -> memory/health.md.age\n")
    assert notes(folder) == ["boiler.md", "health.md.age"]
    assert "memory/health.md.age#L" in run("search", "-w", folder, "blood group").out
    done = run("decrypt", "-w", folder, "--json", "memory/health.md.age")
    assert json.loads(done.out)["files"] == [{"before": "memory/health.md.age", "after": "memory/health.md"}]
    assert (folder / "memory" / "health.md").read_text() == HEALTH
    assert "memory/health.md#L" in run("search", "-w", folder, "blood group").out


def test_where_the_index_is_plain_no_file_is_encrypted(run, folder):
    done = run("encrypt", "-w", folder, "memory/health.md")
    assert done.code == 1
    assert "openclaw-memory encrypt" in done.err
    assert notes(folder) == ["boiler.md", "health.md"]


def test_the_program_age_reads_the_files_with_the_identity(run, folder):
    encrypt_health(run, folder)
    identity = run("decrypt", "-w", folder, "--identity").out.strip()
    sealed = (folder / "memory" / "health.md.age").read_bytes()
    assert pyrage.decrypt(sealed, [pyrage.x25519.Identity.from_str(identity)]).decode() == HEALTH


def test_with_the_index_what_is_sensitive_is_encrypted_too(run, folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.records.remember("fact", "health.blood", "O negative", sensitivity="high")
        memory.records.remember("fact", "city", "Utrecht")
        memory.sessions.log("s1").append("user", "hello")
    settings = folder / "settings.toml"
    settings.write_text("[defaults.plugins.encryption]\ntranscripts = true\n")
    done = run("encrypt", "-w", folder, "-c", settings)
    assert done.code == 0, done.err
    assert notes(folder) == ["boiler.md", "city.md", "health.blood.md.age", "health.md"]
    assert sorted(file.name for file in (folder / "sessions").glob("s1*")) == ["s1.jsonl.age"]
    assert b"negative" not in b"".join(file.read_bytes() for file in folder.rglob("*.age"))
    settings.write_text("[defaults.plugins.encryption]\nnotes = true\n")
    assert run("encrypt", "-w", folder, "-c", settings).code == 0
    assert all(name.endswith(".md.age") for name in notes(folder))


def test_an_index_is_not_decrypted_before_its_files(run, folder):
    encrypt_health(run, folder)
    refused = run("decrypt", "-w", folder)
    assert refused.code == 2
    assert "1 files are encrypted, such as memory/health.md.age" in refused.err
    assert run("decrypt", "-w", folder, "--all").code == 0
    assert notes(folder) == ["boiler.md", "health.md"]
    assert "health.md#L" in run("search", "-w", folder, "blood group").out


def test_a_new_key_is_that_of_all_files(run, folder, monkeypatch):
    run("encrypt", "-w", folder)
    run("encrypt", "-w", folder, "memory/health.md", "memory/boiler.md")
    monkeypatch.setenv(VARIABLE, f"{OTHER.secret.hex()},{KEY.secret.hex()}")
    done = run("rotate-key", "-w", folder)
    assert done.code == 0, done.err
    assert unsealed(folder / "memory" / "health.md.age", OTHER) == HEALTH
    monkeypatch.setenv(VARIABLE, OTHER.secret.hex())
    assert "health.md.age#L" in run("search", "-w", folder, "blood group").out
    assert "boiler.md.age#L" in run("search", "-w", folder, "boiler").out


def test_a_change_of_key_that_was_cut_short_is_finished(run, folder, monkeypatch):
    encrypt_health(run, folder)
    monkeypatch.setenv(VARIABLE, f"{OTHER.secret.hex()},{KEY.secret.hex()}")
    run("rotate-key", "-w", folder)
    (folder / "memory" / "health.md.age").write_bytes(age.seal(HEALTH.encode(), KEY))
    State(folder).write(OTHER.id, is_rotating=True)
    assert "health.md.age#L" in run("search", "-w", folder, "blood group").out  # files of either key are read
    done = run("rotate-key", "-w", folder, "--json")
    said = json.loads(done.out)
    assert (said["after"], [file["after"] for file in said["files"]]) == (OTHER.id, ["memory/health.md.age"])
    assert unsealed(folder / "memory" / "health.md.age", OTHER) == HEALTH


def test_a_file_whose_key_is_lost_is_named_and_left(run, folder, monkeypatch):
    run("encrypt", "-w", folder)
    (folder / "memory" / "lost.md.age").write_bytes(age.seal(b"x\n", OTHER))
    run("encrypt", "-w", folder, "memory/health.md")
    monkeypatch.setenv(VARIABLE, f"{'ab' * 32},{KEY.secret.hex()}")
    for command in (["rotate-key"], ["decrypt", "--all"]):  # other files follow; the index stays encrypted
        done = run(*command, "-w", folder)
        assert done.code == 1
        assert "memory/lost.md.age was left as it is" in done.err
    assert notes(folder) == ["boiler.md", "health.md", "lost.md.age"]


CHILD = f"""{KILLED}
import sys
from openclaw_memory.cli import main
import openclaw_memory.workspace.files
killed(int(sys.argv[1]), 'replace', 'rename', 'unlink', 'open', 'fsync', 'write')
main(sys.argv[2:])
"""


@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.nightly)])  # of the calls at which it is killed
@pytest.mark.parametrize("command", ["encrypt", "decrypt"])
@pytest.mark.sampled(1)
def test_a_command_that_is_killed_leaves_the_text_in_one_readable_file(run, tmp_path, command, step):
    before, after = ("health.md", "health.md.age") if command == "encrypt" else ("health.md.age", "health.md")
    folder = tmp_path / "notes"
    write_files(folder, {"memory/health.md": HEALTH})
    run("encrypt", "-w", folder)
    if command == "decrypt":
        run("encrypt", "-w", folder, "memory/health.md")
    seen, ended, at = set(), 9, 0
    original = (folder / "memory" / before).read_bytes()
    while ended == 9:
        for file in (folder / "memory").glob("health.md*"):
            file.unlink()
        (folder / "memory" / before).write_bytes(original)
        arguments = [sys.executable, "-c", CHILD, str(at), command, "-w", str(folder), f"memory/{before}"]
        ended = subprocess.run(arguments, check=False, capture_output=True).returncode
        names = notes(folder)
        assert len(names) == 1, names
        with Memory.open(folder, embedder=None, config=MemoryConfig()) as memory:
            assert memory.workspace.read(f"memory/{names[0]}") == HEALTH
        seen.add((names[0], (folder / "memory" / names[0]).read_bytes().startswith(b"age-encryption.org/v1")))
        at += step
    assert ended == 0
    assert notes(folder) == [after]
    assert {(before, command == "decrypt"), (after, command == "encrypt")} <= seen
