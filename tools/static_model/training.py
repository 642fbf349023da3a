"""How the vectors of the pieces come about: first from the teachers' vectors of the words, then trained on texts.

A text's vector is the sum of its pieces' vectors. It is to lie where all-MiniLM-L6-v2 puts the English of the text: so
texts in five languages that say the same thing come to lie together (after Reimers and Gurevych 2020, "Making
Monolingual Sentence Embeddings Multilingual using Knowledge Distillation"). multilingual-e5-small says where the pieces
lie that no text holds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from openclaw_memory.embeddings.static_file import WORD_START
from tools.static_model.teachers import Floats
from tools.static_model.vocabulary import Pieces, tokenizer

Numbers = NDArray[np.int64]

DIMS = 256
# Principal components are divided by their deviation to this power: 1 makes all of them alike, 0 leaves them alone.
WHITENING = 0.5
# A piece of probability p weighs a / (a + p): Arora et al. 2017, "A Simple but Tough-to-Beat Baseline".
FREQUENCY = 3e-5
RIDGE = 5.0
# How much of what e5 says of a word goes into one that the lexicon has.
E5_SHARE = 0.5
# How many words of the lexicon say where a word lies that it lacks, and how much more the nearest of them say.
NEIGHBOURS = 50
NEARNESS = 10.0
PIECES_AT_A_TIME = 1000

# The share of a text's pieces that are left out each time it is drawn: no word is to lean on its company.
DROPPED = 0.3

BATCH = 2048
WARM_UP = 50
SAMPLE = 60_000


class Text(NamedTuple):
    """A text of a group, and how often it is drawn."""

    group: int
    language: str
    text: str
    weight: float


class Bags:
    """Texts as the numbers of their pieces, ready to be summed."""

    def __init__(self, cutter: Tokenizer, texts: Sequence[str]) -> None:
        found = [[number - 1 for number in each.ids if number] for each in cutter.encode_batch(list(texts))]
        self.lengths = np.array([len(each) for each in found])
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self._pieces = np.fromiter((number for each in found for number in each), np.int64, int(self._starts[-1]))

    def pieces_of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """The pieces of these texts end to end, and where each text begins in them."""
        lengths = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths) + np.repeat(self._starts[rows], lengths)
        return self._pieces[places], starts[:-1]


def unit(vectors: Floats) -> Floats:
    """The rows, each of length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), dtype=np.float32)


class Space(NamedTuple):
    """What turns a vector of MiniLM into one of the model: a mean to take off, and a map to multiply by."""

    mean: Floats
    axes: Floats

    def of(self, vectors: Floats) -> Floats:
        """The teacher's vectors, shape (n, 384), in the model's space, shape (n, DIMS), each of length 1."""
        return unit(unit(vectors - self.mean) @ self.axes)


def space(vectors: Floats, draws: np.random.RandomState) -> Space:
    """The first DIMS principal components of the teacher's vectors, half whitened."""
    mean = vectors.mean(axis=0)
    sample = unit(vectors[draws.choice(len(vectors), min(SAMPLE, len(vectors)), replace=False)] - mean)
    values, axes = np.linalg.eigh(sample.T @ sample / len(sample))
    strongest = np.argsort(values)[::-1][:DIMS]
    return Space(mean, np.asarray(axes[:, strongest] * values[strongest] ** (-WHITENING / 2), dtype=np.float32))


def gains(pieces: Pieces) -> Floats:
    """How much each piece weighs in a text, shape (n,): little where it is frequent."""
    return np.asarray(FREQUENCY / (FREQUENCY + np.exp(pieces.scores)), dtype=np.float32)


def start(
    pieces: Pieces,
    english: NDArray[np.bool_],
    minilm: Floats,
    e5: Floats,
    lexicon: Mapping[str, Sequence[int]],
    e5_of_words: Mapping[str, Floats],
    targets: Floats,
    in_space: Space,
) -> Floats:
    """The directions that training begins with, shape (n, DIMS), each of length 1.

    An English word lies where MiniLM puts it, a word of the lexicon near the English of its concepts. Anything else
    lies between two guesses from e5's vectors of the lexicon's words: where a linear map takes it that takes those to
    their concepts, and amid the concepts of the words that are nearest to it.
    """
    words = [word for word in lexicon if word in e5_of_words]
    known = np.stack([e5_of_words[word] for word in words])
    mean = known.mean(axis=0)
    known = unit(known - mean)
    meant = unit(np.stack([targets[list(lexicon[word])].mean(axis=0) for word in words]))
    bridge = np.linalg.solve(known.T @ known + RIDGE * np.eye(known.shape[1]), known.T @ meant)
    seen = unit(e5 - mean)
    rows = unit(np.asarray(seen @ bridge, dtype=np.float32))
    unheard = ~english
    for number, piece in enumerate(pieces.pieces):
        concepts = lexicon.get(piece[1:]) if piece.startswith(WORD_START) else None
        if concepts and not english[number]:
            rows[number] = targets[list(concepts)].mean(axis=0) + E5_SHARE * rows[number]
            unheard[number] = False
    rows[english] = in_space.of(minilm[english])
    single = [number for number, word in enumerate(words) if " " not in word]
    rows[unheard] += amid(seen[unheard], known[single], meant[single])
    return unit(rows)


def amid(vectors: Floats, known: Floats, meant: Floats) -> Floats:
    """The mean of what the NEIGHBOURS of each vector among `known` mean, shape (n, DIMS), each of length 1.

    Each neighbour weighs as much as the softmax of NEARNESS times its cosine says.
    """
    found = np.empty((len(vectors), meant.shape[1]), dtype=np.float32)
    by_word = torch.from_numpy(known).to(torch.bfloat16).T
    for at in range(0, len(vectors), PIECES_AT_A_TIME):
        some = torch.from_numpy(vectors[at : at + PIECES_AT_A_TIME]).to(torch.bfloat16)
        likeness, nearest = (some @ by_word).float().topk(min(NEIGHBOURS, len(known)))
        shares = torch.softmax(NEARNESS * likeness, dim=1)
        found[at : at + len(some)] = (shares[:, :, None] * torch.from_numpy(meant)[nearest]).sum(dim=1).numpy()
    return unit(found)


def english_pieces(pieces: Pieces, texts: Sequence[Text]) -> NDArray[np.bool_]:
    """Which pieces have a larger share of the English texts than of the others, shape (n,)."""
    cutter, shares = tokenizer(pieces), []
    for of_english in (True, False):
        bags = Bags(cutter, [text.text for text in texts if (text.language == "en") is of_english])
        found, _ = bags.pieces_of(np.arange(len(bags.lengths)))
        counts = np.bincount(found, minlength=len(pieces.pieces))
        shares.append(counts / counts.sum())
    return np.asarray(shares[0] > shares[1])


def concepts_of(texts: Sequence[Text]) -> dict[str, list[int]]:
    """The groups that each word or phrase stands for."""
    concepts: defaultdict[str, list[int]] = defaultdict(list)
    for text in texts:
        concepts[text.text.lower()].append(text.group)
    return dict(concepts)


def trained(
    pieces: Pieces, rows: Floats, texts: Sequence[Text], targets: Floats, *, steps: int, rate: float, seed: int
) -> Floats:
    """The vectors of the pieces, shape (n, DIMS), weights inside, so that texts come to lie where `targets` says.

    `targets`, shape (groups, DIMS). The loss is 1 - cosine, the optimiser Adam with a rate that falls as a cosine does
    to nothing. The weights of the pieces stay as they are: what is trained is each piece's direction and length. A
    share DROPPED of the pieces is left out of each text, others each time.
    """
    torch.manual_seed(seed)
    draws = np.random.RandomState(seed)
    bags = Bags(tokenizer(pieces), [text.text for text in texts])
    groups = np.array([text.group for text in texts])
    chance = np.array([text.weight for text in texts]) * (bags.lengths > 0)
    chance /= chance.sum()
    weights = torch.from_numpy(gains(pieces))
    table = torch.nn.EmbeddingBag(len(rows), DIMS, mode="sum", sparse=True)
    table.weight.data = torch.from_numpy(rows.copy())
    optimiser: Any = torch.optim.SparseAdam(list(table.parameters()), lr=rate, betas=(0.9, 0.99))
    for step in range(steps):
        now = rate * min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / steps)) / 2
        for group in optimiser.param_groups:
            group["lr"] = now
        batch = draws.choice(len(texts), BATCH, p=chance)
        numbers, starts = (torch.from_numpy(each) for each in bags.pieces_of(batch))
        kept = torch.from_numpy(draws.random_sample(len(numbers)) >= DROPPED)
        sums = table(numbers, starts, per_sample_weights=weights[numbers] * kept)
        loss: Any = 1 - torch.nn.functional.cosine_similarity(sums, torch.from_numpy(targets[groups[batch]])).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 100 == 0:
            print(f"step {step} of {steps}: 1 - cosine {loss.item():.3f}", flush=True)
    return np.asarray((table.weight.detach() * weights[:, None]).numpy(), dtype=np.float32)
