"""Jobs in a Kubernetes cluster: its bill today and after, worked out by hand to the cent."""

from datetime import date
from decimal import Decimal

import msgspec
import pytest
from msgspec.structs import replace

from planner.choice.requirements import Cluster, Requirements
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.model import MonthlyUse, Profile
from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
from templates.reports.first_screen import first_screen
from tests.planner.factories import a_profile

DAY = date(2026, 11, 21)
EKS = msgspec.convert(
    {
        "kind": "eks",
        "region": "us-east-1",
        "cpu_nodes": [{"type": "m5.xlarge", "count": 3}],
        "gpu_nodes": [{"type": "g5.xlarge", "min": 1, "max": 4}],
    },
    Cluster,
)
DOKS = msgspec.convert(
    {
        "kind": "doks",
        "control_plane": "ha",
        "cpu_nodes": [{"type": "s-4vcpu-8gb", "count": 2}],
        "gpu_nodes": [{"type": "gpu-l40sx1-48gb", "min": 1, "max": 3}],
    },
    Cluster,
)


def a_job(place: str, hours: float = 300.0, **fields: object) -> Profile:
    """A job on one node of a type, for so many hours of a month."""
    provider, instance_type, gpu = place.split("/")
    named = {"provider": provider, "instance_type": instance_type, "gpu": gpu, **fields}
    profile = a_profile({"util.kernel_time": 0.1, "mem.used_gib": 6.0}, **named)
    return replace(profile, usage=MonthlyUse(hours_per_month=hours))


def planned(cluster: Cluster | None, *jobs: Profile, **limits: object) -> Plan:
    """The plan of jobs in a cluster; bills are of machine time alone."""
    asked = Requirements(
        cluster=cluster, boot_disk_bytes=0, public_address=False, machine_only=True, **limits
    )
    return to_plan(draft_plan(jobs, load_catalog(DAY), asked, as_of=DAY))


def lines(plan: Plan, place: int) -> dict[str, str]:
    """The lines of a cluster's bill, in cents."""
    return {line.what: f"{line.usd:.2f}" for line in plan.clusters[place].lines}


def test_an_eks_cluster_by_hand() -> None:
    """Control plane 730 x 0.10, 3 x 730 x 0.192, job 300 x 1.006, idle (730 - 300) x 1.006."""
    plan = planned(EKS, a_job("aws/g5.xlarge/A10G", region="us-east-1"))
    today, after, other = plan.clusters
    assert lines(plan, 0) == {
        "control-plane": "73.00",
        "cpu-nodes": "420.48",
        "idle-nodes": "432.58",
    }
    assert plan.recommended.cost_before == today.usd == Decimal("1227.86")
    assert (today.min_nodes, today.max_nodes) == (1, 4)
    assert (today.min_usd, today.max_usd) == (Decimal("1227.86"), Decimal("3431.00"))
    assert after.cluster == "eks"
    assert (after.min_nodes, "idle-nodes" in lines(plan, 1)) == (0, False)
    assert (after.min_usd, after.usd) == (Decimal("493.48"), plan.recommended.cost.mid)
    assert after.usd <= Decimal("795.28")  # as above without idle nodes, or better
    assert (other.cluster, other.effort_hours) == ("doks", 24)
    assert lines(plan, 2)["cpu-nodes"] == "288.00"  # 3 x s-8vcpu-16gb, the least with 16 GiB
    assert len(other.steps) == 5


def test_a_doks_cluster_by_hand() -> None:
    """HA 40, 2 x 48, job 300 x 1.57, idle (730 - 300) x 1.57; a pool does not go below one node."""
    plan = planned(DOKS, a_job("digitalocean/gpu-l40sx1-48gb/L40S"))
    today, after = plan.clusters
    assert lines(plan, 0) == {
        "control-plane": "40.00",
        "cpu-nodes": "96.00",
        "idle-nodes": "675.10",
    }
    assert plan.recommended.cost_before == Decimal("1282.10")
    assert (today.min_usd, today.max_usd) == (Decimal("1282.10"), Decimal("3574.30"))
    assert after.min_nodes == 1
    assert after.usd <= Decimal("1282.10")


def test_services_that_share_a_node_leave_the_pool_one() -> None:
    """Two services on two nodes, 40 + 96 + 2 x 730 x 1.57; sharing one node saves 1,146.10."""
    place, kind = "digitalocean/gpu-l40sx1-48gb/L40S", "inference_online"
    jobs = (a_job(place, 730.0, name=name, kind=kind) for name in ("chat", "rank"))
    plan = planned(DOKS, *jobs, gpus=("L40S",))
    today, after = plan.clusters
    assert (today.usd, after.usd) == (Decimal("2428.20"), Decimal("1282.10"))
    assert (today.max_nodes, after.min_nodes) == (3, 1)


def test_a_dear_eks_cluster_moves_to_doks() -> None:
    """8 H100 all month: p5.48xlarge 40,179.20 + 73 becomes gpu-h100x8 25,754.40, work paid."""
    job = a_job("aws/p5.48xlarge/H100-SXM-80GB", 730.0, region="us-east-1", gpu_count=8)
    plan = planned(Cluster(kind="eks"), job, gpus=("H100-SXM-80GB",))
    today, after, *_ = plan.clusters
    assert today.usd == Decimal("40252.20")
    assert (after.cluster, after.usd <= Decimal("25754.40")) == ("doks", True)
    assert plan.roi.effort_hours >= 24


def test_a_gpu_that_the_cluster_does_not_sell_is_compared_with_what_it_sells() -> None:
    """DOKS has no A100: today is an assumed machine elsewhere, and an answer is a node of DOKS."""
    metrics = {"util.kernel_time": 0.6, "mem.used_gib": 30.0}
    job = a_profile(metrics, name="a100", kind="training", gpu="NVIDIA A100-SXM4-40GB", hours=None)
    plan = planned(Cluster(kind="doks"), job)
    today, after = plan.clusters
    assert (today.max_nodes, after.max_nodes) == (0, 1)
    assert plan.recommended.cost_before == today.usd
    assert plan.jobs[0].choice.offer.provider == "digitalocean"
    screen = first_screen(plan)
    assert any("DOKS has no A100-SXM-40GB nodes." in line.text for line in screen.notes)
    assert screen.actions[-1].text.startswith("move to DOKS")


def test_the_profile_may_name_the_cluster() -> None:
    """hardware.cluster is enough; jobs of different clusters, or elsewhere, are refused."""
    job = a_job("aws/g5.xlarge/A10G", region="us-east-1", cluster="eks")
    assert planned(None, job).clusters[0].cluster == "eks"
    lone = a_job("aws/g5.xlarge/A10G", region="us-east-1", name="lone")
    with pytest.raises(InputError, match=r"hardware\.cluster differs"):
        planned(None, job, lone)
    with pytest.raises(InputError, match="not a node of a DOKS cluster"):
        planned(Cluster(kind="doks"), lone)
    with pytest.raises(InputError, match="give usd_per_hour"):
        planned(msgspec.convert({"kind": "eks", "cpu_nodes": [{"type": "x9"}]}, Cluster), lone)


def test_the_first_screen_has_one_answer_for_all() -> None:
    """What is paid, its parts, the autoscaler's range, one total; in 10 to 14 lines."""
    plan = planned(EKS, a_job("aws/g5.xlarge/A10G", region="us-east-1", kind="training"))
    screen = first_screen(plan)
    assert screen.paid_usd == Decimal("1227.86")
    assert screen.facts[1].text.startswith("jobs $302, control-plane $73, CPU nodes $420")
    assert screen.facts[2].text == "1 to 4 GPU nodes, $1,228 to $3,431"
    answer = next(action for action in screen.actions if action.label == "In all")
    assert answer.cost == plan.recommended.cost
    assert "stay in EKS us-east-1, 0 to 4 GPU nodes" in answer.text
    assert any("--kubernetes CLUSTER" in c or "minSize=0" in c for c in screen.commands) or any(
        "minSize=0" in note.text for note in screen.notes
    )
