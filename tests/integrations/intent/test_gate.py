"""Which messages a model is asked about, what phrases say where none is, and which language they are in."""

from pathlib import Path

import pytest
from openclaw_memory_intent import detect_intent, language_of, worth_asking
from openclaw_memory_intent import languages as languages_module
from openclaw_memory_intent.languages import by_stop_words

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


@pytest.mark.parametrize(("language", "said"), [(code, said) for code, all_ in DO_NOT_FORGET.items() for said in all_])
def test_do_not_forget_means_remember(language, said):
    found = detect_intent(said)
    assert (found.intent, found.language) == ("remember", language)
    assert worth_asking(said)


@pytest.mark.parametrize(
    "said",
    [
        "When is Carla's birthday?",
        "The landlord's number is 555 0142.",
        "Add that Ben likes coffee.",
        "How does Carla take her coffee?",
        "Thanks, and my new address is 14 Harbour Lane.",
        "Delete the note about the tests.",
        "What is her name?",
        "Leg vast dat de deadline vrijdag is.",
        "Zet Carla's verjaardag op 3 mei.",
        "Wie viele Kinder hat Carla?",
        "Schreib dir das auf.",
        "Marque que la réunion est lundi.",
        "Generalmente ceno a las nueve.",
        "La reunión es el lunes.",
        "Ricordati che Anna arriva domani.",
        "请记住我的生日是五月三日",
        "Запомни, что я не ем мясо.",
        f"Remember the code 4711. {'pasted words ' * 5_000}",
        f"{'pasted words ' * 5_000} Remember the code 4711.",
    ],
)
def test_what_may_want_something_is_worth_a_call(said):
    assert worth_asking(said)


@pytest.mark.parametrize(
    "said",
    [
        "", "  \n", "👍", "42", "ok", "Thanks!", "Hola, buenos días", "Danke, super!", "merci beaucoup",
        "Write a limerick on teapots.", "Could you please translate this into Polish: the cat sleeps.",
        "Erkläre bitte den Unterschied zwischen TCP und UDP.", "Bereken de wortel van 144.",
        "Calcule la racine carrée de 144.", "Calcula la raíz cuadrada de 144.",
        "What is the difference between a list and a tuple?", "Delete the unused functions from app.py.",
    ],
)  # fmt: skip
def test_what_wants_nothing_costs_no_call(said):
    assert not worth_asking(said)


@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("Remember that the boiler code is 4711.", "remember"),
        ("Remember which hotel we booked?", "query"),
        ("What did I say about the boiler?", "query"),
        ("Onthoud dit nummer niet langer.", "forget"),
        ("Lösche die Notiz über den Vertrag.", "forget"),
        ("Oublie ça, je vais le faire.", None),
        ("Never mind.", None),
        ("He told me to forget the meeting.", None),
        ("Forget everything.", "forget"),
        ("Vergeet alles.", "forget"),
        ("Vergiss alles!", "forget"),
        ("Oublie tout.", "forget"),
        ("Olvida todo.", "forget"),
        ("La casa es grande.", None),
        ("请记住我的生日", None),
    ],
)
def test_phrases_decide_where_no_model_does(said, intent):
    assert detect_intent(said).intent == intent


SENTENCES = {
    "en": """The kettle is on the stove.|Rain is expected over the hills tonight.|He bought two tickets for the concert.|Turn left at the second bridge.
        Nobody knew where the cat had gone.|My brother works in a bakery.|We should leave before noon.|These shoes are too small for me.|Is there any milk left?
        The meeting was moved to Thursday.|She plays the violin every evening.|Put the boxes in the garage, please.|It costs less than you think.|They live near the station.
        I would rather walk.|Can somebody open the window?|The library closes at six.|Our flight was cancelled yesterday.|That is not what happened.|Bring a coat, it gets cold.""",
    "nl": """De ketel staat op het fornuis.|Vanavond valt er regen in de heuvels.|Hij kocht twee kaartjes voor het concert.|Sla linksaf bij de tweede brug.
        Niemand wist waar de kat gebleven was.|Mijn broer werkt in een bakkerij.|We moeten voor twaalven weg.|Deze schoenen zijn me te klein.|Is er nog melk over?
        De vergadering is naar donderdag verplaatst.|Ze speelt elke avond viool.|Zet de dozen in de garage.|Het kost minder dan je denkt.|Zij wonen vlak bij het station.
        Ik ga liever lopen.|Kan iemand het raam openzetten?|De bibliotheek sluit om zes uur.|Onze vlucht werd gisteren geschrapt.|Dat is niet wat er gebeurde.|Neem een jas mee, het wordt koud.""",
    "de": """Der Kessel steht auf dem Herd.|Heute Abend regnet es in den Hügeln.|Er kaufte zwei Karten für das Konzert.|Biegen Sie an der zweiten Brücke links ab.
        Niemand wusste, wo die Katze war.|Mein Bruder arbeitet in einer Bäckerei.|Wir sollten vor Mittag aufbrechen.|Diese Schuhe sind mir zu klein.|Ist noch Milch da?
        Die Sitzung wurde auf Donnerstag verlegt.|Sie spielt jeden Abend Geige.|Stell die Kisten in die Garage.|Es kostet weniger, als du denkst.|Sie wohnen nahe am Bahnhof.
        Ich gehe lieber zu Fuß.|Kann jemand das Fenster öffnen?|Die Bibliothek schließt um sechs.|Unser Flug fiel gestern aus.|Das ist nicht passiert.|Nimm einen Mantel mit, es wird kalt.""",
    "fr": """La bouilloire est sur le feu.|On attend de la pluie sur les collines ce soir.|Il a acheté deux billets pour le concert.|Tournez à gauche au deuxième pont.
        Personne ne savait où était le chat.|Mon frère travaille dans une boulangerie.|Nous devrions partir avant midi.|Ces chaussures sont trop petites pour moi.|Reste-t-il du lait ?
        La réunion est reportée à jeudi.|Elle joue du violon chaque soir.|Mets les cartons dans le garage.|Cela coûte moins que tu ne crois.|Ils habitent près de la gare.
        Je préfère marcher.|Quelqu'un peut ouvrir la fenêtre ?|La bibliothèque ferme à six heures.|Notre vol a été annulé hier.|Ce n'est pas ce qui s'est passé.|Prends un manteau, il va faire froid.""",
    "es": """La tetera está en el fuego.|Esta noche lloverá en las colinas.|Compró dos entradas para el concierto.|Gire a la izquierda en el segundo puente.
        Nadie sabía dónde estaba el gato.|Mi hermano trabaja en una panadería.|Deberíamos salir antes del mediodía.|Estos zapatos me quedan pequeños.|¿Queda algo de leche?
        La reunión se ha pasado al jueves.|Toca el violín todas las noches.|Pon las cajas en el garaje.|Cuesta menos de lo que piensas.|Viven cerca de la estación.
        Prefiero ir andando.|¿Alguien puede abrir la ventana?|La biblioteca cierra a las seis.|Ayer cancelaron nuestro vuelo.|Eso no es lo que pasó.|Lleva un abrigo, hará frío.""",
}  # fmt: skip
TOLD = [
    (code, said.strip()) for code, block in SENTENCES.items() for line in block.split("\n") for said in line.split("|")
]
# Messages that no word of the library was chosen from.
HELD = Path(__file__).parents[3] / "benchmarks/intent/held.tsv"
TOLD += [(row.split("\t")[0], row.split("\t")[2]) for row in HELD.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("said", "entities"),
    [
        ("Onthoud dat mijn zus Katja geen noten eet.", ("zus", "katja", "noten", "eet")),
        ("Wil je onthouden dat Katja geen noten eet?", ("katja", "noten", "eet")),
        ("Retiens que Katja déteste les noix.", ("katja", "déteste", "noix")),
        ("Remember that Katja hates nuts.", ("katja", "hates", "nuts")),
    ],
)
def test_the_order_itself_is_none_of_the_entities(said, entities):
    assert detect_intent(said).entities == entities


def test_stop_words_tell_the_language_of_85_of_100_sentences():
    assert len(TOLD) == 350
    wrong = [said for code, said in TOLD if by_stop_words(said) != code]
    print(wrong)
    assert len(wrong) <= 0.15 * len(TOLD)


def test_with_py3langid_it_is_97_of_100():
    pytest.importorskip("py3langid")
    wrong = [said for code, said in TOLD if language_of(said) != code]
    print(wrong)
    assert len(wrong) <= 0.03 * len(TOLD)


@pytest.mark.parametrize("said", ["", "42", "👍 !!"])
def test_what_has_no_word_is_in_no_language(said):
    assert language_of(said) == by_stop_words(said) == "und"


def test_without_py3langid_stop_words_decide(monkeypatch):
    monkeypatch.setattr(languages_module, "_model", lambda _names: None)
    assert language_of("Mijn broer werkt in een bakkerij.") == "nl"
    assert language_of("Ostatni pociąg") == "und"


def test_the_language_is_one_of_those_that_were_asked_for():
    assert language_of("Mijn broer werkt in een bakkerij.", ["de", "fr"]) in {"de", "fr", "und"}


@pytest.mark.parametrize("said", ["Vergiss alles", "Notiere alles"])
@pytest.mark.parametrize("with_model", [True, False])
def test_an_order_of_two_words_is_in_the_language_of_its_verb(monkeypatch, said, with_model):
    if not with_model:
        monkeypatch.setattr(languages_module, "_model", lambda _names: None)
    assert language_of(said) == "de"


def test_of_no_languages_a_text_is_in_none():
    assert language_of("Mijn broer werkt in een bakkerij.", []) == "und"
