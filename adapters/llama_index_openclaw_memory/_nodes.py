"""Convert nodes of LlamaIndex to documents of a memory, and back."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core import schema
from pydantic_core import to_json

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.tools import fence_results
from openclaw_memory.types import Document as Written

_log = logging.getLogger(__name__)

FIELD = "llama_index"  # the field above the text that holds what only LlamaIndex knows: the class, relationships, ...
_PART_OF = "part_of"  # the field above the text that says of which source the node is a part: the index knows it
_CONTEXT = "context"  # the field with the keys of the metadata that are embedded with the text, if not all are
_CLASSES: Mapping[str, type[schema.BaseNode]] = {
    kind.class_name(): kind
    for kind in (
        schema.TextNode,
        schema.ImageNode,
        schema.IndexNode,
        schema.Node,
        schema.Document,
        schema.ImageDocument,
    )
}
# Lists that are alike are written once, under this name.
_EXCLUDED = "excluded_metadata_keys"
_EXCLUDED_FROM = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
# What the file says elsewhere. A `Document` says its text twice: as `text` and in its `text_resource`.
_ELSEWHERE = {"id_", "embedding", "metadata", "text"}
_SOURCE = str(schema.NodeRelationship.SOURCE.value)
SOURCE_NAMES = {"document_id", "doc_id", "ref_doc_id"}
NO_SOURCE = "None"  # as LlamaIndex writes it
ADDED = SOURCE_NAMES | {"_node_type"}  # the names that LlamaIndex adds to the metadata when it stores a node


def to_document(node: schema.BaseNode) -> Written:
    """Return the document that is written for a node, without its embedding.

    What differs from the defaults of its class is kept; of the metadata, what is not JSON, such as a date, becomes
    text, as it does where LlamaIndex itself stores a node, and a NaN becomes null.

    Raises:
        InvalidInputError: A value can be no JSON.
    """
    metadata = {name: _dump_json(value, f"metadata[{name!r}]", node) for name, value in node.metadata.items()}
    fields = _dump_json(node, "it", node)
    text = _with_resources(node, fields) if isinstance(node, schema.Node) else node.get_content()
    own: dict[str, Any] = {FIELD: _shorten(fields, json.dumps(metadata))}
    if node.ref_doc_id:
        del own[FIELD]["relationships"][_SOURCE]["node_id"]
        own = {_PART_OF: node.ref_doc_id, **own}
    if hidden := metadata.keys() & node.excluded_embed_metadata_keys:
        own = {_CONTEXT: [name for name in metadata if name not in hidden], **own}
    return Written(node.node_id, text, metadata, fields=own)


def _shorten(fields: dict[str, Any], own: str) -> dict[str, Any]:
    """Drop from the fields of a node the values that the file has elsewhere; `_restore` undoes it.

    Metadata of another node that are the node's `own`, as those of all parts of a file are, are null.
    """

    def shrink(related: Mapping[str, Any]) -> dict[str, Any]:
        short = {name: value for name, value in related.items() if name != "class_name"}
        return {**short, "metadata": None} if json.dumps(short.get("metadata") or None) == own else short

    if "relationships" in fields:
        fields = {**fields, "relationships": _map_related(fields["relationships"], shrink)}
    embed, llm = (fields.get(name) for name in _EXCLUDED_FROM)
    if embed is not None and embed == llm:
        fields = {_EXCLUDED: embed, **{name: value for name, value in fields.items() if name not in _EXCLUDED_FROM}}
    return fields


def _restore(document: Written) -> dict[str, Any]:
    """Return the fields of a node as LlamaIndex reads them, from those that `_shorten` left."""

    def restore(related: Any) -> Any:
        is_same = isinstance(related, Mapping) and related.get("metadata", document.metadata) is None
        return {**related, "metadata": dict(document.metadata)} if is_same else related

    fields = _get_fields(document)
    long = {**dict.fromkeys(_EXCLUDED_FROM, fields[_EXCLUDED]), **fields} if _EXCLUDED in fields else dict(fields)
    if isinstance(long.get("relationships"), Mapping):
        related = long["relationships"] = _map_related(long["relationships"], restore)
        if isinstance(related.get(_SOURCE), Mapping) and _PART_OF in document.fields:
            related[_SOURCE] = {"node_id": document.fields[_PART_OF], **related[_SOURCE]}
    return long


def _map_related(relationships: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        kind: [*map(change, related)] if isinstance(related, list) else change(related)
        for kind, related in relationships.items()
    }


def _dump_json(value: Any, name: str, node: schema.BaseNode) -> Any:
    """Dump a value of a node as JSON, or the node itself without the values of `_ELSEWHERE`."""
    try:
        if value is not node:
            return _to_json(value)
        dumped = _to_json(node.model_dump(mode="json", exclude=_ELSEWHERE, exclude_defaults=True))
        if isinstance(node, schema.IndexNode) and node.obj is not None:
            # Older versions of LlamaIndex leave the defaults out of it too, and cannot read it then.
            dumped["obj"] = _to_json(node.to_dict()["obj"])
    except ValueError as error:  # pydantic's, and that of an IndexNode
        raise InvalidInputError(
            f"node {node.node_id!r} cannot be written: {name} is not JSON ({error}); use text, numbers, lists and dicts"
        ) from error
    if str(dumped.get("text_template")).startswith(
        "<recalled-memory "
    ):  # of lines that were found: made for each answer
        del dumped["text_template"]
    return {name: field for name, field in dumped.items() if field is not None and name not in _ELSEWHERE}


def _to_json(value: Any) -> Any:
    """Return a value as JSON has it, and a NaN or an infinity as null."""
    return json.loads(to_json(value, inf_nan_mode="null"))


def _with_resources(node: schema.Node, fields: dict[str, Any]) -> str:
    """Take the text out of the fields of a node of resources; into them go the bytes that LlamaIndex leaves out."""
    for name in ("text_resource", "image_resource", "audio_resource", "video_resource"):
        resource = getattr(node, name)
        if resource is not None and resource.data is not None:
            fields[name]["data"] = resource.data.decode()
    resource = node.text_resource
    if resource is None:
        return ""
    dumped = fields["text_resource"]
    # What is here without a text has an empty one, which is another thing than none.
    fields["text_resource"] = {name: dumped[name] for name in dumped if dumped[name] is not None and name != "text"}
    if resource.text is None:
        fields["text_resource"]["text"] = None
    return resource.text or ""


def to_node(document: Written) -> schema.BaseNode:
    """Convert a document to the node that was added, with its class and relationships.

    What another framework added is a `TextNode`, and so is a document above whose text a person has made the part of
    LlamaIndex unreadable, which is said in the log. A person's own lines are a `TextNode` with their file as source.
    """
    if is_cited(document):
        return make_cited_node(document.id, document.text, document.metadata, {"citation": document.id})
    fields = _restore(document)
    kind = _CLASSES.get(str(fields.get("class_name")), schema.TextNode)
    same = {"id_": document.id, "metadata": dict(document.metadata)}
    try:
        return kind.from_dict({**fields, **_make_text(kind, fields, document.text), **same})
    except (TypeError, ValueError) as error:  # pydantic's is a ValueError; an IndexNode may lack its `index_id`
        _log.warning(f"what {FIELD} says above the text of {document.path!r} cannot be read, and is left out: {error}")
        return schema.TextNode(text=document.text, **same)


def to_found_node(document: Written) -> schema.BaseNode:
    """Convert a result to a node with the citation in its source."""
    node = to_node(document)
    return node if is_cited(document) else cite_node(node, document.path, {"citation": document.citation})


def _make_text(kind: type[schema.BaseNode], fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    if not issubclass(kind, schema.Node):
        return {"text": text}
    resource = fields.get("text_resource")
    if resource is None and not text:
        return {}
    resource = {"text": "", **resource} if isinstance(resource, Mapping) else {}
    return {"text_resource": {**resource, "text": text} if text else resource}


def cite_node(node: schema.BaseNode, path: str, about: Mapping[str, Any]) -> schema.BaseNode:
    """Add a citation and other facts about a result to the metadata of a node's source, which its hash leaves out."""
    source = node.relationships.get(schema.NodeRelationship.SOURCE)
    if not isinstance(source, schema.RelatedNodeInfo):
        source = schema.RelatedNodeInfo(node_id=path, node_type=schema.ObjectType.DOCUMENT)
    node.relationships[schema.NodeRelationship.SOURCE] = source.model_copy(
        update={"metadata": {**source.metadata, **about}}
    )
    return node


def make_cited_node(node_id: str, text: str, metadata: Mapping[str, Any], about: Mapping[str, Any]) -> schema.TextNode:
    """Return lines of a file as a node with that file as its source, which has the metadata `about`.

    An LLM is shown the text in a fence, below its citation, an embedding model none of the metadata. Where the text
    names the fence itself, a blank replaces the hyphen of the name.
    """
    block = fence_results([(metadata["citation"], text)])
    opening, place, below = block.split("\n", 2)
    harmless, closing = below.rsplit("\n", 1)
    head, closing = (part.replace("{", "{{").replace("}", "}}") for part in (f"{opening}\n{place}", closing))
    node = schema.TextNode(
        id_=node_id,
        text=harmless,
        text_template=f"{head}\n{{content}}\n{closing}",
        metadata=dict(metadata),
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=[name for name in metadata if name != "citation"],
    )
    cite_node(node, metadata["path"], about)
    return node


def is_cited(document: Written) -> bool:
    """Tell whether a document is lines of a person's file."""
    metadata = document.metadata
    return metadata.get("citation") == document.id and metadata.get("path") == document.path


def get_value(document: Written, name: str) -> Any:
    """Return the value of a name for a filter: metadata, or one that LlamaIndex adds to stored nodes.

    `document_id`, `doc_id` and `ref_doc_id` are the id of the source, or "None", and `_node_type` is the class; they
    come before metadata of the same name. None if there is no value.
    """
    if name in SOURCE_NAMES:
        return document.part_of or NO_SOURCE
    if name == "_node_type":
        kind = str(_get_fields(document).get("class_name"))
        return kind if kind in _CLASSES else schema.TextNode.class_name()
    return document.metadata.get(name)


def _get_fields(document: Written) -> Mapping[str, Any]:
    fields = document.fields.get(FIELD)
    return fields if isinstance(fields, Mapping) else {}
