"""The jobs that share GPUs are written for Kubernetes and Slurm."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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
