"""Nodes of LlamaIndex become documents and come back as they were."""

import base64
import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import schema
from llama_index_openclaw_memory._nodes import FIELD, get_value, is_cited, to_document, to_node

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.types import Document as Written

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
plain = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | text
metadata = st.dictionaries(text, plain | st.lists(plain, max_size=3), max_size=3)
related = st.builds(
    schema.RelatedNodeInfo,
    node_id=text,
    node_type=st.sampled_from([None, *schema.ObjectType]),
    metadata=metadata,
    hash=st.none() | text,
)
relationships = st.fixed_dictionaries(
    {},
    optional={
        schema.NodeRelationship.SOURCE: related,
        schema.NodeRelationship.PREVIOUS: related,
        schema.NodeRelationship.CHILD: st.lists(related, max_size=2),
    },
)
shared = {
    "id_": text.filter(str.strip),
    "metadata": metadata,
    "relationships": relationships,
    "excluded_embed_metadata_keys": st.lists(text, max_size=2),
    "excluded_llm_metadata_keys": st.lists(text, max_size=2),
    "metadata_template": st.sampled_from(["{key}: {value}", "{key}={value}"]),
    "metadata_separator": st.sampled_from(["\n", "; "]),
}
index = st.none() | st.integers(0, 99)
of_text = {**shared, "text": text, "mimetype": st.sampled_from(["text/plain", "text/html"])}
of_text |= {"start_char_idx": index, "end_char_idx": index, "text_template": st.just("{content}")}
resource = st.none() | st.builds(
    schema.MediaResource,
    text=st.none() | text,
    data=st.none() | st.just(PNG),
    mimetype=st.sampled_from([None, "image/png"]),
    path=st.sampled_from([None, "/there/a.png"]),
    url=st.sampled_from([None, "https://example.org/a"]),
)
resources = dict.fromkeys(("text_resource", "image_resource", "audio_resource", "video_resource"), resource)
nodes = st.one_of(
    st.builds(schema.TextNode, **of_text),
    st.builds(schema.ImageNode, **of_text, image=st.none() | text, image_url=st.none() | text),
    st.builds(schema.IndexNode, **of_text, index_id=text),
    st.builds(schema.Node, **shared, **resources),
    st.builds(schema.Document, **shared, **resources),
    st.builds(schema.ImageDocument, **shared, **resources),
)


@given(nodes)
def test_a_node_comes_back_equal(node):
    back = to_node(to_document(node))
    assert type(back) is type(node)
    assert back == node


def test_the_embedding_is_not_written_and_the_node_not_changed():
    node = schema.TextNode(text="a", embedding=[0.5, 0.5])
    written = to_document(node)
    assert to_node(to_document(node)).embedding is None
    assert node.embedding == [0.5, 0.5]
    assert "embedding" not in written.fields[FIELD]


def test_what_a_file_says_of_each_of_its_parts_is_written_once():
    about = {"file_name": "press.pdf", "day": datetime.date(2026, 1, 2)}
    keys = ["file_name", "day"]
    whole = schema.Document(metadata=about, excluded_embed_metadata_keys=keys, excluded_llm_metadata_keys=keys)
    part = schema.TextNode(id_="part", text="a", metadata=about, relationships={schema.NodeRelationship.CHILD: []})
    part.relationships |= {schema.NodeRelationship.SOURCE: whole.as_related_node_info()}
    part.excluded_embed_metadata_keys = part.excluded_llm_metadata_keys = keys
    written = to_document(part)
    assert "press.pdf" not in str(written.fields)
    assert str(written.fields).count("file_name") == 1
    back = to_node(written)
    assert back.source_node.metadata == back.metadata == {"file_name": "press.pdf", "day": "2026-01-02"}
    assert back.excluded_embed_metadata_keys == back.excluded_llm_metadata_keys == keys
    assert written.part_of == whole.node_id


def test_an_index_node_keeps_what_it_leads_to():
    inner = schema.TextNode(id_="inner", text="what it leads to")
    back = to_node(to_document(schema.IndexNode(id_="outer", text="summary", index_id="inner", obj=inner)))
    assert back.obj == inner
    assert (back.index_id, back.text) == ("inner", "summary")


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (schema.TextNode(id_="odd", metadata={"what": object()}), r"metadata\['what'\]"),
        (schema.TextNode(id_="odd", metadata={"what": b"\xff"}), r"metadata\['what'\]"),
        (schema.IndexNode(id_="odd", index_id="i", obj=object()), "it"),
    ],
    ids=["object", "bytes", "obj"],
)
def test_what_can_be_no_json_is_refused_by_the_id_of_its_node(node, named):
    with pytest.raises(InvalidInputError, match=rf"'odd' cannot be written: {named} is not JSON.*use text"):
        to_document(node)


DAMAGED = [
    {"class_name": "TextNode", "relationships": "none"}, {"class_name": "TextNode", "relationships": {"1": None, "5": [3]}},
    {"class_name": "TextNode", "excluded_metadata_keys": 3}, {"class_name": "IndexNode"},
    {"class_name": "Node", "image_resource": 3}, {"class_name": "TextNode", "start_char_idx": "three"},
]  # fmt: skip
UNKNOWN = [None, "words", ["TextNode"], {"class_name": "Unknown"}, {"class_name": 3}]


def test_what_a_person_has_damaged_is_left_out_and_said_and_an_unknown_class_is_a_text_node(caplog):
    for odd in [*DAMAGED, *UNKNOWN]:
        caplog.clear()
        document = Written("a", "text", {"n": 1}, "memory/notes/a.md", {} if odd is None else {FIELD: odd})
        assert to_node(document) == schema.TextNode(id_="a", text="text", metadata={"n": 1})
        assert ("memory/notes/a.md" in caplog.text) is (odd in DAMAGED), odd
        assert document.part_of is None
        assert odd in DAMAGED or get_value(document, "_node_type") == "TextNode"


LINES = Written(
    "memory/a.md#L3-L4",
    "two\nlines",
    {"path": "memory/a.md", "start_line": 3, "end_line": 4, "source": "memory", "citation": "memory/a.md#L3-L4"},
    "memory/a.md",
)


def test_a_persons_lines_are_a_node_with_their_file_as_source():
    node = to_node(LINES)
    assert (node.node_id, node.ref_doc_id, node.text) == (LINES.id, "memory/a.md", "two\nlines")
    assert node.metadata == LINES.metadata
    assert node.get_content(schema.MetadataMode.EMBED) == "two\nlines"
    assert re.search(r"\n\[memory/a\.md#L3-L4 [0-9a-f]{8}]\ntwo\nlines\n</", node.get_content(schema.MetadataMode.LLM))
    assert LINES.part_of == "memory/a.md"


def test_a_node_made_of_a_persons_lines_that_is_added_is_no_persons():
    written = to_document(to_node(LINES))
    added = Written(written.id, written.text, written.metadata, "memory/notes/a.md", written.fields)
    assert is_cited(LINES)
    assert not is_cited(added)
    fence = to_node(LINES).text_template
    assert to_node(added).model_copy(update={"text_template": fence}) == to_node(LINES)
    assert "recalled-memory" not in str(written)


def test_metadata_that_is_not_embedded_is_not_part_of_the_context_of_a_document():
    node = schema.TextNode(
        text="It", metadata={"title": "Lease", "file": "a.pdf"}, excluded_embed_metadata_keys=["file"]
    )
    written = to_document(node)
    assert written.fields["context"] == ["title"]
    assert to_node(written) == node
    assert "context" not in to_document(schema.TextNode(text="It", metadata={"title": "Lease"})).fields
