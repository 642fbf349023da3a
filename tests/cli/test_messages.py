"""A message names the fault, and what it advises works."""

import io

import pytest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["get", "MEMORY.md#L9-L3"], "'MEMORY.md#L9-L3' ends before it begins: write L3-L9"),
        (["search", "-n", str(10**23), "boiler"], f"'--max-results': {10**23} is not in the range 1<=x<=1000"),
        (["search", "--source", "foo", "boiler"], "'--source': 'foo' is not one of 'memory', 'sessions'"),
        (["search", "--min-score", "7", "boiler"], "'--min-score': 7.0 is not in the range"),
        (["search", "caf\udce9"], "QUERY is not UTF-8 at character 4"),
        (["append", "caf\udce9"], "TEXT is not UTF-8 at character 4"),
    ],
)
def test_a_wrong_argument_is_named(run, notes, arguments, words):
    outcome = run(*arguments, "--workspace", notes)
    assert outcome.code == 2
    assert words in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_standard_input_that_is_not_utf_8_is_told_with_its_line(run, notes, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"tea\ncaf\xe9 au lait\n")))
    outcome = run("append", "--workspace", notes, "-")
    assert outcome.code == 2
    assert "standard input is not UTF-8: byte 0xe9 in line 2; if it is Latin-1, pass it through iconv" in outcome.err


def test_standard_input_may_have_the_line_ends_and_the_mark_of_windows(run, notes, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbftea\r\ncocoa\r\n")))
    assert run("append", "--workspace", notes, "--date", "2026-03-01", "-").code == 0
    assert "tea\ncocoa\n" in (notes / "memory/2026-03-01.md").read_text(encoding="utf-8")


def test_init_always_names_its_count_and_the_next_step(run, tmp_path):
    (tmp_path / "vault/deep").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / f"vault/deep/{name}.md").write_text("A note.\n", encoding="utf-8")
    for _ in range(2):
        outcome = run("init", "-w", tmp_path / "vault")
        assert f'1 file to search: openclaw-memory search --workspace {tmp_path}/vault "a question"' in outcome.out
        assert "2 Markdown files lie in" in outcome.err
    outcome = run("init", "-w", tmp_path / "all", "--all-markdown")
    assert outcome.code == 2
    (tmp_path / "all").mkdir()
    outcome = run("init", "-w", tmp_path / "all", "--all-markdown")
    assert f'no file yet to search: openclaw-memory append --workspace {tmp_path}/all "a note"' in outcome.out
