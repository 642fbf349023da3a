"""What the tests of the lab share."""

import pytest
from openclaw_memory_lab import Answered, Evaluation, Question


@pytest.fixture
def shown():
    """A function that makes an evaluation: its name, and the share of the evidence shown for each question."""

    def make(name: str, *shares: float) -> Evaluation:
        questions = [Question(f"question {at}?", ("a quote",), "en", "keyword") for at in range(len(shares))]
        rows = (Answered(question, share, None, 1, 10) for question, share in zip(questions, shares, strict=True))
        return Evaluation(name, tuple(rows))

    return make
