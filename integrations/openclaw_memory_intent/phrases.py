"""Define the phrases that show the intent of a message, in five languages (data only).

All patterns are of folded text: lower case, no accents, "ss" for the German sharp s. A word boundary begins each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """The patterns of one language.

    For the gate: `memory` are words of remembering, of statements, agreements, and rules from now on; `self`
    words of users about themselves; `delete` verbs that remove anything, a memory or a file; `code` their
    objects in a program; `polite` may come before a task; `task` are verbs that begin a request for work; `generic`
    are questions that no memory answers.

    For the rules, in the order in which they are tried (`remember` before `query` where nothing is asked):
    `idiom` means nothing, `keep` is "do not forget", then `forget`, `query` and `remember`.
    """

    memory: str
    self: str
    delete: str
    code: str
    polite: str
    task: str
    generic: str
    idiom: str
    keep: str
    forget: str
    query: str
    remember: str


# What is said to be friendly, in all five: a message of nothing else wants nothing.
SMALL_TALK = (
    r"hello|hi|hey|there|ok|okay|yes|yep|no|nope|sure|fine|good|great|nice|cool|perfect|thanks|thank you|"
    r"thx|please|bye|morning|evening|night|everyone|all|alright|right|done|hallo|hoi|dag|daar|ja|nee|"
    r"prima|goed|goede|top|mooi|graag|bedankt|dank|dank je|dank je wel|dankjewel|doei|morgen|avond|guten|"
    r"gut|tag|abend|danke|danke schon|bitte|nein|klar|alles|super|toll|genau|tschuss|zusammen|schon|"
    r"bonjour|bonsoir|salut|oui|non|merci|beaucoup|d'accord|parfait|bien|tres|super|au revoir|hola|buenos|"
    r"buenas|dias|tardes|noches|si|vale|gracias|muchas|perfecto|bueno|claro|adios|de acuerdo"
)
THANKS = r"(?:many )?thanks|thank you|thx|bedankt|dank|danke|vielen dank|merci|(?:muchas )?gracias"

PHRASES: Mapping[str, Phrases] = {
    "en": Phrases(
        memory=(
            r"remember|remind|memor|recall|forget|forgot|not(?:e|es|ed|ing)\b|jot|record|sav(?:e|ing)\b|stor(?:e|"
            r"ing)\b|mind\b|down\b|later\b|from now|future|henceforth|going forward|told\b|said\b|mention|"
            r"you know|look up|again\b|already|decid|agree|settle|discuss|talk|chose|choose|last (?:time|week|"
            r"month|year|night)|yesterday|\w+ ago\b|earlier|previous|ever\b|always|never|prefer|call me|fyi|"
            r"info\b|track of"
        ),
        self=r"i\b|i'|my\b|mine\b|our\b|ours\b|we\b|we'|us\b|myself",
        delete=r"delet|eras|remov|wip(?:e|ing)|scratch|drop|clear|discard|purge|get rid|strike|throw|unlearn",
        code=(
            r"import|function|class\b|variable|tests?\b|branch|commit|script|this (?:file|code|line|column|row|"
            r"comment)"
        ),
        polite=r"please|pls|can you|could you|would you|will you|now|ok|okay|hey|hi|just|then|and",
        task=(
            r"what time is it|write(?! (?:it|that|this|to|into|up))\b|draft|compose|sort(?: out)?\b|translate\b|"
            r"summari[sz]e|explain|calculate|compute\b|convert|fix\b|debug|refactor|run\b|execute\b|build\b|"
            r"compile\b|generate|draw\b|compare\b|define\b|solve|implement\b|rewrite|rephrase|paraphrase|shorten|"
            r"format (?:this|the|these)\b|proofread|optimi[sz]e\b|plot\b|invent\b|simplify"
        ),
        generic=(
            r"what(?:'s| is) (?:an?|the (?:difference|meaning|capital|formula|syntax))\b|what does .+ mean\b|"
            r"how to\b|(?:which|what)(?:'s| is) (?:faster|slower|better|bigger|larger|smaller|more \w+)\b|"
            r"how (?:do|can|could|should) (?:you|one|people)\b|how (?:many|much) \w+(?: of \w+)? (?:does|do|is|"
            r"are|in)(?: there)?(?: in)? an?\b"
        ),
        idiom=r"(?:oh |just |ah )*forget (?:it|about it)(?=[,.!; ]*(?:$|i\b|i'))|never ?mind\b|i (?:\w+ )?forgot\b",
        keep=r"(?:do not|don't|dont|never|must not|mustn't|shouldn't) (?:\w+ )?forget\b",
        forget=(
            r"forget\b|(?:stop|quit) (?:remember|sav|stor|keep|record)|(?:don't|do not|no longer) (?:remember|"
            r"keep|store|save|record)\b|(?:delet|eras|remov|wip|scratch|drop|clear|discard|purge|strike|"
            r"get rid).*\b(?:not(?:e|es)|memor|you know|i told|i said|my|our|bit about|part about|conversation|"
            r"chat|everything)\b"
        ),
        query=(
            r"(?:do|did|can) (?:you|we) (?:still |even )?(?:remember|recall|know|ever)|remind me (?:what|who|"
            r"where|when|which|how|why|of)|(?:have|had|did) i (?:\w+ )?(?:tell|told|say|said|mention)|(?:can't|"
            r"cannot|don't) (?:quite )?(?:remember|recall)|(?:look|search|check|find|pull|show)\b.*\bnot(?:e|"
            r"es)\b|what do you (?:know|have)|(?:what|when|where|who|whom|which|how|whose)(?:'s| ?is| are| was|"
            r" were| did| do| does| have| has|\b).*\b(?:i|my|our|we|us|again)\b|did (?:we|i)\b|have (?:we|i)\b"
        ),
        remember=(
            r"remember\b|not(?:e|ing)\b|make a note|keep (?:in mind|track|a note)|bear in mind|sav(?:e|ing)\b|"
            r"stor(?:e|ing)\b|jot|write (?:\w+ )?down|for (?:future|the) (?:reference|record)|from now on|"
            r"going forward|in future\b|just so you know|fyi\b|so you know|call me|my (?:\w+ ){1,4}(?:is|are|has|"
            r"was)\b|our (?:\w+ ){1,4}(?:is|are|has)\b|i (?:\w+ )?(?:prefer|like|love|hate|dislike|live|work)\b|"
            r"i(?:'m| am) (?:\w+ )?(?:allergic|vegetarian|vegan)|we (?:\w+ )?(?:decided|agreed|chose|settled)"
        ),
    ),
    "nl": Phrases(
        memory=(
            r"onth(?:oud|iel)|herinner|verge(?:et|ten)|vergat|not(?:eer|itie|ities|eren)|aantekening|geheugen|"
            r"bewa(?:ar|ren)|sla\b|opsla|op\b|rekening|voortaan|vanaf|volgende|toekomst|later\b|weet je|weet u|"
            r"nog\b|alweer|eerder|verteld|gezegd|zei(?:den)?\b|noem|beslo|besli|afgesproken|gekozen|kozen|"
            r"besproken|vorige|gisteren|geleden|ooit|altijd|nooit|liever|info|uitgekomen|zoek"
        ),
        self=r"ik\b|'k\b|mijn\b|m'n\b|mijne|ons\b|onze\b|we\b|wij\b|mezelf",
        delete=r"verwijder|wis(?:sen|t)?\b|haal|schrap|gooi|weg\b|streep|laat\b.*\bvallen",
        code=(
            r"import|functie|klasse|variabele|tests?\b|branch|commit|script|(?:dit|deze|dat|die) (?:bestand|code|"
            r"regel|kolom|rij)"
        ),
        polite=r"alsjeblieft|aub|svp|kun je|kan je|kunt u|wil je|zou je|nu|oke|hoi|hallo|even|dan|en",
        task=(
            r"hoe laat is het|schrijf(?! (?:het|dit|dat|bij|erbij|je))\b|sorteer|rangschik|vertaal\b|"
            r"vat\b.*\bsamen|samenvatten|leg\b.*\buit\b|uitleggen|bereken|reken\b.*\buit\b|converteer|repareer|"
            r"debug|refactor|draai\b|bouw\b|compileer|genereer|teken\b|vergelijk\b|definieer|implementeer|"
            r"herschrijf|herformuleer|verkort|formatteer|optimaliseer|bedenk|verzin"
        ),
        generic=(
            r"wat is (?:een|het verschil|de betekenis|de hoofdstad)\b|wat betekent|(?:wat|welke?) is (?:sneller|"
            r"langzamer|beter|groter|kleiner)\b|hoe (?:kan|moet|doe) (?:je|men)\b|hoeveel \w+ (?:heeft|hebben|zit|"
            r"zitten|kost) (?:er )?(?:in )?een\b"
        ),
        idiom=(
            r"vergeet (?:het|maar)(?: maar)?(?=[,.!; ]*(?:$|ik\b))|laat maar|ik (?:ben|had|heb) .*vergeten|"
            r"ik vergat"
        ),
        keep=(
            r"(?:vergeet|vergeten) (?:\w+ )?niet\b|niet (?:\w+ )?vergeten\b|vergeet (?:het |dat )?(?:vooral |"
            r"alsjeblieft )?niet\b"
        ),
        forget=(
            r"vergeet\b|onthoud .*\bniet (?:langer|meer)\b|(?:niet (?:langer|meer)|stop met) onthouden|"
            r"(?:verwijder|wis|haal|schrap|gooi|streep).*\b(?:notitie|aantekening|geheugen|weet|mijn|onze|gesprek|"
            r"alles)|mag (?:\w+ )?weg"
        ),
        query=(
            r"weet je (?:nog|wat|waar|wie|wanneer|hoe|of)|help me herinneren|herinner me (?:eraan )?(?:wat|wie|"
            r"waar|wanneer|welk|hoe|aan)|heb ik (?:je|u)|(?:zoek|kijk|vind).*\b(?:aantekening|notitie)|"
            r"wat weet (?:je|u)|weet (?:ik )?niet meer|(?:wat|wanneer|waar\w*|wie|welke?|hoe|"
            r"voor welke)\b.*\b(?:ik|mijn|ons|onze|we|wij|alweer|ook weer)\b|(?:zijn|hebben|hadden) we\b"
        ),
        remember=(
            r"onthou|not(?:eer|eren)\b|hou(?:d)? (?:er )?rekening|hou(?:d)? in gedachten|bewaar|sla\b.*\bop\b|"
            r"schrijf\b.*\bop\b|denk er ?aan|voortaan|vanaf nu|voor de volgende keer|in (?:het vervolg|"
            r"de toekomst)|voor je informatie|ter info|even ter info|noem (?:me|mij)|mijn (?:\w+ ){1,4}(?:is|zijn|"
            r"heet)\b|onze (?:\w+ ){1,4}(?:is|zijn|heet)\b|ik .*\b(?:liever|hou van|haat|woon|werk)\b|"
            r"ik ben (?:\w+ )?(?:allergisch|vegetari)|we (?:hebben|zijn) .*\b(?:besloten|afgesproken|gekozen)"
        ),
    ),
    "de": Phrases(
        memory=(
            r"merk|erinner|vergiss|vergess|vergass|notier|notiz|gedachtnis|speicher|halt|fest\b|auf\b|denk|dran\b|"
            r"daran\b|kunftig|zukunft|ab (?:jetzt|sofort|nun)|spater|nachste|weisst|noch\b|nochmal|wieder|schon\b|"
            r"gesagt|erzahlt|sagte|erwahn|nenn|such|heraus|entschieden|beschlossen|ausgemacht|vereinbart|"
            r"besprochen|geklart|letzte|gestern|\bvor\b|fruher|\bje\b|immer|nie\b|lieber|info"
        ),
        self=r"ich\b|mein\w*|wir\b|uns\b|unser\w*",
        delete=r"losch|entfern|streich|nimm|wirf|tilg|raus\b|weg\b|verwirf",
        code=(
            r"import|funktion|klasse|variable|tests?\b|branch|commit|skript|diese[rsmn]? (?:datei|code|zeile|"
            r"spalte)"
        ),
        polite=r"bitte|kannst du|konntest du|wurdest du|konnen sie|jetzt|okay|hallo|mal|dann|und",
        task=(
            r"wie spat ist|wie viel uhr|schreibe?(?! (?:es|das|dir|dies|mit|hin|rein|dazu))\b|verfasse?\b|"
            r"sortiere?n?\b|ubersetze?n?\b|fasse?\b.*\bzusammen|zusammenfassen|erklare?n?\b|berechne?n?\b|"
            r"konvertiere?n?\b|wandle\b|repariere?n?\b|debugg|refaktor|starte\b|baue?\b|kompilier|generiere?n?\b|"
            r"zeichne?n?\b|vergleiche?n?\b|definiere?n?\b|lose\b|implementiere?n?\b|formuliere?n?\b|"
            r"formatiere?n?\b|korrigiere?n?\b|optimiere?n?\b|erfinde?n?\b"
        ),
        generic=(
            r"was ist (?:ein|eine|der unterschied|die bedeutung|die hauptstadt)\b|was bedeutet|(?:was|"
            r"welche[rs]?) ist (?:schneller|langsamer|besser|grosser|kleiner)\b|wie kann man\b"
        ),
        idiom=(
            r"vergiss es(?=[,.!; ]*(?:$|ich\b))|vergessen sie es|egal\b|lass gut sein|ich habe? .*vergessen|"
            r"ich vergass"
        ),
        keep=(
            r"(?:vergiss|vergesst|vergessen sie)(?: \w+){0,2} nicht\b|nicht (?:\w+ )?vergessen\b|"
            r"nicht zu vergessen"
        ),
        forget=(
            r"vergiss\b|vergessen sie\b|merk(?:e)? dir .*\bnicht (?:mehr|langer)\b|(?:nicht (?:mehr|"
            r"langer)) (?:merken|speichern)|(?:losch|entfern|streich|nimm|wirf|tilg).*\b(?:notiz|gedachtnis|"
            r"weisst|mein|unser|gesprach|alles)|kannst du (?:streichen|loschen|vergessen)"
        ),
        query=(
            r"weisst du (?:noch|was|wo|wer|wann|wie|ob)|erinner(?:e|st)? (?:du )?(?:mich|dich)|"
            r"hab(?:e)? ich (?:dir|ihnen)|(?:such|schau|find).*\bnotiz|was weisst du|weiss nicht mehr|(?:was|wann|"
            r"wo\w*|wer|wen|wem|welche\w*|wie|fur welche\w*)\b.*\b(?:ich|mein\w*|wir|uns|unser\w*|nochmal|"
            r"noch mal)\b|(?:haben|hatten|sind) wir\b"
        ),
        remember=(
            r"merk(?:e|en)? (?:dir|sie sich|es dir)|notier|speicher|halt(?:e)? (?:\w+ )?fest|schreib\w* .*\bauf\b|"
            r"denk(?:e)? (?:\w+ )?(?:dran|daran)|behalt|ab (?:jetzt|sofort|nun)|kunftig|in zukunft|"
            r"fur die zukunft|furs nachste mal|nur zur info|zur info|nenn(?:e)? mich|"
            r"meine?[rsmn]? (?:\w+ ){1,4}(?:ist|sind|heisst)\b|unsere?[rsmn]? (?:\w+ ){1,4}(?:ist|sind|heisst)\b|"
            r"ich .*\b(?:lieber|mag|liebe|hasse|wohne|arbeite)\b|ich bin .*\b(?:allergisch|vegetari)|"
            r"wir haben .*\b(?:entschieden|beschlossen|vereinbart)"
        ),
    ),
    "fr": Phrases(
        memory=(
            r"souvien|souvenir|souvenu|rappel|oubli|not(?:e|es|er|ez)\b|reti(?:en|r)|reten|retenu|memoire|memoris|"
            r"gard|enregistr|sauvegard|tete\b|compte\b|desormais|dorenavant|a partir|avenir|prochain|plus tard|"
            r"appelle-moi|sais-tu|tu sais|savez|deja\b|dit\b|disai|parle|mentionn|cherch|retrouv|decid|convenu|"
            r"choisi|tranch|discut|derni|hier\b|il y a|avant\b|jamais|toujours|prefer|pour info|ne \w+ plus\b"
        ),
        self=r"je\b|j'|mon\b|ma\b|mes\b|nous\b|notre\b|nos\b|on\b",
        delete=r"supprim|efface|retir|enlev|raye|ray(?:er|ez)|jett|jete|vire\b|elimin",
        code=(
            r"import|fonction|classe|variable|tests?\b|branche|commit|script|(?:ce|cette) (?:fichier|code|ligne|"
            r"colonne)"
        ),
        polite=(
            r"s'il te plait|s'il vous plait|stp|svp|peux-tu|tu peux|pouvez-vous|pourrais-tu|maintenant|ok|bonjour|"
            r"salut|alors|et"
        ),
        task=(
            r"quelle heure est|ecri(?:s|re|vez)(?! (?:ca|cela|ceci|que|dans))\b|redige|tri(?:e|er|ez)\b|traduis|"
            r"traduire|resume[rz]?\b|expliqu(?:e|er|ez)\b|calcule[rz]?\b|convertis|convertir|corrige[rz]?\b|"
            r"debogue|lance[rz]?\b|execute[rz]?\b|compile[rz]?\b|genere[rz]?\b|dessine[rz]?\b|compare[rz]?\b|"
            r"definis\b|definir\b|resous|resoudre|implemente|reecris|reformule|raccourcis|formate[rz]?\b|"
            r"optimise[rz]?\b|invente[rz]?\b"
        ),
        generic=(
            r"(?:qu'est-ce qu'|c'est quoi )une?\b|qu'est-ce que la difference|que (?:signifie|veut dire)|"
            r"comment (?:peut-on|fait-on)\b|(?:lequel|laquelle|qu'est-ce qui) est (?:le |la )?(?:plus|moins|mieux|"
            r"meilleur)"
        ),
        idiom=(
            r"oublie(?:[ -]ca| cela)?(?=[,.!; ]*(?:$|je\b|j'))|laisse tomber|(?:j'ai|j'avais|on a) (?:\w+ )?oubli|"
            r"peu importe"
        ),
        keep=r"n'(?:oubli\w+|oublier) (?:surtout )?(?:pas|jamais)\b|ne pas oublier|(?:oublie|oublier|oubliez) pas\b",
        forget=(
            r"oubli(?:e|ez|er)\b|ne (?:retiens|garde|note|memorise) plus|arrete de (?:retenir|memoriser|garder|"
            r"te souvenir)|(?:supprim|efface|retir|enlev|raye|jett|elimin).*\b(?:note|notes|memoire|sais|mon|ma|"
            r"mes|notre|conversation|tout|histoire)\b"
        ),
        query=(
            r"tu te souviens|te souviens-tu|vous souvenez|rappelle[zr]?-(?:moi|nous) (?:le|la|les|l'|ce|quel|qui|"
            r"ou|comment|quand|mon|ma)|t'ai(?:-je)? (?:\w+ )?dit|je t'ai|(?:cherche|retrouve|regarde).*\bnotes?\b|"
            r"que sais-tu|qu'est-ce que tu sais|je ne (?:sais|me souviens) plus|avons-nous|on avait|est-ce qu'on|"
            r"(?:qu'|que|quand|ou|qui|quel\w*|comment|combien|a quoi|c'est quand)\b.*\b(?:j'|je|j'ai|mon|ma|mes|"
            r"nous|notre|nos|on|deja)(?:\b|$)"
        ),
        remember=(
            r"souviens-toi|souvenez-vous|rappelle-toi|not(?:e|ez)\b|prends note|retien|retenez|garde|enregistr|"
            r"memoris|pour la prochaine fois|a partir de maintenant|desormais|dorenavant|a l'avenir|"
            r"pour (?:ton )?info|sache que|appelle-moi|(?:mon|ma|mes) (?:\w+ ){1,4}(?:est|sont|s'appelle)|"
            r"(?:notre|nos) (?:\w+ ){1,4}(?:est|sont|s'appelle)|je (?:\w+ )?(?:prefere|deteste|habite|travaille|"
            r"suis allergique)|j'(?:aime|adore|habite)|(?:nous avons|on a) (?:\w+ )?(?:decide|choisi|convenu)"
        ),
    ),
    "es": Phrases(
        memory=(
            r"recuerd|recorda|record|acuerd|acorda|olvid|apunt|anot|notas?\b|memori|guard|registr|cuenta\b|"
            r"mente\b|a partir|de ahora|adelante|proxim|luego\b|despues|futuro|llamame|sabes|sabe\b|dije|dicho|"
            r"conte\b|contado|mencion|busc|decid|acordamos|quedamos|elegi|eleg|hablamos|pasad|ayer|hace\b|antes|"
            r"ya\b|nunca|siempre|prefier|lo sepas|info"
        ),
        self=(
            r"yo\b|mi\b|mis\b|mio|nuestr\w*|\w{2,}[aei]mos\b|tengo|soy\b|estoy|vivo|trabajo|quiero|necesito|puedo|"
            r"debo|voy\b|he\b|mia\b"
        ),
        delete=r"borr|elimin|quit|tach|suprim|descart|tira\b|deja de",
        code=(
            r"import|funcion|clase|variable|pruebas|tests?\b|rama|commit|script|est[ea] (?:archivo|fichero|codigo|"
            r"linea|columna)"
        ),
        polite=r"por favor|puedes|podrias|puede|ahora|vale|hola|entonces|y",
        task=(
            r"que hora es|escrib(?:e|ir|eme)(?! (?:esto|eso|que|en))\b|redacta|ordena\b|ordenar\b|traduc(?:e|ir|"
            r"eme)\b|resum(?:e|ir|eme)\b|explica|calcula|convierte\b|arregla\b|depura\b|ejecuta\b|compila\b|"
            r"genera\b|generar\b|dibuja|compara\b|comparar\b|define\b|definir\b|resuelve\b|resolver\b|"
            r"implementa\b|reescribe|reformula\b|acorta\b|formatea|corrige\b|corregir\b|optimiza\b|inventa\b"
        ),
        generic=(
            r"que es (?:un|una|la diferencia)\b|que significa|(?:que|cual) es (?:mas|menos|mejor)\b|"
            r"como se (?:hace|dice|puede)\b"
        ),
        idiom=(
            r"olvidalo|olvidate(?=[,.!; ]*$)|dejalo|da igual|no importa|se me olvid|me olvide|(?:he|"
            r"habia) olvidado"
        ),
        keep=r"no (?:te |se )?(?:\w+ )?olvid\w*|no hay que olvidar",
        forget=(
            r"olvid(?:a|e|ar|ate|alo)\b|deja de (?:recordar|guardar|memorizar)|no (?:recuerdes|guardes|"
            r"memorices) mas|ya no (?:recuerdes|guardes)|(?:borr|elimin|quit|tach|suprim).*\b(?:notas?|memoria|"
            r"sabes|mi|mis|nuestr\w*|conversacion|todo|lo de)\b"
        ),
        query=(
            r"te acuerdas|recuerdas|recuerdame (?:que|cual|quien|donde|cuando|como|el|la)|te (?:he|"
            r"habia) (?:dicho|contado)|te (?:dije|conte)|(?:busca|mira|encuentra).*\bnotas?\b|que sabes|"
            r"(?:ya )?no (?:se|recuerdo|me acuerdo)|(?:que|cuando|donde|quien|cual\w*|como|a que|"
            r"por que)\b.*\b(?:dije|mi|mis|nos|nuestr\w*|tengo|\w+mos|era)\b|llegamos a|hemos\b.*\?"
        ),
        remember=(
            r"recuerda\b|acuerdate|apunt|anot|ten (?:en cuenta|presente)|guard|registr|memoriz|para la proxima|"
            r"a partir de ahora|de ahora en adelante|en adelante|para que (?:lo )?sepas|llamame|(?:mi|"
            r"mis) (?:\w+ ){1,4}(?:es|son|esta|se llama)|nuestr\w* (?:\w+ ){1,4}(?:es|son|se llama)|"
            r"(?:siempre )?prefiero|me (?:gusta|encanta)|odio|vivo en|trabajo en|soy (?:\w+ )?(?:alergic|"
            r"vegetarian)|(?:hemos|habiamos) (?:decidido|acordado|elegido)|decidimos"
        ),
    ),
}
