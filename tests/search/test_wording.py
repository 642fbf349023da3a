"""Phrases that a chunk must hold, and words that it must not: exact, for keywords and vectors, in every store."""

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError
from openclaw_memory.search.query import TypedQuery, read_query

NOTES = {
    "key.md": "# Keys\n\nThe spare\nkey is with Ann.\n",
    "spare.md": "# Parts\n\nA key part is in the box of spare things.\n",
    "boat.md": "# Boats\n\nThe key of the boat floats, and no spare was made.\n",
    "plain.md": "# House\n\nThe key of the house hangs by the door.\n",
    "stop.md": "# Words\n\nTo be, or not to be: that is how it goes.\n",
    "accent.md": "# Café\n\nLe **café** `crème` est prêt.\n",
    "tokyo.md": "# 東京\n\n予備の鍵は田中さんが持っています。\n",
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)])
def memory(request, tmp_path):
    (tmp_path / "memory").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "memory" / name).write_text(text, encoding="utf-8")
    store = request.getfixturevalue("server") if request.param == "postgres" else "sqlite"
    with Memory.open(tmp_path, store=store) as memory:
        memory.sync()
        yield memory


def found(memory, query, min_score=None, rules=None, **filters):
    options = {"settings": rules}
    results = memory.search(query, max_results=20, min_score=min_score, filter=filters, options=options)
    return {result.path.removeprefix("memory/") for result in results}


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ('"spare key" of the boat', TypedQuery("spare key of the boat", ("spare key",))),
        ("key -boat -sea-side", TypedQuery("key", (), ("boat", "sea-side"))),
        ('"a b" "c d" -e.', TypedQuery("a b c d", ("a b", "c d"), ("e",))),
        ("Who has the key?", TypedQuery("Who has the key?")),
        ('a 5" pipe, 3" wide', TypedQuery('a 5" pipe, 3" wide')),
        ("follow-up of the -5 degrees - and -- more", TypedQuery("follow-up of the -5 degrees - and -- more")),
        ('an open "quotation', TypedQuery('an open "quotation')),
        ('""', TypedQuery('""')),
        ("-boat", TypedQuery("", (), ("boat",))),
    ],
)
def test_a_query_is_taken_apart(typed, asked):
    assert read_query(typed) == asked


@pytest.mark.parametrize(
    ("phrase", "files"),
    [
        ("spare key", {"key.md"}),  # over the end of a line
        ("SPARE, Key", {"key.md"}),
        ("pare key", set()),
        ("key spare", set()),
        ("to be or not", {"stop.md"}),  # words that a query does not look up
        ("cafe creme", {"accent.md"}),
        ("予備の鍵", {"tokyo.md"}),
        ("鍵は田中", {"tokyo.md"}),
        (["key", "the door"], {"plain.md"}),
    ],
)
def test_only_chunks_with_the_phrase_are_found_and_shown_with_it(memory, phrase, files):
    query = phrase if isinstance(phrase, str) else " ".join(phrase)
    results = memory.search(query, filter={"phrases": phrase})
    assert {result.path.removeprefix("memory/") for result in results} == files


def test_a_phrase_is_found_by_vectors_alone_and_whatever_the_question_is(memory):
    assert found(memory, "Who looks after the harbour?", phrases="spare key") == {"key.md"}
    only_vectors = {"vector_weight": 1.0}
    assert found(memory, "Where do I find a way in?", phrases="spare key", rules=only_vectors) == {"key.md"}


def test_a_result_shows_the_phrase_even_if_other_lines_answer_better(memory, tmp_path):
    long = "\n".join(
        ["# Long", "", *(f"The boiler is serviced by Van Dam, visit {n}." for n in range(30)), "Odd one out."]
    )
    (tmp_path / "memory/long.md").write_text(long + "\n", encoding="utf-8")
    memory.sync()
    (result,) = memory.search("Who services the boiler?", filter={"phrases": "odd one"})
    assert "Odd one out." in result.snippet
    assert memory.get(result.citation).text.splitlines()[-1] == "Odd one out."


@pytest.mark.parametrize("rules", [None, {"vector_weight": 1.0}, {"answer": "chunks"}])
def test_no_chunk_with_the_word_is_found(memory, rules):
    every = found(memory, "key", min_score=0.0, rules=rules)
    assert "boat.md" in every
    assert found(memory, "key", without="boat", min_score=0.0, rules=rules) == every - {"boat.md"}
    assert found(memory, "key", without=["boats", "spare"], min_score=0.0, rules=rules) == every - {
        "boat.md",
        "key.md",
        "spare.md",
    }


def test_as_many_are_found_without_a_word_as_with_it(memory, tmp_path):
    """The candidates are those of the rest, however many chunks with the word come first."""
    for number in range(150):
        text = f"# Note {number}\n\nThe anchor of the ferry {number} is red.\n"
        (tmp_path / f"memory/ferry-{number}.md").write_text(text, encoding="utf-8")
    (tmp_path / "memory/late.md").write_text("# Late\n\nAn anchor is heavy, they say, all in all.\n", encoding="utf-8")
    memory.sync()
    assert found(memory, "anchor of the ferry", without="red", min_score=0.0) >= {"late.md"}
    assert not any(path.startswith("ferry") for path in found(memory, "red anchor", without="red", min_score=0.0))


def test_phrases_and_words_go_with_the_other_filters(memory):
    assert found(memory, "key", phrases="the key", without="boat") == {"plain.md"}
    assert found(memory, "key", phrases="the key", path="boat.md") == {"boat.md"}
    assert found(memory, "key", phrases="the key", source="sessions") == set()


def test_a_file_that_the_query_names_is_not_shown_without_the_phrase(memory):
    assert "plain.md" in found(memory, "plain.md")
    assert found(memory, "plain.md", phrases="spare key") == {"key.md"}
    assert "plain.md" not in found(memory, "plain.md", without="door", min_score=0.0)


@pytest.mark.parametrize("name", ["phrases", "without"])
def test_a_text_without_words_is_an_error(memory, name):
    with pytest.raises(QueryError, match=f"{name} is '--', which holds no word"):
        memory.search("key", filter={name: "--"})
