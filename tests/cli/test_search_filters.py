"""The filters of the command `search`."""

import pytest

from openclaw_memory import Memory


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/2026-01-05.md").write_text("The spare key is with Ann.\n")
    (tmp_path / "memory/boat.md").write_text("---\ntags: [boat, sea]\ndate: 2026-02-01\n---\nThe spare key floats.\n")
    (tmp_path / "memory/car.md").write_text("---\ntags: [car]\ndate: 2026-03-01\n---\nThe spare key rattles.\n")
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.records.remember("fact", "shed.key", "the spare key squeaks", user_id="bo")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--path", "memory/2026-*", "--path", "car.md"], {"Ann", "rattles"}),
        (["--since", "2026-01-06", "--tag", "car"], {"rattles"}),
        (["--since", "2026-01-05", "--until", "2026-02-01"], {"Ann", "floats"}),
        (["--tag", "#boat", "--tag", "sea"], {"floats"}),
        (["--type", "fact"], {"squeaks"}),
        (["--key", "car.*", "--key", "shed.*"], {"squeaks"}),
        (["--key", "shed"], set()),
        (["--user", "ann", "--user", "bo"], {"squeaks"}),
        (["--user", "ann"], set()),
        (["--min-confidence", "0.5"], {"Ann", "floats", "rattles", "squeaks"}),
    ],
)
def test_a_search_is_confined_by_its_options(run, notes, options, found):
    outcome = run("search", "--workspace", notes, *options, "--min-score", "0", "Where is the spare key?")
    assert {word for word in ("Ann", "floats", "rattles", "squeaks") if word in outcome.out} == found
    assert outcome.code == (0 if found else 1)


def test_a_day_that_cannot_be_read_is_an_error_that_names_it(run, notes):
    outcome = run("search", "--workspace", notes, "--since", "soon", "key")
    assert outcome.code
    assert "since is 'soon': give a date" in outcome.err
