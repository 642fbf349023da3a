"""Measure how well a memory answers labelled questions, and which settings answer them best."""

from openclaw_memory.evaluation.evaluate import compare, copy_lab, evaluate, read_questions
from openclaw_memory.evaluation.report import Comparison, Evaluation, Question

__all__ = [
    "Comparison",
    "Evaluation",
    "Question",
    "compare",
    "copy_lab",
    "evaluate",
    "read_questions",
]
