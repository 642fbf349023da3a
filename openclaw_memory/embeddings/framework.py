"""A framework's embedding model as an embedder: asked as a function, named by the settings that can be seen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings.registry import from_callable
from openclaw_memory.embeddings.vectors import encodable
from openclaw_memory.errors import ConfigError
from openclaw_memory.types import Embedder

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

# Settings that change how a service is asked, or where files are kept, and no vector.
_NO_MATTER = re.compile(
    r"(?:request_)?timeout|max_retries|retry_\w+|rate_limiter|chunk_size|(?:embed_)?batch_size"
    r"|max_concurrency|max_workers|num_workers|multi_process"
    r"|show_progress\w*|verbose|cache\w*|embeddings_cache|disallowed_special|allowed_special|skip_empty"
    r"|check_embedding_ctx_length|\w*client\w*|callbacks?|callback_manager"
)
# Settings whose values are for the service alone.
_SECRET = re.compile(r"key|token(?!i[sz])|secret|passw|pwd|auth|credential|header|cookie", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY_OF_URL = re.compile(r"(://[^?#\s]*)[?#]\S*")
# Where frameworks keep the name of a model, and what LlamaIndex calls one that has none.
_MODEL_NAMES = ("model", "model_name", "model_id", "deployment")
_NO_NAME = "unknown"
# A model of LangChain or of this library has the first method, one of LlamaIndex the second.
_EMBEDDING_METHODS = ("embed_documents", "get_text_embedding_batch")


class FrameworkEmbedder:
    """What the adapters for frameworks make embedders of a memory with.

    `identity` keeps the vectors of different models apart. It is made of the class, the model and the settings that
    can be seen, without keys, headers and the like.
    """

    def __init__(
        self,
        provider: str,
        theirs: object,
        embed: Callable[[list[str]], Any],
        embed_query: Callable[[str], Any],
        *,
        model: str | None = None,
        identity: str | None = None,
        local: bool = False,
    ) -> None:
        """Ask `theirs` through its two methods; `model` and `identity` win over what can be seen of it.

        Args:
            provider: The framework.
            theirs: The framework's model.
            embed: Takes texts, returns their vectors.
            embed_query: Takes a question, returns its vector.
            model: The name of the model.
            identity: What keeps its vectors apart from those of other models.
            local: Vouches that no text is sent to another machine, which `embedding.allow_remote = false` asks for.

        Raises:
            ConfigError: a name that was given is empty.
        """
        if model == "" or identity == "":
            raise ConfigError("model and identity must not be empty: leave them out, or name what makes the vectors")
        self.provider = provider
        self.model = model or _model_of(theirs)
        self.identity = f"{provider}:{identity or _identity_of(theirs, self.model)}"
        self.leaves_machine = not local
        self._ask = from_callable(embed, self.model, embed_query=embed_query)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, shape (dims,).

        Raises:
            EmbedderError: the model failed, or returned no vector.
        """
        return self._ask.embed_query(encodable(text))

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, shape (len(texts), dims).

        Raises:
            EmbedderError: the model failed, or did not return one vector of equal length for each text.
        """
        return self._ask.embed_documents([encodable(text) for text in texts])

    def close(self) -> None:
        """Do nothing: what the framework's model keeps open is its own."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity!r})"


def _model_of(theirs: object) -> str:
    named = (getattr(theirs, name, None) for name in _MODEL_NAMES)
    names = (name for name in named if isinstance(name, str) and name not in {"", _NO_NAME})
    return _without_secrets(next(names, type(theirs).__name__))


def _identity_of(theirs: object, model: str) -> str:
    kind = type(theirs)
    # Pydantic keeps attributes that begin with an underscore apart.
    attributes = {**vars(theirs), **(getattr(theirs, "__pydantic_private__", None) or {})}
    settings = json.dumps(_visible(attributes), sort_keys=True, ensure_ascii=False, default=str)
    digest = hashlib.sha256(settings.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{kind.__module__}.{kind.__qualname__}:{model}:{digest}"


def _visible(value: Any) -> Any:
    """Return the plain values in settings, without secrets and what makes no difference; None for anything else."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return _without_secrets(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: _visible(inner) for name, inner in value.items() if _matters(name, inner)}
    if isinstance(value, list | tuple):
        return [_visible(inner) for inner in value]
    return _visible_of_object(value)


def _visible_of_object(value: object) -> Any:
    if isinstance(value, Embedder):
        return value.identity
    # A model around another one (a cache, retries) makes the vectors of the one inside.
    if _makes_vectors(value):
        return _identity_of(value, _model_of(value))
    fields = getattr(type(value), "model_fields", None) or getattr(type(value), "__dataclass_fields__", None)
    return _visible({name: getattr(value, name, None) for name in fields}) if isinstance(fields, Mapping) else None


def _matters(name: object, value: object) -> bool:
    if not isinstance(name, str) or _NO_MATTER.fullmatch(name) or _SECRET.search(name):
        return False
    return not name.startswith("_") or _makes_vectors(value)


def _makes_vectors(value: object) -> bool:
    return not isinstance(value, type) and any(callable(getattr(value, name, None)) for name in _EMBEDDING_METHODS)


def _without_secrets(text: str) -> str:
    """Return the text without the user and the query of a URL in it, which is where keys are."""
    return _QUERY_OF_URL.sub(r"\1", _USER_IN_URL.sub("", text))
