"""Languages by ISO 639-1 code: their stemmers, scripts, and stop words, folded as by `text.terms.fold` (data only)."""

DEFAULT_LANGUAGE = "en"

# The Snowball algorithms of PyStemmer.
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


def mark_language(language: str) -> str:
    """Return the term by which the chunks of a language are counted; no text has one like it."""
    return f"lang={language}"


# The letters of scripts, by the commonest language, and those that it does not have itself but another one has.
SCRIPTS = {
    "ru": "[\u0400-\u04ff]", "ar": "[\u0620-\u06d3]", "el": "[\u0370-\u03ff\u1f00-\u1fff]", "hi": "[\u0904-\u0939]",
    "hy": "[\u0531-\u0587]", "ta": "[\u0b85-\u0bb9]", "he": "[\u05d0-\u05ea]",
}  # fmt: skip
FOREIGN_LETTERS: dict[str, dict[str, str]] = {
    "ru": {"uk": "іїєґ", "sr": "ђјљњћџ"}, "ar": {"ur": "ٹڈڑےں", "fa": "پچژگ"}, "el": {}, "hi": {}, "hy": {}, "ta": {},
    "he": {},
}  # fmt: skip

ENGLISH = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but by can could couldn did didn do does doesn doing don done down during each ever few for from further get
gets got had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it
its itself just ll m me might mine more most much must my myself no nor not now of off on once only or other our
ours ourselves out over own please re s same shall she should shouldn so some such t than that the their theirs
them themselves then there these they this those through to too under until up us ve very was wasn we were weren
what whats when where which while who whom whose why will with won would wouldn you your yours yourself yourselves
tell know
"""

DUTCH = """
aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen
geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jou jouw kan kon kunnen
maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat ons onze ook op over reeds te tegen toch
toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel welke werd wezen wie wij wil worden
wordt zal ze zei zelf zich zij zijn zo zonder zou
"""

GERMAN = """
aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei bin bis bist da damit dann
das dass dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein
eine einem einen einer eines er es etwas euch euer eure fur gegen gewesen hab habe haben hat hatte hatten hier hin
hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist jede jedem jeden jeder jedes kann kein keine
konnen konnte machen man manche mein meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein
seine seinem seinen seiner selbst sich sie sind so solche soll sollte uber um und uns unser unter viel vom von vor
wahrend wann war waren warum was weil welche welchem welchen welcher welches wenn wer werde werden wie wieder will
wir wird wo wollen wurde wurden zu zum zur zwar zwischen
"""

FRENCH = """
a ai aie aient as au aucun aussi autre aux avait avec avez avons c ca car ce cela celle celui ces cet cette chez ci
comme comment d dans de des donc dont du elle elles en encore es est et etait etaient ete etes etre eu eux fait
faire fut il ils j je l la laquelle le lequel les leur leurs lui m ma mais me meme mes moi mon n ne ni nos notre
nous on ont ou par pas peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera
ses si son sont sur t ta te tes toi ton tous tout toute toutes tres tu un une vos votre vous y
"""

SPANISH = """
a al algo algun alguna algunas alguno algunos ante antes asi aun aunque cada como con contra cual cuales cualquier
cuando cuanta cuantas cuanto cuantos de del desde donde dos el ella ellas ellos en entre era eran es esa esas ese
eso esos esta estaba estaban estado estan estar estas este esto estos estoy fue fueron ha habia han has hasta hay
he la las le les lo los mas me mi mientras mis mucho muy nada ni no nos nosotros o os otra otras otro otros para
pero poco por porque que quien quienes se ser si sin sobre son soy su sus tambien tanto te tiene tienen toda todas
todo todos tu tus un una unas uno unos y ya yo
"""

ITALIAN = """
al alla alle anche ancora avere c che chi ci come con cosa cui da dal dalla degli dei del della delle di dove e ed era
essere gli ha hai hanno ho i il in io l la le li lo loro ma mi mia mio ne nei nel nella non o per perche piu puo qual
quale quando quanto quello questa questo qui se sei si sia sono sta stato su sua sul suo ti tra tu un una uno
"""

PORTUGUESE = """
ao aos as ate com como da das de depois do dos e ela ele eles em entre era essa esse esta este eu foi foram ha isso ja
lhe mais mas me mesmo meu minha muito na nao nas nem no nos nossa nosso num numa o onde os ou para pela pelo por porque
qual quando que quem se sem ser seu so sua sao tambem te tem uma um voce
"""

SWEDISH = """
alla att av bara blir da de dem den det dig din dom du efter eller en er ett fran for ha hade han har hon hur i icke
inte jag ju kan man med men mig min mot mycket nar ni nu och om oss pa sa sin sina ska skulle som till upp ut vad var
varit vara vem vi vid vilken ar
"""

DANISH = """
af alle at blev da de dem den der deres det dig din dog du efter eller en end er et for fra ham han hans har havde hun
hvad hvem hvor hvornar i ikke ind jeg jo kan man med meget men mig min mod nar nogle nu og ogsa om op os pa sa sig sin
skal som til ud var vi vil vor
"""

NORWEGIAN = """
av alle at ble da de dem den der det deg din du eller en er et etter for fra ham han har hadde henne hun hva hvem hvor
hvordan i ikke jeg kan man med meg men min mot nar noe nei og ogsa om opp oss pa sa seg sin skal som til ut var vi vil
"""

FINNISH = """
ei en ett etta eivat han hanen hyvin ja jo joka jos jossa kanssa kuin kuka kun me mika mina minun missa mita mutta myos
nama ne niin nyt oli olla olen on ovat saa se sen sina sita tai tama taman te vai vain voi
"""

TURKISH = """
ama bana ben benim bir biz bu cok da daha de degil diye en gibi hangi her icin ile kadar ki kim mi mu nasil ne neden
nerede o olan olarak ona onu sen sonra su ve veya ya
"""

POLISH = """
ale bo by byc byl byla byli bylo co czy dla do gdy gdzie go i ich ile jak jaki jako je jego jej jest kiedy kto ktora
ktore ktory ma mam mi mnie na nie niz o od on ona oni po pod przez przy sa sie ta tak tam te tego tej ten to tu w we
wiec z za ze
"""

HUNGARIAN = """
a az azt be cak csak de egy el en es ez ezt fel ha hogy hol igen is itt ki kell le lesz majd meg mely mi mikor mint mit
nagyon nekem nem olyan ott s sem szerint ugy vagy van volt
"""

ROMANIAN = """
a acest aceasta ai al ale am ar are au ca care ce cel cu cum da dar de din doar dupa e ea el este eu fi fost i in insa
la lui mai ma mea meu nu o pe pentru prin sa sau se si sunt un una unde unei unui va vor
"""

INDONESIAN = """
ada adalah akan aku anda apa atau bagaimana bahwa bisa dalam dan dari dengan di dia harus ini itu juga kami karena ke
kita mana mereka oleh pada saya sebagai seperti siapa sudah telah tidak untuk yang
"""

CZECH = """
ale ani az by byl byla bylo co do ho i jak jako je jeho jeji jen jsem jsou k kde kdo kdy kdyz ktera ktere ktery ma me mi
na nebo neni o od po pod pro proc pri s se si tak ten to tu u v ve za ze
"""

RUSSIAN = """
а без бы был была были было быть в вам вас весь во вот все вы где да для до его ее если есть еще же за и из или им их к
как какая какие какой когда кто ли мне мой мы на над не него нет но о об он она они от по под после при про с свой себя
так также там то только ты у уже чего чем что чтобы эта эти это этот я
"""

ARABIC = """
ا ان اذا الى الذي التي اي اين او بعد بين به تم ثم حتي حين عن عند علي عليه غير في فيه قبل قد كان كانت كل كم كما كيف لا
لقد لكن لم لماذا لن له لها ليس ما ماذا متي مع من منذ منه هذا هذه هل هم هنا هناك هو هي و وقد يا
"""

HINDI = """
अपने इस उस एक और कब कहा का किस की के को कौन क्या क्यों तक तो था थी थे नही ने पर भी मे मै यह ये वह वे से है हैं हो
"""

GREEK = """
αλλα αν απο για δεν ειναι εκει εγω εδω ειχε εχει η και κατα με μια μου μας να ο οι οπως οτι που ποιος ποια ποτε πως σας
σε στα στη στην στις στο στον συ τα τη την της τι τις το τον του των ως
"""

# CJK text is looked up by characters and pairs of characters, so these are such units.
CHINESE = """
的 了 是 在 我 你 他 她 它 们 有 和 就 不 都 也 很 到 说 要 去 会 着 没 这 那 吗 呢 吧 啊 把 被 让 给 与 及 或 么
之 其 什 哪 谁 什么 怎么 哪里 哪个 为什 多少 我们 你们 他们 她们 这个 那个 这些 那些 如何 是否 以及 因为 所以 但是 的是
是什 了什
"""

JAPANESE = """
の に は を た が で て と し れ さ あ い も す る な か ら こ れ よ う く そ え お け せ ち つ め や わ ん き ど
ば へ ま み です ます した して から まで など には では とは のは のが です いる ある する なる この その あの
どの いつ どこ だれ なに なぜ どう いま ませ すか すか 何が 何を 何で は何 の何 たか るか のか
"""

KOREAN = """
이 그 저 것 수 등 들 및 의 가 을 를 은 는 에 와 과 도 로 만 다 요 까 나 하 해 한 했 습 니 에서 에게 으로 부터 까지
하고 이다 입니 니다 니까 습니 했다 하는 있는 있다 없다 그리 하지 무엇 언제 어디 누구 어떻 떻게
"""

STOP_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(ENGLISH.split()),
    "nl": frozenset(DUTCH.split()),
    "de": frozenset(GERMAN.split()),
    "fr": frozenset(FRENCH.split()),
    "es": frozenset(SPANISH.split()),
    "it": frozenset(ITALIAN.split()),
    "pt": frozenset(PORTUGUESE.split()),
    "sv": frozenset(SWEDISH.split()),
    "da": frozenset(DANISH.split()),
    "no": frozenset(NORWEGIAN.split()),
    "fi": frozenset(FINNISH.split()),
    "tr": frozenset(TURKISH.split()),
    "pl": frozenset(POLISH.split()),
    "hu": frozenset(HUNGARIAN.split()),
    "ro": frozenset(ROMANIAN.split()),
    "id": frozenset(INDONESIAN.split()),
    "cs": frozenset(CZECH.split()),
    "ru": frozenset(RUSSIAN.split()),
    "ar": frozenset(ARABIC.split()),
    "hi": frozenset(HINDI.split()),
    "el": frozenset(GREEK.split()),
    "zh": frozenset(CHINESE.split()),
    "ja": frozenset(JAPANESE.split()),
    "ko": frozenset(KOREAN.split()),
}
