"""A note is found by words of it, typed as people type them, in forty languages and their scripts."""

from pathlib import Path

import pytest

from openclaw_memory import Memory

# Of each language a note, and a question of words that it has, without the accents and signs that many leave out.
ROWS = Path(__file__).with_name("scripts.tsv").read_text("utf-8").splitlines()
NOTES = {language: (text, question) for language, text, question in (row.split("\t") for row in ROWS)}
SIGNS = {
    "a mark": ("- 🔴 open: the boiler\n- ✅ done: the roof", "🔴 open", "boiler"),
    "an emoji alone": ("Holiday ⭐ in the mountains", "⭐", "Holiday"),
    "a tag": ("#garden cut the roses", "#garden", "roses"),
    "a name": ("Ask @lena about the keys", "@lena", "keys"),
    "a language": ("The parser is in C++ now", "C++", "parser"),
    "camelCase": ("Call getUserAccountById first", "get user account", "getUserAccountById"),
    "snake_case": ("Set retry_limit to five", "retry limit", "retry_limit"),
    "a number without its sign": ("Ticket BRK-2291 is closed", "brk2291", "BRK-2291"),
    "a number with a sign": ("Ticket geo3310 is closed", "GEO-3310", "geo3310"),
}


@pytest.fixture(scope="module", params=["static", None], ids=["default", "keywords"])
def memory(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("scripts")
    (root / "memory").mkdir()
    for name, (text, *_) in (NOTES | SIGNS).items():
        (root / "memory" / f"{name.replace(' ', '-')}.md").write_text(f"{text}\n", encoding="utf-8")
    with Memory.open(root, embedder=request.param) as memory:
        memory.sync()
        yield memory


@pytest.mark.parametrize("language", NOTES)
def test_a_note_is_found_by_its_words_in_every_script(memory, language):
    text, question = NOTES[language]
    assert memory.search(question)[0].snippet == text


@pytest.mark.parametrize("kind", SIGNS)
def test_signs_and_identifiers_are_found_as_people_type_them(memory, kind):
    text, question, line = SIGNS[kind]
    first = memory.search(question)[0]
    assert line in first.snippet
    assert first.snippet in text or text in first.snippet
    assert first.confidence == "strong"


LOG = "\n".join(f"ERROR worker {at} could not reach the queue and will try again in {at} seconds" for at in range(60))


@pytest.mark.parametrize(
    "question",
    [f"What roses do I cut?\n\n{LOG}", f"{LOG}\n\nWhat roses do I cut?", f"{LOG}\nTell me about the roses. Thanks!"],
    ids=["before", "after", "no question mark"],
)
def test_what_is_asked_with_a_pasted_text_is_found(memory, question):
    assert "roses" in memory.search(question)[0].snippet


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("פגישה על running services ב-GitHub", "running services"),
        ("회의에서 dashboards 를 보았다", "dashboards"),
        ("---\nlang: hr\n---\nPisanje knjige: running meetings", "running meetings"),
        ("Зустріч про dashboards і сервери", "dashboards"),
    ],
)
@pytest.mark.parametrize("embedder", ["static", None])
def test_an_exact_word_is_found_whatever_language_its_note_is_taken_for(tmp_path, text, question, embedder):
    (tmp_path / "MEMORY.md").write_text(text, encoding="utf-8")
    with Memory.open(tmp_path, embedder=embedder) as memory:
        memory.sync()
        assert memory.search(question)[0].path == "MEMORY.md"


MISSPELT = {
    "English": "When is the meeting with the acountant?",
    "German": "Wann wird die Küche gestrihcen?",
    "French": "Quand est prévu le demenagement à Besanson ?",
    "Spanish": "¿Cuándo es la reunnión con Íñigo?",
    "Russian": "Когда прилетает самолет с бугхалтером?",
    "Greek": "Πότε είναι η συναντησ με τον λογηστη;",
    "Arabic": "متى الاجتمااع مع المحاسب",
    "Hindi": "गुरुवर को बैठक",
}


@pytest.mark.parametrize("language", MISSPELT)
def test_a_misspelt_word_is_read_as_the_nearest_of_the_notes_and_the_answer_says_so(memory, language):
    results = memory.search(MISSPELT[language])
    assert results[0].snippet == NOTES[language][0]
    assert results.reason.startswith("read '")


@pytest.mark.parametrize(
    "question",
    [
        "accountants and meetings",  # forms of words of the notes
        "the meaning of a mooring and the greeting of an accordionist",  # words of a language
        "GEO-3311 brk2292 retry_limits getUserAcountById",
        "What happened in Januari or on 2026-02-30?",
    ],
)
def test_words_that_are_known_and_codes_are_never_read_as_others(memory, question):
    assert "read '" not in (memory.search(question).reason or "")
