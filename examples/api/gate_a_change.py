"""Refuse a change that makes a job dearer: exit 7 where it costs over 10 % more than before.

python examples/api/gate_a_change.py examples/visual-search.json after.json
"""

import sys
from decimal import Decimal

import gpucost

TOLERATED = Decimal("1.10")
catalog = gpucost.load_catalog()


def cost(path: str) -> Decimal:
    """Return what the job costs for the period as it runs now."""
    plan = gpucost.make_plan(
        (gpucost.load_profile(path),), catalog, gpucost.Requirements(), as_of=catalog.as_of
    )
    total = plan.jobs[0].baseline.cost.total
    if total is None:
        sys.exit(f"{path}: nobody knows what it runs on; give hardware.provider and instance_type.")
    return total


before, after = (cost(path) for path in sys.argv[1:3])
print(f"{before} USD before, {after} USD after")
sys.exit(7 if after > before * TOLERATED else 0)
