"""An end from outside a machine: a one-time schedule at EventBridge that terminates its instance.

It stands where the account has a role for it, comes when the machine should have ended itself by
its own means, and deletes itself once it has come. A schedule has no tags: its name is the
machine's, and its description holds the marks.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from providers.aws import LATE_S
from providers.aws.access import AwsClient, code_of, is_not_found
from providers.interface import OUTSIDE, Creation, LaunchSpec, Resource
from providers.ownership_tags import PREFIX, OwnershipTags, read_text

TERMINATE = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
"""The target that calls EC2 itself; docs.aws.amazon.com/scheduler, "Using universal targets"."""

_AT = "at(%Y-%m-%dT%H:%M:%S)"
_NAME = re.compile(rf"{PREFIX}-([a-z0-9]+)-[0-9]+-end")
_EXISTS = "ConflictException"
_Json = dict[str, object]


def creation(spec: LaunchSpec, machine: Resource) -> Creation:
    """Return the call that makes the schedule of a machine; pure."""
    at = spec.marks.deadline + timedelta(seconds=float(spec.end_s) - LATE_S / 2)
    arguments: _Json = {
        "Name": name_of(machine),
        "Description": spec.marks.text(":"),
        "ScheduleExpression": at.astimezone(UTC).replace(second=0).strftime(_AT),
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": TERMINATE,
            "RoleArn": spec.end_role,
            "Input": json.dumps({"InstanceIds": [machine.id]}),
        },
    }
    return Creation(
        kind=OUTSIDE,
        name=name_of(machine),
        region=machine.region,
        call="scheduler:CreateSchedule",
        arguments=arguments,
    )


def name_of(machine: Resource) -> str:
    """Return the name of a machine's schedule."""
    return f"{machine.name}-end"


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
    try:
        answer = scheduler.get_schedule(Name=name)
    except Exception as error:
        if is_not_found(error):
            return None
        raise
    marks = read_text(str(answer.get("Description", "")), ":")
    return None if marks is None else _resource(name, region, marks)


def listed(
    scheduler: AwsClient,
    region: str,
    marks_by_run: Mapping[str, OwnershipTags],
) -> Iterator[Resource]:
    """Yield our schedules in a region, of runs that are known or that a description names."""
    for page in scheduler.get_paginator("list_schedules").paginate(NamePrefix=f"{PREFIX}-"):
        for item in page["Schedules"]:
            name = str(item["Name"])
            named = _NAME.fullmatch(name)
            if named is None:
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
