"""Labelled questions: what counts as shown, which settings come out best, and what is said of a wrong label."""

import json
from datetime import UTC, datetime

import openclaw_memory_lab as lab
import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError, NotFoundError, QueryError, WorkspaceError, WriteError

KEY = lab.Question("Who has the spare key?", ("The spare key is with\nMrs. Groen.",), "en", "keyword")
GAUGES = lab.Question(
    "Why were gauges ordered and what cured one?", ("two as spares", "a white shield cured it"), "en", "two"
)
NOWHERE = lab.Question("Who?", ("never written",))
NONE = lab.Question("What is the capital of Peru?", (), "nl", "unanswerable")
TWO = {"default": MemoryConfig(), "strict": MemoryConfig().replace({"search": {"min_score": 1.0}})}


@pytest.fixture
def memory(notes):
    with Memory.open(notes) as memory:
        yield memory


def test_evidence_counts_as_far_as_it_is_shown(memory):
    result = lab.evaluate(memory, [KEY, GAUGES, NONE], name="mine")
    assert [row.coverage for row in result.rows] == [1.0, 1.0, None]
    assert result.rows[0].rank == 1
    assert (result.shown, result.first) == (1.0, 1.0)
    assert result.chars == (result.rows[0].chars + result.rows[1].chars) / 2
    assert result.silent == float(result.rows[2].results == 0)
    assert result.name == "mine"


def test_half_of_the_evidence_is_half_of_the_answer(notes):
    one = MemoryConfig().replace({"search": {"max_results": 1}})
    with Memory.open(notes, config=one) as memory:
        result = lab.evaluate(memory, [GAUGES])
    assert result.shown == 0.5
    assert result.find_missed() == result.rows


def test_settings_are_compared_on_the_same_notes_which_are_only_read(notes):
    before = {path: path.read_bytes() for path in notes.rglob("*") if path.is_file()}
    steps = []
    comparison = lab.compare(notes, [KEY, NONE], TWO, progress=steps.append)
    assert {path: path.read_bytes() for path in notes.rglob("*") if path.is_file()} == before
    assert [one.name for one in comparison] == ["default", "strict"]
    assert (comparison["default"].shown, comparison["strict"].shown) == (1.0, 0.0)
    assert comparison["strict"].silent == 1.0
    assert comparison["strict"].compare_with(comparison["default"]) == (0, 1)
    assert comparison["default"].compare_with(comparison["strict"], "first") == (1, 0)
    assert [(step.completed, step.total) for step in steps] == [(0, 2), (1, 2), (2, 2)]


FOUND, LOST = (1.0, 1), (0.0, None)


def made(name, outcomes, chars=600):
    """An evaluation of as many questions as there are outcomes: what was shown, and the rank of the first evidence."""
    asked = [lab.Question(f"question {number}", ("evidence",)) for number in range(len(outcomes))]
    return lab.Evaluation(
        name, tuple(lab.Answered(one, *end, 3, chars) for one, end in zip(asked, outcomes, strict=True))
    )


@pytest.mark.parametrize(
    ("outcomes", "best"),
    [
        ([LOST, LOST, FOUND, FOUND], "first"),  # two more than the first: chance
        ([FOUND, FOUND, FOUND, FOUND], "other"),
        ([FOUND, FOUND, FOUND, LOST], "first"),  # three better, but one worse
    ],
)
def test_the_first_stays_unless_another_is_better_on_three_more_questions(outcomes, best):
    compared = lab.Comparison((made("first", [LOST, LOST, LOST, FOUND]), made("other", outcomes)))
    assert compared.choose_best().name == best
    assert compared.choose_best(margin=1).name == "other"


def test_the_moment_that_age_counts_from_can_be_given(notes):
    old = MemoryConfig().replace({"search": {"half_life_days": 1.0, "min_score": 0.06}})
    question = lab.Question("What did gauge 1 report?", ("E_CAL_DRIFT",))
    at = [datetime(year, 2, 27, tzinfo=UTC) for year in (2026, 2027)]
    fresh, aged = (lab.compare(notes, [question], {"aged": old}, now=now)[0].shown for now in at)
    assert (fresh, aged) == (1.0, 0.0)


def test_tables_name_the_settings_and_hold_no_markup(notes):
    comparison = lab.compare(notes, [KEY, NONE], {"<b>mine</b>": MemoryConfig()})
    assert "&lt;b&gt;mine&lt;/b&gt;" in comparison._repr_html_()
    assert comparison[0]._repr_html_() == comparison._repr_html_()
    assert "shown 1.000" in repr(comparison)
    assert "–" in comparison[0].split_by("language")["nl"]._repr_html_()
    frame = comparison.to_pandas()
    assert list(frame.columns) == ["name", "shown", "first", "silent", "chars", "better", "worse"]
    assert list(comparison[0].to_pandas()["question"]) == [KEY.text, NONE.text]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: this is not JSON"),
        ('{"question": " "}', "line 2: there is no question"),
        ('{"question": "a", "evidnce": []}', "line 2: 'evidnce' is unknown"),
        ('{"question": "a", "evidence": 3}', "the evidence must be a list of quotes, not 3"),
        ('{"question": "a", "kind": 3}', "language and kind are words"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, words):
    place = tmp_path / "questions.jsonl"
    place.write_text(f'{{"question": "right"}}\n{line}\n')
    with pytest.raises(QueryError, match=words):
        lab.read_questions(place)


def test_questions_are_read_as_they_were_written(tmp_path, memory):
    place = tmp_path / "questions.jsonl"
    fields = {"question": KEY.text, "evidence": list(KEY.evidence), "language": "en", "kind": "keyword"}
    place.write_text(f'{json.dumps(fields)}\n\n{{"question": "Who?", "evidence": "two as spares"}}\n')
    assert lab.read_questions(place, memory) == [KEY, lab.Question("Who?", ("two as spares",))]


def test_what_was_measured_with_less_than_was_asked_for_says_so(notes):
    lost = MemoryConfig().replace({"embedding": {"provider": "openai"}})
    comparison = lab.compare(
        notes, [KEY], {"none": MemoryConfig().replace({"embedding": {"provider": "none"}}), "lost": lost}
    )
    assert [one.mode for one in comparison] == ["keyword", "keyword"]
    assert comparison["none"].reasons == ()
    assert "openai" in comparison["lost"].reasons[0]
    assert "openai" in repr(comparison)
    assert "openai" in comparison._repr_html_()


def test_a_workspace_may_chunk_as_it_likes_and_is_compared_as_the_settings_say(notes):
    (notes / ".memory").mkdir()
    (notes / ".memory" / "config.toml").write_text("[chunking]\nmax_chars = 150\n")
    (notes / "memory" / "long.md").write_text("# Long\n\n" + "The pump was looked at again, and it was dry.\n" * 60)
    sizes = {
        str(size): MemoryConfig().replace({"chunking": {"max_chars": size}, "search": {"answer": "chunks"}})
        for size in (150, 700)
    }
    questions = [lab.Question("Was the pump dry?", ("it was dry",))]
    small, large = (one.chars for one in lab.compare(notes, questions, sizes))
    assert small < large


def test_evidence_in_markdown_that_is_not_searched_leads_to_the_fix(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe key is with {name}.\n")
    with Memory.open(tmp_path) as memory, pytest.raises(QueryError, match="init --all-markdown"):
        lab.evaluate(memory, [lab.Question("Who has the key?", ("The key is with two.",))])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda notes: lab.evaluate(notes, []), QueryError, "no questions"),
        (lambda notes: lab.evaluate(notes, [KEY, NOWHERE]), QueryError, r"no note holds the evidence 'never .* of 'Who\?'"),
        (lambda notes: lab.compare(notes.workspace.root, [KEY], {}), QueryError, "no settings"),
        (lambda notes: lab.compare(notes.workspace.root, [KEY], MemoryConfig()), QueryError, "no settings to compare"),
        (lambda notes: lab.compare(notes.workspace.root, [KEY], {"mine": "openclaw"}), ConfigError, "must be a MemoryConfig"),
        (lambda _: lab.compare("/nowhere", [KEY], TWO), WorkspaceError, "nowhere"),
        (lambda _: lab.read_questions("/nothing.jsonl"), QueryError, r"nothing.jsonl cannot be read"),
        (lambda notes: lab.copy_lab(notes.workspace.root / "MEMORY.md"), WriteError, "name a folder"),
        (lambda _: made("one", [FOUND]).compare_with(made("two", [LOST] * 2)), QueryError, "'one' and 'two' were asked diff"),
        (lambda _: lab.Comparison((made("one", [FOUND]),)).choose_best("silent"), QueryError, "by 'shown' or 'first', not by 'silent'"),
        (lambda _: lab.Comparison((made("one", [FOUND]),))["on"], NotFoundError, "no settings are named 'on': choose from \\['one'\\]"),
        (lambda _: lab.Comparison(()).choose_best(), QueryError, "no settings to choose from"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused_with_what_is_wrong(memory, call, error, words):
    with pytest.raises(error, match=words):
        call(memory)


# --- chance
@pytest.mark.parametrize(
    ("better", "worse", "share"), [(0, 0, 1.0), (1, 1, 1.0), (3, 0, 0.25), (0, 3, 0.25), (6, 0, 1 / 32), (5, 1, 7 / 32)]
)
def test_the_sign_test_says_how_often_a_coin_would_split_so(better, worse, share):
    assert lab.sign_test(better, worse) == pytest.approx(share)


def test_six_questions_of_six_are_more_than_chance_and_five_are_not(shown):
    nothing = shown("nothing", *[0.0] * 6)
    assert lab.is_better(shown("all", *[1.0] * 6), nothing)
    assert not lab.is_better(shown("five", 0.0, *[1.0] * 5), nothing)
    assert not lab.is_better(nothing, shown("all", *[1.0] * 6))


def test_an_interval_holds_the_share_and_is_narrow_with_many_questions(shown):
    few, many = (
        lab.estimate_interval(shown("few", *[0.0, 1.0] * 5)),
        lab.estimate_interval(shown("many", *[0.0, 1.0] * 200)),
    )
    assert few[0] < many[0] < 0.5 < many[1] < few[1]
    with pytest.raises(QueryError, match="no question of 'none' has evidence"):
        lab.estimate_interval(lab.Evaluation("none", (lab.Answered(NONE, None, None, 0, 0),)))
