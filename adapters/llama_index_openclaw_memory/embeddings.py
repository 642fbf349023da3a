"""Embedders in both directions: ours as LlamaIndex's `BaseEmbedding`, and theirs as ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from openclaw_memory import load_embedder
from openclaw_memory.aio import run_in_thread
from openclaw_memory.embeddings import CustomEmbedder
from openclaw_memory.errors import ConfigError, EmbedderError

if TYPE_CHECKING:
    from collections.abc import Callable

    from openclaw_memory.types import Embedder

# The most that LlamaIndex allows: an embedder of ours makes batches as its service takes them.
_BATCH = 2048
_NO_EMBEDDER = (
    "None and 'none' are not embedders, and a memory that searches by keywords alone has none: "
    "name a provider that makes vectors, such as 'static'"
)


class OpenClawEmbedding(BaseEmbedding):
    """An embedder of this library as LlamaIndex's embeddings; async calls run in a thread.

    Dumped, or pickled for another process, are names alone: `provider`, `model_name` and `identity`. The
    embedder is loaded by them there; one that needs options, or was handed in and has no name, is handed in again.
    """

    provider: str
    identity: str
    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder | str = "static", model: str | None = None, **options: Any) -> None:
        """Load the embedder if it is a name.

        Args:
            embedder: One that is there, such as `memory.embedder`, or the name of a provider as `load_embedder` takes
                it. The default is the static model that ships, which needs neither a key nor the network.
            model: The model of the provider.
            options: Options of the provider, and fields of LlamaIndex's own (`embed_batch_size`, ...).

        Raises:
            EmbedderError: The provider is unknown, or does not take the model or an option.
            MissingExtraError: The provider needs a package that is not installed.
            ConfigError: The name is `none`, or options are passed with an embedder that is loaded already.
            pydantic.ValidationError: A field of LlamaIndex's has a wrong type or value.
        """
        fields = {name: options.pop(name) for name in BaseEmbedding.model_fields if name in options}
        if embedder is not None and not isinstance(embedder, str) and (model is not None or options):
            names = ", ".join([*(["model"] if model is not None else []), *options])  # their values may be keys
            raise ConfigError(f"an embedder that is there takes no model and no options: leave out {names}")
        loaded = load_embedder(embedder, model, **options) if isinstance(embedder, str) else embedder
        if loaded is None:
            raise ConfigError(_NO_EMBEDDER)
        fields |= {"provider": loaded.provider, "model_name": loaded.model, "identity": loaded.identity}
        super().__init__(**{"embed_batch_size": _BATCH, **fields})
        self._embedder = loaded

    @classmethod
    def class_name(cls) -> str:
        return "OpenClawEmbedding"

    @property
    def embedder(self) -> Embedder:
        """The embedder that makes the vectors."""
        return self._embedder

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Return the embedding that `to_dict` described.

        Args:
            data: A result of `to_dict`.
            kwargs: Fields that replace those of `data`; `embedder=` passes an embedder that has no name.

        Raises:
            ConfigError: The names lead to a model that makes other vectors than the one that was dumped.
        """
        names = {**data, **kwargs}
        provider, model, identity = (names.pop(name, None) for name in ("provider", "model_name", "identity"))
        names.pop("class_name", None)
        remedy = f"hand over the embedder that makes the vectors of {identity!r}: OpenClawEmbedding(embedder)"
        try:
            again = cls(**names) if "embedder" in names else cls(str(provider), model, **names)
        except EmbedderError as error:
            raise ConfigError(f"{remedy}: {error}") from error
        if again.identity != identity:
            raise ConfigError(f"{remedy}, and {again.identity!r} makes others")
        return again

    def __reduce__(self) -> tuple[Callable[..., OpenClawEmbedding], tuple[dict[str, Any]]]:
        names = self.to_dict()
        # It fails here, rather than in another process: a pool of them would wait for its answer forever.
        self.from_dict(names)
        return type(self).from_dict, (names,)

    def __deepcopy__(self, _memo: dict[int, Any] | None = None) -> OpenClawEmbedding:
        # The embedder is shared: it may hold a connection, and 30 MB of vectors.
        return self.model_copy()

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self.embedder.embed_query(query).tolist()
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.embedder.embed_documents(texts).tolist()
        return vectors

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await run_in_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await run_in_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await run_in_thread(self._get_text_embeddings, texts)


class LlamaIndexEmbedder(CustomEmbedder):
    """Embeddings of LlamaIndex as an embedder of a memory: `Memory.open(path, embedder=LlamaIndexEmbedder(theirs))`.

    `identity` keeps the vectors of different models apart. It is made of the class, the model and the settings that
    can be seen, without keys, headers and the like: where one matters that cannot be seen, give an `identity`. An
    `OpenClawEmbedding` keeps the identity of the embedder in it: the vectors are the same.
    """

    def __init__(
        self, embed_model: BaseEmbedding, *, model: str | None = None, identity: str | None = None, local: bool = False
    ) -> None:
        """Wrap an embedding of LlamaIndex.

        Args:
            embed_model: The embedding.
            model: The name of the model, by default its `model_name`, or else its class.
            identity: Keeps the vectors apart from those of other models, in place of its visible settings.
            local: Vouches that it sends no text to another machine, which `embedding.allow_remote = false` asks for.
                An `OpenClawEmbedding` says this by itself.

        Raises:
            ConfigError: `embed_model` is not an embedding of LlamaIndex, or a name is empty.
        """
        check_embedding(embed_model)
        super().__init__(embed_model, model=model, identity=identity, local=local)
        if isinstance(embed_model, OpenClawEmbedding):
            self.identity = embed_model.identity if identity is None else self.identity
            self.leaves_machine = embed_model.embedder.leaves_machine and not local
        self.embed_model = embed_model


def check_embedding(embed_model: Any) -> None:
    """Raise ConfigError if this is not an embedding of LlamaIndex."""
    if not isinstance(embed_model, BaseEmbedding):
        raise ConfigError(f"embed_model must be an embedding of LlamaIndex, not {embed_model!r}")
