"""How texts are parted into requests, and how the vectors of pieces become one: laws that hold for any text."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.embeddings.vectors import joined, normalised, packs

SIZES = st.lists(st.integers(min_value=0, max_value=50))
LIMIT = st.integers(min_value=1, max_value=60)


@given(SIZES, LIMIT, LIMIT)
def test_packs_hold_all_items_in_their_order_within_both_limits_and_are_as_few_as_can_be(sizes, max_items, max_weight):
    found = list(packs(sizes, max_items, max_weight, lambda size: size))
    assert [size for pack in found for size in pack] == sizes
    assert all(len(pack) == 1 or (len(pack) <= max_items and sum(pack) <= max_weight) for pack in found)
    for pack, following in pairwise(found):
        assert len(pack) == max_items or sum(pack) + following[0] > max_weight


VECTORS = st.lists(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(any), min_size=1, max_size=6)


@given(VECTORS)
def test_vectors_of_equal_weight_join_to_the_direction_of_their_mean(rows):
    vectors = normalised(rows)
    whole = joined(vectors, [3] * len(rows))
    assert whole.shape == (4,)
    assert whole.dtype == np.float32
    assert np.allclose(whole, normalised(vectors.mean(axis=0, dtype=np.float64)[None])[0], atol=1e-4)


@pytest.mark.parametrize(("weights", "expected"), [([1, 0], [1, 0]), ([1, 1], [0.7071, 0.7071]), ([3, 4], [0.6, 0.8])])
def test_a_heavier_piece_counts_for_more(weights, expected):
    assert np.allclose(joined(np.eye(2, dtype=np.float32), weights), expected, atol=1e-4)
