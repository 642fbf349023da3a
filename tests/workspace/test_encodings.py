"""A note in an encoding of before UTF-8 is read where its bytes leave no doubt, and named where they do."""

from __future__ import annotations

import random

import pytest
from processes import python

from openclaw_memory import Memory, MemoryConfig, SyncConfig
from openclaw_memory.errors import UndecodableError, WriteError
from openclaw_memory.workspace.encodings import decode_older

QUIET = MemoryConfig(sync=SyncConfig(on_search=False))
GERMAN = "Herr Müller kommt um zehn Uhr, er hat den Schlüssel für den Keller.\nDas Frühstück gibt es um acht.\n"
FRENCH = "La clé de la cave est chez le voisin, près de la boîte aux lettres.\n"
TEXTS = {
    "de": GERMAN,
    "fr": FRENCH,
    "es": "El niño tiene cita con el médico mañana. ¿Dónde está la llave del jardín?\n",
    "pl": "Klucz do piwnicy leży w szufladzie obok łóżka. Żółte drzwi trzeba pomalować.\n",
    "ru": "Ключ от подвала лежит в ящике у кровати. Встреча состоится в среду.\n",
    "el": "Το κλειδί του υπογείου είναι στο συρτάρι δίπλα στο κρεβάτι.\n",
    "ja": "会議は水曜日の九時に行われます。地下室の鍵は引き出しにあります。\n",
}
ENCODED = [
    (text, encoding)
    for name, text in TEXTS.items()
    for encoding in {
        "de": ("cp1252", "mac_roman", "cp850"),
        "fr": ("cp1252", "iso8859_15", "mac_roman", "cp850"),
        "es": ("cp1252", "mac_roman", "cp850"),
        "pl": ("cp1250", "iso8859_2"),
        "ru": ("cp1251", "koi8_r", "cp866"),
        "el": ("cp1253", "iso8859_7"),
        "ja": ("shift_jis", "euc_jp"),
    }[name]
]


@pytest.mark.parametrize(("text", "encoding"), ENCODED, ids=[f"{text[:8]}-{encoding}" for text, encoding in ENCODED])
def test_a_text_is_read_right_or_not_at_all(text, encoding):
    for part in (text, *text.splitlines(keepends=True), text * 20):
        found = decode_older(part.encode(encoding))
        assert found is None or found.text == part


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        (TEXTS["es"], "cp1252"),
        (TEXTS["pl"], "cp1250"),
        (TEXTS["ru"], "cp1251"),
        (TEXTS["el"], "cp1253"),
    ],
)
def test_what_windows_wrote_is_read(text, encoding):
    assert decode_older(text.encode(encoding)) == (text, encoding)


def test_what_is_no_text_is_not_taken_for_any():
    drawn = random.Random(27)
    for size in (40, 400, 4_000):
        assert decode_older(drawn.randbytes(size)) is None
        damaged = bytearray((TEXTS["ru"] * 40).encode()[:size])
        damaged[size // 2] = 0xFF
        assert decode_older(bytes(damaged)) is None


@pytest.fixture
def memory(notes):
    (notes / "memory/keller.md").write_bytes(GERMAN.encode("cp1252"))
    (notes / "memory/cave.md").write_bytes(FRENCH.encode("cp1252"))  # as good Central European
    with Memory.open(notes, embedder=None, config=QUIET) as opened:
        opened.sync()
        yield opened


def test_a_note_in_another_encoding_is_found_and_its_encoding_is_named(memory):
    results = memory.search("Schlüssel Keller Müller")
    assert ("Müller" in results[0].snippet, results[0].path) == (True, "memory/keller.md")
    assert "Müller" in memory.get("memory/keller.md").text
    said = "memory/keller.md is cp1252, and read as such: save it as UTF-8"
    assert said in memory.status().notices
    memory.sync()
    assert said in memory.status().notices  # as long as it is so
    (memory.workspace.root / "memory/keller.md").write_text(GERMAN)
    memory.sync()
    assert not any("cp1252" in notice for notice in memory.status().notices)


def test_a_note_that_cannot_be_read_is_named_by_every_answer(memory):
    said = "not searched, since it is not text in UTF-8: memory/cave.md"
    assert said in str(memory.search("clé de la cave").reason)
    assert said in str(memory.search("boiler").reason)
    assert any(file.path == "memory/cave.md" and "UTF-8" in file.reason for file in memory.status().skipped)
    (memory.workspace.root / "memory/cave.md").write_text(FRENCH)
    memory.sync()
    assert memory.search("boiler").reason is None
    assert "boîte" in memory.search("clé de la cave")[0].snippet


def test_a_note_in_another_encoding_is_only_read(memory):
    seen = memory.get("memory/keller.md", start=1, lines=1)
    for change in (
        lambda: memory.edit("memory/keller.md", 1, 1, "Frau Müller kommt.", expected=seen),
        lambda: memory.delete("memory/keller.md", 1, 1, expected=seen),
    ):
        with pytest.raises(WriteError, match=r"is cp1252, which is only read: save it as UTF-8 first"):
            change()
    with pytest.raises(UndecodableError, match="save it as UTF-8"):
        memory.get("memory/cave.md")
    day = memory.workspace.root / "memory/2026-01-01.md"
    day.write_bytes(GERMAN.encode("cp1252"))
    with pytest.raises(WriteError, match=r"is cp1252, to which UTF-8 cannot be added"):
        memory.append("Frau Müller kommt.", date="2026-01-01")
    assert day.read_bytes() == GERMAN.encode("cp1252")


def test_the_detector_is_loaded_where_utf8_has_failed_alone(notes):
    script = (
        "import pathlib, sys; from openclaw_memory import Memory\n"
        "def look(memory):\n"
        "    memory.sync(); memory.search('boiler')\n"
        "    print('charset_normalizer' in sys.modules)\n"
        "with Memory.open(sys.argv[1], embedder=None) as memory:\n"
        "    look(memory)\n"
        "    pathlib.Path(sys.argv[1], 'memory/keller.md').write_bytes('Schlüssel für Müller'.encode('cp1252'))\n"
        "    look(memory)\n"
    )
    with python(script, notes) as process:
        assert process.stdout.read() == "False\nTrue\n"
