"""Models on this machine, as provider `local`: any of the Hugging Face hub, a folder, or a GGUF file.

A model runs from its ONNX file by onnxruntime, or by sentence-transformers and PyTorch; a GGUF file is run by the
plug-in `gguf`. The default model, `intfloat/multilingual-e5-small`, has 384 dimensions, knows 94 languages, is under
the MIT licence and takes 0.5 GB; it is downloaded at its first use. Afterwards, as with a folder, no network is needed:
a model on this machine is loaded without asking the hub, so that it never changes under an index.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta

from openclaw_memory._limited import Limited
from openclaw_memory.embeddings.vectors import UNLIMITED, check_vectors, describe_install, merge_vectors
from openclaw_memory.errors import EmbedderError, MissingExtraError
from openclaw_memory.plugins import load_plugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.embeddings.local_onnx import OnnxModel
    from openclaw_memory.embeddings.local_torch import TorchModel
    from openclaw_memory.types import Matrix, Vector
    from openclaw_memory.types.index import TokenVectors

DEFAULT_MODEL = "intfloat/multilingual-e5-small"
# The prompts (question, document) of model cards, for models that carry none. The instruct variants want a task
# described instead.
FAMILY_PROMPTS: tuple[tuple[re.Pattern[str], tuple[str, str]], ...] = (
    (re.compile(r"\be5-(small|base|large)(?!.*instruct)"), ("query: ", "passage: ")),
    (re.compile(r"\bnomic-embed-text"), ("search_query: ", "search_document: ")),
    (re.compile(r"\bembeddinggemma"), ("task: search result | query: ", "title: none | text: ")),
)
# The names under which models keep the prompt of a document; sentence-transformers' order.
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
# What runs a model, best first: `local_onnx` and `local_torch`.
BACKENDS = ("onnx", "torch")
# Asking whether the hub answers; its own client tries for more than a minute before it gives up.
HUB_SECONDS = 10.0
# OpenClaw's limits for a local model: of a question, and of a batch of texts.
QUERY_SECONDS = 300.0
BATCH_SECONDS = 600.0
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]  # a day; a wait cannot be of any length
# Everyday sentences in several languages: the mean of their tokens is the centre of all tokens.
SAMPLE = Path(__file__).with_name("sample_sentences.txt")
T = TypeVar("T")
LocalModel: TypeAlias = "OnnxModel | TorchModel"


def create(
    model: str | os.PathLike[str] | None = None,
    *,
    backend: str | None = None,
    file_name: str | None = None,
    device: str | None = None,
    batch_size: Annotated[int, Meta(ge=1)] = 32,
    dims: int | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    revision: str | None = None,
    cache_folder: str | None = None,
    trust_remote_code: bool = False,
    query_seconds: Seconds = QUERY_SECONDS,
    batch_seconds: Seconds = BATCH_SECONDS,
) -> LocalEmbedder:
    """Load a model, downloading it from the Hugging Face hub if it is not on this machine yet.

    Args:
        model: A name on the hub, the folder of a saved model, a GGUF file, or one of the hub:
            `hf:OWNER/REPOSITORY/FILE.gguf`.
        backend: `"onnx"` or `"torch"`; by default the first that is installed and can run the model. A model that is on
            this machine for one of them is not downloaded for the other.
        file_name: The ONNX file, such as `onnx/model_qint8_avx512_vnni.onnx`; by default `model.onnx`, else a quantised
            one. It is never replaced by PyTorch.
        device: `"cpu"`, or for PyTorch alone `"cuda"`, `"mps"`; by default the fastest that can be had.
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
        MissingExtraError: Neither onnxruntime nor sentence-transformers is installed, or for a GGUF file xllamacpp.
        EmbedderError: The model is missing, cannot be loaded, or does not fit an option.
    """
    name = os.fspath(DEFAULT_MODEL if model is None else model)
    options = {"device": device, "revision": revision, "cache_folder": cache_folder, "file_name": file_name}
    loaded: LocalModel = load_model(name, backend, {**options, "trust_remote_code": trust_remote_code})
    path = Path(name).expanduser()
    short_name = path.resolve().name if path.exists() else name
    prompts = _choose_prompts(short_name, loaded.prompts, query_prompt, document_prompt)
    kind = LocalTokenEmbedder if loaded.has_tokens else LocalEmbedder
    limits = {"query_seconds": query_seconds, "batch_seconds": batch_seconds}
    return kind(loaded, short_name, prompts=prompts, batch_size=batch_size, dims=dims, **limits)


class LocalEmbedder:
    """A model on this machine as an embedder, safe to share between threads; vectors are `(n, dims)` float32.

    A text with more tokens than the model reads is embedded in pieces, whose vectors are averaged by their tokens.
    `identity` is made of the weights and of all that shapes a vector, not of names: one model in two folders
    is one model, and another model under the same name is another. `model` is the name to show.
    """

    provider = "local"
    leaves_machine = False
    _centre: NDArray[Any] | float = 0.0  # of the vectors of all tokens

    def __init__(
        self,
        model: LocalModel,
        name: str,
        *,
        prompts: tuple[str, str] = ("", ""),
        batch_size: int = 32,
        dims: int | None = None,
        query_seconds: float = QUERY_SECONDS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        """Take a loaded model; `prompts` go before a question and before a document."""
        self.model = name
        self._loaded = model
        self._prompts = prompts
        self._batch_size = batch_size
        self._query_seconds, self._batch_seconds = query_seconds, batch_seconds
        # Neither a model nor its tokenizer may be used by two threads at once, and either may hang.
        self._limited = Limited("openclaw-memory-local")
        for prompt in prompts:
            if 2 * self._count_tokens([""], prompt)[0] > model.limit:
                raise EmbedderError(f"the prompt {prompt[:40]!r} takes more than half of what {name} reads; shorten it")
        width = self._encode([""], as_query=False)[0].shape[1]
        if dims is not None and not 1 <= dims <= width:
            raise EmbedderError(f"dims must be from 1 to {width}, what {name} has, not {dims}")
        self.dims = dims or width
        settings = repr((model.fingerprint, model.limit, prompts)).encode("utf-8", "surrogatepass")
        self.identity = f"{self.provider}:{self.dims}:{blake2b(settings, digest_size=8).hexdigest()}"

    def embed_query(self, text: str) -> Vector:
        return self._embed([text], as_query=True)[0][0]  # type: ignore[no-any-return]

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, as_query=False)[0]

    def close(self) -> None:
        """End the process of a GGUF model, until the next text; other models are freed with this object."""
        if close := getattr(self._loaded, "close", None):
            close()

    def _embed(self, texts: Sequence[str], *, as_query: bool) -> tuple[Matrix, list[TokenVectors | None]]:
        """Return the vectors of texts, and of the tokens of each if `_encode` gives them."""
        import numpy as np

        # Surrogate pairs as one character, and U+FFFD for lone ones: tokenizers take neither.
        valid = [text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for text in texts]
        parts = self._run(partial(self._cut, valid, as_query=as_query), as_query=as_query)
        pieces = [piece for part in parts for piece, _ in part]
        embedded = zip(*self._embed_pieces(pieces, as_query=as_query), strict=True)
        vectors: Matrix = np.zeros((len(texts), self.dims), dtype=np.float32)
        tokens: list[TokenVectors | None] = []
        for vector, part in zip(vectors, parts, strict=True):
            some = [*islice(embedded, len(part))]
            vector[:] = merge_vectors([row for row, _ in some], [count for _, count in part])
            tokens.append(_join_tokens([piece for piece, _ in part], [own for _, own in some]))
        return vectors, tokens

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

    def _encode(self, texts: list[str], *, as_query: bool) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        """Return the vectors of a batch as the model gives them, and those of its tokens."""
        prompt = self._prompts[not as_query]
        vectors, tokens = self._loaded.encode(texts, prompt, as_query=as_query)
        return vectors, [
            own and _locate_tokens(own, prompt, text, self._centre) for own, text in zip(tokens, texts, strict=True)
        ]

    def _cut(self, texts: list[str], *, as_query: bool) -> list[list[tuple[str, int]]]:
        prompt = self._prompts[not as_query]
        counts = self._count_tokens(texts, prompt)
        return [
            split_by_tokens(text, tokens, self._loaded.limit, lambda part: self._count_tokens([part], prompt)[0])
            for text, tokens in zip(texts, counts, strict=True)
        ]

    def _count_tokens(self, texts: list[str], prompt: str) -> list[int]:
        if self._loaded.limit == UNLIMITED or not texts:
            return [1] * len(texts)
        return self._loaded.count_tokens([prompt + text for text in texts])


class LocalTokenEmbedder(LocalEmbedder):
    """A `LocalEmbedder` of a transformer: one run of the model gives the vectors of a text and of its tokens.

    Vectors of tokens are centred: those of some models (E5) all point in nearly one direction.
    """

    def __init__(self, model: LocalModel, name: str, **options: Any) -> None:
        """Take a loaded model that gives tokens, and `options` as `LocalEmbedder`."""
        super().__init__(model, name, **options)
        samples = filter(None, self.embed_document_tokens(SAMPLE.read_text("utf-8").splitlines())[1])
        means = [vectors[spans[:, 1] > 0].mean(axis=0) for vectors, spans in samples]
        self._centre = sum(means) / len(means) if means else 0.0

    def embed_query_tokens(self, text: str) -> tuple[Vector, TokenVectors]:
        import numpy as np

        vectors, tokens = self._embed([text], as_query=True)
        none = np.zeros((0, vectors.shape[1]), np.float32), np.zeros((0, 2), np.int64)
        return vectors[0], tokens[0] or none

    def embed_document_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenVectors | None]]:
        return self._embed(texts, as_query=False)


def _locate_tokens(tokens: TokenVectors, prompt: str, text: str, centre: NDArray[Any] | float) -> TokenVectors:
    """Return tokens as unit vectors less the centre, and their places in the text, read after the prompt."""
    import numpy as np

    rows, spans = tokens
    unit: Matrix = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-10)).astype(np.float32)
    read = prompt + text
    offset = len(read) - len(read.lstrip()) - len(prompt)
    return unit - centre, np.maximum(spans + offset, 0)


def _join_tokens(pieces: list[str], tokens: Sequence[TokenVectors | None]) -> TokenVectors | None:
    """Return the tokens of a text from those of its pieces; None if any piece has none."""
    import numpy as np

    present = [own for own in tokens if own is not None]
    if not present or len(present) < len(tokens):
        return None
    starts = np.cumsum([0, *map(len, pieces[:-1])])
    spans = [own + start for (_, own), start in zip(present, starts.tolist(), strict=True)]
    return np.concatenate([vectors for vectors, _ in present]), np.concatenate(spans)


def split_by_tokens(text: str, tokens: int, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """Return the text in pieces of at most `limit` tokens, each with its tokens by `count`; together they are the text.

    Texts are halved, at a blank if the second quarter has one.
    """
    if tokens <= limit or len(text) < 2:
        return [(text, tokens)]
    middle = len(text) // 2
    at = max(text.rfind(blank, middle // 2, middle) for blank in " \n") + 1 or middle
    return [piece for half in (text[:at], text[at:]) for piece in split_by_tokens(half, count(half), limit, count)]


def _choose_prompts(name: str, own: Mapping[str, str], query: str | None, document: str | None) -> tuple[str, str]:
    """Return the prompts for a question and for a document: the caller's, else the model's, else its family's."""
    # encode_document() takes an empty "document", which is always there, before a "passage" that is not empty.
    prompts = (own.get("query") or "", next((own[key] for key in DOCUMENT_PROMPTS if own.get(key)), ""))
    if prompts == ("", ""):
        prompts = next((words for family, words in FAMILY_PROMPTS if family.search(name.lower())), prompts)
    return (prompts[0] if query is None else query, prompts[1] if document is None else document)


def load_model(name: str, backend: str | None, options: Mapping[str, Any], loader: str = "load") -> Any:
    """Return the model of a path, of the cache on this machine, or of the hub, in this order.

    Args:
        name: Its folder or GGUF file, or its name on the hub.
        backend: The library that runs it; None for the first that can and is installed.
        options: The options of all backends.
        loader: The function of a backend that loads it.

    Raises:
        MissingExtraError: No backend that may run it is installed.
        EmbedderError: None of them can load it, or the options do not fit together.
    """
    if backend not in (None, *BACKENDS):
        raise EmbedderError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    is_file, is_for_gpu = options["file_name"] is not None, options["device"] not in (None, "cpu")
    path = Path(name).expanduser()
    if (is_gguf := path.suffix.lower() == ".gguf") and (backend or is_file or loader != "load"):
        raise EmbedderError(f"{path.name} is run by llama.cpp as an embedder, without backend and file_name")
    default = ("onnx",) if is_file else ("gguf",) if is_gguf else ("torch",) if is_for_gpu else BACKENDS
    backends = (backend,) if backend else default
    if (is_file and "torch" in backends) or (is_for_gpu and "onnx" in backends):
        raise EmbedderError("an ONNX file runs by backend 'onnx', on the processor: leave out file_name or device")
    # A process that forks after tokenizing in threads prints a long warning.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    is_here = path.is_file() if is_gguf else path.is_dir()
    if not is_here and not name.startswith("hf:") and (is_gguf or path.is_absolute() or re.match("[.~]|.*/.*/", name)):
        raise EmbedderError(f"there is no {path}; give the folder of a saved model, or a GGUF file")
    errors, reasons = dict[str, Exception](), list[Exception]()
    for is_online in (False,) if is_here else (False, True):
        if is_online:
            # A download that was cut short fails in many ways, and is repaired by the hub.
            _check_hub(name, reasons[-1])
        for module in backends:
            try:
                own = load_plugin("models", module) if is_gguf else import_module(f"{__package__}.local_{module}")
                return getattr(own, loader)(str(path) if is_here else name, options, is_online=is_online)
            except Exception as error:  # noqa: BLE001 - of packages that raise whatever they like
                errors[module] = error
        reasons = [error for error in errors.values() if not isinstance(error, MissingExtraError)]
        if not reasons:
            raise errors.get("gguf") or MissingExtraError(
                f"embedder 'local' needs onnxruntime and tokenizers: {describe_install('onnx')}; or "
                f"sentence-transformers, which brings PyTorch and runs any model: {describe_install('local')}"
            )
    lines = "; ".join(f"{backend}: {_to_line(error)}" for backend, error in errors.items())
    raise EmbedderError(f"the model {name!r} cannot be loaded ({lines}); check its name or folder, and the device")


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
