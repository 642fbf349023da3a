"""Secrets that stand where no word begins, or are cut, and texts that only look like secrets."""

import json
import logging
import re

import pytest
from secret_samples import KNOWN, LISTED, LOOKALIKES

from openclaw_memory import Memory
from openclaw_memory.text.redaction import redact

SAMPLES = {**KNOWN, **LISTED}
PART = 12  # characters in a row, of what a mask leaves out
# Formats that say too little without a beginning: inside of a word they are not looked for.
ONLY_AT_THE_START = {
    "aws other", "square 2", "alibaba", "clickhouse", "facebook", "artifactory", "lob", "gocardless", "octopus", "azure",
    "infracost", "firecrawl", "terraform", "mailgun", "mailchimp", "dropbox", "yandex", "discord", "telegram", "maxmind",
    "notion old", "cfk", "fw", "e2b", "rnd", "clickup", "cursor", "new relic licence", "mailgun private", "airtable", "azure key", "azure devops",
    "azure registry", "asana", "tencent", "nuget",
}  # fmt: skip


def cut(token, by, at=0.6):
    place = int(len(token) * at)
    return token[:place] + by + token[place:]


HIDDEN = {
    "after a letter": lambda token: f"x{token}",
    "after a word": lambda token: f"Schluessel{token}",
    "after a line below": lambda token: f"my_{token}",
    "after a Chinese character": lambda token: f"密钥{token}",
    "between Chinese characters": lambda token: f"密钥{token}请保密",
    "after Cyrillic": lambda token: f"ключ{token}",
    "before a Japanese word": lambda token: f"{token}です",
    "cut by a zero-width space": lambda token: cut(token, "\u200b"),
    "cut by a soft hyphen": lambda token: cut(token, "\u00ad", at=0.2),
    "cut by a joiner after every character": "\u200d".join,
    "cut by a mark of direction": lambda token: cut(token, "\u202e", at=0.9),
    "cut by a tag": lambda token: cut(token, "\U000e0041"),
    "cut by NUL": lambda token: cut(token, "\0"),
    "cut by what is read in the place of NUL": lambda token: cut(token, "\ufffd"),
    "cut by a line separator": lambda token: cut(token, "\u2028"),
    "cut by a line end": lambda token: cut(token, "\n"),
    "cut by CRLF and an indent": lambda token: cut(token, "\r\n    "),
    "cut in a quotation": lambda token: "> " + cut(token, "\n> "),
    "cut in three": lambda token: cut(cut(token, "\n", at=0.7), "\n", at=0.45),
    "escaped as in Markdown": lambda token: re.sub(r"([_.+=~-])", r"\\\1", token),
    "cut by a line end and a zero-width space": lambda token: cut(cut(token, "\n"), "\u200b", at=0.8),
}  # fmt: skip
INSIDE_A_WORD = ("after a letter", "after a word")


def shown_of(token, text):
    """The longest part of the token that is left in the text, however it is cut there."""
    left = re.sub(r"[^A-Za-z0-9_+/=.:~%@-]", "", text)
    longest = 0
    for start in range(len(token)):
        while token[start : start + longest + 1] in left and start + longest < len(token):
            longest += 1
    return longest


@pytest.mark.fault(53)
@pytest.mark.parametrize("how", HIDDEN)
def test_a_hidden_token_is_masked(how):
    samples = {
        name: token for name, token in SAMPLES.items() if how not in INSIDE_A_WORD or name not in ONLY_AT_THE_START
    }
    texts = {name: f"The key is {HIDDEN[how](token)} as of today." for name, token in samples.items()}
    left = {name: redact(text) for name, text in texts.items() if redact(text).count("…") != 1}
    print(f"{how}: {len(samples) - len(left)} of {len(samples)} masked")
    assert left == {}
    for name, token in samples.items():
        safe = redact(texts[name])
        assert shown_of(token, safe) <= 20, safe  # the beginnings and ends of some are words
        assert safe.count("\n") == texts[name].count("\n")
        assert safe.startswith(("The key is", "The key is >"))
        assert safe.endswith("as of today.")
        assert redact(safe) == safe


def test_a_whole_token_does_not_swallow_the_next_line():
    for name, token in SAMPLES.items():
        for line in ("Then we met.", "2026-11-21 was the day", "- a list", "README.md", "2nd try", "iPhone"):
            assert line in redact(f"{token}\n{line}\n"), name


@pytest.mark.fault(53)
def test_lookalikes_are_left_alone():
    wrong = [text for text in [*LOOKALIKES, "\n".join(LOOKALIKES)] if redact(text) != text]
    print(f"{len(wrong)} of {len(LOOKALIKES)} masked by mistake: {wrong}")
    assert len(LOOKALIKES) == 30
    assert len(wrong) <= 2


def parts_of(token):
    """What a mask must not show: all but its first six and last four characters, and what all tokens of a form share."""
    return [token[at : at + PART].encode() for at in range(8, len(token) - PART - 3)]


def bytes_of(*folders):
    return b"\n".join(file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file())


def left_in(data):
    return [name for name, token in KNOWN.items() if any(part in data for part in parts_of(token))]


@pytest.mark.fault(33, 53)
def test_no_planted_token_is_in_the_index_its_log_of_writes_its_events_or_the_log(tmp_path, monkeypatch, caplog):
    root, home = tmp_path / "notes", tmp_path / "home"
    for name in ("OPENCLAW_MEMORY_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name))
    (root / "memory").mkdir(parents=True)
    plain = [f"The deploy key of {name}: {token}" for name, token in KNOWN.items()]
    hidden = [f"The deploy key of {name}: {hide(KNOWN['github'])}" for name, hide in HIDDEN.items()]
    (root / "MEMORY.md").write_text("\n\n".join([*hidden, *plain]), encoding="utf-8")
    (root / "memory" / "2026-11-21.md").write_text("\n".join(plain), encoding="utf-8")
    said = [{"type": "message", "message": {"role": "user", "content": text}} for text in (*hidden, *plain)]
    (root / "sessions").mkdir()
    (root / "sessions" / "talk.jsonl").write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    events = []
    with caplog.at_level(logging.DEBUG), Memory.open(root, embedder="hashing") as memory:
        memory.events.add(events.append)
        shown = [hit.snippet for hit in memory.search("deploy key", max_results=50)]
        shown += [memory.get(path).text for path in ("MEMORY.md", "memory/2026-11-21.md", "sessions/talk.jsonl")]
        for at in range(0, len(KNOWN), 16):
            memory.search(f"whose keys are {' '.join([*KNOWN.values()][at : at + 16])}")
        (root / "MEMORY.md").write_text("\n\n".join(reversed(plain)), encoding="utf-8")
        memory.sync()
        assert list(home.rglob("*-wal"))
        open_files = bytes_of(root / ".memory", home)
    assert len(left_in((root / "MEMORY.md").read_bytes())) >= max(20, len(KNOWN) * 0.9)
    assert all("deploy" in text for text in shown)
    for data in (open_files, bytes_of(root / ".memory", home), caplog.text.encode(), f"{events} {shown}".encode()):
        assert left_in(data) == []
