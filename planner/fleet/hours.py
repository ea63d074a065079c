"""Who wants how much of a GPU in which hour: jobs that are busy at other hours than each other."""

from collections.abc import Sequence
from functools import reduce

from planner.baseline.demand import hourly_demand, measured_requests_per_s
from planner.fleet.tenant import Tenant


def wanted_by_hour(one: Tenant) -> tuple[float, ...]:
    """Return the share of the GPU that a job takes in each hour of a day or week, each at least 0.

    It is the measured share, times the demand of the hour over the requests that were measured.
    Empty where demand by the hour, requests or GPU use are not known.
    """
    demand, measured = hourly_demand(one.profile), measured_requests_per_s(one.profile)
    if demand is None or not measured or one.share is None:
        return ()
    return tuple(one.share * rate / measured for rate in demand)


def wanted_together(group: Sequence[Tenant]) -> tuple[float, ...]:
    """Return the share that jobs want together in each hour; empty where it is not known of all.

    A day beside a week is known: every day of the week is then like that day.
    """
    each = [wanted_by_hour(one) for one in group]
    longest = max((len(one) for one in each), default=0)
    if not longest or not all(each):
        return ()
    whole = [one * (longest // len(one)) for one in each]
    return reduce(lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), whole)
