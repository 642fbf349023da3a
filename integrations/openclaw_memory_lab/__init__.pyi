from .evaluation import compare as compare, copy_lab as copy_lab, evaluate as evaluate, read_questions as read_questions
from .plots import plot_against as plot_against, plot_explanation as plot_explanation, plot_groups as plot_groups
from .report import Answered as Answered, Comparison as Comparison, Evaluation as Evaluation, Question as Question
from .significance import estimate_interval as estimate_interval, is_better as is_better, sign_test as sign_test
