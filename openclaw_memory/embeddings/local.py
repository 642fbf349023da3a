"""Sentence-transformers on this machine, as provider `local`: any model of the Hugging Face hub, or a folder.

The default model, `intfloat/multilingual-e5-small`, has 384 dimensions, knows 94 languages, is under the MIT licence
and takes 0.5 GB; it is downloaded at its first use. Afterwards, as with a folder, no network is needed: a model that is
on the machine is taken from there without asking the hub, so that it never changes under an index.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from openclaw_memory._limited import Limited
from openclaw_memory.embeddings.vectors import check_vectors, import_package, merge_vectors
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector
    from openclaw_memory.types.index import TokenVectors

DEFAULT_MODEL = "intfloat/multilingual-e5-small"
# What their model cards ask for where the models themselves carry no prompts: (question, document). The instruct
# variants want a task described instead.
FAMILY_PROMPTS: tuple[tuple[re.Pattern[str], tuple[str, str]], ...] = (
    (re.compile(r"\be5-(small|base|large)(?!.*instruct)"), ("query: ", "passage: ")),
    (re.compile(r"\bnomic-embed-text"), ("search_query: ", "search_document: ")),
)
# Under which names models keep the prompt of a document; sentence-transformers' order.
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
# Whose tokens make the centre of all tokens: everyday sentences, in several languages.
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


class Run(Protocol):
    """Runs what uses the model, within a limit of time."""

    def __call__(self, work: Callable[[], T], /) -> T:
        """Return what `work` returns."""
        ...


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
    """Load a model, downloading it from the Hugging Face hub where it is not on this machine yet.

    `model` is a name on the hub or the folder of a saved model. `device` (`"cpu"`, `"cuda"`, `"mps"`) is the fastest
    there is when None. `dims` keeps the first dimensions of a Matryoshka model. A prompt of None is the model's own,
    or else its family's (E5, Nomic), or else none; `""` is none. `revision`, `cache_folder` and `trust_remote_code` are
    those of `SentenceTransformer`: the last runs code that comes with the model. A question is given up after
    `query_seconds`, a batch of `batch_size` texts after `batch_seconds`; until the model has ended with what was given
    up, it is asked nothing more.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        EmbedderError: the model is not there, cannot be loaded, or does not fit an option.
    """
    if batch_size < 1:
        raise EmbedderError(f"batch_size must be 1 or more, not {batch_size}")
    for option, seconds in (("query_seconds", query_seconds), ("batch_seconds", batch_seconds)):
        if not 0 < seconds <= MOST_SECONDS:
            raise EmbedderError(f"{option} must be more than 0 and at most {MOST_SECONDS:,}, not {seconds}")
    name = os.fspath(DEFAULT_MODEL if model is None else model)
    options = {
        "device": device,
        "revision": revision,
        "cache_folder": cache_folder,
        "trust_remote_code": trust_remote_code,
    }
    loaded = _loaded(name, options)
    prompts = _prompts(_short_name(name), loaded.prompts, query_prompt, document_prompt)
    kind = LocalTokenEmbedder if _gives_tokens(loaded) else LocalEmbedder
    limits = {"query_seconds": query_seconds, "batch_seconds": batch_seconds}
    return kind(loaded, _short_name(name), prompts=prompts, batch_size=batch_size, dims=dims, **limits)


class LocalEmbedder:
    """A `SentenceTransformer` as an embedder, safe to share between threads; vectors are `(n, dims)` float32.

    A text with more tokens than the model reads is embedded in pieces, whose vectors are averaged by their tokens.
    `identity` is made of the weights and of what else shapes a vector, not of names: one model in two folders
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
            if 2 * self._tokens([""], prompt)[0] > self._limit:
                raise EmbedderError(f"the prompt {prompt[:40]!r} takes more than half of what {name} reads; shorten it")
        width = self._encoded(model.encode_document, [""], self._document_prompt)[0].shape[1]
        if dims is not None and not 1 <= dims <= width:
            raise EmbedderError(f"dims must be from 1 to {width}, what {name} has, not {dims}")
        self.dims = dims or width
        self.identity = f"{self.provider}:{self.dims}:{_fingerprint(model, self._limit, prompts)}"

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._of_query(text)[0][0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._of_documents(texts)[0]

    def close(self) -> None:
        """Do nothing: the model is freed with this object."""

    def _of_query(self, text: str) -> tuple[Matrix, list[TokenVectors | None]]:
        run = partial(self._run, "query_seconds", self._query_seconds)
        return self._with_tokens(self._transformer.encode_query, [text], self._query_prompt, run)

    def _of_documents(self, texts: Sequence[str]) -> tuple[Matrix, list[TokenVectors | None]]:
        run = partial(self._run, "batch_seconds", self._batch_seconds)
        return self._with_tokens(self._transformer.encode_document, texts, self._document_prompt, run)

    def _run(self, option: str, seconds: float, work: Callable[[], T]) -> T:
        """Run what uses the model alone, and no longer than the option says."""
        try:
            return self._limited.run(work, seconds)
        except TimeoutError as error:
            raise EmbedderError(
                f"the local model {self.model} gives no answer: {error}; set a longer {option} in "
                "embedding.providers.local, or restart the program where it never ends"
            ) from error

    def _with_tokens(
        self, encode: Callable[..., Any], texts: Sequence[str], prompt: str, run: Run
    ) -> tuple[Matrix, list[TokenVectors | None]]:
        """Return the vectors of texts, and of the tokens of each where `_encoded` gives them."""
        import numpy as np

        # Surrogate pairs as one character, and U+FFFD for lone ones: tokenizers take neither.
        valid = [text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for text in texts]
        parts = run(partial(self._parted, valid, prompt))
        rows, found = self._rows(encode, [piece for pieces in parts for piece, _ in pieces], prompt, run)
        vectors: Matrix = np.zeros((len(texts), self.dims), dtype=np.float32)
        tokens: list[TokenVectors | None] = []
        start = 0
        for vector, pieces in zip(vectors, parts, strict=True):
            end = start + len(pieces)
            vector[:] = (
                rows[start] if len(pieces) == 1 else merge_vectors(rows[start:end], [tokens for _, tokens in pieces])
            )
            tokens.append(_joined_tokens([piece for piece, _ in pieces], found[start:end]))
            start = end
        return vectors, tokens

    def _rows(
        self, encode: Callable[..., Any], pieces: list[str], prompt: str, run: Run
    ) -> tuple[Matrix, list[TokenVectors | None]]:
        """Return the unit vectors of texts that the model can read whole; a question may come between two batches."""
        import numpy as np

        rows: Matrix = np.zeros((len(pieces), self.dims), dtype=np.float32)
        tokens: list[TokenVectors | None] = [None] * len(pieces)
        # Texts of like length together: a batch takes as long as its longest.
        order = sorted(range(len(pieces)), key=lambda at: len(pieces[at]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            raw, found = run(partial(self._encoded, encode, [pieces[at] for at in batch], prompt))
            for at, own in zip(batch, found, strict=True):
                tokens[at] = own
            rows[batch] = check_vectors(raw[:, : self.dims], len(batch), f"the model {self.model}")
        return rows, tokens

    def _encoded(
        self, encode: Callable[..., Any], texts: list[str], prompt: str
    ) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        """Return what the model gives for a batch: the vectors of texts, and of their tokens."""
        raw: NDArray[Any] = encode(texts, prompt=prompt, batch_size=self._batch_size, show_progress_bar=False)
        return raw, [None] * len(texts)

    def _parted(self, texts: list[str], prompt: str) -> list[list[tuple[str, int]]]:
        counts = self._tokens(texts, prompt)
        return [
            pieces_by_tokens(text, tokens, self._limit, lambda part: self._tokens([part], prompt)[0])
            for text, tokens in zip(texts, counts, strict=True)
        ]

    def _tokens(self, texts: list[str], prompt: str) -> list[int]:
        """Return how many tokens an unlimited model would read: the text's, the prompt's and the special ones."""
        if self._limit == UNLIMITED or not texts:
            return [1] * len(texts)
        read = self._transformer.tokenizer([prompt + text for text in texts], truncation=False, verbose=False)
        return [len(ids) for ids in read["input_ids"]]


class LocalTokenEmbedder(LocalEmbedder):
    """A `LocalEmbedder` whose model is a transformer: one run of it gives the vectors of a text and of its tokens.

    Vectors of tokens are centred: those of some models (E5) all point in nearly one direction.
    """

    _centre: NDArray[Any] | float = 0.0

    def __init__(self, model: Any, name: str, **options: Any) -> None:
        """Take a loaded `SentenceTransformer`, and `options` as `LocalEmbedder`."""
        super().__init__(model, name, **options)
        found = filter(None, self.embed_document_tokens(SAMPLE)[1])
        means = [vectors[spans[:, 1] > 0].mean(axis=0) for vectors, spans in found]
        self._centre = sum(means) / len(means) if means else 0.0

    def embed_query_tokens(self, text: str) -> tuple[Vector, TokenVectors]:
        import numpy as np

        vectors, tokens = self._of_query(text)
        none = np.zeros((0, vectors.shape[1]), np.float32), np.zeros((0, 2), np.int64)
        return vectors[0], tokens[0] or none

    def embed_document_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenVectors | None]]:
        return self._of_documents(texts)

    def _encoded(
        self, encode: Callable[..., Any], texts: list[str], prompt: str
    ) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        import numpy as np

        options = {"batch_size": self._batch_size, "show_progress_bar": False, "output_value": None}
        given = encode(texts, prompt=prompt, **options)
        whole = np.stack([_numbers(one["sentence_embedding"]) for one in given])
        read = [prompt + text for text in texts]
        # Models are given texts without the blanks around them.
        bare = [text.strip() for text in read]
        limit = {} if self._limit == UNLIMITED else {"truncation": True, "max_length": self._limit}
        spans = self._transformer.tokenizer(bare, return_offsets_mapping=True, verbose=False, **limit)["offset_mapping"]
        tokens: list[TokenVectors | None] = []
        for one, own, text in zip(given, spans, read, strict=True):
            vectors = _numbers(one["token_embeddings"])[_numbers(one["attention_mask"]) > 0]
            before = len(text) - len(text.lstrip()) - len(prompt)
            if len(vectors) != len(own):  # this version of the library reads the text in another way
                tokens.append(None)
                continue
            unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-10) - self._centre
            tokens.append((unit.astype(np.float32), np.maximum(np.array(own, np.int64) + before, 0)))
        return whole, tokens


def _joined_tokens(pieces: list[str], tokens: Sequence[TokenVectors | None]) -> TokenVectors | None:
    """Return the tokens of a text from those of its pieces; None where any piece has none."""
    import numpy as np

    found = [own for own in tokens if own is not None]
    if not found or len(found) < len(tokens):
        return None
    starts = np.cumsum([0, *map(len, pieces[:-1])])
    spans = [own + start for (_, own), start in zip(found, starts.tolist(), strict=True)]
    return np.concatenate([vectors for vectors, _ in found]), np.concatenate(spans)


def _numbers(tensor: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = tensor.detach().float().cpu().numpy()
    return numbers


def _gives_tokens(model: Any) -> bool:
    """Return whether a model gives the vectors of tokens, and its tokenizer says where they are in the text."""
    if not getattr(model.tokenizer, "is_fast", False):
        return False
    given = model.encode([""], output_value=None, show_progress_bar=False)[0]
    return isinstance(given, dict) and {"token_embeddings", "attention_mask", "sentence_embedding"} <= given.keys()


def pieces_by_tokens(text: str, tokens: int, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """Return the text in pieces of at most `limit` tokens, each with its tokens by `count`.

    Texts are halved, at a blank where the second quarter has one.
    """
    if tokens <= limit or len(text) < 2:
        return [(text, tokens)]
    middle = len(text) // 2
    at = max(text.rfind(blank, middle // 2, middle) for blank in " \n") + 1 or middle
    return [part for half in (text[:at], text[at:]) for part in pieces_by_tokens(half, count(half), limit, count)]


def _prompts(name: str, own: dict[str, str], query: str | None, document: str | None) -> tuple[str, str]:
    """Return the prompts for a question and for a document: the caller's, else the model's, else its family's."""
    # encode_document() takes an empty "document", which is always there, before a "passage" that says something.
    found = (own.get("query") or "", next((own[key] for key in DOCUMENT_PROMPTS if own.get(key)), ""))
    if found == ("", ""):
        found = next((prompts for family, prompts in FAMILY_PROMPTS if family.search(name.lower())), found)
    return (found[0] if query is None else query, found[1] if document is None else document)


def _short_name(name: str) -> str:
    """Return a name on the hub as it is; the name of a folder without its parents."""
    path = Path(name).expanduser()
    return path.resolve().name if path.is_dir() else name


def _fingerprint(model: Any, *shaping: object) -> str:
    """Return a hash of what shapes the vectors: the model's parts, samples of its weights, and `shaping`."""
    parts = [(type(part).__name__, str(getattr(part, "pooling_mode", ""))) for part in model]
    digest = blake2b(repr((parts, shaping)).encode("utf-8", "surrogatepass"), digest_size=8)
    for weights in model.parameters():
        flat = weights.detach().flatten()
        digest.update(flat[:: max(1, len(flat) // WEIGHT_SAMPLES)].float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _loaded(name: str, options: dict[str, Any]) -> Any:
    """Return the `SentenceTransformer` of a folder, of the cache on this machine, or of the hub, in this order."""
    # A process that forks after tokenizing in threads prints a long warning.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformer = import_package("sentence_transformers", "local").SentenceTransformer
    folder = Path(name).expanduser()
    if not folder.is_dir() and (folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1):
        raise EmbedderError(f"there is no folder {folder}; give the folder of a saved model, or a model's name")
    try:
        with _quiet():
            try:
                return transformer(str(folder) if folder.is_dir() else name, local_files_only=True, **options)
            except Exception as error:
                if folder.is_dir():
                    raise
                # A download that was cut short fails in many ways, and is repaired by the hub.
                _ask_hub(name, error)
            return transformer(name, **options)
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(
            f"the model {name!r} cannot be loaded ({_first_line(error)}); check its name or folder, and the device"
        ) from error


def _ask_hub(name: str, why: Exception) -> None:
    """Fail at once where the hub cannot be reached; `why` it is asked belongs to the message."""
    from huggingface_hub import constants, get_session

    try:
        answer = get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
        if answer.status_code >= 500:
            raise ConnectionError(f"{constants.ENDPOINT} answers {answer.status_code}")
    except Exception as error:
        here = "is not on this machine" if isinstance(why, OSError) else f"cannot be loaded ({_first_line(why)})"
        raise EmbedderError(
            f"the model {name!r} {here}, and the hub cannot be reached ({_first_line(error)}); "
            "go online once to download it, or give the folder of a saved model"
        ) from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep progress bars, and warnings about what is reported as an error anyhow, off the screen."""
    import logging

    import transformers

    bars: Any = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    loggers = [logging.getLogger(name) for name in NOISY_LOGGERS]
    levels = [logger.level for logger in loggers]
    bars.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if shown:
            bars.enable_progress_bar()
