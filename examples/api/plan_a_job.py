"""Plan one measured job: what it costs today, and what to run instead.

python examples/api/plan_a_job.py examples/visual-search.json
"""

import sys
from datetime import date

import gpucost

profile = gpucost.load_profile(sys.argv[1])
catalog = gpucost.load_catalog(date(2026, 11, 22))  # prices as they hold on that day
asked = gpucost.Requirements(providers=("aws",), regions=("us-east-1",))
plan = gpucost.make_plan((profile,), catalog, asked, as_of=catalog.as_of)

(job,) = plan.jobs
print(f"{job.name}: {job.findings[0].cause}")
for option in job.options[:5]:
    star = "*" if option.id == job.recommended else " "
    hours, offer, cost = option.hours, option.offer, option.cost
    print(
        f"{star} {option.id}: {option.count} x {offer.provider}/{offer.instance_type}, "
        f"{hours.low:.0f}-{hours.high:.0f} h, {cost.low}-{cost.high} USD, "
        f"{', '.join(option.actions) or 'as it is'}"
    )
