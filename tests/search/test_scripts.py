"""A note is found by words of it, typed as people type them, in forty languages and their scripts."""

import pytest

from openclaw_memory import Memory

# Of each language a note, and a question of words that it has, without the accents and signs that many leave out.
NOTES = {
    "Albanian": ("Takimi me kontabilistin është të enjten në orën nëntë.", "kontabilistin enjten"),
    "Amharic": ("ከሂሳብ ሹሙ ጋር ያለው ስብሰባ ሐሙስ ነው።", "ስብሰባ ሐሙስ"),
    "Arabic": ("الاجتماع مع المُحاسِب يوم الخميس في المكتبة.", "المحاسب المكتبه"),
    "Armenian": ("Հաշվապահի հետ հանդիպումը հինգշաբթի է։", "հանդիպումը հինգշաբթի"),
    "Azerbaijani": ("Mühasiblə görüş cümə axşamı günüdür.", "muhasible gorus"),
    "Bengali": ("হিসাবরক্ষকের সাথে বৈঠক বৃহস্পতিবার।", "বৈঠক বৃহস্পতিবার"),
    "Bulgarian": ("Срещата със счетоводителя е в четвъртък.", "срещата счетоводителя"),
    "Burmese": ("စာရင်းကိုင်နှင့်တွေ့ဆုံမှုသည်ကြာသပတေးနေ့ဖြစ်သည်။", "တွေ့ဆုံမှု"),
    "Catalan": ("La reunió amb el comptable és dijous a les nou.", "reunio comptable"),
    "Chinese": ("与会计师的会议改到星期四。", "会计师的会议"),
    "Croatian": ("Sastanak s računovođom je u četvrtak.", "racunovodom cetvrtak"),
    "Czech": ("Schůzka s účetní je ve čtvrtek v devět.", "schuzka ucetni"),
    "Danish": ("Mødet med bogholderen er på torsdag.", "modet bogholderen"),
    "Dutch": ("De afspraak met de boekhouder is donderdag.", "afspraak boekhouder"),
    "English": ("The meeting with the accountant is on Thursday.", "meeting accountant"),
    "Estonian": ("Kohtumine raamatupidajaga on neljapäeval.", "kohtumine neljapaeval"),
    "Finnish": ("Tapaaminen kirjanpitäjän kanssa on torstaina.", "kirjanpitajan torstaina"),
    "French": ("Le déménagement à Besançon est prévu jeudi.", "demenagement besancon"),
    "Georgian": ("შეხვედრა ბუღალტერთან ხუთშაბათს არის.", "შეხვედრა ბუღალტერთან"),
    "German": ("Die Küche wird am Donnerstag von Herrn Müller gestrichen.", "kuche muller"),
    "Greek": ("Η συνάντηση με τον λογιστή είναι την Πέμπτη.", "συναντηση λογιστη"),
    "Gujarati": ("હિસાબનીશ સાથેની બેઠક ગુરુવારે છે.", "બેઠક ગુરુવારે"),
    "Hebrew": ("הַפְּגִישָׁה עם רואה החשבון ביום חמישי.", "הפגישה החשבון"),
    "Hindi": ("लेखाकार के साथ बैठक गुरुवार को ज़रूर है।", "बैठक जरूर"),
    "Hungarian": ("A találkozó a könyvelővel csütörtökön lesz.", "talalkozo konyvelovel"),
    "Icelandic": ("Fundurinn með bókaranum er á fimmtudag.", "fundurinn bokaranum"),
    "Indonesian": ("Rapat dengan akuntan hari Kamis.", "rapat akuntan"),
    "Italian": ("La riunione con il commercialista è giovedì.", "riunione giovedi"),
    "Japanese": ("会計士との打ち合わせは木曜日です。", "打ち合わせは木曜日"),
    "Kannada": ("ಲೆಕ್ಕಿಗರೊಂದಿಗೆ ಸಭೆ ಗುರುವಾರ ಇದೆ.", "ಸಭೆ ಗುರುವಾರ"),
    "Khmer": ("ការប្រជុំជាមួយគណនេយ្យករគឺថ្ងៃព្រហស្បតិ៍។", "គណនេយ្យករ"),
    "Korean": ("회계사와의 회의는 목요일입니다.", "회계사 회의"),
    "Lao": ("ກອງປະຊຸມກັບນັກບັນຊີແມ່ນວັນພະຫັດ.", "ນັກບັນຊີ"),
    "Latvian": ("Tikšanās ar grāmatvedi ir ceturtdien.", "tiksanas gramatvedi"),
    "Lithuanian": ("Susitikimas su buhalteriu yra ketvirtadienį.", "susitikimas ketvirtadieni"),
    "Norwegian": ("Møtet med regnskapsføreren er på torsdag.", "motet regnskapsforeren"),
    "Persian": ("جلسه با حسابدار روز پنجشنبه می‌باشد.", "جلسه حسابدار"),
    "Polish": ("Spotkanie z księgową jest w czwartek w Łodzi.", "ksiegowa lodzi"),
    "Portuguese": ("A reunião com o contador é na quinta-feira.", "reuniao contador"),
    "Romanian": ("Întâlnirea cu contabilul este joi.", "intalnirea contabilul"),
    "Russian": ("Самолёт с бухгалтером прилетает в четверг.", "самолет бухгалтер"),
    "Serbian": ("Састанак са рачуновођом је у четвртак.", "састанак рачуновођом"),
    "Slovak": ("Stretnutie s účtovníčkou je vo štvrtok.", "uctovnickou stvrtok"),
    "Spanish": ("La reunión con Íñigo será el miércoles en Málaga.", "reunion inigo malaga"),
    "Swahili": ("Mkutano na mhasibu ni Alhamisi.", "mkutano mhasibu"),
    "Swedish": ("Mötet med bokföraren är på torsdag.", "motet bokforaren"),
    "Tamil": ("கணக்காளருடன் கூட்டம் வியாழக்கிழமை.", "கூட்டம் வியாழக்கிழமை"),
    "Telugu": ("అకౌంటెంట్‌తో సమావేశం గురువారం.", "సమావేశం గురువారం"),
    "Thai": ("การประชุมกับนักบัญชีคือวันพฤหัสบดี", "นักบัญชี"),
    "Turkish": ("Muhasebeciyle toplantı İstanbul'da perşembe günü.", "toplanti istanbul"),
    "Ukrainian": ("Зустріч із бухгалтером у четвер.", "зустріч бухгалтером"),
    "Urdu": ("اکاؤنٹنٹ کے ساتھ ملاقات جمعرات کو ہے۔", "ملاقات جمعرات"),
    "Vietnamese": ("Cuộc họp với kế toán ở Hà Nội vào thứ năm.", "ke toan ha noi"),
}
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
