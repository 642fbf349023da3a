"""When a flush is due: from the threshold on, by the size of a transcript, before a compaction, and never elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.thresholds import find_flush_reason

RULES = CompactionConfig()
BIG = RULES.force_flush_bytes


@pytest.mark.parametrize(
    ("window", "free", "flush", "compaction"),
    [
        (200_000, 20_000, 176_000, 180_000), (1_000_000, 20_000, 976_000, 980_000), (32_000, 8_000, 20_000, 24_000),
        (16_000, 4_000, 8_000, 12_000), (8_192, 2_048, 3_072, 6_144), (1_024, 256, 384, 768), (100, 25, 38, 75),
        (4, 1, 2, 3), (1, 0, 1, 1), (0, 20_000, None, None), (-5, 20_000, None, None), (None, 20_000, None, None),
    ],
)  # fmt: skip
def test_the_thresholds_of_a_window(window, free, flush, compaction):
    assert RULES.get_reserve(window) == free
    assert RULES.get_flush_threshold(window) == flush
    assert RULES.get_compaction_threshold(window) == compaction


@given(st.integers(1, 2_000_000), st.integers(0, 10_000_000), st.integers(0, 10_000_000))
def test_a_flush_is_due_before_a_compaction_whatever_the_settings(window, wanted, soft):
    rules = CompactionConfig(reserve_tokens=wanted, soft_threshold_tokens=soft)
    assert window // 4 < rules.get_flush_threshold(window) <= rules.get_compaction_threshold(window)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"tokens": 176_000}, "threshold"),
        ({"tokens": 175_999}, None),
        ({"tokens": 500_000}, "threshold"),
        ({"tokens": 0}, None),
        ({"tokens": None}, None),
        ({"tokens": -1}, None),
        ({"tokens": 1, "transcript_bytes": BIG}, "transcript"),
        ({"tokens": None, "transcript_bytes": BIG}, "transcript"),
        ({"tokens": 1, "transcript_bytes": BIG - 1}, None),
        ({"tokens": 1, "compacting": True}, "compaction"),
        ({"tokens": None, "compacting": True}, "compaction"),
        ({"tokens": 180_000, "transcript_bytes": BIG, "compacting": True}, "threshold"),
    ],
)
def test_a_flush_has_a_reason(given, reason):
    assert find_flush_reason(RULES, window=200_000, **given) == reason


@pytest.mark.fault(29)
@pytest.mark.parametrize("window", [0, -200_000, None])
def test_in_a_window_that_is_unknown_no_number_of_tokens_is_a_reason_but_others_are(window):
    assert all(find_flush_reason(RULES, window=window, tokens=tokens) is None for tokens in (1, 100, 176_000, 10**9))
    assert find_flush_reason(RULES, window=window, tokens=1, transcript_bytes=BIG) == "transcript"
    assert find_flush_reason(RULES, window=window, tokens=1, compacting=True) == "compaction"


@pytest.mark.fault(29)
@pytest.mark.parametrize(
    "never",
    [{"kind": "heartbeat"}, {"kind": "cli"}, {"kind": "flush"}, {"flushed": True}],
    ids=lambda never: str(next(iter(never.items()))),
)
@pytest.mark.parametrize(
    "reason", [{"tokens": 199_000}, {"tokens": 1, "transcript_bytes": BIG}, {"tokens": 1, "compacting": True}]
)
def test_some_turns_are_never_flushed(never, reason):
    assert find_flush_reason(RULES, window=200_000, **reason) is not None
    assert find_flush_reason(RULES, window=200_000, **reason, **never) is None
    for off in ({"flush": False}, {"enabled": False}):
        assert find_flush_reason(CompactionConfig(**off), window=200_000, **reason) is None
