"""What each adapter promises in the same words: a contract that the tests of each framework subclass."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from openclaw_memory import Memory, load_embedder
from openclaw_memory.errors import ConfigError, EmbedderError, QueryError
from openclaw_memory.testing import check_embedder

TEXTS = ["The mill is on the river.", "Anna sails on Sundays.", "The boiler is serviced in October."]
NO_VECTORS = [
    [[1.0, 2.0]], [], None, "words", [[1.0, 2.0], None], [["a"], ["b"]], [[0.0, 0.0], [0.0, 0.0]], [[1.0], [1.0, 2.0]],
]  # fmt: skip


class EmbedderContract:
    """Embeddings of a framework as the embedder of a memory.

    A subclass names `provider`, `embedder` (ours around theirs) and `ours` (ours as theirs), and makes theirs: with the
    `service`'s own settings, of a `size`, with an `answer` to all texts, and `around` others.
    """

    provider: ClassVar[str]
    embedder: ClassVar[Callable[..., Any]]
    ours: ClassVar[Callable[..., Any]]
    size: ClassVar[Callable[[int], Any]]
    service: ClassVar[Callable[..., Any]]
    answering: ClassVar[Callable[[Callable[[list[str]], Any]], Any]]
    around: ClassVar[Callable[[Any], Any]]
    # Settings of the service, one by one: those that may change a vector, and those that cannot.
    that_count: ClassVar[Mapping[str, Any]]
    that_do_not: ClassVar[Mapping[str, Any]]

    def identity(self, **settings: Any) -> str:
        return self.embedder(self.service(**settings)).identity

    def test_theirs_keep_the_contract_of_an_embedder(self):
        def lengths(texts):
            return [[float(number) + 1e-3 for number in np.bincount([*text.encode()], minlength=256)] for text in texts]

        check_embedder(self.embedder(self.answering(lengths)))
        check_embedder(self.embedder(self.ours("static")))

    def test_ours_through_theirs_are_the_same_vectors(self):
        inner = load_embedder("static")
        there_and_back = self.embedder(self.ours(inner))
        np.testing.assert_allclose(there_and_back.embed_documents(TEXTS), inner.embed_documents(TEXTS), atol=1e-6)
        np.testing.assert_allclose(there_and_back.embed_query("mill"), inner.embed_query("mill"), atol=1e-6)

    def test_what_may_change_a_vector_changes_the_identity(self):
        for name, value in self.that_count.items():
            assert self.identity(**{name: value}) != self.identity(), name

    def test_secrets_and_how_a_service_is_asked_are_no_part_of_the_identity(self):
        for name, value in self.that_do_not.items():
            assert self.identity(**{name: value}) == self.identity(), name

    def test_a_user_names_model_and_identity(self):
        embedder = self.embedder(self.service(), model="mine", identity="house-7")
        assert embedder.provider == self.provider
        assert (embedder.model, embedder.identity) == ("mine", f"{self.provider}:house-7")

    def test_embeddings_around_others_are_kept_apart_by_those_inside(self):
        (counts, value), *_ = self.that_count.items()
        inner = (self.service(), self.service(**{counts: value}), self.ours("hashing"))
        assert len({self.embedder(self.around(one)).identity for one in inner}) == 3

    def test_ours_through_theirs_are_kept_apart_by_their_model(self):
        assert self.embedder(self.ours("static")).identity != self.embedder(self.ours("hashing")).identity

    def test_what_is_no_vector_for_each_text_is_refused(self):
        for answer in NO_VECTORS:
            with pytest.raises(EmbedderError):
                self.embedder(self.answering(lambda _, answer=answer: answer)).embed_documents(["one", "two"])

    def test_an_error_of_theirs_is_reported_as_ours(self):
        def fails(_texts):
            raise RuntimeError("out of quota")

        with pytest.raises(EmbedderError, match="out of quota"):
            self.embedder(self.answering(fails)).embed_query("one")

    def test_lone_surrogates_do_not_reach_a_service(self):
        encoding = self.answering(lambda texts: [[float(len(text.encode())), 1.0] for text in texts])
        assert self.embedder(encoding).embed_documents(["a \ud800 b"]).shape == (1, 2)

    def test_what_are_no_embeddings_or_no_name_is_refused(self):
        for theirs, names in (
            ("openai", {}), (load_embedder("hashing"), {}), (self.service(), {"model": ""}), (self.service(), {"identity": ""})
        ):  # fmt: skip
            with pytest.raises(ConfigError):
                self.embedder(theirs, **names)

    def test_two_settings_of_one_class_never_share_vectors(self, tmp_path):
        (tmp_path / "MEMORY.md").write_text("Anna sails on Sundays.\n")
        for dims in (8, 12):
            with Memory.open(tmp_path, embedder=self.embedder(self.size(dims))) as memory:
                memory.sync()
                assert memory.search("When does Anna sail?").mode == "hybrid"
                assert memory.status().vector.dims == dims

    def test_theirs_count_as_sent_elsewhere_unless_the_caller_vouches(self):
        assert self.embedder(self.size(8)).leaves_machine
        assert not self.embedder(self.size(8), local=True).leaves_machine
        assert not self.embedder(self.ours(load_embedder("static"))).leaves_machine


QUESTION = "Who services the boiler?"
BEST = {
    "path": "memory/household.md", "start_line": 1, "end_line": 3, "spans": [[1, 3]], "source": "memory",
    "citation": "memory/household.md#L1-L3", "mode": "hybrid", "stale": False,
}  # fmt: skip
# Filters of a search, and the notes that pass.
FILTERS = [
    ({"path": "memory/2019-*"}, {"memory/2019-02-03.md", "memory/2019-03-04.md"}),
    ({"path": "memory/2019-*", "since": "2019-03-01"}, {"memory/2019-03-04.md"}),
    ({"until": "2019-02-28", "path": ["memory/"]}, {"memory/2019-02-03.md"}),
    ({"tags": "Heating"}, {"memory/2019-02-03.md"}),
    ({"type": "preference"}, {"memory/records/preference/boiler.sound.md"}),
    ({"type": "preference", "min_confidence": 0.9}, set()),
    ({"phrases": "the boiler of 2019 02 03"}, {"memory/2019-02-03.md"}),
    ({"phrases": ["the boiler of 2019 02 03"], "without": "boiler"}, set()),
]


class Found(NamedTuple):
    """A document or a node of a retriever."""

    id: str
    text: str
    score: float
    metadata: Mapping[str, Any]


class RetrieverContract:
    """A retriever of a framework finds what the memory finds.

    A subclass makes one of a memory with settings of `Memory.search` by their names, and asks it, with and without
    waiting. `wrong` are the errors of wrong settings, of a filter that no search takes, and of something else than a memory.
    """

    of: ClassVar[Callable[..., Any]]
    wrong: ClassVar[tuple[type[Exception], type[Exception], type[Exception]]]
    more: ClassVar[Mapping[str, Any]] = {}

    def asked(self, retriever: Any, question: str) -> list[Found]:
        raise NotImplementedError

    async def awaited(self, retriever: Any, question: str) -> list[Found]:
        raise NotImplementedError

    @pytest.fixture
    def dated(self, household):
        """The memory with notes of two days, one of them with tags, and a record."""
        for name, above in (("2019-02-03", "---\ntags: [heating, noise]\n---\n"), ("2019-03-04", "")):
            text = f"{above}The boiler of {name} was loud.\n"
            (household.workspace.root / "memory" / f"{name}.md").write_text(text, encoding="utf-8")
        household.records.remember("preference", "boiler.sound", "a quiet boiler", confidence=0.6, ttl=None)
        household.sync()
        return household

    def test_what_is_found_names_its_lines_and_how_it_was_found(self, household):
        best = self.asked(self.of(household), QUESTION)[0]
        assert best.text == "# Household\n\nThe boiler is serviced each October by Van Dam."
        assert best.id == "memory/household.md#L1-L3"
        assert 0 < best.score <= 1
        assert best.metadata == BEST | self.more

    def test_what_is_found_is_what_the_memory_finds_in_its_order(self, household):
        expected = [(result.citation, result.score) for result in household.search(QUESTION, max_results=6)]
        assert [(one.id, one.score) for one in self.asked(self.of(household), QUESTION)] == expected

    def test_passages_of_one_long_line_all_arrive(self, tmp_path):
        passages = " ".join(f"The boiler was seen to on day {day} of the year, and was well." for day in range(99))
        (tmp_path / "MEMORY.md").write_text(f"# Boiler\n\n{passages}\n")
        with Memory.open(tmp_path) as memory:
            results = memory.search("boiler", min_score=0.0)
            found = self.asked(self.of(memory, min_score=0.0), "boiler")
        assert len({result.citation for result in results}) < len(results)  # else this shows nothing
        assert [one.text for one in found] == [result.snippet for result in results]
        assert [one.metadata["citation"] for one in found] == [result.citation for result in results]

    def test_it_says_that_the_index_is_behind(self, household):
        household.append("Van Dam has a new van.", date="2026-03-01")
        assert self.asked(self.of(household), QUESTION)[0].metadata["stale"] is True

    def test_it_says_why_keywords_alone_were_searched(self, notes):
        def fails(_):
            raise RuntimeError("out of order")

        with Memory.open(notes, embedder=fails) as memory:
            metadata = self.asked(self.of(memory), QUESTION)[0].metadata
        assert metadata["mode"] == "keyword"
        assert "out of order" in metadata["reason"]

    def test_its_settings_are_kept(self, household):
        every = self.asked(self.of(household), "boiler")
        assert self.asked(self.of(household, k=1), "boiler") == every[:1]
        assert self.asked(self.of(household, min_score=1.0), "boiler") == []
        for source in ("memory", "sessions"):
            found = self.asked(self.of(household, filters={"source": source}), "boiler")
            assert {one.metadata["source"] for one in found} == {source}

    def test_a_wrong_setting_is_reported_at_once_by_its_name(self, household):
        for name, value in (("k", 0), ("k", "many"), ("min_score", 2), ("source", "web")):
            with pytest.raises(self.wrong[0], match=name):
                self.of(household, **{name: value})

    def test_a_path_is_no_memory(self):
        with pytest.raises(self.wrong[2], match=r"memory must be a Memory, not .*Memory\.open\(folder\)"):
            self.of("notes")

    async def test_many_questions_at_once_are_answered_as_one_by_one(self, household):
        retriever = self.of(household)
        questions = [QUESTION, "Where is the spare key?", "What cured E_CAL_DRIFT?"] * 5
        one_by_one = [self.asked(retriever, question) for question in questions]
        assert await asyncio.gather(*(self.awaited(retriever, question) for question in questions)) == one_by_one

    async def test_a_search_does_not_hold_up_the_loop(self, notes):
        loop, turned = asyncio.get_running_loop(), asyncio.Event()

        def waits(texts):
            # The loop must turn for this to be answered.
            asyncio.run_coroutine_threadsafe(turned.wait(), loop).result(timeout=60)
            return [[1.0, float(len(text))] for text in texts]

        with Memory.open(notes, embedder=waits) as memory:
            loop.call_soon(turned.set)
            assert (await self.awaited(self.of(memory), QUESTION))[0].metadata["mode"] == "hybrid"

    def test_rules_are_those_of_the_search(self, dated):
        rules = {"answer": "chunks", "fusion": "weighted"}
        expected = [result.score for result in dated.search("boiler", options={"settings": rules})]
        assert [one.score for one in self.asked(self.of(dated, options={"settings": rules}), "boiler")] == expected
        assert [one.score for one in self.asked(self.of(dated), "boiler")] != expected
        for wrong, said in (
            ({"tokens": 100}, "a search has no setting .tokens.: settings are"),
            ({"mmr": 7}, "mmr = 7 is outside"),
        ):
            with pytest.raises((QueryError, self.wrong[1]), match=said):
                self.asked(self.of(dated, options={"settings": wrong}), "boiler")

    def test_a_task_is_that_of_the_search(self, dated):
        options = {"task": "a quiet night"}
        expected = [result.score for result in dated.search("boiler", options=options)]
        assert [one.score for one in self.asked(self.of(dated, options=options), "boiler")] == expected
        assert [one.score for one in self.asked(self.of(dated), "boiler")] != expected

    async def test_filters_are_those_of_the_search(self, dated):
        for filters, paths in FILTERS:
            retriever = self.of(dated, k=50, min_score=0, filters=filters)
            assert {one.metadata["path"] for one in self.asked(retriever, "boiler")} == paths
            assert {one.metadata["path"] for one in await self.awaited(retriever, "boiler")} == paths

    def test_filters_that_no_search_takes_are_refused_at_once(self, household):
        for filters, said in (({"kind": "x"}, "filter has no 'kind'"), ({"since": "soon"}, "since is 'soon'")):
            with pytest.raises(self.wrong[1], match=said):
                self.of(household, filters=filters)

    def test_lines_of_a_record_have_its_fields(self, dated):
        found = self.asked(self.of(dated, k=50, min_score=0), "quiet boiler")
        (of_record,) = (one for one in found if "record" in one.metadata)
        fields = of_record.metadata["record"]
        assert of_record.metadata["path"] == "memory/records/preference/boiler.sound.md"
        assert (fields["type"], fields["key"], fields["value"]) == ("preference", "boiler.sound", "a quiet boiler")
        assert (fields["confidence"], fields["version"], fields["expires_at"]) == (0.6, 1, None)
        assert fields["source"]["kind"] == "user"
        assert len(found) > 1
        json.dumps(fields)
