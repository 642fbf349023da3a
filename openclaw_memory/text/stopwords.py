"""Stop words of queries, by language, folded as by `text.terms.fold` (data only)."""

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
    "zh": frozenset(CHINESE.split()),
    "ja": frozenset(JAPANESE.split()),
    "ko": frozenset(KOREAN.split()),
}
