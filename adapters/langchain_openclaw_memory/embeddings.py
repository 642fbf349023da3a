"""Use this library's embedders as LangChain's `Embeddings`, and LangChain's as this library's."""

from __future__ import annotations

import asyncio
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from langchain_core.embeddings import Embeddings

from openclaw_memory import load_embedder
from openclaw_memory.embeddings import FrameworkEmbedder
from openclaw_memory.errors import ConfigError

if TYPE_CHECKING:
    from openclaw_memory.types import Embedder


class OpenClawEmbeddings(Embeddings):
    """An embedder of this library as LangChain's `Embeddings`. Async calls run in a thread.

    Copies share the embedder. A pickle has the settings, with the keys among them; the embedder is loaded by
    them again.
    """

    def __init__(self, embedder: Embedder | str = "static", model: str | None = None, **options: Any) -> None:
        """Load the embedder if it is given by name; in a running event loop, the first use loads it.

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
        if embedder in (None, "none") or not _is_in_event_loop():
            self.embedder  # noqa: B018 - what is wrong with the settings is said at once

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder that makes the vectors."""
        embedder, model, options = self._settings
        loaded = load_embedder(embedder, model, **options) if isinstance(embedder, str) else embedder
        if loaded is None:
            raise ConfigError(
                "None and 'none' are not embedders, and a memory that searches by keywords alone has none: "
                "name a provider that makes vectors, such as 'static'"
            )
        return loaded

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


class LangChainEmbedder(FrameworkEmbedder):
    """LangChain's `Embeddings` as the embedder of a memory: `Memory.open(path, embedder=LangChainEmbedder(theirs))`.

    `identity` keeps the vectors of different models apart. It is made of the class, the model and the visible settings,
    without keys, headers and the like. If a setting matters that is not visible, pass an `identity`.
    """

    def __init__(
        self, embeddings: Embeddings, *, model: str | None = None, identity: str | None = None, local: bool = False
    ) -> None:
        """Wrap LangChain's embeddings.

        Args:
            embeddings: LangChain's embeddings.
            model: The name of the model, by default their `model` attribute, or else their class.
            identity: Keeps the vectors apart from those of other models, instead of the visible settings.
            local: Vouches that they send no text to another machine, as `embedding.allow_remote = false` requires.
                `OpenClawEmbeddings` declare this themselves.

        Raises:
            ConfigError: `embeddings` is not LangChain's `Embeddings`, or a given name is empty.
        """
        if not isinstance(embeddings, Embeddings):
            raise ConfigError(f"embeddings must be LangChain's Embeddings, not {embeddings!r}")
        super().__init__(embeddings, model=model, identity=identity, local=local)
        if isinstance(embeddings, OpenClawEmbeddings):
            self.leaves_machine = embeddings.embedder.leaves_machine and not local
        self.embeddings = embeddings


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
