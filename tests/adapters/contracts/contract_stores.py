"""What a vector store of each framework promises in the same words: documents are files, and searches are the memory's."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, ClassVar
from uuid import UUID

import pytest
from index_files import index_folder

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, InvalidInputError, PathNotAllowedError, QueryError
from openclaw_memory.runs import run_values

FACTS = {
    "launch": "The launch of the ferry was moved to Friday.",
    "again": "The launch of the ferry is on Friday now.",
    "venue": "The venue is the old mill by the river.",
    "cook": "Piotr cooks for forty people.",
}
ABOUT = {name: {"n": n, "of": "boat" if n < 2 else "party"} for n, name in enumerate(FACTS)}
BOAT = "Anna's boat is called Zeppelin."
SAME = "When is the launch of the ferry on Friday?"


class VectorStoreContract:
    """A vector store of a framework over a memory with the embedder that ships.

    A subclass makes one `of` a memory, adds texts by their ids, and gets, finds and deletes them; what it finds in each of
    the `modes` are texts by their ids, best first. `diverse` are settings by which a search does not say the same twice.
    """

    of: ClassVar[Callable[..., Any]]
    modes: ClassVar[Sequence[str]]
    diverse: ClassVar[Mapping[str, Any]]

    def add(self, store: Any, texts: Mapping[str, str], about: Mapping[str, Mapping[str, Any]]) -> None:
        raise NotImplementedError

    def get(self, store: Any, ids: Sequence[str]) -> dict[str, tuple[str, Mapping[str, Any]]]:
        raise NotImplementedError

    def find(self, store: Any, question: str, k: int, mode: str | None = None, **settings: Any) -> dict[str, str]:
        raise NotImplementedError

    def delete(self, store: Any, ids: Sequence[str]) -> None:
        raise NotImplementedError

    def clear(self, store: Any) -> None:
        raise NotImplementedError

    @pytest.fixture
    def make_filled(self):
        def make(folder):
            with Memory.open(folder) as memory:
                self.add(self.of(memory), FACTS, ABOUT)

        return make

    @pytest.fixture
    def filled(self, static_memory):
        return self.of(static_memory)

    @pytest.mark.sqlite_only
    def test_the_index_is_made_again_from_the_files_with_ids_and_metadata(self, tmp_path, caplog):
        odd = "Ada's text\r\n\n", {"page": 3, "tags": ["a", None]}
        answers = []
        for _ in range(2):
            with Memory.open(tmp_path) as memory:
                store = self.of(memory)
                if not answers:
                    self.add(store, FACTS | {"Doc/Ä 1": odd[0]}, ABOUT | {"Doc/Ä 1": odd[1]})
                found = [list(self.find(store, "the old mill", 2, mode)) for mode in self.modes]
                answers.append((self.get(store, [*FACTS, "Doc/Ä 1"]), found))
            assert '"vector"' not in (tmp_path / "memory" / "notes" / "venue.md").read_text()
            shutil.rmtree(index_folder(tmp_path))
        assert answers[0] == answers[1]
        assert answers[0][0] == {name: (FACTS[name], ABOUT[name]) for name in FACTS} | {"Doc/Ä 1": odd}
        assert len(list((tmp_path / "memory" / "notes").glob("*.md"))) == len(FACTS) + 1
        assert not caplog.records, "nothing was ever missing"

    def test_a_document_takes_the_place_of_the_one_with_its_id(self, filled):
        self.add(filled, {"venue": "The venue is a barn now."}, {"venue": {"n": 9}})
        assert self.get(filled, ["venue"]) == {"venue": ("The venue is a barn now.", {"n": 9})}
        for mode in self.modes:
            assert list(self.find(filled, "a barn", 1, mode)) == ["venue"]
            assert len(self.find(filled, "the", 9, mode)) <= len(FACTS)

    def test_metadata_that_is_no_json_is_named_and_nothing_is_written(self, filled):
        for odd in (object(), "\ud800"):
            with pytest.raises(InvalidInputError, match="metadata"):
                self.add(filled, {"good": "good", "bad": "bad"}, {"good": {}, "bad": {"odd": odd}})
        assert self.get(filled, ["good", "bad"]) == {}

    def test_dates_and_uuids_are_metadata_and_found_by_filters(self, filled):
        noon, name = datetime(2026, 11, 21, 12, tzinfo=UTC), UUID(int=7)
        said = {"day": date(2026, 11, 21), "at": noon, "by": name, "all": [name, {"on": noon}]}
        self.add(filled, {"new": "The band plays."}, {"new": said})
        text = self.get(filled, ["new"])["new"][1]
        assert (text["day"], datetime.fromisoformat(text["at"]), text["by"]) == ("2026-11-21", noon, str(name))
        assert text["all"] == [str(name), {"on": text["at"]}]
        for mode in self.modes:
            for key in ("day", "at", "by"):
                assert list(self.find(filled, "Who plays?", 9, mode, wanted={key: text[key]})) == ["new"]

    def test_a_nul_is_refused_by_name_and_nothing_is_written(self, filled):
        for text in ("The\0band", "\0"):
            with pytest.raises(InvalidInputError, match="'bad' holds a NUL"):
                self.add(filled, {"good": "good", "bad": text}, {"good": {}, "bad": {}})
        assert self.get(filled, ["good", "bad"]) == {}

    def test_a_filter_finds_what_many_better_answers_hide(self, filled):
        names = [f"ferry-{n}" for n in range(40)]
        texts = {name: f"The launch of {name} is on Friday." for name in names}
        self.add(filled, texts, {name: {"of": "boat"} for name in names})
        for mode in self.modes:
            assert list(self.find(filled, f"{SAME} Who cooks?", 9, mode, wanted={"n": 3})) == ["cook"]

    def test_without_a_question_what_passes_the_filter_is_listed(self, filled):
        for mode in self.modes:
            for question in ("", " "):
                assert list(self.find(filled, question, 9, mode, wanted={"of": "boat"})) == ["again", "launch"]
            assert list(self.find(filled, "", 1, mode, wanted={"of": "party"})) == ["cook"]
            assert self.find(filled, "", 9, mode, wanted={"n": 17}) == {}

    def test_marginal_relevance_does_not_say_the_same_twice(self, filled):
        assert set(self.find(filled, SAME, 2)) == {"launch", "again"}
        assert len({"launch", "again"} & set(self.find(filled, SAME, 2, **self.diverse))) == 1

    def test_a_persons_lines_are_found_and_never_deleted(self, filled, static_memory, note):
        assert list(self.find(filled, BOAT, 1)) == [note]
        assert self.get(filled, [note])[note][0] == BOAT
        with pytest.raises(PathNotAllowedError, match=r"boat\.md"):
            self.delete(filled, ["launch", note])
        assert list(self.get(filled, ["launch"])) == ["launch"]
        self.clear(filled)
        assert self.get(filled, [*FACTS]) == {}
        assert list(self.find(filled, BOAT, 9)) == [note]
        assert static_memory.get("memory/boat.md").text == BOAT

    def test_two_collections_share_no_ids_and_are_emptied_apart(self, static_memory):
        stores = [self.of(static_memory, collection=name) for name in (None, "a", "b")]
        for number, store in enumerate(stores):
            self.add(store, {"walrus": f"The walrus of {number}"}, {"walrus": {}})
        for number, store in enumerate(stores):
            for mode in self.modes:
                assert self.find(store, "walrus", 5, mode) == {"walrus": f"The walrus of {number}"}
        self.clear(stores[1])
        assert [len(self.get(store, ["walrus"])) for store in stores] == [1, 0, 1]
        assert self.find(stores[1], "walrus", 1) == {}
        self.delete(stores[0], ["walrus"])
        assert [len(self.get(store, ["walrus"])) for store in stores] == [0, 0, 1]

    def test_over_a_template_documents_of_each_run_are_kept_apart(self, users):
        store = self.of(users.use_template("{user_id}"))
        for name in ("anna", "bob"):
            with run_values(user_id=name):
                self.add(store, {"1": f"{name} rides the tram."}, {"1": {}})
        for name in ("anna", "bob"):
            with run_values(user_id=name):
                for mode in self.modes:
                    found = self.find(store, "tram", 5, mode)
                    assert found["1"] == f"{name} rides the tram."
                    assert all(name in text for text in found.values())
        with run_values(user_id="anna"):
            self.clear(store)
            assert self.get(store, ["1"]) == {}
        with run_values(user_id="bob"):
            assert len(self.get(store, ["1"])) == 1
        with pytest.raises(ConfigError, match="user_id is missing"):
            self.get(store, ["1"])

    def test_a_copy_shares_the_memory(self, filled):
        again = copy.deepcopy(filled)
        self.add(again, {"new": "The band plays."}, {"new": {}})
        assert list(self.find(filled, "The band plays.", 1)) == ["new"]

    def test_what_a_call_does_not_take_is_no_silence(self, filled):
        with pytest.raises((TypeError, InvalidInputError), match="fitler"):
            self.find(filled, "launch", 1, fitler={"n": 1})
        with pytest.raises(QueryError):
            self.find(filled, "launch", 1, wanted="cook")

    @pytest.mark.parametrize("memory", ["notes", None, 3])
    def test_what_is_no_memory_is_refused_with_what_to_do(self, memory):
        with pytest.raises(TypeError, match=r"Memory\.open\(folder\)"):
            self.of(memory)
