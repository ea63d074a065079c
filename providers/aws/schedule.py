"""An end from outside: a one-time schedule at EventBridge that ends an instance or a node group.

It stands where the account has a role for it, comes when the machine should have ended itself by
its own means, and deletes itself once it has come. A schedule has no tags: its name is the
machine's, and its description holds the marks.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pricing.money import plain
from providers.aws import LATE_S
from providers.aws.access import HOME, AwsClient, client, code_of, if_known, sdk_errors
from providers.interface import OUTSIDE, POOL, Creation, LaunchSpec, MarksByRun, Resource
from providers.ownership_tags import PREFIX, OwnershipTags, read_text
from providers.provider import permissions

_TARGET = "arn:aws:scheduler:::aws-sdk:"
"""A target that makes a call of AWS itself; docs.aws.amazon.com/scheduler, "universal targets"."""

_AT = "at(%Y-%m-%dT%H:%M:%S)"
_NAME = re.compile(rf"{PREFIX}-([a-z0-9]+)-([0-9]+|{POOL})-end")
_EXISTS = "ConflictException"
_Json = dict[str, object]


def of_machine(spec: LaunchSpec, machine: Resource) -> Creation:
    """Return the call that makes the schedule of a machine, which is known by its id; pure."""
    arguments: _Json = {"InstanceIds": [machine.id]}
    return creation(spec, machine.name, machine.region, ("ec2:terminateInstances", arguments))


def creation(spec: LaunchSpec, ended: str, region: str, ends: tuple[str, _Json]) -> Creation:
    """Return the call that makes a schedule; pure.

    Args:
        spec: the launch.
        ended: name of what it ends.
        region: of both.
        ends: the call that it makes, and its arguments.
    """
    at = spec.marks.deadline + timedelta(seconds=float(spec.end_s) - LATE_S / 2)
    arguments: _Json = {
        "Name": f"{ended}-end",
        "Description": spec.marks.text(":"),
        "ScheduleExpression": at.astimezone(UTC).replace(second=0).strftime(_AT),
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": f"{_TARGET}{ends[0]}",
            "RoleArn": spec.end_role,
            "Input": json.dumps(ends[1]),
        },
    }
    return Creation(
        kind=OUTSIDE,
        name=f"{ended}-end",
        region=region,
        call="scheduler:CreateSchedule",
        arguments=arguments,
    )


def in_words(spec: LaunchSpec) -> str:
    """Return what ends what did not end itself, in words."""
    late = f"at most {plain(spec.end_s)} s after it"
    return f"{late}, EventBridge Scheduler ends what is still there"


def create(scheduler: AwsClient, creation: Creation) -> Resource:
    """Make it, or find it made by a call whose answer was lost; asking twice makes one."""
    try:
        scheduler.create_schedule(**creation.arguments)
    except Exception as error:
        if code_of(error) != _EXISTS:
            raise
    marks = read_text(str(creation.arguments["Description"]), ":")
    if marks is None:
        raise ValueError(creation.name)
    return _resource(creation.name, creation.region, marks)


def find(scheduler: AwsClient, name: str, region: str) -> Resource | None:
    """Return the schedule of that name; None where there is none, or it is not ours."""
    answer = if_known(lambda: scheduler.get_schedule(Name=name))
    marks = None if answer is None else read_text(str(answer.get("Description", "")), ":")
    return None if marks is None else _resource(name, region, marks)


def listed(
    scheduler: AwsClient, region: str, marks_by_run: MarksByRun, *, of_pools: bool
) -> Iterator[Resource]:
    """Yield schedules of our machines, or pools, there; of runs that are known or described."""
    for page in scheduler.get_paginator("list_schedules").paginate(NamePrefix=f"{PREFIX}-"):
        for item in page["Schedules"]:
            name = str(item["Name"])
            named = _NAME.fullmatch(name)
            if named is None or (named[2] == POOL) != of_pools:
                continue
            if named[1] in marks_by_run:
                yield _resource(name, region, marks_by_run[named[1]])
            elif (owned := find(scheduler, name, region)) is not None:
                yield owned


def move(scheduler: AwsClient, resource: Resource, marks: OwnershipTags) -> None:
    """Let it come later by as much as the deadline of the marks is later than that in it."""
    answer = scheduler.get_schedule(Name=resource.name)
    before = read_text(str(answer.get("Description", "")), ":")
    at = datetime.strptime(answer["ScheduleExpression"], _AT)  # noqa: DTZ007 - in UTC, as it says
    later = timedelta() if before is None else max(timedelta(), marks.deadline - before.deadline)
    scheduler.update_schedule(
        Name=resource.name,
        Description=marks.text(":"),
        ScheduleExpression=(at + later).strftime(_AT),
        ScheduleExpressionTimezone="UTC",
        FlexibleTimeWindow={"Mode": "OFF"},
        ActionAfterCompletion="DELETE",
        Target={key: answer["Target"][key] for key in ("Arn", "RoleArn", "Input")},
    )


def _resource(name: str, region: str, marks: OwnershipTags) -> Resource:
    return Resource(kind=OUTSIDE, id=name, name=name, region=region, marks=marks)


ROLE = f"{PREFIX}-end"


def make_role(session: AwsClient) -> str:
    """Make the role of --end-role, or give it its policy again, and return its ARN.

    Raises:
        ProviderError: IAM refuses.
    """
    iam = client(session, "iam", HOME)
    with sdk_errors(f"making the role {ROLE}"):
        trust, policy = (
            json.dumps(permissions()["aws-end-role"][name]) for name in ("TrustPolicy", "Policy")
        )
        try:
            iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=trust)
        except Exception as error:
            if code_of(error) != "EntityAlreadyExists":
                raise
        iam.put_role_policy(RoleName=ROLE, PolicyName=ROLE, PolicyDocument=policy)
        return str(iam.get_role(RoleName=ROLE)["Role"]["Arn"])
