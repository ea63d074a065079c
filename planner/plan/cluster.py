"""The Kubernetes cluster that the jobs run in: its bill today and after, and the way to another.

What comes on top of the bills of the jobs is for a month: the control plane, nodes without GPUs,
and GPU nodes that the autoscaler keeps while no job needs them.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from msgspec import structs

from planner.choice.requirements import CLUSTER_PROVIDERS, Cluster, Requirements
from planner.plan.bill import ClusterBill, CostLine, cost_lines
from planner.plan.draft import JobDraft, PlanDraft, keeping, leaving, roi
from planner.plan.recommendation import MovingTerms
from planner.profile.model import Profile
from pricing.billing.quote import quote
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH, cents, usd, whole_dollars
from pricing.tables import read_csv

_ZERO = Decimal(0)
_MOVES_TO = "doks"
"""Where jobs of an EKS cluster may move to."""
_REWRITE_H = {"images": 4.0, "rights": 8.0, "volumes": 6.0, "selectors": 2.0, "pools": 4.0}
"""Engineering hours of each step from EKS to DOKS, our estimates."""
_LEAST_H = 0.5  # to lower the least of a node pool and watch one start from nothing; our estimate
_EKS_REGION = "us-east-1"


def cluster_of(profiles: Iterable[Profile], requirements: Requirements) -> Cluster | None:
    """Return the cluster that all jobs run in; None where neither options nor profiles name one.

    Raises:
        InputError: the profiles name different ones.
    """
    if requirements.cluster is not None:
        return requirements.cluster
    kinds = {profile.hardware.cluster for profile in profiles} or {None}
    if len(kinds) > 1:
        raise InputError(Message("cluster.differ"))
    return Cluster(kind=kind) if (kind := kinds.pop()) else None  # type: ignore[arg-type]


Drafts = Callable[[Requirements, Callable[[JobDraft], JobDraft] | None], PlanDraft]
"""Plans the jobs under requirements; the second changes what is planned for each alone."""


def plan_cluster(
    cluster: Cluster, draft: Drafts, catalog: Catalog, requirements: Requirements
) -> PlanDraft:
    """Return the best plan of jobs in a cluster: in the one of today, or at DigitalOcean.

    Raises:
        InputError: prices or sizes of the cluster are not known, or no way is left.
    """
    requirements = replace(
        requirements, cluster=cluster, current=requirements.current or _machine(cluster)
    )
    region = cluster.region or (_EKS_REGION if cluster.kind == "eks" else "")
    ways: list[PlanDraft] = []
    for kind, change in ((cluster.kind, None), (cluster.kind, keeping), (_MOVES_TO, leaving)):
        provider, leaves = CLUSTER_PROVIDERS[kind], kind != cluster.kind
        if (requirements.providers and provider not in requirements.providers) or (
            change is leaving and not leaves
        ):
            continue
        regions = requirements.regions or ((region,) if region and not leaves else ())
        limits = replace(requirements, providers=(provider,), regions=regions)
        plan = draft(limits, change)
        if not leaves:
            plan = _on_its_nodes(plan, cluster, partial(draft, limits))
        if plan.period != "month":
            raise InputError(Message("cluster.by-month-only"))
        ways.append(_with_bills(plan, cluster, catalog, leaves=leaves))
    if not ways:
        raise InputError(Message("cluster.none-left"))
    terms = MovingTerms(
        periods=requirements.horizon, engineer_usd_per_hour=requirements.engineer_usd_per_hour
    )
    ways = [_with_net(plan, terms) for plan in ways]
    possible = [plan for plan in ways if plan.clusters[1].usd is not None] or ways[:1]
    best = max(possible, key=lambda plan: plan.clusters[1].net_usd or _ZERO)
    not_taken = [
        _not_taken(plan.clusters[1], best)
        for plan in ways
        if plan.clusters[1].cluster != best.clusters[1].cluster
    ]
    total = replace(best, clusters=(*best.clusters, *not_taken))
    return replace(total, roi=roi(total.total, total.period, requirements.engineer_usd_per_hour))


def _is_foreign(job: JobDraft, provider: str) -> bool:
    """Return whether a job is assumed to run elsewhere: its cluster's provider has no such GPU."""
    offer = job.baseline.offer
    return job.baseline.assumed and offer is not None and offer.provider != provider


def _on_its_nodes(
    plan: PlanDraft, cluster: Cluster, draft: Callable[[Callable[[JobDraft], JobDraft]], PlanDraft]
) -> PlanDraft:
    """Return the plan; jobs that no node of the cluster can run today are on the cheapest that can.

    Which these are, it says.
    """
    foreign = [job for job in plan.jobs if _is_foreign(job, cluster.provider)]
    if not foreign:
        return plan
    notes = tuple(_has_no_node(job, cluster) for job in foreign)
    plan = draft(lambda job: leaving(job) if _is_foreign(job, cluster.provider) else job)
    return replace(plan, assumptions=(*notes, *plan.assumptions))


def _has_no_node(job: JobDraft, cluster: Cluster) -> Message:
    offer, kind = job.baseline.offer, cluster.kind.upper()
    gpu, place = (offer.gpu, offer.place) if offer else ("", "")
    return Message("cluster.not-sold", job=job.name, kind=kind, gpu=gpu, place=place)


def _machine(cluster: Cluster) -> str | None:
    """Return the size of its GPU nodes as the machine of the jobs; None where it has several."""
    if len(cluster.gpu_nodes) != 1:
        return None
    parts = (cluster.provider, cluster.gpu_nodes[0].type, cluster.region)
    return "/".join(filter(None, parts))


def _with_net(plan: PlanDraft, terms: MovingTerms) -> PlanDraft:
    today, after = plan.clusters
    net = cents(plan.total.net(terms))
    return replace(plan, clusters=(today, structs.replace(after, net_usd=net)))


def _not_taken(way: ClusterBill, best: PlanDraft) -> ClusterBill:
    """Return a way that is not taken, with the reason."""
    if way.reason:
        return structs.replace(way, role="other")
    better = best.clusters[1].net_usd or _ZERO
    less = whole_dollars(better - (way.net_usd or _ZERO))
    return structs.replace(way, role="other", reason=Message("cluster.less", usd=less))


@dataclass(slots=True, kw_only=True)
class _Nodes:
    """GPU nodes of one size, as jobs use them in a month."""

    offer: Offer
    hours: float = 0.0
    count: float = 0.0
    serves: bool = False

    def add(self, hours: float, count: float, *, serves: bool) -> None:
        """Count the nodes of a job, for so long each."""
        self.hours, self.count = self.hours + hours * count, self.count + count
        self.serves |= serves


def _today(
    jobs: Iterable[JobDraft], provider: str
) -> Iterator[tuple[JobDraft, Offer, float, float]]:
    """Yield the jobs on nodes of a provider with their node size, hours, and nodes."""
    for job in jobs:
        base = job.baseline
        if base.offer is not None and not _is_foreign(job, provider):
            part = base.tenancy.held / base.tenancy.of if base.tenancy else 1.0
            yield job, base.offer, base.hours.mid, base.count * part


def _after(plan: PlanDraft, provider: str) -> Iterator[tuple[JobDraft, Offer, float, float]]:
    """Yield the same after what is recommended; jobs that are to end hold nothing."""
    shared = plan.recommended.placements(plan.fleet)
    for job in plan.jobs:
        choice, placement = job.choice, shared.get(job.name)
        if placement is not None:
            part = 1.0 / placement.offer.gpu_count / len(placement.jobs)
            yield job, placement.offer, placement.hours, part
        elif job.remaining is not None:
            continue
        elif choice is None:
            yield from _today((job,), provider)
        else:
            yield job, choice.offer, choice.hours.mid, choice.count


def _pools(uses: Iterable[tuple[JobDraft, Offer, float, float]]) -> list[_Nodes]:
    pools: dict[str, _Nodes] = {}
    for job, offer, hours, count in uses:
        pool = pools.setdefault(f"{offer.place} {offer.purchase}", _Nodes(offer=offer))
        pool.add(hours, count, serves=job.profile.job.kind.answers)
    return list(pools.values())


def _with_bills(plan: PlanDraft, cluster: Cluster, catalog: Catalog, *, leaves: bool) -> PlanDraft:
    """Return the plan with the bills of the cluster today and after it.

    Raises:
        InputError: a job is stated to run elsewhere.
    """
    for job in plan.jobs:
        base = job.baseline
        if base.offer and not base.assumed and base.offer.provider != cluster.provider:
            on = {"place": base.offer.place, "kind": cluster.kind.upper()}
            raise InputError(Message("cluster.no-node", job=job.name, **on))
    jobs, target = plan.recommended, cluster
    if leaves:
        target = Cluster(kind="doks", gpu_nodes=cluster.gpu_nodes, cpu_nodes=cluster.cpu_nodes)
    today = _bill(
        cluster, _pools(_today(plan.jobs, cluster.provider)), jobs.before, plan, catalog, None
    )
    after = _bill(target, _pools(_after(plan, cluster.provider)), jobs.mid, plan, catalog, cluster)
    going = (job for job in plan.jobs if leaves or _is_foreign(job, cluster.provider))
    stuck = [job.name for job in going if job.choice is None]
    if stuck:
        after = structs.replace(after, usd=None, reason=Message("cluster.not-all", jobs=stuck))
    return replace(plan, clusters=(today, after))


def _bill(  # noqa: PLR0913, PLR0917 - one bill has that many parts
    cluster: Cluster,
    pools: list[_Nodes],
    jobs_usd: Decimal,
    plan: PlanDraft,
    catalog: Catalog,
    before: Cluster | None,
) -> ClusterBill:
    """Return what a cluster costs; `before`: the one of today, where it is the one after."""
    moves, lowered = before is not None and before.kind != cluster.kind, False
    lines = [_control_plane(cluster, catalog), *_cpu_nodes(cluster, catalog, moves=moves)]
    fixed = sum((line.usd for line in lines), _ZERO)
    min_nodes, max_nodes, low, high = 0, 0, fixed, fixed
    for pool in pools:
        limits = _limits(cluster, pool)
        needed = math.ceil(round(pool.count, 6))
        fewest, largest = limits[0], max(limits[1], needed)
        if before is not None:
            fewest = min(fewest, needed if pool.serves or cluster.kind == "doks" else 0)
            lowered |= not moves and fewest < limits[0]
        if cluster.kind == "doks":
            fewest = max(1, fewest)
        month = _nodes_usd(pool.offer, HOURS_PER_MONTH, plan, catalog)
        idle = fewest * HOURS_PER_MONTH - Decimal(str(round(pool.hours, 6)))
        if idle > 0:
            used = f"{pool.hours:.6g}"
            idle_line = CostLine(
                what="idle-nodes",
                usd=_nodes_usd(pool.offer, idle, plan, catalog),
                how=Message("cluster.idle-how", n=fewest, used=used, idle=f"{idle:.6g}"),
                rule=Message("cluster.idle-rule", machine=pool.offer.place),
                source=pool.offer.source,
                as_of=pool.offer.as_of.isoformat(),
            )
            lines.append(idle_line)
        min_nodes, max_nodes = min_nodes + fewest, max_nodes + largest
        low, high = low + fewest * month, high + largest * month
    return ClusterBill(
        role="today" if before is None else "recommended",
        cluster=cluster.kind,
        region=cluster.region or (_EKS_REGION if cluster.kind == "eks" else ""),
        usd=cents(jobs_usd + sum((line.usd for line in lines), _ZERO)),
        lines=tuple(lines),
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        min_usd=cents(low),
        max_usd=cents(high),
        effort_hours=sum(_REWRITE_H.values()) if moves else _LEAST_H if lowered else 0.0,
        steps=_steps(moves=moves, lowered=lowered),
    )


def _steps(*, moves: bool, lowered: bool) -> tuple[str, ...]:
    if moves:
        return tuple(Message(f"cluster.{step}", hours=f"{h:g}") for step, h in _REWRITE_H.items())
    return (Message("cluster.lower"),) if lowered else ()


def _limits(cluster: Cluster, pool: _Nodes) -> tuple[int, int]:
    """Return the least and the most nodes of a pool; one that takes the only one's place has its.

    A pool that nothing is known of has the nodes that the jobs use.
    """
    limits = {nodes.type: nodes.limits for nodes in cluster.gpu_nodes}
    if len(limits) == 1:
        return next(iter(limits.values()))
    nodes = math.ceil(round(pool.count, 6))
    return limits.get(pool.offer.instance_type, (nodes if pool.serves else 0, nodes))


def _nodes_usd(offer: Offer, hours: Decimal, plan: PlanDraft, catalog: Catalog) -> Decimal:
    """Return what a node costs for so many hours, with its disk and address as those of jobs."""
    work = plan.jobs[0].work
    use = Usage(
        duration_s=hours * 3600,
        boot_disk_bytes=work.boot_disk_bytes,
        addresses=int(work.public_address),
        as_of=catalog.as_of,
    )
    return quote(offer, use).exact


def _control_plane(cluster: Cluster, catalog: Catalog) -> CostLine:
    """Return the control plane of a month.

    Raises:
        InputError: no price is known of its kind.
    """
    offer = next(o for o in catalog.offers if o.provider == cluster.provider)
    use = Usage(
        duration_s=HOURS_PER_MONTH * 3600, control_plane=cluster.control_plane, as_of=catalog.as_of
    )
    bill = quote(offer, use)
    lines = [line for line in bill.lines if line.what == "control-plane"]
    if not lines:
        raise InputError(f"control_plane: {'; '.join(bill.warnings)}")
    return cost_lines(lines)[0]


def _cpu_nodes(cluster: Cluster, catalog: Catalog, *, moves: bool) -> Iterator[CostLine]:
    """Yield the pools without GPUs, for a month; where they move, of the least size that holds one.

    Raises:
        InputError: no price is known of a size, and none is stated.
    """
    rows = read_csv("cpu_nodes.csv")
    for pool in cluster.cpu_nodes:
        row = next((row for row in rows if row["instance_type"] == pool.type), None)
        twin = _twin(row, rows) if moves and row else row
        if pool.usd_per_hour is not None and not (moves and twin):
            twin = {"instance_type": pool.type, "usd_per_hour": f"{pool.usd_per_hour:f}"}
            twin |= {"source": Message("cluster.stated"), "as_of": catalog.as_of.isoformat()}
        if twin is None:
            raise InputError(f"cpu_nodes: no price of {pool.type} is known; give usd_per_hour.")
        count, monthly = max(pool.limits[0], 1), twin.get("usd_per_month")
        price = monthly or twin["usd_per_hour"]
        yield CostLine(
            what="cpu-nodes",
            usd=count * usd(price) * (1 if monthly else HOURS_PER_MONTH),
            how=Message(f"cluster.by-{'month' if monthly else 'hour'}", n=count, usd=price),
            rule=twin["instance_type"],
            source=twin["source"],
            as_of=twin["as_of"],
        )


def _twin(row: dict[str, str], rows: list[dict[str, str]]) -> dict[str, str] | None:
    """Return DigitalOcean's cheapest size with the cores and the memory of another."""
    fits = [
        size
        for size in rows
        if size["usd_per_month"]
        and all(float(size[name]) >= float(row[name]) for name in ("vcpus", "ram_gib"))
    ]
    return min(fits, key=lambda size: usd(size["usd_per_month"]), default=None)
