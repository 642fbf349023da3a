"""Ten users' lives as they tell them to an agent, made from lists: the same with every run, in three languages.

A user tells 10 facts that may change and 20 that do not, each in one sentence, and asks for them in later sessions in
other words. A change names what it replaces or says that the former word was wrong. All users tell facts of the same
kinds, and each another value.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

SEED = 5
LANGUAGES = ("en", "nl", "de")
REMEMBER = {"en": "Please remember: ", "nl": "Onthoud dit: ", "de": "Merk dir bitte: "}
CORRECTED = {"en": "I was wrong before: ", "nl": "Ik had het mis: ", "de": "Ich hatte mich geirrt: "}
TURNS = 8  # of a session, if it has not more to tell and to ask
PRICE = r"\d+ euros?"


class Wording(NamedTuple):
    """How a fact is told in two ways, how its change is told, and how it is asked for in two ways."""

    told: tuple[str, str]
    changed: str
    asked: tuple[str, str]


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


FOODS = {
    "en": _split("peanuts shellfish strawberries celery mustard walnuts kiwis lupins soybeans sesame"),
    "nl": _split("pinda's schaaldieren aardbeien selderij mosterd walnoten kiwi's lupinen sojabonen sesam"),
    "de": _split("Erdnüsse Krebstiere Erdbeeren Sellerie Senf Walnüsse Kiwis Lupinen Sojabohnen Sesam"),
}
INSTRUMENTS = {
    "en": _split("cello oboe banjo ukulele accordion harp trombone mandolin bassoon zither"),
    "nl": _split("cello hobo banjo ukelele accordeon harp trombone mandoline fagot citer"),
    "de": _split("Cello Oboe Banjo Ukulele Akkordeon Harfe Posaune Mandoline Fagott Zither"),
}
STREETS = _split("Birkenweg Lindelaan Millgate Rosenhof Havenkade Foxlane Amselpfad Kerkplein Oakridge Moorgasse")
NAMES = {
    "dentist": _split("Brandt Okafor Visser Lindqvist Moreau Tanaka Petrov Silva Haddad Kowalski"),
    "sister": _split("Marijke Leonie Fiona Ingrid Yasmin Paulina Beatrix Noor Hedwig Carmen"),
    "cat": _split("Pepper Minoes Schnurri Olive Pixel Biscuit Mosje Kasimir Truffle Wolke"),
    "car": _split("Skoda Volvo Dacia Peugeot Mazda Toyota Subaru Fiat Renault Honda"),
    "project": _split("Bluebird Halyard Quasar Tamarind Zephyr Obsidian Marigold Falcon Juniper Lantern"),
    "restaurant": _split("Trattoria-Verde Zum-Anker De-Gouden-Lepel Sakura-House Casa-Lola Alte-Muehle Het-Veerhuis "
                         "Blue-Door Kaffeekontor Lotus-Garden"),
}  # fmt: skip
THINGS = {
    "en": _split("kettle drill ladder telescope printer lantern compass rucksack saddle easel mower scanner trumpet "
                 "wardrobe sled globe tripod barometer grinder hammock"),
    "nl": _split("waterkoker boormachine ladder telescoop printer lantaarn kalender rugzak zeis schildersezel "
                 "grasmaaier scanner trompet kledingkast slee wereldbol tuinslang barometer koffiemolen hangmat"),
    "de": _split("Wasserkocher Bohrmaschine Leiter Fernrohr Drucker Laterne Kompass Rucksack Sattel Staffelei "
                 "Rasenmäher Scanner Trompete Kleiderschrank Schlitten Globus Stativ Barometer Kaffeemühle Hängematte"),
}  # fmt: skip

WORDINGS: dict[str, dict[str, Wording]] = {
    "en": {
        "address": Wording(
            ("I live at {value}", "My home address is {value}"),
            "We moved house, no longer {old} but {value}",
            ("Where should a parcel for me be sent?", "At which address do I live?"),
        ),
        "dentist": Wording(
            ("My dentist is called {value}", "For my teeth I go to a dentist named {value}"),
            "I changed dentists, and now see {value}",
            ("Who looks after my teeth?", "What is the name of my dentist?"),
        ),
        "sister": Wording(
            ("My sister {value} stays with us at weekends", "The sister I see most often is {value}"),
            "My sister {value} now stays with us, no longer the other one",
            ("Which of my sisters comes to stay?", "What is the name of the sister who visits me?"),
        ),
        "cat": Wording(
            ("Our cat is called {value}", "We have a cat with the name {value}"),
            "We now have another cat, no longer {old} but {value}",
            ("How do we call our pet?", "What is our cat's name?"),
        ),
        "car": Wording(
            ("I drive a {value} to work", "The car in our garage is a {value}"),
            "I sold the car, and now drive a {value}",
            ("What make of car do I have?", "Which vehicle am I driving?"),
        ),
        "project": Wording(
            ("At work I lead the project {value}", "The project I am responsible for is {value}"),
            "My boss gave me another project, no longer {old} but {value}",
            ("What am I working on at the office?", "Which project do I lead?"),
        ),
        "restaurant": Wording(
            ("My favourite restaurant is {value}", "For dinner we like to go to {value}"),
            "Our favourite restaurant is now {value}",
            ("Where should you book a table for us?", "Which restaurant do I like best?"),
        ),
        "locker": Wording(
            ("The code of my locker is {value}", "My locker at the pool opens with {value}"),
            "The locker has a new code, no longer {old} but {value}",
            ("How do I open my locker at the pool?", "What is my locker code?"),
        ),
        "food": Wording(
            ("I am allergic to {value}", "My doctor says I must never eat {value}"),
            "The new allergy test says no longer {old} but {value}",
            ("What must a cook leave out for me?", "What am I allergic to?"),
        ),
        "instrument": Wording(
            ("I take lessons on the {value}", "The instrument I play is the {value}"),
            "I gave up music lessons on the {old}, and now learn the {value}",
            ("Which instrument do I play?", "What do I practise for my music lessons?"),
        ),
        "thing": Wording(
            ("I bought a {thing} for {value}", "The new {thing} cost me {value}"),
            "The {thing} now costs {value}",
            ("How much did I pay for the {thing}?", "What was the price of my {thing}?"),
        ),
    },
    "nl": {
        "address": Wording(
            ("Ik woon op {value}", "Mijn adres thuis is {value}"),
            "We zijn verhuisd, niet meer {old} maar {value}",
            ("Waar moet een pakje voor mij heen?", "Op welk adres woon ik?"),
        ),
        "dentist": Wording(
            ("Mijn tandarts heet {value}", "Voor mijn gebit ga ik naar tandarts {value}"),
            "Ik ben van tandarts gewisseld, en ga nu naar {value}",
            ("Wie zorgt voor mijn gebit?", "Hoe heet mijn tandarts?"),
        ),
        "sister": Wording(
            ("Mijn zus {value} logeert in het weekend bij ons", "De zus die ik het vaakst zie is {value}"),
            "Mijn zus {value} logeert nu bij ons, niet meer de andere",
            ("Welke van mijn zussen komt logeren?", "Hoe heet de zus die mij bezoekt?"),
        ),
        "cat": Wording(
            ("Onze kat heet {value}", "We hebben een kat met de naam {value}"),
            "We hebben nu een andere kat, niet meer {old} maar {value}",
            ("Hoe noemen we ons huisdier?", "Wat is de naam van onze kat?"),
        ),
        "car": Wording(
            ("Ik rijd met een {value} naar het werk", "De auto in onze garage is een {value}"),
            "Ik heb de auto verkocht, en rijd nu in een {value}",
            ("Welk merk auto heb ik?", "In welke wagen rijd ik?"),
        ),
        "project": Wording(
            ("Op het werk leid ik het project {value}", "Het project waar ik voor verantwoordelijk ben is {value}"),
            "Mijn baas gaf me een ander project, niet meer {old} maar {value}",
            ("Waar werk ik aan op kantoor?", "Welk project leid ik?"),
        ),
        "restaurant": Wording(
            ("Mijn lievelingsrestaurant is {value}", "Uit eten gaan we graag naar {value}"),
            "Ons lievelingsrestaurant is nu {value}",
            ("Waar moet je een tafel voor ons reserveren?", "Welk restaurant vind ik het beste?"),
        ),
        "locker": Wording(
            ("De code van mijn kluisje is {value}", "Mijn kluisje in het zwembad gaat open met {value}"),
            "Het kluisje heeft een nieuwe code, niet meer {old} maar {value}",
            ("Hoe krijg ik mijn kluisje in het zwembad open?", "Wat is de code van mijn kluisje?"),
        ),
        "food": Wording(
            ("Ik ben allergisch voor {value}", "Mijn dokter zegt dat ik nooit {value} mag eten"),
            "De nieuwe allergietest zegt niet meer {old} maar {value}",
            ("Wat moet een kok voor mij weglaten?", "Waarvoor ben ik allergisch?"),
        ),
        "instrument": Wording(
            ("Ik heb les op de {value}", "Het instrument dat ik speel is de {value}"),
            "Ik ben gestopt met muziekles op de {old}, en leer nu de {value}",
            ("Welk instrument speel ik?", "Waarop oefen ik voor muziekles?"),
        ),
        "thing": Wording(
            ("Ik kocht een {thing} voor {value}", "De nieuwe {thing} kostte me {value}"),
            "De {thing} kost nu {value}",
            ("Hoeveel heb ik betaald voor de {thing}?", "Wat was de prijs van mijn {thing}?"),
        ),
    },
    "de": {
        "address": Wording(
            ("Ich wohne in der Straße {value}", "Meine Adresse zu Hause ist {value}"),
            "Wir sind umgezogen, nicht mehr {old}, sondern {value}",
            ("Wohin soll ein Paket für mich geschickt werden?", "Unter welcher Adresse wohne ich?"),
        ),
        "dentist": Wording(
            ("Meine Zahnärztin heißt {value}", "Für meine Zähne gehe ich zu Zahnarzt {value}"),
            "Ich habe den Zahnarzt gewechselt und gehe jetzt zu {value}",
            ("Wer kümmert sich um meine Zähne?", "Wie heißt mein Zahnarzt?"),
        ),
        "sister": Wording(
            (
                "Meine Schwester {value} ist am Wochenende bei uns",
                "Die Schwester, die ich am meisten sehe, ist {value}",
            ),
            "Meine Schwester {value} ist jetzt bei uns, nicht mehr die andere",
            ("Welche meiner Schwestern kommt zu Besuch?", "Wie heißt die Schwester, die mich besucht?"),
        ),
        "cat": Wording(
            ("Unsere Katze heißt {value}", "Wir haben eine Katze mit dem Namen {value}"),
            "Wir haben jetzt eine andere Katze, nicht mehr {old}, sondern {value}",
            ("Wie rufen wir unser Haustier?", "Wie ist der Name unserer Katze?"),
        ),
        "car": Wording(
            ("Ich fahre mit einem {value} zur Arbeit", "Das Auto in unserer Garage ist ein {value}"),
            "Ich habe das Auto verkauft und fahre jetzt einen {value}",
            ("Welche Automarke habe ich?", "Mit welchem Wagen fahre ich?"),
        ),
        "project": Wording(
            ("In der Arbeit leite ich das Projekt {value}", "Das Projekt, für das ich zuständig bin, ist {value}"),
            "Mein Chef gab mir ein anderes Projekt, nicht mehr {old}, sondern {value}",
            ("Woran arbeite ich im Büro?", "Welches Projekt leite ich?"),
        ),
        "restaurant": Wording(
            ("Mein Lieblingsrestaurant ist {value}", "Zum Essen gehen wir gern ins {value}"),
            "Unser Lieblingsrestaurant ist jetzt {value}",
            ("Wo sollst du einen Tisch für uns reservieren?", "Welches Restaurant mag ich am liebsten?"),
        ),
        "locker": Wording(
            ("Der Code meines Spinds ist {value}", "Mein Spind im Schwimmbad geht mit {value} auf"),
            "Der Spind hat einen neuen Code, nicht mehr {old}, sondern {value}",
            ("Wie bekomme ich meinen Spind im Schwimmbad auf?", "Wie ist der Code meines Spinds?"),
        ),
        "food": Wording(
            ("Ich bin allergisch gegen {value}", "Mein Arzt sagt, ich darf nie {value} essen"),
            "Der neue Allergietest sagt nicht mehr {old}, sondern {value}",
            ("Was muss ein Koch für mich weglassen?", "Wogegen bin ich allergisch?"),
        ),
        "instrument": Wording(
            ("Ich nehme Unterricht am Instrument {value}", "Das Instrument, das ich spiele, heißt {value}"),
            "Den Musikunterricht am Instrument {old} gab ich auf, und lerne jetzt {value}",
            ("Welches Instrument spiele ich?", "Was übe ich für den Musikunterricht?"),
        ),
        "thing": Wording(
            ("Ich kaufte als Neues: {thing} für {value}", "Für das neue Stück, {thing}, zahlte ich {value}"),
            "Jetzt kostet {thing} genau {value}",
            ("Wie viel habe ich für {thing} bezahlt?", "Was war der Preis von {thing}?"),
        ),
    },
}
CHANGE_WORDS = re.compile(
    r"\b(?:no longer|now|wrong before|niet meer|nu|had het mis|nicht mehr|jetzt|hatte mich geirrt)\b", re.IGNORECASE
)
CHATTER = {
    "en": (
        "Can you explain to me in plain words how bread rises in a cold kitchen, and why it takes so long?",
        "The neighbours' cat sat on somebody's car all afternoon, and I had a long look at it from my window.",
        "Write me two friendly lines for a colleague whose project was finished a week later than she had hoped.",
        "What do people usually talk about at a dinner where nobody knows anybody, and everyone is tired?",
        "I read that dentists earn well but have sore backs; is that so, or is it one of those stories?",
        "Tell me something about the way rain is measured, and about those who write it down every morning.",
    ),
    "nl": (
        "Kun je mij in gewone woorden uitleggen hoe brood rijst in een koude keuken, en waarom dat zo lang duurt?",
        "De kat van de buren zat de hele middag op een auto, en ik heb er lang naar gekeken uit mijn raam.",
        "Schrijf twee vriendelijke regels voor een collega wier project een week later klaar was dan ze hoopte.",
        "Waar praten mensen meestal over bij een etentje waar niemand iemand kent, en iedereen moe is?",
        "Ik las dat tandartsen goed verdienen maar last van hun rug hebben; is dat zo, of is dat een verhaal?",
        "Vertel me iets over hoe regen wordt gemeten, en over wie dat elke ochtend opschrijft.",
    ),
    "de": (
        "Kannst du mir einfach erklären, wie Brot in einer kalten Küche aufgeht, und warum das so lange dauert?",
        "Die Katze der Nachbarn saß den ganzen Nachmittag auf einem Auto, und ich sah ihr lange vom Fenster aus zu.",
        "Schreib zwei freundliche Zeilen für eine Kollegin, deren Projekt eine Woche später fertig war als erhofft.",
        "Worüber spricht man bei einem Abendessen, bei dem niemand jemanden kennt und alle müde sind?",
        "Ich las, dass Zahnärzte gut verdienen, aber Rückenschmerzen haben; stimmt das, oder ist das ein Märchen?",
        "Erzähl mir etwas davon, wie Regen gemessen wird, und von denen, die ihn jeden Morgen aufschreiben.",
    ),
}


class Statement(NamedTuple):
    """A sentence that states a fact: its topic, its value, whether it tells a change, and where it stands."""

    topic: str
    value: str
    is_change: bool
    text: str
    start: int


class Turn(NamedTuple):
    """What a user says; of a question also its topic, the newest value, and all values that were ever told."""

    text: str
    topic: str = ""
    value: str = ""
    values: tuple[str, ...] = ()


@dataclass
class Life:
    """One user: the sessions, each a list of turns, and every sentence that stated a fact."""

    user: str
    sessions: list[list[Turn]]
    statements: list[str] = field(default_factory=list)


def make_lives(users: int, sessions: int) -> list[Life]:
    """Make the lives of so many users."""
    return [_make_life(number, sessions) for number in range(users)]


def _make_life(number: int, sessions: int) -> Life:
    rng = random.Random(f"{SEED} {number}")
    language = LANGUAGES[number % len(LANGUAGES)]
    life = Life(f"user{number}", [[] for _ in range(sessions)])
    gap = max(1, sessions // 10)  # sessions between what is told and what is asked
    for topic, wording in WORDINGS[language].items():
        if topic == "thing":
            continue
        values = [_make_value(topic, language, number + 3 * version, rng) for version in range(3)]
        at = sorted(rng.sample(range(0, max(1, sessions - gap), gap), min(3, max(1, (sessions - gap) // gap))))
        for version, session in enumerate(at[: rng.choice((1, 2, 3))]):
            text = rng.choice(wording.told)
            if version and rng.random() < 0.5:
                text = CORRECTED[language] + text
            elif version:
                text = wording.changed
            _tell(life, session, text.format(value=values[version], old=values[version - 1]), language, rng)
            known = Turn("", topic, values[version], tuple(values[: version + 1]))
            later = at[version + 1] if version + 1 < len(at) else sessions
            for asked in {min(session + gap, later - 1), sessions - 1 if later == sessions else session} - {session}:
                life.sessions[asked].append(known._replace(text=rng.choice(wording.asked)))
    things = rng.sample(THINGS[language], 20 if sessions >= 10 else 5)
    for thing in things:
        session = rng.randrange(max(1, sessions - gap))
        wording, value = WORDINGS[language]["thing"], f"{rng.randrange(20, 900)} euro"
        _tell(life, session, rng.choice(wording.told).format(thing=thing, value=value), language, rng)
        asked = rng.randrange(session + gap, sessions)
        question = rng.choice(wording.asked).format(thing=thing)
        life.sessions[asked].append(Turn(question, thing, value, (value,)))
    for session in life.sessions:
        session += [Turn(rng.choice(CHATTER[language])) for _ in range(TURNS - len(session))]
        rng.shuffle(session)
    return life


def _tell(life: Life, session: int, sentence: str, language: str, rng: random.Random) -> None:
    life.statements.append(sentence)
    life.sessions[session].append(Turn((REMEMBER[language] if rng.random() < 0.3 else "") + sentence + "."))


def _make_value(topic: str, language: str, number: int, rng: random.Random) -> str:
    if topic == "locker":
        return f"{rng.choice('KTWX')}{rng.choice('ADFZ')}-{rng.randrange(1000, 10_000)}"
    lists = NAMES | {"food": FOODS[language], "instrument": INSTRUMENTS[language], "address": STREETS}
    value = lists[topic][number % len(lists[topic])]
    return f"{value} {rng.randrange(2, 200)}" if topic == "address" else value


# --- what a reader of the three languages understands -------------------------------------------------------------


def find_statements(text: str) -> list[Statement]:
    """Find the sentences of a text that state a fact, in any of the three languages, in their order."""
    found = []
    for topic, pattern in _statement_patterns():
        for match in pattern.finditer(text):
            subject = match["thing"] if topic == "thing" else topic
            found.append(
                Statement(subject, match["value"], bool(CHANGE_WORDS.search(match[0])), match[0], match.start())
            )
    return sorted(found, key=lambda statement: statement.start)


def find_topic(text: str) -> str | None:
    """Return the topic that a text asks for."""
    for topic, pattern in _question_patterns():
        if match := pattern.search(text):
            return match["thing"] if topic == "thing" else topic
    return None


@cache
def _statement_patterns() -> list[tuple[str, re.Pattern[str]]]:
    patterns = []
    for language, wordings in WORDINGS.items():
        for topic, wording in wordings.items():
            forms = "|".join(re.escape(form) for form in (*wording.told, wording.changed))
            value, named = _value_pattern(topic, language), "|".join(THINGS[language])
            for number, form in enumerate(forms.split("|")):
                start = rf"(?:{re.escape(CORRECTED[language])})?" if number < len(wording.told) else ""
                words = form.replace(r"\{value\}", f"(?P<value>{value})", 1).replace(r"\{old\}", value)
                words = words.replace(r"\{thing\}", f"(?P<thing>{named})")
                patterns.append((topic, re.compile(start + words)))
    return patterns


@cache
def _question_patterns() -> list[tuple[str, re.Pattern[str]]]:
    patterns = []
    for language, wordings in WORDINGS.items():
        for topic, wording in wordings.items():
            for form in wording.asked:
                words = re.escape(form).replace(r"\{thing\}", f"(?P<thing>{'|'.join(THINGS[language])})")
                patterns.append((topic, re.compile(words)))
    return patterns


def _value_pattern(topic: str, language: str) -> str:
    if topic == "locker":
        return r"[A-Z]{2}-\d{4}"
    if topic == "thing":
        return r"\d+ euro"
    lists = NAMES | {"food": FOODS[language], "instrument": INSTRUMENTS[language], "address": STREETS}
    words = "|".join(map(re.escape, sorted(lists[topic], key=len, reverse=True)))
    return rf"(?:{words}) \d+" if topic == "address" else f"(?:{words})"
