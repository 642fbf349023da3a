"""Run models of provider `local` by sentence-transformers and PyTorch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings.vectors import UNLIMITED, import_package
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types.index import TokenVectors

# Values taken of each weight tensor, evenly spread: training moves them all.
WEIGHT_SAMPLES = 64
NOISY_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers")


def load(name: str, options: Mapping[str, Any], *, is_online: bool) -> TorchModel:
    """Load a model from a folder, from the cache on this machine, or, if `is_online`, from the hub.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
    """
    return TorchModel(_make("SentenceTransformer", name, options, is_online=is_online))


def load_cross_encoder(name: str, options: Mapping[str, Any], *, is_online: bool) -> Callable[[str, Any], Any]:
    """Load a cross-encoder as a function of a question and texts; see `load`.

    Raises:
        EmbedderError: It has no head that ranks, in whose place sentence-transformers puts random numbers.
    """
    encoder = _make("CrossEncoder", name, options, is_online=is_online)
    if not re.search("ForSequenceClassification|ForCausalLM", " ".join(encoder.config.architectures or ())):
        raise EmbedderError("it is not a cross-encoder: it has no head that ranks")
    return lambda query, texts: encoder.predict([(query, text) for text in texts], show_progress_bar=False)


def _make(kind: str, name: str, options: Mapping[str, Any], *, is_online: bool) -> Any:
    make = getattr(import_package("sentence_transformers", "local"), kind)
    own = {option: value for option, value in options.items() if option != "file_name"}
    with hide_output():
        return make(name, local_files_only=not is_online, **own)


class TorchModel:
    """A model of sentence-transformers in PyTorch.

    Attributes:
        limit: How many tokens it reads, at most `UNLIMITED`.
        prompts: Its own prompts by their names.
        has_tokens: Whether it gives the vectors of tokens.
        fingerprint: Tells its weights and parts from those of other models.
    """

    def __init__(self, transformer: Any) -> None:
        self._transformer = transformer
        # A tokenizer without a limit says 1e30, or infinity, or None.
        self.limit = int(min(transformer.max_seq_length or UNLIMITED, UNLIMITED))
        self.prompts = transformer.prompts
        self.has_tokens = _has_tokens(transformer)
        parts = [(type(part).__name__, str(getattr(part, "pooling_mode", ""))) for part in transformer]
        digest = blake2b(repr(parts).encode(), digest_size=8)
        for weights in transformer.parameters():
            flat = weights.detach().flatten()
            digest.update(flat[:: max(1, len(flat) // WEIGHT_SAMPLES)].float().cpu().numpy().tobytes())
        self.fingerprint = digest.hexdigest()

    def count_tokens(self, texts: list[str]) -> list[int]:
        """Return how many tokens an unlimited model would read of each text, the special ones included."""
        return [len(ids) for ids in self._transformer.tokenizer(texts, truncation=False, verbose=False)["input_ids"]]

    def encode(
        self, texts: list[str], prompt: str, *, as_query: bool
    ) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        """Return the vectors of texts, each read after the prompt and without blanks around both, and of their tokens.

        The places of the tokens are those in the prompt and the text.
        """
        import numpy as np

        encode = self._transformer.encode_query if as_query else self._transformer.encode_document
        options: dict[str, Any] = {"output_value": None} if self.has_tokens else {}
        outputs = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False, **options)
        if not self.has_tokens:
            return outputs, [None] * len(texts)
        limit = {} if self.limit == UNLIMITED else {"truncation": True, "max_length": self.limit}
        read = self._transformer.tokenizer(
            [(prompt + text).strip() for text in texts], return_offsets_mapping=True, verbose=False, **limit
        )
        tokens: list[TokenVectors | None] = []
        for output, spans in zip(outputs, read["offset_mapping"], strict=True):
            rows = _to_numpy(output["token_embeddings"])[_to_numpy(output["attention_mask"]) > 0]
            # None where this version of the library reads the text in another way.
            tokens.append((rows, np.array(spans, np.int64)) if len(rows) == len(spans) else None)
        return np.stack([_to_numpy(output["sentence_embedding"]) for output in outputs]), tokens


def _has_tokens(transformer: Any) -> bool:
    """Return whether a model gives the vectors of tokens, and its tokenizer their places in the text."""
    if not getattr(transformer.tokenizer, "is_fast", False):
        return False
    output = transformer.encode([""], output_value=None, show_progress_bar=False)[0]
    return isinstance(output, dict) and {"token_embeddings", "attention_mask", "sentence_embedding"} <= output.keys()


def _to_numpy(tensor: Any) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy()  # type: ignore[no-any-return]


@contextmanager
def hide_output() -> Iterator[None]:
    """Hide progress bars, and warnings about problems that are reported as errors."""
    import logging

    import transformers

    bars: Any = transformers.utils.logging
    has_bars = bars.is_progress_bar_enabled()
    levels = {logger: logger.level for logger in map(logging.getLogger, NOISY_LOGGERS)}
    bars.disable_progress_bar()
    for logger in levels:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
        if has_bars:
            bars.enable_progress_bar()
