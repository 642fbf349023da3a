"""Embedders in both directions: ours as LangChain's `Embeddings`, and theirs as ours."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from openclaw_memory.embeddings import from_callable, load_embedder
from openclaw_memory.errors import ConfigError

if TYPE_CHECKING:
    from openclaw_memory.types import Embedder, Matrix, Vector

# Settings that change how a service is asked, or where files are kept, and no vector.
_NO_MATTER = re.compile(
    r"(?:request_)?timeout|max_retries|retry_\w+|chunk_size|batch_size|max_concurrency|max_workers|multi_process"
    r"|show_progress\w*|verbose|cache\w*|disallowed_special|allowed_special|skip_empty|check_embedding_ctx_length"
    r"|\w*client\w*|callbacks?"
)
# Settings whose values are for the service alone.
_SECRET = re.compile(r"key|token(?!i[sz])|secret|passw|pwd|auth|credential|header|cookie", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY_OF_URL = re.compile(r"(://[^?#\s]*)[?#]\S*")


class OpenClawEmbeddings(Embeddings):
    """An embedder of this library for whatever takes LangChain's `Embeddings`; what is async runs in a thread.

    `embedder` is one that is there, or the name of a provider with its `model` and options, as `load_embedder` takes
    them. By default it is the static model that ships, which needs neither a key nor the network.
    """

    def __init__(self, embedder: Embedder | str = "static", model: str | None = None, **options: Any) -> None:
        """Load the embedder, where it is a name.

        Raises:
            EmbedderError: nobody knows the provider, or it does not take the model or an option.
            MissingExtraError: the provider needs a package that is not installed.
            ConfigError: there is no such embedder: `none`, or options of one that is there already.
        """
        if not isinstance(embedder, str) and (model is not None or options):
            raise ConfigError(f"an embedder that is there takes no model and no options: {model!r}, {options!r}")
        loaded = load_embedder(embedder, model, **options) if isinstance(embedder, str) else embedder
        if loaded is None:
            raise ConfigError(f"{embedder!r} is no embedder: name a provider that makes vectors, such as 'static'")
        self.embedder = loaded

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vector of each text, of length 1."""
        return [[float(number) for number in row] for row in self.embedder.embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question, of length 1."""
        return [float(number) for number in self.embedder.embed_query(text)]


class LangChainEmbedder:
    """Embeddings of LangChain as an embedder of a memory: `Memory.open(path, embedder=LangChainEmbedder(theirs))`.

    `identity` keeps the vectors of different models apart. It is made of the class, the model and the settings that
    can be seen, without keys, headers and the like: where one matters that cannot be seen, give an `identity`.
    """

    provider = "langchain"

    def __init__(self, embeddings: Embeddings, *, model: str | None = None, identity: str | None = None) -> None:
        """Take over what they call their `model`, by default: their attribute of that name, or else their class.

        Raises:
            ConfigError: `embeddings` are none, or a name that was given is empty.
        """
        if not isinstance(embeddings, Embeddings):
            raise ConfigError(f"embeddings must be LangChain's Embeddings, not {embeddings!r}")
        if model == "" or identity == "":
            raise ConfigError("model and identity must not be empty: leave them out, or name what makes the vectors")
        self.embeddings = embeddings
        self.model = model or _model_of(embeddings)
        self.identity = f"{self.provider}:{identity or _identity_of(embeddings, self.model)}"
        self._ask = from_callable(embeddings.embed_documents, self.model, embed_query=embeddings.embed_query)

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dims,).

        Raises:
            EmbedderError: the embeddings failed, or returned no vector.
        """
        return self._ask.embed_query(_encodable(text))

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts, shape (len(texts), dims).

        Raises:
            EmbedderError: the embeddings failed, or did not return one vector of equal length for each text.
        """
        return self._ask.embed_documents([_encodable(text) for text in texts])

    def __repr__(self) -> str:
        return f"LangChainEmbedder({self.identity!r})"


def _encodable(text: str) -> str:
    """The text with `?` for lone surrogates, which no service can be sent."""
    return text.encode("utf-8", "replace").decode()


def _model_of(embeddings: Embeddings) -> str:
    named = (getattr(embeddings, name, None) for name in ("model", "model_name", "model_id", "deployment"))
    return next((name for name in named if isinstance(name, str) and name), type(embeddings).__name__)


def _identity_of(embeddings: Embeddings, model: str) -> str:
    kind = type(embeddings)
    settings = json.dumps(_visible(vars(embeddings)), sort_keys=True, ensure_ascii=False, default=str)
    digest = hashlib.sha256(settings.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{kind.__module__}.{kind.__qualname__}:{model}:{digest}"


def _visible(value: Any) -> Any:
    """The plain values in settings, without secrets and what makes no difference; None for anything else."""
    if isinstance(value, str):
        return _QUERY_OF_URL.sub(r"\1", _USER_IN_URL.sub("", value))
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {
            name: _visible(inner)
            for name, inner in value.items()
            if isinstance(name, str)
            and not (name.startswith("_") or _NO_MATTER.fullmatch(name) or _SECRET.search(name))
        }
    if isinstance(value, list | tuple):
        return [_visible(inner) for inner in value]
    # Embeddings around others (a cache, retries) make the vectors of those inside.
    return _identity_of(value, _model_of(value)) if isinstance(value, Embeddings) else None
