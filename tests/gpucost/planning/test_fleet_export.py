"""The jobs that share GPUs are written for Kubernetes and Slurm."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.plan.read import read_plan
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, inference

RUN = ("--run", "serve --model {job}", "--image", "registry/{job}:1", "--ttl", "8h")
KUBERNETES = ("export", "plan.json", "--to", "kubernetes", "--fleet", *RUN)
SLURM = ("export", "plan.json", "--to", "slurm", *RUN)


@pytest.fixture(autouse=True)
def plan(call: Call, write: Write) -> dict[str, Any]:
    """Return the plan of three jobs that share an H100, kept in plan.json."""
    files = [str(write(f"{name}.json", inference(name))) for name in ("a", "b; reboot", "c")]
    ran = call("plan", *files, "--as-of", AS_OF, "-o", "plan.json", "-q")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(Path("plan.json").read_text())
    assert [one["jobs"] for one in found["fleet"]["placements"]] == [["a", "b; reboot", "c"]]
    return found


def _documents(text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in yaml.safe_load_all(text):
        found.setdefault(one["kind"], []).append(one)
    return found


def test_kubernetes_shares_the_gpu_and_pins_its_jobs(call: Call) -> None:
    """The device plugin makes a share for each job, and each job asks for one on that node."""
    found = _documents(call(*KUBERNETES).out)
    (config,) = found["ConfigMap"]
    ((name, text),) = config["data"].items()
    assert name == "gpucost-1"
    assert yaml.safe_load(text)["sharing"]["mps"]["resources"] == [
        {"name": "nvidia.com/gpu", "replicas": 3}
    ]
    pods = [job["spec"]["template"]["spec"] for job in found["Job"]]
    assert [job["metadata"]["name"] for job in found["Job"]] == ["a", "b-reboot", "c"]
    assert {job["spec"]["activeDeadlineSeconds"] for job in found["Job"]} == {28_800}
    for pod in pods:
        assert pod["nodeSelector"] == {"gpucost-gpu": "1"}
        assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert pods[1]["containers"][0]["command"][2] == "serve --model 'b; reboot'"
    assert pods[1]["containers"][0]["image"] == "registry/b-reboot:1"


def test_slices_are_made_and_asked_for(call: Call, plan: dict[str, Any]) -> None:
    """With MIG the layout is mig-parted's, and each job asks for its own slice."""
    plan["fleet"]["placements"][0] |= {"mode": "mig", "slice": "3g.40gb,2g.20gb,2g.20gb"}
    Path("plan.json").write_text(json.dumps(plan))
    found = _documents(call(*KUBERNETES).out)
    (config,) = found["ConfigMap"]
    layout = yaml.safe_load(config["data"]["config.yaml"])["mig-configs"]["gpucost-1"]
    assert layout[0]["mig-devices"] == {"2g.20gb": 2, "3g.40gb": 1}
    asked = [
        list(job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"])
        for job in found["Job"]
    ]
    assert asked == [
        ["nvidia.com/mig-3g.40gb"],
        ["nvidia.com/mig-2g.20gb"],
        ["nvidia.com/mig-2g.20gb"],
    ]
    assert "--gres=gpu:3g.40gb:1" in call(*SLURM).out


def test_a_claim_of_dra_is_one_gpu_for_all_its_jobs(call: Call, plan: dict[str, Any]) -> None:
    """Jobs that share name one claim; a machine of several GPUs is no reason against it."""
    plan["fleet"]["placements"][0]["offer"]["gpu_count"] = 8
    Path("plan.json").write_text(json.dumps(plan))
    found = _documents(call(*KUBERNETES, "--by", "dra").out)
    (claim,) = found["ResourceClaim"]
    assert claim["metadata"]["name"] == "gpucost-gpu-1"
    (config,) = claim["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"]["sharing"] == {"strategy": "MPS"}
    (request,) = claim["spec"]["devices"]["requests"]
    assert "quantity('72Gi')" in request["exactly"]["selectors"][0]["cel"]["expression"]
    pods = [job["spec"]["template"]["spec"] for job in found["Job"]]
    assert len(pods) == 3
    for pod in pods:
        assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "gpucost-gpu-1"}]
        assert pod["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}


def test_slices_of_dra_are_claimed_one_by_one(call: Call, plan: dict[str, Any]) -> None:
    """Each kind of slice has a template of claims, and each job names that of its slice."""
    plan["fleet"]["placements"][0] |= {"mode": "mig", "slice": "3g.40gb,2g.20gb,2g.20gb"}
    Path("plan.json").write_text(json.dumps(plan))
    found = _documents(call(*KUBERNETES, "--by", "dra").out)
    asked = {
        one["metadata"]["name"]: one["spec"]["spec"]["devices"]["requests"][0]["exactly"]
        for one in found["ResourceClaimTemplate"]
    }
    assert {
        name: one["selectors"][0]["cel"]["expression"].split("==")[1] for name, one in asked.items()
    } == {"gpucost-gpu-1-2g.20gb": " '2g.20gb'", "gpucost-gpu-1-3g.40gb": " '3g.40gb'"}
    named = [
        job["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
        for job in found["Job"]
    ]
    assert named == ["gpucost-gpu-1-3g.40gb", "gpucost-gpu-1-2g.20gb", "gpucost-gpu-1-2g.20gb"]


@pytest.mark.parametrize("queue", [None, "team-a", "true"])
def test_kai_gives_each_job_its_part_of_a_gpu(queue: str | None, call: Call) -> None:
    """Fractions sum to one GPU at most; a named queue is made with the fleet's GPUs as quota."""
    words = () if queue is None else ("--queue", queue)
    found = _documents(call(*KUBERNETES, "--by", "kai", *words).out)
    templates = [job["spec"]["template"] for job in found["Job"]]
    parts = [float(one["metadata"]["annotations"]["gpu-fraction"]) for one in templates]
    assert len(parts) == 3
    assert 0.9 < sum(parts) <= 1.0
    assert {one["spec"]["schedulerName"] for one in templates} == {"kai-scheduler"}
    named = {one["metadata"]["labels"]["kai.scheduler/queue"] for one in templates}
    assert named == {queue or "default-queue"}
    made = [
        (one["metadata"]["name"], one["spec"]["resources"]["gpu"]) for one in found.get("Queue", ())
    ]
    assert made == ([(queue, {"quota": 1, "limit": 1, "overQuotaWeight": 1})] if queue else [])


def test_hami_holds_each_job_to_its_limits(call: Call, plan: dict[str, Any]) -> None:
    """Memory in MiB and percent of the cores, as in plan.json; together no more than the GPU."""
    limits = plan["fleet"]["placements"][0]["memory_limit_mib"]
    found = _documents(call(*KUBERNETES, "--by", "hami").out)
    asked = [
        job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        for job in found["Job"]
    ]
    assert [one["nvidia.com/gpumem"] for one in asked] == list(limits.values())
    assert {one["nvidia.com/gpu"] for one in asked} == {1}
    assert sum(limits.values()) <= 0.95 * 80 * 1024
    assert sum(one.get("nvidia.com/gpucores", 0) for one in asked) <= 100


def test_hami_without_a_known_limit_is_refused(call: Call, plan: dict[str, Any]) -> None:
    """A plan whose GPU has no limits is not exported as if it had."""
    plan["fleet"]["placements"][0].pop("memory_limit_mib")
    Path("plan.json").write_text(json.dumps(plan))
    ran = call(*KUBERNETES, "--by", "hami")
    assert ran.code == 2
    assert "memory was not measured" in ran.err


@pytest.mark.parametrize("by", ["device-plugin", "dra", "kai"])
def test_mps_pins_the_memory_of_each_job(by: str, call: Call, plan: dict[str, Any]) -> None:
    """Each container and each line of Slurm has CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of its limit."""
    limits = plan["fleet"]["placements"][0]["memory_limit_mib"].values()
    found = _documents(call(*KUBERNETES, "--by", by).out)
    pods = [job["spec"]["template"]["spec"]["containers"][0] for job in found["Job"]]
    name = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
    assert [pod["env"] for pod in pods] == [[{"name": name, "value": f"0={n}M"}] for n in limits]
    assert all(f"{name}=0={n}M bash -c" in call(*SLURM).out for n in limits)


def test_kueue_admits_as_many_as_there_are_shares(call: Call) -> None:
    """With --queue the quota is one share a job, and every job is in the queue."""
    found = _documents(call(*KUBERNETES, "--queue", "team-a").out)
    (cluster,), (local,) = found["ClusterQueue"], found["LocalQueue"]
    (group,) = cluster["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["nvidia.com/gpu"]
    assert group["flavors"][0]["resources"] == [{"name": "nvidia.com/gpu", "nominalQuota": 3}]
    assert group["flavors"][0]["name"] == found["ResourceFlavor"][0]["metadata"]["name"]
    assert local["spec"]["clusterQueue"] == cluster["metadata"]["name"]
    labels = {job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for job in found["Job"]}
    assert labels == {local["metadata"]["name"]} == {"team-a"}


def test_the_plan_says_what_may_go_wrong_and_how_to_go_back(
    call: Call, plan: dict[str, Any]
) -> None:
    """plan.json, the report, the screen and the file tell the risks of each shared GPU."""
    risks = plan["fleet"]["placements"][0]["risks"]
    assert [risk.split(":")[0] for risk in risks] == [
        "errors",
        "no isolation",
        "memory",
        "limits",
        "peaks",
        "peaks",
        "speed",
    ]
    report = call("report", "plan.json").out
    screen = " ".join(call("fleet", "plan.json", "-v").out.split())
    file = call(*KUBERNETES).out
    for risk in risks:
        assert risk in report
        assert risk in screen
        assert risk in file
    assert plan["fleet"]["roll_back"] in report
    assert plan["fleet"]["roll_back"] in screen


@pytest.mark.slow
def test_slurm_starts_one_allocation_a_gpu(call: Call) -> None:
    """One script holds the GPU, starts MPS, runs the jobs side by side; shellcheck is clean."""
    text = call(*SLURM).out
    assert text.count("sbatch <<") == 1
    assert "#SBATCH --gres=gpu:1\n" in text
    assert "#SBATCH --time=480\n" in text
    assert "nvidia-cuda-mps-control -d" in text
    # What sbatch would be given, run here: each job's name arrives as one word.
    given = text.split("GPUCOST_JOB'\n")[1].split("\nGPUCOST_JOB")[0]
    assert "bash -c 'serve --model '\"'\"'b; reboot'\"'\"''" in given
    if shutil.which("shellcheck"):
        for one in (text, given):
            checked = subprocess.run(
                ["shellcheck", "-"], input=one, text=True, capture_output=True, check=False
            )
            assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--to", "kubernetes", "--fleet"),
            ("what runs there?", "in which container?", "--ttl 8h"),
        ),
        (("--to", "dstack", "--fleet", *RUN), ("--fleet is for --to kubernetes and --to slurm",)),
        (("--to", "slurm", "--option", "a/o1", *RUN), ("a fleet is exported whole",)),
        (("--to", "focus", "--fleet"), ("--fleet is for --to kubernetes and --to slurm",)),
        (("--to", "kubernetes", "--by", "dra", *RUN), ("--by and --queue are of a fleet",)),
        (("--to", "focus", "--queue", "team-a"), ("--by and --queue are of a fleet",)),
        (("--to", "slurm", "--by", "dra", *RUN), ("not for slurm",)),
        (("--to", "slurm", "--queue", "team-a", *RUN), ("not for slurm",)),
        (("--to", "kubernetes", "--fleet", "--by", "dra", "--queue", "q", *RUN), ("has none",)),
        (("--to", "kubernetes", "--fleet", "--queue", "a: b", *RUN), ("lower-case letters",)),
    ],
)
def test_what_is_missing_is_said_at_once(
    arguments: tuple[str, ...], said: tuple[str, ...], call: Call
) -> None:
    """Exit 2, every problem, nothing written."""
    ran = call("export", "plan.json", *arguments)
    assert ran.code == 2
    assert [word for word in said if word not in ran.err] == []
    assert ran.out == ""


@pytest.mark.parametrize(("by", "who"), [("device-plugin", "device plugin"), ("kai", "KAI")])
def test_one_of_several_gpus_needs_a_claim(
    by: str, who: str, call: Call, plan: dict[str, Any]
) -> None:
    """What cannot be told which GPU of a machine to share is refused, and what can is named."""
    plan["fleet"]["placements"][0]["offer"]["gpu_count"] = 8
    Path("plan.json").write_text(json.dumps(plan))
    ran = call(*KUBERNETES, "--by", by)
    assert ran.code == 2
    assert who in ran.err
    assert "--by dra" in ran.err
    assert ran.out == ""


def test_a_plan_that_shares_nothing_is_refused(call: Call, plan: dict[str, Any]) -> None:
    """Without two jobs on one GPU there is nothing to write."""
    Path("plan.json").write_text(
        json.dumps(
            {**plan, "fleet": None, "jobs": [{**job, "placement": None} for job in plan["jobs"]]}
        )
    )
    ran = call(*SLURM)
    assert ran.code == 2
    assert "nothing to share" in ran.err


def test_only_the_sharing_that_jobs_are_recommended_is_written(
    call: Call, plan: dict[str, Any]
) -> None:
    """A GPU of the packing that its jobs do not take is in no export and in no table."""
    first = plan["fleet"]["placements"][0]
    spare = {**first, "id": 2, "jobs": ["a", "b; reboot"]}
    plan["fleet"]["placements"] = [first, spare]
    Path("plan.json").write_text(json.dumps(plan))
    assert read_plan(Path("plan.json").read_bytes(), "plan.json").placements[0].id == 1
    out = call(*KUBERNETES).out
    assert "gpucost-gpu=1" in out
    assert "gpucost-gpu=2" not in out


@pytest.mark.parametrize("provider", ["runpod", "vast"])
def test_a_rented_container_is_no_node_of_a_cluster(
    provider: str, call: Call, plan: dict[str, Any]
) -> None:
    """Nobody can label it: where nothing else is shared the export is refused, with the way out."""
    plan["fleet"]["placements"][0]["offer"]["provider"] = provider
    Path("plan.json").write_text(json.dumps(plan))
    ran = call(*KUBERNETES)
    assert ran.code == 2
    assert "cannot be nodes of a cluster" in ran.err
    assert "gpucost provision --placement N" in ran.err
