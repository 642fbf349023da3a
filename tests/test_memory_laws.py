"""Notes that are written, edited, deleted and forgotten while one memory goes on searching."""

from pathlib import Path

from memory_laws import SETTINGS, MemoryLaws

OTHER_SETTINGS = {"options": {"settings": {"answer": "chunks", "mmr": 0.5}}}


class NoteLaws(MemoryLaws):
    def open(self):
        self.notes = Path(self.folder.name, "memory")
        self.notes.mkdir()

    def put(self, name, text):
        (self.notes / f"{name}.md").write_text(text)
        self.memory.sync()

    def remove(self, names):
        for name in names:
            (self.notes / f"{name}.md").unlink()
        self.memory.sync()

    def answers(self, word):
        for options in ({}, {"filter": {"source": "memory"}}, {"filter": {"path": "memory/*"}}, OTHER_SETTINGS):
            yield {Path(one.path).stem for one in self.memory.search(word, **options)}


NoteLaws.TestCase.settings = SETTINGS
TestNoteLaws = NoteLaws.TestCase
