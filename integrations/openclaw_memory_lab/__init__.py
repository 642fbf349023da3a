"""Measure how well a memory answers labelled questions, and which settings answer them best."""

from openclaw_memory_lab.evaluation import compare, copy_lab, evaluate, read_questions
from openclaw_memory_lab.plots import plot_against, plot_explanation, plot_groups
from openclaw_memory_lab.report import Answered, Comparison, Evaluation, Question
from openclaw_memory_lab.server import EmbeddingServer
from openclaw_memory_lab.significance import estimate_interval, is_better, sign_test

__all__ = [
    "Answered",
    "Comparison",
    "EmbeddingServer",
    "Evaluation",
    "Question",
    "compare",
    "copy_lab",
    "estimate_interval",
    "evaluate",
    "is_better",
    "plot_against",
    "plot_explanation",
    "plot_groups",
    "read_questions",
    "sign_test",
]
