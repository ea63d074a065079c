"""The first lines that a reader sees, of one job or of several.

The terminal, report.md and the comment begin with these lines; each draws them in its own way.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from planner.plan.bill import CostRange
from pricing.message import Message
from templates.language.translate import _, join, translate_text
from templates.report_text import money_range, money_text, period_words, whole_dollars
from templates.reports import job_screen as one_job
from templates.reports.decision import work_hours
from templates.reports.fleet_screen import fleet_screen, saved_share
from templates.reports.job_screen import Action, FirstScreen, Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.plan.bill import ClusterBill
    from planner.plan.plan import Plan, RecommendedTotal


def first_screen(plan: Plan, read_from: str = "") -> FirstScreen:
    """Return the first lines of a plan.

    Args:
        plan: made now, or read back.
        read_from: what was read, in words.
    """
    total = plan.recommended
    if plan.clusters is not UNSET and total is not None:
        jobs = structs.replace(plan, clusters=UNSET, recommended=_of_jobs(total, plan.clusters))
        return _in_cluster(first_screen(jobs, read_from), plan, total, plan.clusters)
    if len(plan.jobs) == 1:
        return one_job.job_screen(plan.jobs[0], plan, read_from)
    return fleet_screen(plan, read_from)


def _of_jobs(total: RecommendedTotal, clusters: tuple[ClusterBill, ...]) -> RecommendedTotal:
    """Return the total without what the cluster costs beside its jobs."""
    before, after = clusters[0].beside_usd, clusters[1].beside_usd
    low, mid, high = (cost - after for cost in (total.cost.low, total.cost.mid, total.cost.high))
    jobs = CostRange(low=low, mid=mid, high=high)
    return structs.replace(total, cost_before=total.cost_before - before, cost=jobs)


def _in_cluster(
    screen: FirstScreen, plan: Plan, total: RecommendedTotal, clusters: tuple[ClusterBill, ...]
) -> FirstScreen:
    """Return the screen of the jobs with the bill of their cluster, and one answer for both."""
    today, after, *not_taken = clusters
    paid, cost = total.cost_before, total.cost
    usd = {line.what: Decimal(0) for line in today.lines}
    for line in today.lines:
        usd[line.what] += line.usd
    parts = [_("jobs {usd}", usd=whole_dollars(paid - today.beside_usd))]
    parts += [
        f"{translate_text(Message(f'line.{kind}'))} {whole_dollars(usd[kind])}" for kind in usd
    ]
    pay = _("{usd} {period}", usd=money_text(paid), period=period_words(plan))
    facts = [
        replace(screen.facts[0], text=_("{one}; {other}", one=pay, other=_name(today))),
        Line(label=_("Of it"), text=join(parts)),
        Line(label=_("Nodes"), text=_range(today)),
        *(line for line in screen.facts[1:] if line.kind != "advice"),
    ]
    moves = after.cluster != today.cluster or not today.max_nodes
    does = _("move to {cluster}") if moves else _("stay in {cluster}")
    inner = next((action for action in screen.actions if action.label == _("In all")), None)
    does = join(
        (*((inner.text,) if inner else ()), does.format(cluster=_name(after)), _range(after))
    )
    answer = Action(
        label=_("In all"),
        text=does,
        figures=(
            money_range(cost.low, cost.mid, cost.high, at_least=total.at_least),
            *_saved_and_work(cost.mid, paid, plan.roi.effort_hours),
        ),
        cost=cost,
    )
    own = [a for a in screen.actions if a.label not in {_("In all"), _("Cheapest")}]
    own = [_with_cluster(action, today.beside_usd, paid) for action in own]
    idle = usd.get("idle-nodes", Decimal(0))
    return replace(
        screen,
        facts=tuple(facts),
        actions=(*own, answer, *_not_taken(not_taken, paid)),
        notes=tuple(_notes(screen, plan, after)),
        commands=tuple(_on_nodes(command) for command in screen.commands),
        paid_usd=paid,
        wasted_usd=None if screen.wasted_usd is None else screen.wasted_usd + idle,
    )


def _with_cluster(action: Action, beside_usd: Decimal, paid: Decimal) -> Action:
    """Return a step of a fleet with what its cluster costs beside its jobs, as in what is paid."""
    if action.cost is None or action.label != _("At home"):
        return action
    usd = action.cost.mid + beside_usd
    figures = (whole_dollars(usd), one_job.saved_words(saved_share(usd, paid)))
    return replace(action, figures=figures, cost=CostRange.exactly(usd))


def _notes(screen: FirstScreen, plan: Plan, after: ClusterBill) -> Iterator[Line]:
    """Yield the notes; what to type is about nodes of the cluster, not machines of their own."""
    changes = any(job.choice or job.placement for job in plan.jobs)
    for note in screen.notes:
        if changes or note.label not in {_("Run"), _("Settle it"), _("Or launch")}:
            yield replace(note, text=_on_nodes(note.text))
    if not changes:
        lowers = _LOWERS[after.cluster].format(n=after.min_nodes)
        report = one_job.with_plan(f"gpucost report{one_job.plan_argument()} -o report.md")
        yield Line(label=_("Run"), text=lowers if after.steps else report)


_LOWERS = {
    "eks": "aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name POOL "
    "--scaling-config minSize={n}",
    "doks": "doctl kubernetes cluster node-pool update CLUSTER POOL --min-nodes {n}",
}


def _on_nodes(command: str) -> str:
    return (
        command.replace("--run COMMAND", "--kubernetes CLUSTER")
        if "provision" in command
        else command
    )


def _saved_and_work(usd: Decimal, paid: Decimal, hours: float) -> tuple[str, ...]:
    saved = one_job.saved_words(saved_share(usd, paid))
    return (saved, work_hours(hours)) if hours else (saved,)


def _not_taken(ways: list[ClusterBill], paid: Decimal) -> Iterator[Action]:
    """Yield the clusters that are not recommended, each with the reason."""
    for way in ways:
        text = _("{cluster}: {reason}", cluster=_name(way), reason=translate_text(way.reason or ""))
        if way.usd is None:
            yield Action(label=_("Not"), text=text)
            continue
        figures = (whole_dollars(way.usd), *_saved_and_work(way.usd, paid, way.effort_hours))
        yield Action(label=_("Or"), text=text, figures=figures, cost=CostRange.exactly(way.usd))


def _name(bill: ClusterBill) -> str:
    return " ".join(filter(None, (bill.cluster.upper(), bill.region)))


def _range(bill: ClusterBill) -> str:
    """Return the autoscaler's least and most, in nodes and dollars of the cluster."""
    return _(
        "{low} to {high} GPU nodes, {min} to {max}",
        low=bill.min_nodes,
        high=bill.max_nodes,
        min=whole_dollars(bill.min_usd),
        max=whole_dollars(bill.max_usd),
    )
