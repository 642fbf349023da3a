"""No token of a known form is in any file that a memory makes, nor in what it logs: every byte is searched."""

import logging
from pathlib import Path

from secret_samples import KNOWN

from openclaw_memory import Memory

PART = 12  # characters in a row, of what a mask leaves out
FEWEST_PROVIDERS = 20


def parts_of(token):
    """What a mask must not show: all but its first six and last four characters, and what all tokens of a form share."""
    return [token[at : at + PART].encode() for at in range(8, len(token) - PART - 3)]


def bytes_of(*folders):
    return {file: file.read_bytes() for folder in folders for file in Path(folder).rglob("*") if file.is_file()}


def left_in(files):
    return sorted(
        (name, str(file)) for file, data in files.items() for name, token in KNOWN.items()
        if any(part in data for part in parts_of(token))
    )  # fmt: skip


def test_no_planted_token_is_in_the_index_its_log_of_writes_its_events_or_the_log(tmp_path, monkeypatch, caplog):
    root, home = tmp_path / "notes", tmp_path / "home"
    for name in ("OPENCLAW_MEMORY_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name))
    (root / "memory").mkdir(parents=True)
    lines = [f"The deploy key of {name}: {token}" for name, token in KNOWN.items()]
    (root / "MEMORY.md").write_text("\n\n".join(lines), encoding="utf-8")
    (root / "memory" / "2026-11-21.md").write_text("\n".join(lines), encoding="utf-8")
    events = []
    with caplog.at_level(logging.DEBUG), Memory.open(root) as memory:
        memory.observe(events.append)
        assert memory.search("deploy key", max_results=50)
        assert "deploy" in memory.get("memory/2026-11-21.md").text
        for token in KNOWN.values():
            memory.search(f"whose key is {token}")
        (root / "MEMORY.md").write_text("\n\n".join(reversed(lines)), encoding="utf-8")
        memory.sync()
        open_files = bytes_of(root / ".memory", home)
    closed_files = bytes_of(root / ".memory", home)
    assert len(KNOWN) >= FEWEST_PROVIDERS
    assert any(file.name.endswith("-wal") for file in open_files)
    assert len(left_in({root / "MEMORY.md": (root / "MEMORY.md").read_bytes()})) >= len(KNOWN) * 0.9
    assert left_in(open_files) == []
    assert left_in(closed_files) == []
    assert left_in({Path("log"): caplog.text.encode(), Path("events"): repr(events).encode()}) == []
