"""Notes of ten megabytes of anything: a bounded number of chunks, and the report says where they end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from openclaw_memory import Memory
from openclaw_memory.chunking import MOST_CHUNKS, chunk
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.text.front_matter import parse

SIZE = 10 * 1024 * 1024
OPENING = "---\nopenclaw_memory: 1\n"


def of(piece: str, size: int = SIZE) -> str:
    return piece * (size // len(piece.encode()))


LARGE = {
    "lines of one character": lambda: of("a\n"),
    "paragraphs of one character": lambda: of("a\n\n"),
    "equal headings": lambda: of("# a\n"),
    "headings": lambda: "".join(f"# h{at}\n" for at in range(950_000)),
    "headings without a title": lambda: of("#\n"),
    "underlined headings": lambda: of("a\n--\n\n"),
    "nested headings": lambda: of("# a\n## b\n### c\n#### d\n##### e\n###### f\n"),
    "list items": lambda: of("- a\n"),
    "nested list": lambda: "".join(" " * (at % 2000) + "- a\n" for at in range(10_400)),
    "a table": lambda: "|a|b|\n|-|-|\n" + of("|a|b|\n", SIZE - 20),
    "tables": lambda: of("|a|\n|-|\n|b|\n\n"),
    "a delimiter row": lambda: "|a|\n|" + of("-|", SIZE - 10),
    "fences": lambda: of("```\na\n```\n"),
    "an open fence": lambda: "```\n" + of("a\n", SIZE - 4),
    "backticks": lambda: of("`"),
    "nested front matter": lambda: OPENING + "".join(" " * min(at, 4000) + "a:\n" for at in range(4600)) + "---\nx",
    "wide front matter": lambda: OPENING + "a:\n" + of("  b: 1\n", SIZE - 60) + "---\nx",
    "a list in front matter": lambda: OPENING + "a:\n" + of(" - a\n", SIZE - 60) + "---\nx",
    "blanks in front matter": lambda: f"{OPENING}a{of(' ', SIZE - 60)}\n---\nx",
    "JSON in front matter": lambda: f"{OPENING}a: {of('[', SIZE - 60)}\n---\nx",
    "other front matter": lambda: "---\ntags:\n" + of("- a\n", SIZE - 20) + "---\nx",
    "one word": lambda: of("a"),
    "words of one character": lambda: of("a "),
    "blank lines": lambda: of("\n"),
    "blanks": lambda: of(" "),
    "emoji": lambda: of("😀"),
    "Chinese": lambda: "".join(chr(0x4E00 + at * 7919 % 20_000) for at in range(SIZE // 3)),
    "ligatures": lambda: of("ﷺ"),
    "accents": lambda: "a" + of("\u0301", SIZE - 1),
    "NULs": lambda: of("\0"),
    "carriage returns": lambda: of("a\r"),
    "a transcript": lambda: of('{"type":"message","role":"user","content":"a"}\n'),
    "a transcript of two days": lambda: of(
        '{"type":"message","role":"user","content":"a","timestamp":1700000000}\n'
        '{"type":"message","role":"user","content":"a","timestamp":1700086400}\n'
    ),
    "a transcript of none": lambda: '{"type":"session"}\n' + of("x\n", SIZE - 20),
}  # fmt: skip

SYNC = """
import resource, sys, time
from openclaw_memory import Memory
with Memory.open(sys.argv[1]) as memory:
    report = memory.sync()
seconds = time.process_time()
megabytes = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024
assert not report.failed, report.failed
print(f"{seconds:.1f} {megabytes:.0f} {[file.reason for file in report.skipped]}")
"""


@pytest.mark.fault(54)
@pytest.mark.nightly
@pytest.mark.parametrize("kind", LARGE)
def test_ten_megabytes_of_anything_take_a_bounded_time_and_memory(notes, kind):
    path = "sessions/a.jsonl" if "transcript" in kind else "memory/notes/a.md" if "front" in kind else "memory/a.md"
    (notes / path).parent.mkdir(exist_ok=True)
    (notes / path).write_bytes(LARGE[kind]().encode()[:SIZE])
    told = subprocess.run([sys.executable, "-c", SYNC, notes], capture_output=True, text=True, check=True).stdout
    print(f"\n{kind}: {told}")
    seconds, megabytes, _ = told.split(" ", 2)
    assert float(seconds) <= 45  # at most 15 on a quiet core; one that is shared counts up to three times as much
    assert float(megabytes) <= 500


# --- what is left out, and what is not
@pytest.mark.fault(54)
@pytest.mark.parametrize("most", [1200, pytest.param(MOST_CHUNKS, marks=pytest.mark.nightly)])
def test_a_note_of_more_chunks_than_are_made_is_indexed_in_part_and_the_report_says_how_far(notes, monkeypatch, most):
    for module in ("chunking", "indexing.file_rows"):
        monkeypatch.setattr(f"openclaw_memory.{module}.MOST_CHUNKS", most)
    text = "".join(f"# Note {at}\n" for at in range(most + 500))
    (notes / "memory/many.md").write_text(text)
    with Memory.open(notes, embedder=None) as memory:
        report = memory.sync()
        assert memory.search(f"Note {most - 1}")[0].end_line == most
        assert "memory/many.md" in report.added
        end = text.index(f"# Note {most}") - 1
        (skipped,) = report.skipped
        assert skipped.path == "memory/many.md"
        assert f"line {most:,} of {most + 501:,}, character {end:,} of {len(text):,}" in skipped.reason
        assert "memory/many.md" in {file.path for file in memory.status().skipped}


@pytest.mark.parametrize("style", ["headings", "tokens"])
def test_a_log_of_two_megabytes_is_indexed_whole(style):
    lines = [f"2026-11-23 09:{at % 60:02} worker {at} finished job {at * 7} without an error" for at in range(33_000)]
    text = "\n".join(lines)
    assert len(text) > 2_000_000
    chunks = chunk(text, "memory/log.md", ChunkingConfig(style=style))
    assert (len(chunks) < MOST_CHUNKS, chunks[-1].end_line) == (True, len(lines))


@pytest.mark.fault(54)
def test_ten_megabytes_of_prose_are_indexed_whole():
    text = of("The boiler in the cellar was serviced by Van Dam, who found nothing wrong with it.\n")
    assert chunk(text, "a.md", ChunkingConfig())[-1].end_line == text.count("\n")


@pytest.mark.fault(54)
def test_values_that_are_nested_too_deeply_in_front_matter_are_not_read():
    nested = "".join(" " * at + "a:\n" for at in range(200))
    found = parse(f"{OPENING}title: Mill\n{nested}---\ntext\n")
    assert found is not None
    assert (found.fields, found.text) == ({"title": "Mill"}, "text")
    assert found.damage
