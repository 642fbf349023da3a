"""Text to terms: what is folded, what stays whole, what a question drops, and laws that hold for any text."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openclaw_memory.text import terms

# Any characters; and a few that are joined, folded, cut and paired, in every order.
TEXTS = st.text(max_size=60) | st.text(alphabet="aBs1_-. \n'\"é\u0301ßİøΣ東ア가क्", max_size=40)


# --- folding
@pytest.mark.parametrize(
    ("written", "folded"),
    [row.split("\t") for row in Path(__file__).with_name("folded.tsv").read_text("utf-8").splitlines()],
)
def test_case_accents_and_compatibility_forms_are_folded(written, folded):
    assert terms.fold(written) == folded


# --- terms
@pytest.mark.parametrize("row", Path(__file__).with_name("terms.tsv").read_text("utf-8").splitlines())
def test_a_text_becomes_these_terms(row):
    text, expected = row.split("\t")[0], row.split("\t")[1].split()
    assert terms.split_terms(text) == expected
    assert terms.join_terms(text) == " ".join(expected)


@example("Ꭰ")
@given(TEXTS)
def test_a_term_is_short_folded_and_without_signs_that_a_query_could_mean(text):
    for term in terms.split_terms(text):
        assert 0 < len(term) <= terms.MAX_TERM_CHARS
        assert term == term.casefold()  # where it is not the lower case: of Cherokee, it is the upper case
        assert not set(term) & set(" \t\n\r\0\"'*():^")


@pytest.mark.parametrize(
    "unit",
    [
        "_", "a-", "-", "._-", "aB", "A", "a1", "İ", "\u0301", "a\u0301", "क्", "東", "東a", " ", '"', "1.", "\ud800",
        "e\u0301-",
    ],
    ids=ascii,
)  # fmt: skip
@pytest.mark.sampled(4)
def test_a_hundred_kilobytes_of_anything_give_terms_in_proportion_and_an_end(unit):
    text = "x" + unit * (100_000 // len(unit))
    found = terms.split_terms(text)
    assert sum(map(len, found)) <= 4 * len(text) + terms.MAX_TERM_CHARS
    assert set(terms.split_query(text)) <= set(found)
    assert len(terms.split_words(text)) <= len(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Sitzung ist am Freitag.", "de"),
        ("La reunión es el miércoles con Íñigo", "es"),
        ("Het overleg is op vrijdag", "nl"),
        ("Il gatto che non è del vicino", "it"),
        ("Счёт оплачен", "ru"),
        ("Уряд ухвалив їх", "uk"),
        ("کتابخانه چگونه است", "fa"),
        ("η συνάντηση", "el"),
        ("---\nlang: sv\n---\nHej", "sv"),
        ("The gate code is 4711", "en"),
        ("会议改到什么时候", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_a_text_is_guessed_by_its_letters_and_commonest_words(text, language):
    assert terms.detect_language(text) == language


@pytest.mark.parametrize(
    ("note", "question", "language"),
    [("Häusern", "Haus", "de"), ("reuniones", "reunión", "es"), ("evler", "ev", "tr"), ("והשעון", "בשעון", "he")],
)
def test_words_are_stemmed_by_the_language_of_a_note_and_a_question_by_those_of_all_notes(note, question, language):
    words = set(terms.split_terms(note, language))
    assert words & set(terms.split_query(question, ("en", language)))
    assert words <= set(terms.split_query(note, ("en", "fr", language))), (
        "the word itself finds it, whatever was guessed"
    )


# --- questions
@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Who has the spare key?", ["spare", "key"]),
        ("When did the war end?", ["war", "end"]),
        ("Wanneer komt de loodgieter naar ons huis?", ["komt", "loodgiet", "hui"]),
        ("Wer war der Arzt von Anna?", ["arzt", "anna"]),
        ("Où est la clé de Marie ?", ["cle", "mari"]),
        ("¿Dónde está la llave de repuesto?", ["llave", "repuesto"]),
        ("What is in config.toml?", ["configtoml", "config", "toml"]),
    ],
)
def test_a_question_keeps_its_content_words(question, kept):
    assert terms.split_query(question) == kept


@pytest.mark.parametrize(
    ("question", "kept", "dropped"),
    [
        ("备用钥匙在哪里？", {"备用", "钥匙"}, {"在", "哪里"}),
        ("锅炉什么时候检修的？", {"锅炉", "检修"}, {"什么", "的"}),
        ("スペアキーは何ですか", {"スペ", "キー"}, {"は", "です"}),
        ("予備の鍵を持っていますか", {"予備", "鍵"}, {"の", "ます"}),
        ("예비 열쇠는 어디 있습니까?", {"예비", "열쇠"}, {"는", "어디", "니까"}),
    ],
)
def test_a_question_in_cjk_keeps_the_pairs_of_its_content(question, kept, dropped):
    found = set(terms.split_query(question))
    assert kept <= found
    assert not dropped & found


@pytest.mark.parametrize("question", ["what is it", "the", "Was ist das?", "是什么", "THE the The"])
def test_a_question_of_stop_words_alone_keeps_them(question):
    assert terms.split_query(question) == list(dict.fromkeys(terms.split_terms(question)))


@given(TEXTS)
def test_a_question_is_looked_up_by_terms_that_indexing_its_text_yields(text):
    asked = terms.split_query(text)
    assert set(asked) <= set(terms.split_terms(text))
    assert len(asked) == len(set(asked))
    assert bool(asked) == bool(terms.split_terms(text))


# --- words
def test_words_keep_their_accents_and_a_question_drops_stop_words_by_their_folded_form():
    words = terms.split_words("Über die Brücke, GEO-1000 東京駅")
    assert words == ["über", "die", "brücke", "geo", "1000", "geo1000", "東京", "京駅"]
    assert terms.select_content_words("Wer geht über die Brücke?") == ["geht", "brücke"]
    assert terms.select_content_words("what is it") == ["what", "is", "it"]
