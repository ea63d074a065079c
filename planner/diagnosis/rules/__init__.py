"""The diagnosis as tables: which readings mean which cause.

`planner.diagnosis.diagnose` applies them.

Utilisation (`util.kernel_time`) is time with a kernel running, not work done: no rule sizes a GPU
down on it alone. To add a rule, add a row to the table of its theme.
"""

from planner.diagnosis.rules import compute as kernels
from planner.diagnosis.rules import idle as holding
from planner.diagnosis.rules import input as feeding
from planner.diagnosis.rules import multi_gpu as together
from planner.diagnosis.rules import unmeasured as missing
from planner.diagnosis.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    *feeding.RULES,
    *holding.RULES,
    *together.RULES,
    *kernels.RULES,
    *missing.RULES,
)
