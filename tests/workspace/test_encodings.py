"""A note in an encoding of before UTF-8 is read by what its letters tell; damaged bytes are replaced and named."""

import random

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.errors import UndecodableError, WriteError
from openclaw_memory.workspace.encodings import decode

TEXTS = {
    "gb18030": ("会议改到周五下午三点，负责人是小林。\n", "- 买牛奶\n- 给妈妈打电话\n", "数据库迁移完成，脚本在 a/rollback.sh\n"),
    "big5": ("會議改到週五下午三點，負責人是小林。\n", "- 買牛奶\n- 打電話給媽媽\n", "資料庫遷移完成，腳本在 a/rollback.sh\n"),
    "shift_jis": ("会議は水曜日の九時に行われます。\n", "サーバーのパスワードは金庫。\n", "- 牛乳を買う\n- 母に電話する\n"),
    "euc_jp": ("会議は水曜日の九時に行われます。\n", "サーバーのパスワードは金庫にあります。\n"),
    "euc_kr": ("회의는 수요일 아홉 시에 있습니다.\n", "오늘 오후에 새 프로젝트 예산을 논의했다.\n"),
    "latin_1": ("Þórður á lykilinn að húsinu.\n", "La clé de la cave est près de la boîte.\n", "Pääsiäinen on huhtikuussa.\n", "¿Dónde está?\n"),
    "cp1252": ("Herr Müller hat den Schlüssel.\n", "São Paulo, reunião amanhã às três\n", "“Quoted” — it’s fine\n"),
    "cp1254": ("Yedek anahtar komşuda, şifre değişti.\n", "Isıtıcı bozuldu, usta yarın gelecek.\n"),
    "cp1250": ("Klucz leży w szufladzie obok łóżka.\n", "Schůzka je ve středu v devět hodin.\n"),
    "cp1251": ("Ключ от подвала лежит в ящике.\n", "Сервер nginx перезапущен, деплой в 15:00\n"),
    "koi8_r": ("Ключ от подвала лежит в ящике у кровати.\n",),
    "cp866": ("Домкрат лежит под верстаком у окна.\n", "Масло купить в субботу утром.\n"),
    "cp1253": ("Το κλειδί του υπογείου είναι στο συρτάρι.\n",),
    "cp1255": ("המפתח הרזרבי אצל השכנה רבקה.\n", "חשבון החשמל הוא 320 שקל.\n"),
    "cp1256": ("المفتاح الاحتياطي عند الجارة سعاد.\n", "فاتورة الكهرباء هذا الشهر كبيرة.\n"),
    "cp874": ("กุญแจสำรองอยู่กับป้าแดงข้างบ้าน\n", "ค่าไฟเดือนนี้สามร้อยบาท\n"),
}  # fmt: skip


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_an_older_encoding_is_told_by_its_letters(encoding, text):
    for whole in (text, text * 30, f"# Notes in plain ASCII\n\n{text}"):
        assert decode(whole.encode(encoding), "x.md") == whole


@pytest.mark.parametrize("text", [TEXTS["gb18030"][0], TEXTS["latin_1"][0], TEXTS["cp1251"][0]])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3(", b"\xe4\xbc"])
def test_damaged_bytes_are_replaced_and_nothing_else(text, bad):
    before, after = (text * 9).encode(), (text * 9).encode()
    read = decode(before + bad + after, "x.md")
    assert (read.startswith(text * 9), read.endswith(text * 9), "\ufffd" in read) == (True, True, True)


def test_what_is_no_text_is_not_taken_for_any():
    drawn = random.Random(27)
    for size in (40, 400, 4_000):
        with pytest.raises(UndecodableError, match="save it as UTF-8"):
            decode(drawn.randbytes(size), "x.md")


@pytest.fixture
def memory(notes):
    (notes / "memory/keller.md").write_bytes("Der Schlüssel für den Keller\n".encode("cp1252"))
    (notes / "memory/cave.md").write_bytes("La clé\n".encode() * 9 + b"de la \xff cave\n")
    (notes / "memory/photo.md").write_bytes(b"\x89PNG\r\n\xff\xd8\xff\xc0")
    with Memory.open(notes, embedder=None, config=MemoryConfig(sync=SyncConfig(on_search=False))) as opened:
        opened.sync()
        yield opened


def test_a_note_in_an_older_encoding_is_found_and_only_read(memory):
    assert memory.search("Schlüssel Keller")[0].path == "memory/keller.md"
    seen = memory.get("memory/keller.md")
    with pytest.raises(WriteError, match="is cp1252: save it as UTF-8 first"):
        memory.edit("memory/keller.md", 1, 1, "Weg.", expected=seen)
    day = memory.workspace.root / "memory/2026-01-01.md"
    day.write_bytes("Müller\n".encode("cp1252"))
    with pytest.raises(WriteError, match="is cp1252, to which UTF-8 cannot be added"):
        memory.append("Frau Müller kommt.", date="2026-01-01")
    assert day.read_bytes() == "Müller\n".encode("cp1252")


def test_a_damaged_note_is_found_and_one_that_is_no_text_is_not_and_both_are_named(memory):
    assert memory.search("clé")[0].path == "memory/cave.md"
    reasons = {file.path: file.reason for file in memory.status().skipped}
    assert "without the damaged bytes" in reasons["memory/cave.md"]
    assert reasons["memory/cave.md"].endswith("from line 10: save it anew")
    assert "UTF-8" in reasons["memory/photo.md"]
    said = "not searched, since it is not text in UTF-8: memory/photo.md"
    assert said in str(memory.search("boiler").reason)
    with pytest.raises(UndecodableError, match="save it as UTF-8"):
        memory.get("memory/photo.md")
    (memory.workspace.root / "memory/photo.md").write_text("A photo of the cave\n")
    memory.sync()
    assert memory.search("boiler").reason is None
