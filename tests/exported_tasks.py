"""`make export-test`: every option of every example as files of the tools."""

import contextlib
import sys
from itertools import product
from pathlib import Path

from click.testing import CliRunner

from gpucost.cli import cli
from gpucost.commands.planning.export import TOOLS, fleet_text, task_text
from gpucost.files.plan_file import load_plan
from planner.documents.selection import BY, FleetRequest
from planner.documents.task import AUTOSCALERS, TaskRequest
from planner.plan.making import to_plan
from pricing.errors import InputError
from tests.conftest import ROOT
from tests.planner.choice.test_replicas import OFFICE, by_hour
from tests.planner.factories import plan as planned


def main(folder: Path) -> int:
    """Write FOLDER/TOOL/JOB-ID.yaml of every option that the tool can start."""
    asked = TaskRequest(command="python train.py\necho 'done'", ttl_s=28_800, image="python:3.12")
    serves = TaskRequest(command="vllm serve", ttl_s=None, image="vllm/vllm-openai:v0.11.0")
    watched = TaskRequest(command="python train.py", ttl_s=28_800, idle_s=1800)
    for example in sorted((ROOT / "examples").rglob("*.json")):
        plan_file = folder / f"{example.stem}.json"
        words = ("--purchase", "on_demand", "--purchase", "spot", "-q", "-o", str(plan_file))
        CliRunner().invoke(cli, ["plan", str(example), *words])
        if not plan_file.exists():
            continue
        plan = load_plan(str(plan_file))
        names = [f"{job.name}/{one.id}" for job in plan.jobs for one in job.options]
        for tool in TOOLS:
            (folder / tool).mkdir(exist_ok=True)
            for name in names:
                for number, what in enumerate((asked, serves, watched)):
                    with contextlib.suppress(InputError):
                        text = task_text(tool, plan, (name,), what, ())[1]
                        target = folder / tool / f"{name.replace('/', '-')}-{number}"
                        target.write_text(text, encoding="utf-8")
    _fleets(folder)
    _services(folder)
    return 0


def _services(folder: Path) -> None:
    """Write services whose copies follow demand by the hour."""
    for number, demand in enumerate(
        (OFFICE, [100.0] * 12 + [10.0] * 12, [10.0] * 120 + [0.0] * 48)
    ):
        plan = to_plan(planned(by_hour(demand)))
        (name,) = (f"serve/{one.id}" for one in plan.jobs[0].options if one.scaling)
        for kind in AUTOSCALERS:
            asked = TaskRequest(command="serve", ttl_s=None, image="serve:1", autoscaler=kind)
            with contextlib.suppress(InputError):
                text = task_text("kubernetes", plan, (name,), asked, ())[1]
                (folder / "kubernetes" / f"service-{number}-{kind}").write_text(text, "utf-8")


def _fleets(folder: Path) -> None:
    """Write the jobs that share GPUs, as a cluster takes them."""
    plan_file = folder / "fleet.json"
    CliRunner().invoke(cli, ["plan", str(ROOT / "examples" / "fleet"), "-q", "-o", str(plan_file)])
    plan = load_plan(str(plan_file))
    for by, queue, ttl_s in product(BY, (None, "team-a"), (28_800, None)):
        asked = FleetRequest(
            command="serve {job}", image="registry/{job}:1", ttl_s=ttl_s, by=by, queue=queue
        )
        with contextlib.suppress(InputError):
            text, _ = fleet_text("kubernetes", plan, asked)
            name = f"fleet-{by}-{queue or 'none'}-{ttl_s or 0}"
            (folder / "kubernetes" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
