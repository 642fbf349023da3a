"""Tell a difference between two evaluations of the same questions from chance."""

from __future__ import annotations

import math

from openclaw_memory.errors import QueryError
from openclaw_memory_lab.report import Evaluation

_SURE = 0.05  # what is usual: a difference that chance makes in one of twenty trials counts for none
_DRAWS = 2000


def sign_test(better: int, worse: int) -> float:
    """Return how often tosses of a coin would split at least as unevenly, 0..1 (the two-sided sign test).

    Args:
        better: On how many questions one does better than the other: `Evaluation.against`.
        worse: On how many it does worse.
    """
    tosses = better + worse
    splits: int = sum(math.comb(tosses, k) for k in range(min(better, worse) + 1))
    return float(min(1.0, 2 * splits / 2**tosses))


def is_better(evaluation: Evaluation, baseline: Evaluation) -> bool:
    """Tell if one evaluation shows more evidence than another, by the sign test with p < 0.05.

    Args:
        evaluation: The evaluation that may show more.
        baseline: Another one, on the same questions.

    Raises:
        QueryError: They were asked different questions.
    """
    better, worse = evaluation.compare_with(baseline)
    return better > worse and sign_test(better, worse) < _SURE


def estimate_interval(evaluation: Evaluation) -> tuple[float, float]:
    """Return the interval, 0..1, that holds 95 % of bootstrap shares of the evidence.

    Args:
        evaluation: The evaluation.

    Raises:
        QueryError: None of its questions has evidence.
    """
    import numpy

    shares = [row.coverage for row in evaluation.rows if row.coverage is not None]
    if not shares:
        raise QueryError(f"no question of {evaluation.name!r} has evidence: there is no share to be sure of")
    draws = numpy.random.default_rng(1).choice(shares, (_DRAWS, len(shares)))
    low, high = numpy.percentile(draws.mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
