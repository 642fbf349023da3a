"""Sentence-transformers on this machine, as provider `local`: any model of the Hugging Face hub, or a folder.

The default model, `intfloat/multilingual-e5-small`, has 384 dimensions, knows 94 languages, is under the MIT licence
and takes 0.5 GB; it is downloaded at its first use. Afterwards, as with a folder, no network is needed: a model on this
machine is loaded without asking the hub, so that it never changes under an index.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory._limited import Limited
from openclaw_memory.embeddings.vectors import check_vectors, import_package, merge_vectors
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector
    from openclaw_memory.types.index import TokenVectors

DEFAULT_MODEL = "intfloat/multilingual-e5-small"
# The prompts (question, document) of model cards, for models that carry none. The instruct variants want a task
# described instead.
FAMILY_PROMPTS: tuple[tuple[re.Pattern[str], tuple[str, str]], ...] = (
    (re.compile(r"\be5-(small|base|large)(?!.*instruct)"), ("query: ", "passage: ")),
    (re.compile(r"\bnomic-embed-text"), ("search_query: ", "search_document: ")),
)
# The names under which models keep the prompt of a document; sentence-transformers' order.
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
UNLIMITED = 1_000_000_000
# Asking whether the hub answers; its own client tries for more than a minute before it gives up.
HUB_SECONDS = 10.0
# OpenClaw's limits for a local model: of a question, and of a batch of texts.
QUERY_SECONDS = 300.0
BATCH_SECONDS = 600.0
MOST_SECONDS = 86_400  # a day; a wait cannot be of any length
# Values taken of each weight tensor, evenly spread: training moves them all.
WEIGHT_SAMPLES = 64
# Everyday sentences in several languages: the mean of their tokens is the centre of all tokens.
SAMPLE = (
    "The meeting with Anna was moved to Thursday at three, because the train from Utrecht was late.",
    "She has played the cello since 2014 and paints small pictures of boats in summer.",
    "Set retry_limit to 7 in config.toml, then restart the server and read the log.",
    "Who has the spare key, and when is the boiler serviced?",
    "De nieuwe fiets staat in de schuur, naast het oude gereedschap van opa.",
    "Die Rechnung über 120 Euro wurde gestern bezahlt, das Paket kommt nächste Woche.",
    "Le chat dort sur le canapé pendant que les enfants préparent le dîner.",
    "Mi hermana trabaja en un hospital y quiere viajar a Perú el año que viene.",
    "我们明天下午去医院看望王老师，然后一起吃晚饭。",
    "来週の会議は東京で開かれ、新しい計画について話し合います。",
)
T = TypeVar("T")
NOISY_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers")


def create(
    model: str | os.PathLike[str] | None = None,
    *,
    device: str | None = None,
    batch_size: int = 32,
    dims: int | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    revision: str | None = None,
    cache_folder: str | None = None,
    trust_remote_code: bool = False,
    query_seconds: float = QUERY_SECONDS,
    batch_seconds: float = BATCH_SECONDS,
) -> LocalEmbedder:
    """Load a model, downloading it from the Hugging Face hub if it is not on this machine yet.

    Args:
        model: A name on the hub, or the folder of a saved model.
        device: `"cpu"`, `"cuda"`, `"mps"`; by default the fastest.
        batch_size: How many texts are embedded at once.
        dims: Keeps the first dimensions of a Matryoshka model.
        query_prompt: Goes before questions; by default the model's own, or its family's (E5, Nomic). `""` is none.
        document_prompt: Goes before documents; likewise.
        revision: As `SentenceTransformer` takes it.
        cache_folder: As `SentenceTransformer` takes it.
        trust_remote_code: Runs code that comes with the model.
        query_seconds: When a question is given up. Until the model has ended with it, it is asked nothing more.
        batch_seconds: When a batch is given up; likewise.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        EmbedderError: The model is missing, cannot be loaded, or does not fit an option.
    """
    if batch_size < 1:
        raise EmbedderError(f"batch_size must be 1 or more, not {batch_size}")
    for option, seconds in (("query_seconds", query_seconds), ("batch_seconds", batch_seconds)):
        if not 0 < seconds <= MOST_SECONDS:
            raise EmbedderError(f"{option} must be more than 0 and at most {MOST_SECONDS:,}, not {seconds}")
    name = os.fspath(DEFAULT_MODEL if model is None else model)
    transformer = _load(
        name,
        {
            "device": device,
            "revision": revision,
            "cache_folder": cache_folder,
            "trust_remote_code": trust_remote_code,
        },
    )
    folder = Path(name).expanduser()
    short_name = folder.resolve().name if folder.is_dir() else name
    prompts = _choose_prompts(short_name, transformer.prompts, query_prompt, document_prompt)
    kind = LocalTokenEmbedder if _has_tokens(transformer) else LocalEmbedder
    limits = {"query_seconds": query_seconds, "batch_seconds": batch_seconds}
    return kind(transformer, short_name, prompts=prompts, batch_size=batch_size, dims=dims, **limits)


class LocalEmbedder:
    """A `SentenceTransformer` as an embedder, safe to share between threads; vectors are `(n, dims)` float32.

    A text with more tokens than the model reads is embedded in pieces, whose vectors are averaged by their tokens.
    `identity` is made of the weights and of all that shapes a vector, not of names: one model in two folders
    is one model, and another model under the same name is another. `model` is the name to show.
    """

    provider = "local"
    leaves_machine = False

    def __init__(
        self,
        model: Any,
        name: str,
        *,
        prompts: tuple[str, str] = ("", ""),
        batch_size: int = 32,
        dims: int | None = None,
        query_seconds: float = QUERY_SECONDS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        """Take a loaded `SentenceTransformer`; `prompts` go before a question and before a document."""
        self.model = name
        self._transformer = model
        self._query_prompt, self._document_prompt = prompts
        self._batch_size = batch_size
        self._query_seconds, self._batch_seconds = query_seconds, batch_seconds
        # Neither a model nor its tokenizer may be used by two threads at once, and either may hang.
        self._limited = Limited("openclaw-memory-local")
        # A tokenizer without a limit says 1e30, or infinity, or None.
        self._limit = int(min(model.max_seq_length or UNLIMITED, UNLIMITED))
        for prompt in prompts:
            if 2 * self._count_tokens([""], prompt)[0] > self._limit:
                raise EmbedderError(f"the prompt {prompt[:40]!r} takes more than half of what {name} reads; shorten it")
        width = self._encode([""], as_query=False)[0].shape[1]
        if dims is not None and not 1 <= dims <= width:
            raise EmbedderError(f"dims must be from 1 to {width}, what {name} has, not {dims}")
        self.dims = dims or width
        self.identity = f"{self.provider}:{self.dims}:{_digest_model(model, self._limit, prompts)}"

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([text], as_query=True)[0][0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, as_query=False)[0]

    def close(self) -> None:
        """Do nothing: the model is freed with this object."""

    def _embed(self, texts: Sequence[str], *, as_query: bool) -> tuple[Matrix, list[TokenVectors | None]]:
        """Return the vectors of texts, and of the tokens of each if `_encode` gives them."""
        import numpy as np

        # Surrogate pairs as one character, and U+FFFD for lone ones: tokenizers take neither.
        valid = [text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for text in texts]
        parts = self._run(partial(self._cut, valid, as_query=as_query), as_query=as_query)
        rows, tokens = self._embed_pieces([piece for pieces in parts for piece, _ in pieces], as_query=as_query)
        vectors: Matrix = np.zeros((len(texts), self.dims), dtype=np.float32)
        own_tokens: list[TokenVectors | None] = []
        start = 0
        for vector, pieces in zip(vectors, parts, strict=True):
            end = start + len(pieces)
            vector[:] = merge_vectors(rows[start:end], [count for _, count in pieces])
            own_tokens.append(_join_tokens([piece for piece, _ in pieces], tokens[start:end]))
            start = end
        return vectors, own_tokens

    def _embed_pieces(self, pieces: list[str], *, as_query: bool) -> tuple[Matrix, list[TokenVectors | None]]:
        """Return the unit vectors of texts that the model can read whole; a question may come between two batches."""
        import numpy as np

        rows: Matrix = np.zeros((len(pieces), self.dims), dtype=np.float32)
        tokens: list[TokenVectors | None] = [None] * len(pieces)
        # Texts of like length together: a batch takes as long as its longest.
        order = sorted(range(len(pieces)), key=lambda at: len(pieces[at]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            texts = [pieces[at] for at in batch]
            raw, batch_tokens = self._run(partial(self._encode, texts, as_query=as_query), as_query=as_query)
            for at, own in zip(batch, batch_tokens, strict=True):
                tokens[at] = own
            rows[batch] = check_vectors(raw[:, : self.dims], len(batch), f"the model {self.model}")
        return rows, tokens

    def _run(self, work: Callable[[], T], *, as_query: bool) -> T:
        """Run work that uses the model, alone, and no longer than the option allows."""
        option, seconds = ("query_seconds", self._query_seconds) if as_query else ("batch_seconds", self._batch_seconds)
        try:
            return self._limited.run(work, seconds)
        except TimeoutError as error:
            raise EmbedderError(
                f"the local model {self.model} gives no answer: {error}; set a longer {option} in "
                "embedding.providers.local, or restart the program where it never ends"
            ) from error

    def _encode(
        self, texts: list[str], *, as_query: bool, **options: Any
    ) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        """Return the vectors of a batch as the model gives them, and those of its tokens."""
        encode = self._transformer.encode_query if as_query else self._transformer.encode_document
        prompt = self._get_prompt(as_query)
        raw = encode(texts, prompt=prompt, batch_size=self._batch_size, show_progress_bar=False, **options)
        return raw, [None] * len(texts)

    def _get_prompt(self, as_query: bool) -> str:
        return self._query_prompt if as_query else self._document_prompt

    def _cut(self, texts: list[str], *, as_query: bool) -> list[list[tuple[str, int]]]:
        prompt = self._get_prompt(as_query)
        counts = self._count_tokens(texts, prompt)
        return [
            split_by_tokens(text, tokens, self._limit, lambda part: self._count_tokens([part], prompt)[0])
            for text, tokens in zip(texts, counts, strict=True)
        ]

    def _count_tokens(self, texts: list[str], prompt: str) -> list[int]:
        """Return how many tokens an unlimited model would read: the text's, the prompt's and the special ones."""
        if self._limit == UNLIMITED or not texts:
            return [1] * len(texts)
        tokens = self._transformer.tokenizer([prompt + text for text in texts], truncation=False, verbose=False)
        return [len(ids) for ids in tokens["input_ids"]]


class LocalTokenEmbedder(LocalEmbedder):
    """A `LocalEmbedder` of a transformer: one run of the model gives the vectors of a text and of its tokens.

    Vectors of tokens are centred: those of some models (E5) all point in nearly one direction.
    """

    _centre: NDArray[Any] | float = 0.0

    def __init__(self, model: Any, name: str, **options: Any) -> None:
        """Take a loaded `SentenceTransformer`, and `options` as `LocalEmbedder`."""
        super().__init__(model, name, **options)
        samples = filter(None, self.embed_document_tokens(SAMPLE)[1])
        means = [vectors[spans[:, 1] > 0].mean(axis=0) for vectors, spans in samples]
        self._centre = sum(means) / len(means) if means else 0.0

    def embed_query_tokens(self, text: str) -> tuple[Vector, TokenVectors]:
        import numpy as np

        vectors, tokens = self._embed([text], as_query=True)
        none = np.zeros((0, vectors.shape[1]), np.float32), np.zeros((0, 2), np.int64)
        return vectors[0], tokens[0] or none

    def embed_document_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenVectors | None]]:
        return self._embed(texts, as_query=False)

    def _encode(
        self, texts: list[str], *, as_query: bool, **options: Any
    ) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        import numpy as np

        outputs: Any = super()._encode(texts, as_query=as_query, output_value=None, **options)[0]
        vectors = np.stack([_to_numpy(output["sentence_embedding"]) for output in outputs])
        prompt = self._get_prompt(as_query)
        full = [prompt + text for text in texts]
        # Models are given texts without the blanks around them.
        limit = {} if self._limit == UNLIMITED else {"truncation": True, "max_length": self._limit}
        read = self._transformer.tokenizer(
            [text.strip() for text in full], return_offsets_mapping=True, verbose=False, **limit
        )
        tokens: list[TokenVectors | None] = []
        for output, spans, text in zip(outputs, read["offset_mapping"], full, strict=True):
            rows = _to_numpy(output["token_embeddings"])[_to_numpy(output["attention_mask"]) > 0]
            offset = len(text) - len(text.lstrip()) - len(prompt)
            if len(rows) != len(spans):  # this version of the library reads the text in another way
                tokens.append(None)
                continue
            unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-10) - self._centre
            tokens.append((unit.astype(np.float32), np.maximum(np.array(spans, np.int64) + offset, 0)))
        return vectors, tokens


def _join_tokens(pieces: list[str], tokens: Sequence[TokenVectors | None]) -> TokenVectors | None:
    """Return the tokens of a text from those of its pieces; None if any piece has none."""
    import numpy as np

    present = [own for own in tokens if own is not None]
    if not present or len(present) < len(tokens):
        return None
    starts = np.cumsum([0, *map(len, pieces[:-1])])
    spans = [own + start for (_, own), start in zip(present, starts.tolist(), strict=True)]
    return np.concatenate([vectors for vectors, _ in present]), np.concatenate(spans)


def _to_numpy(tensor: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = tensor.detach().float().cpu().numpy()
    return numbers


def _has_tokens(model: Any) -> bool:
    """Return whether a model gives the vectors of tokens, and its tokenizer their places in the text."""
    if not getattr(model.tokenizer, "is_fast", False):
        return False
    output = model.encode([""], output_value=None, show_progress_bar=False)[0]
    return isinstance(output, dict) and {"token_embeddings", "attention_mask", "sentence_embedding"} <= output.keys()


def split_by_tokens(text: str, tokens: int, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """Return the text in pieces of at most `limit` tokens, each with its tokens by `count`; together they are the text.

    Texts are halved, at a blank if the second quarter has one.
    """
    if tokens <= limit or len(text) < 2:
        return [(text, tokens)]
    middle = len(text) // 2
    at = max(text.rfind(blank, middle // 2, middle) for blank in " \n") + 1 or middle
    return [piece for half in (text[:at], text[at:]) for piece in split_by_tokens(half, count(half), limit, count)]


def _choose_prompts(name: str, own: dict[str, str], query: str | None, document: str | None) -> tuple[str, str]:
    """Return the prompts for a question and for a document: the caller's, else the model's, else its family's."""
    # encode_document() takes an empty "document", which is always there, before a "passage" that is not empty.
    prompts = (own.get("query") or "", next((own[key] for key in DOCUMENT_PROMPTS if own.get(key)), ""))
    if prompts == ("", ""):
        prompts = next((words for family, words in FAMILY_PROMPTS if family.search(name.lower())), prompts)
    return (prompts[0] if query is None else query, prompts[1] if document is None else document)


def _digest_model(model: Any, *settings: object) -> str:
    """Return a hash of the model's parts, samples of its weights, and settings that shape the vectors."""
    parts = [(type(part).__name__, str(getattr(part, "pooling_mode", ""))) for part in model]
    digest = blake2b(repr((parts, settings)).encode("utf-8", "surrogatepass"), digest_size=8)
    for weights in model.parameters():
        flat = weights.detach().flatten()
        digest.update(flat[:: max(1, len(flat) // WEIGHT_SAMPLES)].float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _load(name: str, options: dict[str, Any]) -> Any:
    """Return the `SentenceTransformer` of a folder, of the cache on this machine, or of the hub, in this order."""
    # A process that forks after tokenizing in threads prints a long warning.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformer = import_package("sentence_transformers", "local").SentenceTransformer
    folder = Path(name).expanduser()
    is_folder = folder.is_dir()
    if not is_folder and (folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1):
        raise EmbedderError(f"there is no folder {folder}; give the folder of a saved model, or a model's name")
    try:
        with _hide_output():
            try:
                return transformer(str(folder) if is_folder else name, local_files_only=True, **options)
            except Exception as error:
                if is_folder:
                    raise
                # A download that was cut short fails in many ways, and is repaired by the hub.
                _check_hub(name, error)
            return transformer(name, **options)
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(
            f"the model {name!r} cannot be loaded ({_to_line(error)}); check its name or folder, and the device"
        ) from error


def _check_hub(name: str, reason: Exception) -> None:
    """Raise EmbedderError at once if the hub cannot be reached; `reason` is why the model needs it."""
    from huggingface_hub import constants, get_session

    try:
        answer = get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
        if answer.status_code >= 500:
            raise ConnectionError(f"{constants.ENDPOINT} answers {answer.status_code}")
    except Exception as error:
        here = "is not on this machine" if isinstance(reason, OSError) else f"cannot be loaded ({_to_line(reason)})"
        raise EmbedderError(
            f"the model {name!r} {here}, and the hub cannot be reached ({_to_line(error)}); "
            "go online once to download it, or give the folder of a saved model"
        ) from error


def _to_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


@contextmanager
def _hide_output() -> Iterator[None]:
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
