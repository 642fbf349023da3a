"""The filters and rules of the command `search`."""

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
        (["--filter", "path=memory/2026-*", "--filter", "path=car.md"], {"Ann", "rattles"}),
        (["--since", "2026-01-06", "--filter", "tags=car"], {"rattles"}),
        (["--since", "2026-01-05", "--until", "2026-02-01"], {"Ann", "floats"}),
        (["--filter", "tags=#boat", "--filter", "tags=sea"], {"floats"}),
        (["--filter", "type=fact"], {"squeaks"}),
        (["--filter", "source=sessions"], set()),
        (["--filter", "key=car.*", "--filter", "key=shed.*"], {"squeaks"}),
        (["--filter", "key=shed"], set()),
        (["--filter", "user_id=ann", "--filter", "user_id=bo"], {"squeaks"}),
        (["--filter", "min_confidence=0.5"], {"Ann", "floats", "rattles", "squeaks"}),
    ],
)
@pytest.mark.sampled(6)
def test_a_search_is_confined_by_its_options(run, notes, options, found):
    outcome = run("search", "--workspace", notes, *options, "--min-score", "0", "Where is the spare key?")
    assert {word for word in ("Ann", "floats", "rattles", "squeaks") if word in outcome.out} == found
    assert outcome.code == (0 if found else 1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (['"key is with"'], {"Ann"}),
        (['"the spare key" squeaks'], {"squeaks", "Ann", "floats", "rattles"}),
        (["key -rattles -floats"], {"Ann", "squeaks"}),
        (["key", "-floats", "--filter", "tags=boat"], set()),
        (["--filter", "tags=car", "key", "-floats", "-n", "3"], {"rattles"}),
    ],
)
def test_a_phrase_must_be_there_and_a_word_after_a_minus_must_not(run, notes, query, found):
    outcome = run("search", "--workspace", notes, "--min-score", "0", *query)
    assert {word for word in ("Ann", "floats", "rattles", "squeaks") if word in outcome.out} == found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "soon", "key"], "since is 'soon': give a date"),
        (["-boat"], "QUERY has nothing to look for"),
        (["key", "--boat"], "--boat"),
        (["--filter", "tag", "key"], "did you mean 'tags'"),
        (["--filter", "tag=car", "key"], "did you mean 'tags'"),
        (["--filter", "min_confidence=2", "key"], "min_confidence"),
    ],
)
@pytest.mark.sampled(5)
def test_an_option_that_cannot_be_read_is_an_error_that_names_it(run, notes, arguments, words):
    outcome = run("search", "--workspace", notes, *arguments)
    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())
