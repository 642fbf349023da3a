"""A message names the fault, and what it advises works."""

import io


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
