"""The diagnosis as tables: which readings mean which cause.

`planner.diagnosis.diagnose` applies them.

Utilisation (`util.kernel_time`) is time with a kernel running, not work done: no rule sizes a GPU
down on it alone. To add a rule, add a row to the table of its theme.
"""

from planner.diagnosis.rules import compute, idle, program
from planner.diagnosis.rules import input as input_pipeline
from planner.diagnosis.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    *input_pipeline.RULES,
    *idle.RULES,
    *program.RULES,
    *compute.MULTI_GPU,
    *compute.RULES,
    *idle.UNMEASURED,
)
