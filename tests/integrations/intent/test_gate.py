"""Which messages a model is asked about, what phrases say where none is, and which language they are in."""

from pathlib import Path

import pytest
from openclaw_memory_intent import detect_intent, detect_language, is_worth_asking
from openclaw_memory_intent import languages as languages_module
from openclaw_memory_intent.languages import match_stop_words

DO_NOT_FORGET = {
    "en": [
        "Don't forget that the bins go out on Monday.",
        "Please do not forget the bins.",
        "Never forget: bins on Monday.",
    ],
    "nl": ["Vergeet niet dat de vuilnis maandag buiten moet.", "Vergeet alsjeblieft niet: maandag vuilnis."],
    "de": ["Vergiss nicht, dass der Müll am Montag rausgeht.", "Bitte vergiss das nicht: Montag kommt der Müll."],
    "fr": ["N'oublie pas que les poubelles sortent le lundi.", "N’oublie surtout pas les poubelles."],
    "es": ["No olvides que la basura sale el lunes.", "No te olvides de la basura del lunes."],
}


@pytest.mark.fault(41)
@pytest.mark.parametrize(("language", "said"), [(code, said) for code, all_ in DO_NOT_FORGET.items() for said in all_])
def test_do_not_forget_means_remember(language, said):
    found = detect_intent(said)
    assert (found.intent, found.language) == ("remember", language)
    assert is_worth_asking(said)


@pytest.mark.parametrize(
    "said",
    [
        "When is Carla's birthday?",
        "The landlord's number is 555 0142.",
        "Delete the note about the tests.",
        "Leg vast dat de deadline vrijdag is.",
        "Marque que la réunion est lundi.",
        "Generalmente ceno a las nueve.",
        "Ricordati che Anna arriva domani.",
        "请记住我的生日是五月三日",
        "Запомни, что я не ем мясо.",
        f"Remember the code 4711. {'pasted words ' * 5_000}",
        f"{'pasted words ' * 5_000} Remember the code 4711.",
    ],
)
def test_what_may_want_something_is_worth_a_call(said):
    assert is_worth_asking(said)


@pytest.mark.parametrize(
    "said",
    [
        "", "  \n", "👍", "42", "ok", "Thanks!", "Hola, buenos días", "Danke, super!", "merci beaucoup", "你好！", "好的，谢谢。",
        "Write a limerick on teapots.", "Could you please translate this into Polish: the cat sleeps.",
        "Erkläre bitte den Unterschied zwischen TCP und UDP.", "Bereken de wortel van 144.",
        "Calcule la racine carrée de 144.", "Calcula la raíz cuadrada de 144.",
        "What is the difference between a list and a tuple?", "Delete the unused functions from app.py.",
    ],
)  # fmt: skip
def test_what_wants_nothing_costs_no_call(said):
    assert not is_worth_asking(said)


@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("Remember that the boiler code is 4711.", "remember"),
        ("Remember which hotel we booked?", "query"),
        ("What did I say about the boiler?", "query"),
        ("Onthoud dit nummer niet langer.", "forget"),
        ("Lösche die Notiz über den Vertrag.", "forget"),
        ("Never mind.", None),
        ("Forget everything.", "forget"),
        ("Vergeet alles.", "forget"),
        ("请记住我的生日", "remember"),
        ("你还记得我的生日吗？", "query"),
        ("不要忘记我对花生过敏", "remember"),
        ("帮我写一个函数", None),
    ],
)
def test_phrases_decide_where_no_model_does(said, intent):
    assert detect_intent(said).intent == intent


# Messages that no word of the library was chosen from.
HELD = Path(__file__).parents[3] / "benchmarks/intent/held.tsv"
TOLD = [(row.split("\t")[0], row.split("\t")[2]) for row in HELD.read_text(encoding="utf-8").splitlines()]


@pytest.mark.fault(39)
def test_stop_words_tell_the_language_of_85_of_100_sentences():
    assert len(TOLD) == 250
    wrong = [said for code, said in TOLD if match_stop_words(said) != code]
    print(wrong)
    assert len(wrong) <= 0.15 * len(TOLD)


@pytest.mark.fault(39)
def test_with_py3langid_it_is_97_of_100():
    pytest.importorskip("py3langid")
    wrong = [said for code, said in TOLD if detect_language(said) != code]
    print(wrong)
    assert len(wrong) <= 0.03 * len(TOLD)


@pytest.mark.parametrize("said", ["", "42", "👍 !!"])
def test_what_has_no_word_is_in_no_language(said):
    assert detect_language(said) == match_stop_words(said) == "und"


def test_without_py3langid_stop_words_decide(monkeypatch):
    monkeypatch.setattr(languages_module, "_load_model", lambda _names: None)
    assert detect_language("Mijn broer werkt in een bakkerij.") == "nl"
    assert detect_language("Ostatni pociąg") == "und"


def test_the_language_is_one_of_those_that_were_asked_for():
    assert detect_language("Mijn broer werkt in een bakkerij.", ["it"]) in {"it", "und"}


@pytest.mark.parametrize("said", ["Vergiss alles", "Notiere alles"])
@pytest.mark.parametrize("with_model", [True, False])
def test_an_order_of_two_words_is_in_the_language_of_its_verb(monkeypatch, said, with_model):
    if not with_model:
        monkeypatch.setattr(languages_module, "_load_model", lambda _names: None)
    assert detect_language(said) == "de"
