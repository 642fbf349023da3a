"""Use the embedders of this library as `Embeddings` of LangChain."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

from langchain_core.embeddings import Embeddings

from openclaw_memory import load_embedder
from openclaw_memory.errors import ConfigError

if TYPE_CHECKING:
    from openclaw_memory.types import Embedder


class OpenClawEmbeddings(Embeddings):
    """An embedder of this library as LangChain's `Embeddings`. Async calls run in a thread.

    The other way round, a memory takes LangChain's `Embeddings` as they are: `Memory.open(path, embedder=embeddings)`.
    Copies share the embedder. A pickle has the settings, with the keys among them; the embedder is loaded by
    them again.
    """

    def __init__(self, embedder: Embedder | str = "static", model: str | None = None, **options: Any) -> None:
        """Load the embedder if it is given by name.

        Args:
            embedder: An embedder, or the name of a provider as `load_embedder` takes it. The default is the static
                model that ships with the library, which needs neither a key nor the network.
            model: The provider's model, by default its own default.
            **options: The provider's options.

        Raises:
            EmbedderError: The provider is unknown, or it does not take the model or an option.
            MissingExtraError: The provider needs a package that is not installed.
            ConfigError: The embedder is None or `none`, or a model or options came with a loaded embedder.
        """
        if not isinstance(embedder, str) and (model is not None or options):
            names = ", ".join([*(["model"] if model is not None else []), *options])  # their values may be keys
            raise ConfigError(f"a loaded embedder takes no model and no options: leave out {names}")
        self._settings = embedder, model, options
        loaded = load_embedder(embedder, model, **options) if isinstance(embedder, str) else embedder
        if loaded is None:
            raise ConfigError(
                "None and 'none' are not embedders, and a memory that searches by keywords alone has none: "
                "name a provider that makes vectors, such as 'static'"
            )
        self.embedder = loaded

    @property
    def leaves_machine(self) -> bool:
        """True if texts are sent to another machine."""
        return self.embedder.leaves_machine

    def __deepcopy__(self, _memo: object = None) -> Self:
        again = type(self).__new__(type(self))
        vars(again).update(vars(self))
        return again

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        embedder, model, options = self._settings
        if isinstance(embedder, str):
            return partial(type(self), **options), (embedder, model)
        # An embedder holds open files and connections: one that was handed in goes by its names, if they lead to it.
        names = embedder.provider, embedder.model
        again = load_embedder(*names)
        if again is None or again.identity != embedder.identity:
            raise ConfigError(f"{embedder.identity!r} cannot be made from its names: pass its provider and options")
        return type(self), names

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text, of length 1."""
        return [[float(number) for number in row] for row in self.embedder.embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, of length 1."""
        return [float(number) for number in self.embedder.embed_query(text)]
