"""The diagnosis as tables: which readings mean which cause. `planner.diagnose` applies them.

Utilisation (`util.kernel_time`) is time with a kernel running, not work done: no rule sizes a GPU
down on it alone. To add a rule, add a row to the table of its theme.
"""

from planner.rule import Rule
from planner.rules import feeding, holding, kernels, missing, together

RULES: tuple[Rule, ...] = (
    *feeding.RULES,
    *holding.RULES,
    *together.RULES,
    *kernels.RULES,
    *missing.RULES,
)
