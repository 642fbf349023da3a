"""Embedders in both directions: ours as LangChain's `Embeddings`, and theirs as ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from openclaw_memory.embeddings import FrameworkEmbedder, load_embedder
from openclaw_memory.errors import ConfigError

if TYPE_CHECKING:
    from openclaw_memory.types import Embedder


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
            given = ", ".join([*(["model"] if model is not None else []), *options])  # their values may be keys
            raise ConfigError(f"an embedder that is there takes no model and no options: leave out {given}")
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


class LangChainEmbedder(FrameworkEmbedder):
    """Embeddings of LangChain as an embedder of a memory: `Memory.open(path, embedder=LangChainEmbedder(theirs))`.

    `identity` keeps the vectors of different models apart. It is made of the class, the model and the settings that
    can be seen, without keys, headers and the like: where one matters that cannot be seen, give an `identity`.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        model: str | None = None,
        identity: str | None = None,
        local: bool = False,
    ) -> None:
        """Take over what they call their `model`, by default: their attribute of that name, or else their class.

        Args:
            embeddings: LangChain's embeddings.
            model: Another name of the model.
            identity: What keeps the vectors apart from those of other models, in place of what can be seen.
            local: Vouches that they send no text to another machine, which `embedding.allow_remote = false` asks for.
                `OpenClawEmbeddings` say this by themselves.

        Raises:
            ConfigError: `embeddings` are none, or a name that was given is empty.
        """
        if not isinstance(embeddings, Embeddings):
            raise ConfigError(f"embeddings must be LangChain's Embeddings, not {embeddings!r}")
        ask = (embeddings.embed_documents, embeddings.embed_query)
        super().__init__("langchain", embeddings, *ask, model=model, identity=identity, local=local)
        if isinstance(embeddings, OpenClawEmbeddings):
            self.leaves_machine = embeddings.embedder.leaves_machine and not local
        self.embeddings = embeddings
