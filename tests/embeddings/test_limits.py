"""Limits of a request that are learnt from refusals, and forgotten again."""

import pytest

from openclaw_memory.embeddings.remote.errors import FailureKind
from openclaw_memory.embeddings.remote.pipeline import ANSWERS_UNTIL_MORE, SHORTEST_PIECE, AdaptiveLimits
from openclaw_memory.embeddings.remote.service import Limits

SAID = Limits(items=100, input_tokens=2000, request_tokens=8000)


@pytest.mark.parametrize(
    ("meaning", "weights", "now"),
    [
        (FailureKind.TOO_MANY, [10] * 80, Limits(40, 2000, 8000)),
        (FailureKind.TOO_MANY, [10], Limits(1, 2000, 8000)),
        (FailureKind.TOO_LARGE, [1000] * 6, Limits(100, 2000, 3000)),
        (FailureKind.TOO_LARGE, [1500], Limits(100, 750, 8000)),
        (FailureKind.TOO_LARGE, [300], Limits(100, SHORTEST_PIECE, 8000)),
        (FailureKind.REFUSED, [10] * 80, SAID),
    ],
)
def test_half_of_what_was_too_much_is_the_new_limit(meaning, weights, now):
    learnt = AdaptiveLimits(SAID)
    learnt.refused(meaning, weights)
    assert learnt.now == now


def test_a_limit_never_grows_by_a_refusal():
    learnt = AdaptiveLimits(SAID)
    for count in (20, 80):
        learnt.refused(FailureKind.TOO_MANY, [10] * count)
    assert learnt.now.items == 10


def test_after_many_answers_more_is_tried_up_to_what_the_service_says():
    learnt = AdaptiveLimits(SAID)
    learnt.refused(FailureKind.TOO_MANY, [10] * 60)
    seen = []
    for _ in range(3):
        for _ in range(ANSWERS_UNTIL_MORE):
            seen.append(learnt.now.items)
            learnt.answered()
    assert seen == [30] * ANSWERS_UNTIL_MORE + [60] * ANSWERS_UNTIL_MORE + [100] * ANSWERS_UNTIL_MORE
    assert learnt.now == SAID
