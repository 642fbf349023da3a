"""What a program wrote above the text of a document: written, read, and kept out of the chunks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.chunking import STYLES, chunk
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text.front_matter import get_embedding, measure_front_matter, parse, render

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
LINES = st.lists(
    st.sampled_from(["---", "# Head", "key: value", "text\r", "", "openclaw_memory: 1", "\u2028", "- item"])
)


@given(
    fields=st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4),
    text=WORDS | LINES.map("\n".join),
)
def test_what_is_composed_is_read_again_as_it_was(fields, text):
    file = render(fields, text)
    assert parse(file) == (fields, text, ())
    assert file[measure_front_matter(file) :] == f"{text}\n"


@given(value=VALUES)
def test_what_is_composed_is_one_line_of_yaml_a_field(value):
    first, version, line, last, *rest = render({"value": value}, "").splitlines()
    assert (first, version, last, rest) == ("---", "openclaw_memory: 1", "---", [""])
    assert json.loads(line.removeprefix("value: ")) == value


@given(text=LINES.map("\n".join))
@pytest.mark.parametrize("style", STYLES)
def test_a_document_is_cut_as_its_text_is_further_down(style, text):
    rules = ChunkingConfig(style=style)
    file = render({"id": "Zeppelin", "metadata": {"secret_word": "xylophone"}}, text)
    above, lines = measure_front_matter(file), file[: measure_front_matter(file)].count("\n")
    pieces = chunk(file, "memory/notes/a.md", rules)
    alone = [p for p in STYLES[style](f"{text}\n", "memory/notes/a.md", rules, None) if p.text.strip()]
    assert [(p.text, p.context, p.start_line - lines, p.start_char - above) for p in pieces] == [
        (p.text, p.context, p.start_line, p.start_char) for p in alone
    ]
    assert [p.section and p.section - lines for p in pieces] == [p.section for p in alone]
    assert not any("Zeppelin" in p.embedding_text or "xylophone" in p.embedding_text for p in pieces)


@pytest.mark.parametrize(
    "file",
    [
        "---\ntitle: x\n---\ntext",
        "text\n---\nopenclaw_memory: 1\n---\n",
        *('---\nopenclaw_memory: 2\nid: "a"\n---\ntext', "", "---"),
    ],
)
def test_what_no_program_of_ours_wrote_is_no_document(file):
    assert parse(file) is None


def test_files_that_other_programs_saved_are_read():
    assert parse('---\r\nopenclaw_memory: 1\r\nid: doc-1\r\nmetadata: {"a": 1}\r\n---\r\nedited') == (
        {"id": "doc-1", "metadata": {"a": 1}},
        "edited",
        (),
    )


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ("metadata:\n  a: 2", {"metadata": {"a": 2}}),
        ("metadata:\n    a: two words\n    b: 'it''s'\n    c: \"d: e\"",
         {"metadata": {"a": "two words", "b": "it's", "c": "d: e"}}),
        ("metadata:\n  deep:\n    tags:\n      - x # why\n      - 3", {"metadata": {"deep": {"tags": ["x", 3]}}}),
        ("# mine\n\ntags:\n- a\n- b\nid: plain # said so", {"tags": ["a", "b"], "id": "plain"}),
        ("a: True\nb: ~\nc: 2026-11-22\nd: 007\ne: 1.5 # about\nf: [1] # all",
         {"a": True, "b": None, "c": "2026-11-22", "d": "007", "e": 1.5, "f": [1]}),
        ("metadata:", {"metadata": None}), ('"quoted key": 1', {"quoted key": 1}),
    ],
)  # fmt: skip
def test_plain_yaml_that_a_person_writes_is_read(written, fields):
    assert parse(f"---\nopenclaw_memory: 1\n{written}\n---\ntext\n") == (fields, "text", ())


@pytest.mark.parametrize(
    ("written", "fields", "line"),
    [
        ('id: "x"\nmetadata: {"a": 1, b: 2}', {"id": "x"}, 4),
        ('id: "x"\nmetadata: ["a", ]\nmore: 1', {"id": "x", "more": 1}, 4),
        ('id "x"\nmetadata: {"a": 1}', {"metadata": {"a": 1}}, 3),
        ("id: x\nmetadata:\n  a: 1\n  nonsense", {"id": "x"}, 4), ("metadata:\n  a: {b: 1}\nid: x", {"id": "x"}, 3),
        ("id: x\ntext: one\n  and two", {"id": "x"}, 4), ('metadata: "open\nid: x', {"id": "x"}, 3),
        ("  odd\nid: x", {"id": "x"}, 3),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_and_the_rest_is_read(written, fields, line):
    file = f"---\nopenclaw_memory: 1\n{written}\n---\ntext\n"
    assert parse(file) == (fields, "text", (f"line {line} cannot be read",))


def test_the_marks_of_a_merge_are_named():
    file = "---\nopenclaw_memory: 1\n<<<<<<< HEAD\nid: x\n=======\nid: y\n>>>>>>> other\n---\ntext\n"
    read = parse(file)
    assert read is not None
    assert read.damage == tuple(f"line {line} is a mark of a merge" for line in (3, 5, 7))


@pytest.mark.parametrize("text", ["The text.\nnote: call Anna", "", "- a\n- b"])
def test_a_document_whose_closing_line_is_gone_is_still_one(text):
    file = render({"id": "x", "metadata": {"n": 1}}, text).replace("}\n---\n", "}\n")
    fields, read, damage = parse(file)
    assert (fields, read) == ({"id": "x", "metadata": {"n": 1}}, text)
    assert "`---`" in damage[0]
    assert not any("metadata" in piece.text for piece in chunk(file, "memory/notes/a.md", ChunkingConfig()))


@given(above=st.text(st.sampled_from("ab: -#\n\r\t\"'{}[],0.~"), max_size=40), text=WORDS)
def test_whatever_stands_above_the_text_a_file_of_ours_stays_ours(above, text):
    assert parse(f"---\nopenclaw_memory: 1\n{above}\n---\n{text}\n") is not None


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (object(), "metadata"), ({"a": {"b": [1, {2, 3}]}}, r"metadata\['a'\]\['b'\]\[1\]"),
        ({"a": float("nan")}, r"metadata\['a'\] is nan"), ({"a": float("inf")}, r"metadata\['a'\] is inf"),
        ({"a": {1: 2}}, r"metadata\['a'\] has the key 1"), ({"a": "\ud800"}, "lone surrogate"),
        ({"a": 10**5000}, "metadata"), ({"a": b"bytes"}, "bytes"),
    ],
    ids=["object", "set", "nan", "inf", "key", "surrogate", "long number", "bytes"],
)  # fmt: skip
def test_what_is_no_json_is_refused_with_the_way_to_it(value, where):
    with pytest.raises(InvalidInputError, match=where):
        render({"metadata": value}, "")


@pytest.mark.parametrize("name", ["", "- a", "a ", "a:b", "a #b", "openclaw_memory", "x\n---"])
def test_a_field_has_a_name_that_can_be_read_again(name):
    with pytest.raises(InvalidInputError, match="cannot name a field"):
        render({name: 1}, "")


def test_values_that_are_too_deep_are_refused():
    value = []
    for _ in range(100):
        value = [value]
    with pytest.raises(InvalidInputError, match="deeper than 64"):
        render({"metadata": value}, "")


def test_the_key_of_a_vector_is_the_one_in_the_file_or_a_digest_of_it():
    fields = {"embedding": {"model": "m", "dims": 4, "key": "a" * 64}}
    assert get_embedding("", fields) == ("m", 4, "a" * 64)
    without = {"embedding": {"model": "m", "dims": 4, "key": "mine"}}
    assert get_embedding("one", without).key != get_embedding("another", without).key
    assert get_embedding("one", {"embedding": "m"}) is None
