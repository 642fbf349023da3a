"""Run models of provider `local` from their ONNX files, by onnxruntime and tokenizers, without PyTorch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings.vectors import UNLIMITED, import_package
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types.index import TokenVectors

# Of several files the first that matches: full precision, then 8 bits, which is smaller and faster.
FILES = (re.compile(r"(.*/)?model\.onnx"), re.compile(r".*(quantized|int8).*\.onnx"), re.compile(r".*\.onnx"))
# The inputs of a file, with the names that tokenizers have for them.
INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
# The bytes of a file that tell it from others, evenly spread.
FILE_SAMPLES = 1 << 16


def load(name: str, options: Mapping[str, Any], *, is_online: bool) -> OnnxModel:
    """Load a model from a folder, from the cache on this machine, or, if `is_online`, from the hub.

    Raises:
        MissingExtraError: onnxruntime or tokenizers is not installed.
        EmbedderError: It has no ONNX file, or one that cannot be run here.
    """
    return OnnxModel(*_find_file(name, options, is_online=is_online))


def load_cross_encoder(name: str, options: Mapping[str, Any], *, is_online: bool) -> Callable[[str, Any], Any]:
    """Load a cross-encoder as a function of a question and texts; see `load`."""
    folder, file = _find_file(name, options, is_online=is_online)
    encoder = OnnxFile(folder, folder, file, axes=2)
    return lambda query, texts: [scores for scores, _ in encoder.run([(query, text) for text in texts])]


def _find_file(name: str, options: Mapping[str, Any], *, is_online: bool) -> tuple[Path, str]:
    """Return the folder of a model, and the name of its ONNX file."""
    for package in ("onnxruntime", "tokenizers"):
        import_package(package, "onnx")
    folder, file_name = Path(name), options["file_name"]
    if not folder.is_dir():
        source = {"repo_id": name, "revision": options["revision"], "cache_dir": options["cache_folder"]}
        if is_online:
            _download(source, file_name)
        hub = import_package("huggingface_hub", "onnx")
        folder = Path(hub.snapshot_download(**source, allow_patterns="*tokenizer.json", local_files_only=True))
    return folder, choose_file((path.relative_to(folder).as_posix() for path in folder.rglob("*.onnx")), file_name)


def choose_file(names: Iterable[str], file_name: str | None) -> str:
    """Return the name of the ONNX file `file_name`, or by default of the most exact one.

    Raises:
        EmbedderError: There is none.
    """
    files = sorted(name for name in names if name.endswith(".onnx"))
    matching = [name for name in files if file_name is None or name in {file_name, f"onnx/{file_name}"}]
    if not matching:
        existing = f", but {', '.join(files)}" if files else ""
        raise EmbedderError(f"it has no ONNX file{f' {file_name}' if file_name else ''}{existing}")
    return next(name for pattern in FILES for name in matching if pattern.fullmatch(name))


def _download(source: Mapping[str, Any], file_name: str | None) -> None:
    """Bring the files of a model from the hub, the weights last: where they are, all is."""
    hub = import_package("huggingface_hub", "onnx")
    file = choose_file(hub.list_repo_files(source["repo_id"], revision=source["revision"]), file_name)
    has_bars = not hub.utils.are_progress_bars_disabled()
    hub.utils.disable_progress_bars()
    try:
        hub.snapshot_download(**source, allow_patterns=["*.json"])
        hub.snapshot_download(**source, allow_patterns=[file, f"{file}_data", f"{file}.data"])
    finally:
        if has_bars:
            hub.utils.enable_progress_bars()


class OnnxFile:
    """An ONNX file with its tokenizer.

    Each text is run alone, as many at a time as there are processors. That is as fast as batches, and the numbers of a
    text do not depend on its company, by which models of 8 bits scale theirs.

    Attributes:
        limit: How many tokens it reads, at most `UNLIMITED`.
    """

    def __init__(self, folder: Path, root: Path, file: str, *, axes: int) -> None:
        """Load the file in a folder, with the tokenizer in another; its output has so many axes."""
        import onnxruntime
        from tokenizers import Tokenizer

        settings = _read(root / "sentence_bert_config.json")
        size = settings.get("max_seq_length") or _read(root / "tokenizer_config.json").get("model_max_length")
        positions = None if "max_seq_length" in settings else _read(root / "config.json").get("max_position_embeddings")
        self.limit = int(min([UNLIMITED, *filter(None, (size, positions))]))
        self._tokenizer = Tokenizer.from_str((root / "tokenizer.json").read_text(encoding="utf-8"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3  # errors, which are raised as well
        self._session: Any = onnxruntime.InferenceSession(folder / file, options, providers=["CPUExecutionProvider"])
        self._inputs = [own.name for own in self._session.get_inputs()]
        self._outputs = [own.name for own in self._session.get_outputs() if len(own.shape) == axes][:1]
        if not (self._outputs and INPUTS.keys() >= {*self._inputs}):
            raise EmbedderError(f"{file} has no output of {axes} axes from {', '.join(sorted(INPUTS))}; export it anew")

    def run(self, texts: Sequence[Any]) -> list[tuple[NDArray[Any], Any]]:
        """Return the output for each text, or pair of texts, with its tokens."""
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(self._run, texts))

    def _run(self, text: Any) -> tuple[NDArray[Any], Any]:
        import numpy as np

        (encoding,) = self._tokenizer.encode_batch([text])
        feed = {name: np.array([getattr(encoding, INPUTS[name])[: self.limit]], np.int64) for name in self._inputs}
        return self._session.run(self._outputs, feed)[0][0].astype(np.float32), encoding


class OnnxModel(OnnxFile):
    """A sentence-transformers model in ONNX.

    Attributes:
        prompts: Its own prompts by their names.
        has_tokens: Whether it gives the vectors of tokens.
        fingerprint: Tells its weights and parts from those of other models.
    """

    has_tokens = True

    def __init__(self, folder: Path, file: str) -> None:
        """Load the model of a folder from an ONNX file in it."""
        modules = _read(folder / "modules.json") or [{"type": "Transformer", "path": ""}]
        parts = {module["type"].rpartition(".")[2]: folder / module["path"] for module in modules}
        if missing := parts.keys() - {"Transformer", "Pooling", "Normalize"}:
            raise EmbedderError(f"its part {', '.join(sorted(missing))} is not in the ONNX file")
        super().__init__(folder, parts["Transformer"], file, axes=3)
        self._pooling = read_pooling(
            _read(parts["Pooling"] / "config.json", is_needed=True) if "Pooling" in parts else {}
        )
        self.prompts = _read(folder / "config_sentence_transformers.json").get("prompts") or {}
        self.fingerprint = f"onnx {self._pooling} {_digest_file(folder / file)}"

    def count_tokens(self, texts: list[str]) -> list[int]:
        """Return how many tokens an unlimited model would read of each text, the special ones included."""
        return [len(own.ids) for own in self._tokenizer.encode_batch(texts)]

    def encode(self, texts: list[str], prompt: str, **_: object) -> tuple[NDArray[Any], Sequence[TokenVectors | None]]:
        """Return the vectors of texts, each read after the prompt and without blanks around both, and of their tokens.

        The places of the tokens are those in the prompt and the text.
        """
        import numpy as np

        outputs = self.run([(prompt + text).strip() for text in texts])
        vectors = np.stack([rows[0] if self._pooling == "cls" else rows.mean(axis=0) for rows, _ in outputs])
        return vectors, [(rows, np.array(own.offsets[: len(rows)], np.int64)) for rows, own in outputs]


def read_pooling(config: Mapping[str, Any]) -> str:
    """Return how the vectors of tokens make that of a text by a model's settings: `mean` or `cls`.

    Raises:
        EmbedderError: They are pooled in another way.
    """
    flags = [name.removeprefix("pooling_mode_") for name, is_on in config.items() if is_on and "pooling_mode_" in name]
    modes = config.get("pooling_mode") or flags or "mean_tokens"
    mode = re.sub("_tokens?$", "", modes if isinstance(modes, str) else "+".join(modes))
    if mode not in {"mean", "cls"} or config.get("include_prompt") is False:
        raise EmbedderError(f"its pooling {config} is only known to sentence-transformers")
    return mode


def _read(path: Path, *, is_needed: bool = False) -> Any:
    """Read a JSON file; return {} if there is none and none is needed."""
    return json.loads(path.read_text(encoding="utf-8")) if is_needed or path.exists() else {}


def _digest_file(path: Path) -> str:
    """Return a hash of samples of a file, and of the one with its weights if they are apart."""
    import numpy as np

    digest = blake2b(digest_size=8)
    for file in (path, path.with_name(f"{path.name}_data"), path.with_name(f"{path.name}.data")):
        if file.exists():
            content = np.memmap(file, np.uint8, "r")
            samples = content[:: max(1, len(content) // FILE_SAMPLES)]
            digest.update(len(content).to_bytes(8, "little") + samples.tobytes())
    return digest.hexdigest()
