"""`gpucost export --to skypilot|dstack|kubernetes|terraform`: files that those tools start from."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_string
from pathlib import Path
from typing import Any

import hcl2
import msgspec
import pytest
import yaml

from gpucost.commands.planning.export import TOOLS, task_text
from gpucost.files.plan_file import load_plan
from planner.documents.task import TaskRequest
from planner.plan.bill import RentedOffer, that_start, tools
from planner.plan.plan import Plan
from planner.plan.read import find_option
from pricing.errors import InputError
from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF
from tests.waiting import CEILING_S, until

COMMAND = "python train.py --name 'it''s' \"$HOME\" # ${x} %{y}\necho done"
ASKED = TaskRequest(command=COMMAND, ttl_s=28_800, image="pytorch/pytorch:2.9.0")
EXAMPLES = sorted((ROOT / "examples").glob("*.json"))


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[Plan]:
    """The plans of all examples, on demand and spot."""
    from click.testing import CliRunner  # noqa: PLC0415 - one run for the whole module

    from gpucost.cli import cli  # noqa: PLC0415 - the same

    made = []
    for example in EXAMPLES:
        target = tmp_path_factory.mktemp("plan") / "plan.json"
        asked = ["plan", str(example), "-o", str(target), "--as-of", AS_OF, "-q"]
        CliRunner().invoke(cli, [*asked, "--purchase", "on_demand", "--purchase", "spot"])
        made.append(load_plan(str(target)))
    return made


def _options(plans: list[Plan]) -> Iterator[tuple[Plan, str, RentedOffer]]:
    for plan in plans:
        for job in plan.jobs:
            for option in job.options:
                yield plan, f"{job.name}/{option.id}", option.offer


def _read(tool: str, text: str) -> Any:
    if tool == "terraform":
        return hcl2.loads(text)
    documents = [one for one in yaml.safe_load_all(text) if one]
    return documents[-1]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_is_a_file_or_a_reason(tool: str, plans: list[Plan]) -> None:
    """Each option of each example: a file that reads back with its machine, or a reason."""
    written = 0
    for plan, name, offer in _options(plans):
        option = find_option(plan, name).option
        shared = offer.gpu_count < 1 or (option is not None and option.sharing is not None)
        if shared or (tool != "kubernetes" and tool not in that_start(offer)):
            with pytest.raises(InputError, match=name):
                task_text(tool, plan, (name,), ASKED, ())
            continue
        task, text = task_text(tool, plan, (name,), ASKED, ())
        read = _read(tool, text)
        written += 1
        if tool != "kubernetes":
            assert (task.instance_type or task.gpu) in text
        assert str(28_800) in json.dumps(read, default=str)  # each has its end
    assert written > 0


def test_settings_and_command_arrive_as_they_are(plans: list[Plan]) -> None:
    """Variables of the plan, and a command with quotes, dollars and lines, come through whole."""
    for plan, name, offer in _options(plans):
        if "dstack" not in that_start(offer) or "skypilot" not in that_start(offer):
            continue
        found = find_option(plan, name)
        if found.option is None or found.option.sharing or offer.gpu_count < 1:
            continue
        told = dict(found.machine.environment) if found.machine else {}
        sky = _read("skypilot", task_text("skypilot", plan, (name,), ASKED, ())[1])
        assert sky.get("envs", {}) == told
        words = shlex.split(sky["run"].splitlines(keepends=True)[-2] + sky["run"].splitlines()[-1])
        if "torchrun" not in sky["run"]:
            started = words[-1].strip()
            assert COMMAND in (started, shlex.split(started)[-1])
        dstack = _read("dstack", task_text("dstack", plan, (name,), ASKED, ())[1])
        assert dict(one.split("=", 1) for one in dstack.get("env", [])) == told
        run = dstack["commands"][0]
        assert run == COMMAND or shlex.split(run)[-1] == COMMAND


def test_who_can_start_it_is_named(plans: list[Plan]) -> None:
    """A tool that does not rent at a provider is refused with those that do."""
    seen = set()
    for plan, name, offer in _options(plans):
        others = that_start(offer)
        if "terraform" in others or not others:
            continue
        with pytest.raises(InputError, match=f"--to {others[0]}"):
            task_text("terraform", plan, (name,), ASKED, ())
        seen.add(offer.provider)
    assert len(seen) >= 3


def test_nothing_runs_without_command_and_end(call: Call, plan: str) -> None:
    """Without --run, --ttl and, for a cluster, --image: exit 2, and what to type."""
    ran = call("export", plan, "--to", "kubernetes")
    assert (ran.code, ran.out) == (2, "")
    assert "--run 'python train.py'" in ran.err
    ran = call("export", plan, "--to", "kubernetes", "--run", "python train.py")
    assert ran.code == 2
    assert "--ttl 8h" in ran.err
    assert "--image" in ran.err


def test_a_hostile_plan_stays_text(plans: list[Plan]) -> None:
    """A region with line breaks or `${...}` from a plan of somebody else is text, or refused."""
    plan, name, offer = next(one for one in _options(plans) if one[2].provider == "aws")
    evil = msgspec.structs.replace(offer, region='x"\nrun: |\n  rm -rf /\n${file("/etc/passwd")}')
    job_name, _, option_id = name.partition("/")
    jobs = tuple(
        msgspec.structs.replace(
            job,
            options=tuple(
                msgspec.structs.replace(o, offer=evil) if o.id == option_id else o
                for o in job.options
            ),
        )
        if job.name == job_name
        else job
        for job in plan.jobs
    )
    bad = msgspec.structs.replace(plan, jobs=jobs)
    for tool in TOOLS:
        read = _read(tool, task_text(tool, bad, (name,), ASKED, ())[1])
        assert "rm -rf" not in str(read.get("run", "")), tool
        assert '"${file' not in json.dumps(read, default=str).replace("$${", "")


def test_names_of_gpus_are_the_catalogs() -> None:
    """The table of other tools' names knows GPUs and providers of the catalog only."""
    from pricing.hardware import gpus  # noqa: PLC0415 - here only

    for tool in tools().values():
        assert set(tool.gpus) <= set(gpus())
        assert all(set(one) <= set(gpus()) for one in tool.by_provider.values())


@pytest.fixture
def plan(call: Call) -> str:
    """The plan of the bundled search job."""
    example = str(ROOT / "examples" / "visual-search.json")
    assert call("plan", example, "--as-of", AS_OF, "-q", "-o", "plan.json").code == 0
    return "plan.json"


@pytest.mark.parametrize("tool", ["skypilot", "terraform"])
def test_machines_carry_the_watch_of_a_launch(tool: str, plans: list[Plan]) -> None:
    """Where switching off ends the bill, a machine has our watch: length of life, idle rule."""
    seen = set()
    asked = replace(ASKED, image=None, idle_s=1800.0)
    for plan, name, offer in _options(plans):
        if tool not in that_start(offer) or offer.provider not in tools()[tool].off_is_free:
            continue
        read = _read(tool, task_text(tool, plan, (name,), asked, ())[1])
        script = read["setup"] if tool == "skypilot" else _user_data(read)
        life_s = 28_800 + (1800 if tool == "skypilot" else 0)
        assert f"ttl_s={life_s}\n" in script
        assert "deadline_s=4102444800" in script  # 2100: the length of its life ends it
        assert "put 0755 /opt/gpucost/deadline.sh" in script
        assert "systemctl start --no-block gpucost-deadline.service" in script
        assert "no GPU has worked for 1800 s" in script
        assert "/opt/gpucost/activity" in script
        told = subprocess.run(["bash", "-n"], input=_script(script), text=True, check=False)
        assert told.returncode == 0
        seen.add(offer.provider)
    assert seen == {"aws", "gcp"}


SAVES = "trap 'touch saved; exit 0' TERM; touch began; while :; do sleep 0.1; done"


@pytest.mark.parametrize("provider", ["aws", "azure", "gcp"])
def test_a_notice_lets_what_skypilot_started_save(
    provider: str, plans: list[Plan], tmp_path: Path
) -> None:
    """The file's own set-up and command, run here: the hook runs, the command gets SIGTERM."""
    tool, asked = tools()["skypilot"], replace(ASKED, command=SAVES, image=None)
    named = (
        (p, n) for p, n, o in _options(plans) if (o.provider, o.purchase) == (provider, "spot")
    )
    plan, name = next(((p, n) for p, n in named if _starts(p, n)), (None, ""))
    if plan is None:
        pytest.skip(f"no example's plan has a spot machine at {provider}")
    read = _read("skypilot", task_text("skypilot", plan, (name,), asked, ())[1])
    for shim in ("sudo", "systemctl"):
        path = tmp_path / "bin" / shim
        path.parent.mkdir(exist_ok=True)
        path.write_text('#!/bin/sh\ncase "$0" in *sudo) exec "$@" ;; esac\n', encoding="ascii")
        path.chmod(0o755)
    environment = {"PATH": f"{path.parent}:{os.environ['PATH']}", "GPUCOST_ROOT": str(tmp_path)}
    subprocess.run(["bash", "-c", read["setup"]], env=environment, check=True)
    unit = tmp_path / "etc/systemd/system/gpucost-notices.service"
    assert "notices.sh" in unit.read_text(encoding="utf-8")
    assert (tmp_path / "opt/gpucost/deadline.sh").exists() == (provider in tool.off_is_free)
    hook = tmp_path / "etc/gpucost/on-preempt"
    hook.write_text('#!/bin/sh\ntouch "$GPUCOST_ROOT/hooked"\n', encoding="ascii")
    hook.chmod(0o755)
    place = {"cwd": tmp_path, "env": environment, "start_new_session": True}
    with subprocess.Popen(["bash", "-c", read["run"]], **place) as job:
        until((tmp_path / "began").exists, "the command")
        subprocess.run(
            [tmp_path / "opt/gpucost/checkpoint", "a test", "10"], env=environment, check=True
        )
        job.wait(CEILING_S)
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "hooked").exists()


def _starts(plan: Plan, name: str) -> bool:
    """Whether SkyPilot starts an option on one machine, without torchrun in front."""
    option = find_option(plan, name).option
    assert option is not None
    alone = option.count == 1 and option.offer.gpu_count == 1 and option.sharing is None
    return alone and "skypilot" in that_start(option.offer)


def test_terraforms_machines_carry_notices_and_the_hook(plans: list[Plan]) -> None:
    """Each has the script that lets jobs save; spot machines, and Google's, look for notices."""
    seen = set()
    for plan, name, offer in _options(plans):
        if "terraform" not in that_start(offer):
            continue
        text = _user_data(_read("terraform", task_text("terraform", plan, (name,), ASKED, ())[1]))
        assert "/opt/gpucost/checkpoint" in text
        assert ("gpucost-notices.service" in text) == (
            offer.purchase == "spot" or offer.provider == "gcp"
        )
        seen.add((offer.provider, offer.purchase == "spot"))
    assert seen == {("aws", False), ("aws", True), ("gcp", False), ("gcp", True)}


def _user_data(read: Any) -> str:
    """What Terraform gives a machine, as it comes out of the file."""
    (job,) = read["resource"]
    ((kind, body),) = job.items()
    ((_, values),) = body.items()
    text = values.get("metadata_startup_script") or read["locals"][0]["user_data"]
    assert (
        "aws_instance" not in kind or values["user_data_base64"] == "${base64gzip(local.user_data)}"
    )
    whole = str(text).removeprefix('"<<EOT\n').removesuffix('\nEOT"')
    return whole.replace("$${", "${").replace("%%{", "%{")


def _script(text: str) -> str:
    """The script in user data: the boothook of a document of several parts."""
    if "cloud-boothook" not in text:
        return text
    return next(
        str(part.get_payload())
        for part in message_from_string(text[text.index("Content-Type") :]).walk()
        if part.get_content_type() == "text/cloud-boothook"
    )


def test_terraform_gives_what_a_launch_gives(plans: list[Plan]) -> None:
    """The user data at AWS has the parts of our own: the end first, then set-up and settings."""
    plan, name, offer = next(one for one in _options(plans) if one[2].provider == "aws")
    text = _user_data(_read("terraform", task_text("terraform", plan, (name,), ASKED, ())[1]))
    for path in ("bootstrap.sh", "run", "bind", "deadline.sh", "end.sh", "armed"):
        assert f"/opt/gpucost/{path}" in text
    assert text.index("text/cloud-boothook") < text.index("text/cloud-config")
    assert f"and {int(offer.gpu_count)} are paid for" in text


@pytest.mark.parametrize(
    ("tool", "idle", "told"),
    [
        ("dstack", "2m", "dstack takes 300 s at least"),
        ("terraform", "30s", "Terraform takes 60 s at least"),
        ("kubernetes", "30m", "nothing ends what Kubernetes starts"),
    ],
)
def test_an_idle_rule_that_nothing_keeps_is_refused(
    tool: str, idle: str, told: str, call: Call, plan: str
) -> None:
    """--idle is never silently left out: exit 2 says why it cannot be kept."""
    start = ("--run", "python train.py", "--ttl", "8h", "--idle", idle)
    image = ("--image", "pytorch/pytorch:2.9") if tool == "kubernetes" else ()
    ran = call("export", plan, "--to", tool, *start, *image)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_dstack_has_a_rule_of_its_own(call: Call, plan: str) -> None:
    """--idle becomes its utilization_policy."""
    start = ("--run", "python train.py", "--ttl", "8h", "--idle", "30m")
    read = yaml.safe_load(call("export", plan, "--to", "dstack", *start).out)
    assert read["utilization_policy"] == {"min_gpu_utilization": 1, "time_window": "1800s"}
    assert read["max_duration"] == "28800s"
