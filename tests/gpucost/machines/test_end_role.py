"""What ends an EC2 machine: its shutdown behaviour, a schedule, and volumes that go with it."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready
from tests.providers.fakes.aws_account import IMAGE, AwsAccount, AwsFault

LAUNCH = ("provision", "--type", "aws/g6.xlarge/us-east-1", "--ttl", "2h", "--allow-stale")
ROLE = "arn:aws:iam::123456789012:role/gpucost-end"
ENDED = (*LAUNCH, "--end-role", ROLE, "--yes", "-f", "json")


pytestmark = pytest.mark.usefixtures("login")


def _at(aws: AwsAccount) -> datetime:
    (one,) = aws.schedules()
    return datetime.strptime(f"{one.schedule_expression}+0000", "at(%Y-%m-%dT%H:%M:%S)%z")


def test_a_schedule_ends_what_did_not_end_itself(aws: AwsAccount, call: Call) -> None:
    """It names the instance and the role, comes after the machine's own end, and goes with it."""
    ran = call(*ENDED)
    assert ran.code == 0, ran.err
    (one,) = aws.schedules()
    assert one.target["Arn"] == "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
    assert one.target["RoleArn"] == ROLE
    assert json.loads(one.target["Input"]) == {"InstanceIds": aws.alive_ids()}
    assert one.action_after_completion == "DELETE"
    late = _at(aws) - datetime.fromisoformat(ran.json["deadline"])
    assert timedelta(seconds=250) <= late <= timedelta(seconds=310)
    kinds = [one["kind"] for one in ran.json["resources"]]
    assert kinds.count("schedule") == 1
    assert call("down", ran.json["run"], "--yes").code == 0
    assert (aws.alive_ids(), aws.side_resources()) == ([], [])


def test_each_machine_has_its_own(aws: AwsAccount, call: Call) -> None:
    """Of two machines each is ended by a schedule of its own."""
    assert call(*ENDED, "--count", "2").code == 0
    told = [json.loads(one.target["Input"])["InstanceIds"] for one in aws.schedules()]
    assert sorted(key for keys in told for key in keys) == sorted(aws.alive_ids())


@pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException"])
def test_a_role_that_is_refused_is_said(aws: AwsAccount, call: Call, code: str) -> None:
    """The launch goes on as without it, with a warning; later commands are as before."""
    aws.faults.append(AwsFault(action="CreateSchedule", status=400, code=code, times=9))
    aws.faults.append(AwsFault(action="ListSchedules", status=403, code=code, times=9))
    ran = call(*ENDED)
    assert ran.code == 0, ran.err
    assert "warning: nothing outside" in ran.err
    assert ran.json["state"] == "ready"
    assert call("list").code == 0
    assert call("reap", "--yes").code == 0
    assert len(aws.alive_ids()) == 1
    assert call("down", "--all", "--yes").code == 0
    assert aws.side_resources() == []


def test_a_lost_answer_makes_one_schedule(aws: AwsAccount, call: Call) -> None:
    """Asked again, the name finds what the first call made."""
    aws.faults.append(AwsFault(action="CreateSchedule", drop=True))
    ran = call(*ENDED)
    assert ran.code == 0, ran.err
    assert "nothing outside" not in ran.err
    assert len(aws.schedules()) == 1


def test_a_lost_journal_hides_no_schedule(
    aws: AwsAccount, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another home finds it by its name and its description, and removes it with the run."""
    ran = call(*ENDED)
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "another"))
    monkeypatch.setenv("GPUCOST_OWNER", ran.json["owner"])
    assert call("down", "--all", "--yes").code == 0
    assert (aws.alive_ids(), aws.side_resources()) == ([], [])


def test_extending_moves_the_schedule_before_the_machine(
    aws: AwsAccount, call: Call, login: Ready
) -> None:
    """It comes later by as much; where it cannot be moved, no machine is told."""
    run = call(*ENDED).json["run"]
    before = _at(aws)
    aws.faults.append(AwsFault(action="UpdateSchedule", status=403, code="AccessDeniedException"))
    assert call("extend", run, "1h", "--yes").code == 5
    assert (login.ends, _at(aws)) == ({}, before)
    assert call("extend", run, "1h", "--yes").code == 0
    assert _at(aws) == before + timedelta(hours=1)
    (one,) = aws.schedules()
    assert json.loads(one.target["Input"]) == {"InstanceIds": aws.alive_ids()}


def test_the_preview_says_what_a_role_changes(call: Call) -> None:
    """The call, the seconds that it adds to the bill, and what is still impossible."""
    plain = call(*LAUNCH, "--dry-run", "-f", "json").json
    seen = call(*LAUNCH, "--end-role", ROLE, "--dry-run", "-f", "json").json
    assert [one["call"] for one in seen["calls"]][-1] == "scheduler:CreateSchedule"
    assert (plain["end_s"], seen["end_s"]) == (250, 370)
    assert any("--end-role lets EventBridge Scheduler do it" in one for one in plain["warnings"])
    (told,) = [one for one in seen["warnings"] if "until EventBridge Scheduler" in one]
    assert "for each day" in told
    assert any("EventBridge Scheduler ends what is still there" in o for o in seen["ends"])


@pytest.mark.parametrize(
    ("place", "role", "told"),
    [
        ("aws/g6.xlarge/us-east-1", "gpucost-end", "is not the ARN of a role"),
        ("digitalocean/gpu-h100x8-640gb", ROLE, "nothing at DigitalOcean ends machines so"),
    ],
    ids=["no ARN", "elsewhere"],
)
def test_what_is_no_role_is_bad_input(call: Call, place: str, role: str, told: str) -> None:
    """Before anything is asked or made."""
    ran = call("provision", "--type", place, "--ttl", "2h", "--end-role", role, "--dry-run")
    assert ran.code == 2
    assert told in ran.err


def test_an_instance_that_would_only_stop_is_not_ready(aws: AwsAccount, call: Call) -> None:
    """What EC2 says that it does at a power-off is read back; "stop" would be billed for ever."""
    aws.shutdown = "stop"
    ran = call(*LAUNCH, "--yes")
    assert ran.code == 5
    assert "EC2 answers its power-off with stop" in ran.err
    assert aws.alive_ids() == []


def test_what_may_not_be_read_back_is_said(aws: AwsAccount, call: Call) -> None:
    """An identity that may not read it launches all the same; the preview says what is missing."""
    denied = AwsFault(
        action="DescribeInstanceAttribute", status=403, code="UnauthorizedOperation", times=9
    )
    aws.faults.append(denied)
    ran = call(*LAUNCH, "--yes", "-f", "json")
    assert ran.code == 0, ran.err
    assert "ec2:DescribeInstanceAttribute is not allowed" in ran.err


def test_no_volume_of_an_image_stays(aws: AwsAccount, call: Call) -> None:
    """An image that keeps its volume is launched with one that goes; an unknown one is not."""
    ran = call(*LAUNCH, "--yes", "--image", IMAGE, "-f", "json")
    assert ran.code == 0, ran.err
    assert f"{IMAGE} keeps /dev/sda1 when its machine ends" in ran.err
    (instance,) = aws.instances()
    kept = [volume.delete_on_termination for _, volume in instance.get_block_device_mapping]
    assert kept == [True]
    assert call("down", "--all", "--yes").code == 0
    assert aws.side_resources() == []
    unknown = call(*LAUNCH, "--yes", "--image", "ami-0123456789abcdef0")
    assert unknown.code == 5
    assert "there is no image ami-0123456789abcdef0 in us-east-1" in unknown.err
