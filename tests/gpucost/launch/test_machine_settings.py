"""What to set on a machine is decided once: plan, recipe, report and user data say the same."""

import json
import re
import shlex
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpucost.launch.choice import change, choose_option
from gpucost.launch.options import LaunchOptions
from gpucost.launch.provisioning import build_spec
from gpucost.prices.cache import load_catalog
from planner.documents.recipe import make_recipe
from planner.models.document import encode
from planner.plan.read import find_option
from pricing.errors import InputError
from providers.provider import Provider
from providers.registry import CLOUDS, ROWS
from templates.report_text import detail
from tests.bootstrap.box import parts
from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Write
from tests.planner.plan.kept import as_values

DAY = "2026-11-22"
EXAMPLES = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("**/*.json")
)
_EIGHT = "examples/train-8xh100-aws.json"
_WISH = LaunchOptions(ttl_s=Decimal(3600))
_FLAG = re.compile(r"--(nproc-per-node|max-restarts|nnodes)=(\S+?)[\s)]")


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set machines up also at providers where this version launches none."""
    sold = {offer.provider for offer in load_catalog(date(2026, 11, 22)).offers}
    for name in sold - set(CLOUDS):
        monkeypatch.setitem(
            ROWS, name, Provider(name=name, title=name, cloud="tests.providers.fakes.memory")
        )


def _plan(call: Call, *arguments: str) -> dict[str, Any]:
    ran = call("plan", *arguments, "--as-of", DAY, "-q", "-o", "plan.json")
    assert ran.code == 0, ran.err
    read: dict[str, Any] = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    return read


def _user_data(name: str, count: int | None = None) -> dict[str, str]:
    """The files of the machine of an option, as a launch would write them."""
    catalog = load_catalog(date(2026, 11, 22))
    choice = change(choose_option("plan.json", name, catalog), count, None, catalog)
    spec = build_spec(choice, _WISH, datetime(2026, 11, 22, tzinfo=UTC), None)
    document = yaml.safe_load(parts(spec.places[0].user_data)["cloud-config"])
    return {file["path"]: file["content"] for file in document["write_files"]}


def _environment(files: dict[str, str]) -> dict[str, str]:
    words = shlex.split(files["/etc/gpucost/environment"])
    return dict(word.split("=", 1) for word in words)


def _launcher(files: dict[str, str]) -> dict[str, int | str]:
    """What the machine's script tells the launcher; one process has none."""
    script = files["/opt/gpucost/run"]
    told: dict[str, int | str] = {"nproc_per_node": 1}
    for flag, value in _FLAG.findall(script):
        told[flag.replace("-", "_")] = int(value) if value.isdigit() else value
    if "nnodes" in told:
        told["nnodes"] = str(told["nnodes"])
    if "numactl" in files["/opt/gpucost/bind"]:
        told["numa"] = "auto"
    return told


@pytest.mark.parametrize("path", EXAMPLES)
def test_plan_recipe_and_machine_say_the_same(path: str, call: Call) -> None:
    """For every option: recipe == plan.json == user data, in variables, launcher and settings."""
    plan = _plan(call, str(ROOT / path))
    (job,), values = plan["jobs"], as_values(plan)
    for option in job["options"]:
        machine, settings = option["machine"], option["settings"]
        recipe = encode(make_recipe(find_option(values, option["id"])))
        assert recipe["environment"] == machine["environment"]
        assert recipe["launcher"] == machine["launcher"]
        assert recipe["checkpoint_every_s"] == machine["checkpoint_every_s"]
        assert all(one["settings"] == settings[one["code"]] for one in recipe["actions"])
        files = _user_data(f"{job['name']}/{option['id']}")
        assert _environment(files) == machine["environment"] | {"TMPDIR": "/scratch"}
        assert _launcher(files) == machine["launcher"]
        _check_figures(option)


def _check_figures(option: dict[str, Any]) -> None:
    """Processes, restarts, checkpoints and workers are the same wherever the option names them."""
    machine, settings, spread = option["machine"], option["settings"], option["distribution"]
    launcher = machine["launcher"]
    for code in {"data-parallel", "sharded-data-parallel"} & set(settings):
        assert settings[code]["nproc_per_node"] == launcher["nproc_per_node"]
        assert settings[code]["max_restarts"] == launcher.get("max_restarts", 1)
    if machine["checkpoint_every_s"] is not None and "checkpoint-interval" in settings:
        every_s = settings["checkpoint-interval"]["interval_s"]
        assert every_s == round(machine["checkpoint_every_s"])
    if spread is not None:
        assert spread["max_restarts"] == launcher["max_restarts"]
        assert spread["checkpoint_every_s"] == machine["checkpoint_every_s"]
        assert spread["nnodes"] == launcher.get("nnodes", "1")


def test_fewer_gpus_get_fewer_processes(call: Call) -> None:
    """An 8-GPU job's option with fewer GPUs starts as many processes as it has, everywhere."""
    (job,) = _plan(call, str(ROOT / _EIGHT), "--gpus", "1..4")["jobs"]
    counts = {option["offer"]["gpu_count"] for option in job["options"]}
    assert counts & {1, 2, 4}
    for option in job["options"]:
        gpus, found = option["offer"]["gpu_count"], option["settings"]["data-parallel"]
        assert found["nproc_per_node"] == option["machine"]["launcher"]["nproc_per_node"] == gpus
        assert ("sharded-data-parallel" in option["settings"]) == (gpus > 1)


def test_another_number_of_machines_changes_only_the_nodes(call: Call) -> None:
    """`--count 2` is torchrun over two machines with what NCCL needs between; the rest stays."""
    (job,) = _plan(call, str(ROOT / _EIGHT))["jobs"]
    option = job["options"][0]
    assert option["count"] == 1
    files = _user_data(f"{job['name']}/{option['id']}", count=2)
    assert _launcher(files) == option["machine"]["launcher"] | {"nnodes": "2"}
    between = {"NCCL_SOCKET_IFNAME": "^lo,docker", "TMPDIR": "/scratch"}
    assert _environment(files) == option["machine"]["environment"] | between


def test_the_report_says_what_the_recommended_machine_gets(call: Call) -> None:
    """Beside a finding stands the number of workers of the recommended option, not of today's."""
    (job,) = as_values(_plan(call, str(ROOT / "examples" / "visual-search.json"))).jobs
    assert job.choice is not None
    assert job.choice.settings is not None
    workers = job.choice.settings["dataloader-workers"]["num_workers"]
    today = {one.code: one.settings for one in job.remedies}
    assert today["dataloader-workers"]["num_workers"] != workers
    assert f"num_workers {workers}," in detail(job, "dataloader-workers")


def test_a_plan_without_settings_of_machines_is_still_read(call: Call, write: Write) -> None:
    """A plan of an earlier version gives the variables of the option's actions all the same."""
    plan = _plan(call, str(ROOT / "examples" / "visual-search.json"))
    (job,) = plan["jobs"]
    option = job["options"][0]
    for part in (job["baseline"], *job["options"]):
        del part["machine"]
    write("plan.json", plan)
    found = _environment(_user_data(f"{job['name']}/{option['id']}"))
    assert found == {"TMPDIR": "/scratch"}


@pytest.mark.parametrize(
    ("change_", "words"),
    [
        ({"environment": {"LD_PRELOAD": "x.so"}}, "LD_PRELOAD"),
        ({"environment": {"A=$(reboot)": "1"}}, "never sets"),
        ({"launcher": {"nproc_per_node": "8; reboot"}}, "not counts"),
        ({"launcher": {"nproc_per_node": 8, "nnodes": "1 $(reboot)"}}, "nnodes"),
    ],
)
def test_a_plan_of_another_making_sets_nothing_of_its_own(
    change_: dict[str, Any], words: str, call: Call, write: Write
) -> None:
    """What a plan.json sets on a machine is only what gpucost writes: anything else is exit 2."""
    plan = _plan(call, str(ROOT / "examples" / "visual-search.json"))
    (job,) = plan["jobs"]
    option = job["options"][0]
    option["machine"] |= change_
    write("plan.json", plan)
    with pytest.raises(InputError, match=re.escape(words)):
        _user_data(f"{job['name']}/{option['id']}")
