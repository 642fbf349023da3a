"""Use functions and the embedding models of frameworks as embedders."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import FunctionType
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings.vectors import check_vectors, make_encodable, translate_errors
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.types import Embedder

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

# Settings that change how a service is asked, or where files are kept, and no vector.
_IRRELEVANT = re.compile(
    r"(?:request_)?timeout|max_retries|retry_\w+|rate_limiter|chunk_size|(?:embed_)?batch_size"
    r"|max_concurrency|max_workers|num_workers|multi_process"
    r"|show_progress\w*|verbose|cache\w*|embeddings_cache|disallowed_special|allowed_special|skip_empty"
    r"|check_embedding_ctx_length|\w*client\w*|callbacks?|callback_manager"
)
# Settings whose values are for the service alone.
_SECRET = re.compile(r"key|token(?!i[sz])|secret|passw|pwd|auth|credential|header|cookie", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY_OF_URL = re.compile(r"(://[^?#\s]*)[?#]\S*")
# Where frameworks keep the name of a model. LlamaIndex calls one that has none `unknown`.
_MODEL_NAMES = ("model", "model_name", "model_id", "deployment")
# The methods of embedding models by the framework that named them.
_METHODS = {
    "langchain": ("embed_documents", "embed_query"),
    "llama-index": ("get_text_embedding_batch", "get_query_embedding"),
}


class CustomEmbedder:
    """A function or a framework's embedding model as an embedder; the adapters derive theirs from it.

    `identity` keeps the vectors of different models apart. It is made of the class, the model and the visible settings,
    without keys, headers and the like. The vectors are checked, freed of non-finite numbers and normalised. Their
    dimensions are those of the first answer.
    """

    provider = "callable"

    def __init__(
        self, theirs: Any, *, model: str | None = None, identity: str | None = None, local: bool = False
    ) -> None:
        """Ask a function, or a model through its two methods.

        Args:
            theirs: A function that takes a list of texts and returns as many vectors, or a model that has
                `embed_documents` and `embed_query`, or LlamaIndex's methods.
            model: The name of the model. Default: its own. Give another one to a function that makes other vectors.
            identity: Keeps its vectors apart from those of other models. Default: its visible settings, or the name of
                a function.
            local: Vouches that no text is sent to another machine, which `embedding.allow_remote = false` asks for.
                A model with `leaves_machine = False` says this by itself.

        Raises:
            ConfigError: A name is empty, or missing for a function that has none.
        """
        if model == "" or identity == "":
            raise ConfigError("model and identity must not be empty: leave them out, or name what makes the vectors")
        framework = next((name for name, methods in _METHODS.items() if hasattr(theirs, methods[0])), None)
        if framework is not None:
            self.provider, self.model = framework, model or _find_model_name(theirs)
            self.identity = f"{framework}:{identity or _make_identity(theirs, self.model)}"
            self._embed, self._embed_query = (getattr(theirs, name) for name in _METHODS[framework])
        else:
            self.model = model or _name_function(theirs)
            self.identity = f"{self.provider}:{identity or self.model}"
            self._embed, self._embed_query = theirs, None
        self.leaves_machine = not (local or getattr(theirs, "leaves_machine", None) is False)
        self.theirs = theirs
        self._dims = 0

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dims,).

        Raises:
            EmbedderError: The function failed, or returned no vector.
        """
        ask = self._embed_query
        vector: Vector = self._ask((lambda texts: [ask(texts[0])]) if ask else self._embed, [text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, shape (len(texts), dims).

        Raises:
            EmbedderError: The function failed, or did not return one vector of equal length for each text.
        """
        import numpy as np

        return self._ask(self._embed, texts) if texts else np.zeros((0, self._dims), dtype=np.float32)

    def close(self) -> None:
        """Do nothing: the connections of a function are its own."""

    def _ask(self, embed: Callable[[list[str]], Any], texts: Sequence[str]) -> Matrix:
        name = f"the function {self.model!r}"
        with translate_errors(f"{name} failed"):
            raw = embed([make_encodable(text) for text in texts])
        vectors = check_vectors(raw, len(texts), name)
        if not vectors.any() and any(character.isalnum() for text in texts for character in text):
            raise EmbedderError(f"{name} returned zeros for {len(texts)} texts; check it")
        self._dims = self._dims or vectors.shape[1]
        if vectors.shape[1] != self._dims:
            raise EmbedderError(f"{name} returned {vectors.shape[1]} dimensions after {self._dims}; they must agree")
        return vectors


def is_embedding_model(value: object) -> bool:
    """Return whether an object has the methods of an embedding model."""
    return not isinstance(value, type) and any(
        all(callable(getattr(value, name, None)) for name in names) for names in _METHODS.values()
    )


def _name_function(function: object) -> str:
    """Return the name of a function, which keeps its vectors apart from those of another model.

    Raises:
        ConfigError: It has none.
    """
    if isinstance(function, FunctionType) and "<lambda>" not in function.__qualname__:
        return f"{function.__module__}.{function.__qualname__}"
    raise ConfigError(
        f"this embedder, a {type(function).__name__}, has no name that keeps its vectors apart from those of another "
        "model; give it one: openclaw_memory.embeddings.CustomEmbedder(function, model='my model')"
    )


def _find_model_name(theirs: object) -> str:
    values = (getattr(theirs, name, None) for name in _MODEL_NAMES)
    names = (name for name in values if isinstance(name, str) and name not in {"", "unknown"})
    return _strip_secrets(next(names, type(theirs).__name__))


def _make_identity(theirs: object, model: str) -> str:
    kind = type(theirs)
    # Pydantic keeps attributes that begin with an underscore apart.
    attributes = {**getattr(theirs, "__dict__", {}), **(getattr(theirs, "__pydantic_private__", None) or {})}
    settings = json.dumps(_to_plain(attributes), sort_keys=True, ensure_ascii=False, default=str)
    digest = hashlib.sha256(settings.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{kind.__module__}.{kind.__qualname__}:{model}:{digest}"


def _to_plain(value: Any) -> Any:
    """Return the plain values in settings, without secrets and irrelevant ones; None for anything else."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str | bool | int | float):
        return _strip_secrets(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {name: _to_plain(inner) for name, inner in value.items() if _is_relevant(name, inner)}
    if isinstance(value, list | tuple):
        return [_to_plain(inner) for inner in value]
    if isinstance(value, Embedder):
        return value.identity
    # A model around another one (a cache, retries) makes the vectors of the one inside.
    if is_embedding_model(value):
        return _make_identity(value, _find_model_name(value))
    fields = getattr(type(value), "model_fields", None) or getattr(type(value), "__dataclass_fields__", None)
    return _to_plain({name: getattr(value, name, None) for name in fields}) if isinstance(fields, Mapping) else None


def _is_relevant(name: object, value: object) -> bool:
    if not isinstance(name, str) or _IRRELEVANT.fullmatch(name) or _SECRET.search(name):
        return False
    return not name.startswith("_") or is_embedding_model(value)


def _strip_secrets(text: str) -> str:
    """Return the text without the user and the query of a URL in it, which is where keys are."""
    return _QUERY_OF_URL.sub(r"\1", _USER_IN_URL.sub("", text))
