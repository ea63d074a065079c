"""Launching on AWS through boto3: on demand and spot.

Each launch attempt has a ClientToken of its own, and RunInstances is never repeated by the SDK:
want of capacity comes as HTTP 500, and where to try next is the lifecycle's to decide.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial
from typing import Any

from pricing.errors import ProviderError
from providers.aws import calls
from providers.aws.access import client, open_session, sentence, told
from providers.aws.calls import KINDS, PROVIDER, RUN_TAG
from providers.aws.failures import classified, code_of, is_gone
from providers.aws.quota import check_quota, quotas
from providers.errors import NoCapacityError, UncertainError
from providers.interface import (
    MACHINE,
    Connection,
    Creation,
    Kept,
    LaunchSpec,
    Place,
    Resource,
    State,
)
from providers.lifecycle.waiting import skew_s
from providers.ownership_tags import PREFIX, Marks, read_marks

_HOME = "us-east-1"
_ALLOWED_ALREADY = "InvalidPermission.Duplicate"
_STATES: Mapping[str, State] = {
    "pending": "starting",
    "running": "running",
    "stopping": "running",
    "stopped": "running",
    "shutting-down": "ending",
}
_DESCRIBED_WITH_OWNER = "describe_snapshots"  # all public snapshots are listed without it
_Json = dict[str, Any]


def connect(connection: Connection) -> "AwsCloud":
    """The account of the SDK's own chain of credentials.

    Raises:
        MissingCredentialsError: the chain finds none.
    """
    _ = connection
    with told("finding credentials"):
        session = open_session()
        keys = session.get_credentials().get_frozen_credentials()
    secrets = (keys.access_key, keys.secret_key, keys.token or "")
    return AwsCloud(session=session, secrets=secrets)


@dataclass(kw_only=True)
class AwsCloud:
    """An account.

    Attributes:
        session: boto3's, with credentials.
        secrets: what no message may hold.
        name: as in offers.
        skew_s: by how much its clock is ahead of ours.
    """

    session: Any = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    name: str = PROVIDER
    skew_s: float = 0.0
    _clients: dict[tuple[str, bool], Any] = field(default_factory=dict, repr=False)

    def _ec2(self, region: str, *, repeats: bool = True) -> Any:  # noqa: ANN401 - boto3's
        key = (region or _HOME, repeats)
        if key not in self._clients:
            options = {} if repeats else {"attempts": 1}
            ec2 = client(self.session, "ec2", key[0], **options)
            ec2.meta.events.register("after-call.ec2", self._on_answer)
            self._clients[key] = ec2
        return self._clients[key]

    def _on_answer(self, http_response: Any, **_: object) -> None:  # noqa: ANN401 - botocore's
        ahead_s = skew_s(http_response.headers.get("Date", ""))
        self.skew_s = self.skew_s if ahead_s is None else ahead_s

    def creations(self, spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """The calls of a launch; pure."""
        return tuple(calls.creations(spec, place))

    def ends(self, spec: LaunchSpec) -> tuple[str, ...]:
        """What ends it: our calls, and the machine's own power-off, which terminates it; pure."""
        spot = spec.places[0].purchase == "spot"
        own = "at the deadline each machine powers off, and EC2 terminates what powers off"
        return (
            f"ec2:TerminateInstances ({spec.count})",
            *(("ec2:CancelSpotInstanceRequests",) if spot else ()),
            "ec2:DeleteSecurityGroup",
            *(("ec2:DeleteKeyPair",) if spec.public_key else ()),
            own if spec.self_destroy else "at the deadline nothing happens by itself",
        )

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """The launch with the zones that have each type, and what the quotas say."""
        places: list[Place] = []
        remarks: list[str] = []
        for place in spec.places:
            here = replace(
                place, region=place.region or (place.offer.region if place.offer else "")
            )
            with classified("reading where the type is offered", self.secrets):
                zones = self._zones(here)
            if not zones:
                remarks.append(f"{place.instance_type} is not offered in {here.region}")
                continue
            remarks.append(check_quota(self.session, here, spec.count))
            places += [replace(here, zone=zone) for zone in zones]
        if not places:
            raise NoCapacityError((*remarks, "AWS offers the size nowhere that was asked for."))
        return replace(spec, places=tuple(places)), tuple(dict.fromkeys(remarks))

    def limits(self) -> tuple[str, ...]:
        """Quotas of machines with GPUs in the home region of the session."""
        region = self.session.region_name or _HOME
        with classified("reading quotas", self.secrets):
            self._ec2(region).describe_regions()
            return quotas(self.session, region)

    def _zones(self, place: Place) -> tuple[str, ...]:
        if place.zone:
            return (place.zone,)
        pages = self._ec2(place.region).get_paginator("describe_instance_type_offerings")
        found = [
            str(offering["Location"])
            for page in pages.paginate(
                LocationType="availability-zone",
                Filters=[{"Name": "instance-type", "Values": [place.instance_type]}],
            )
            for offering in page["InstanceTypeOfferings"]
        ]
        return tuple(sorted(found))

    def create(self, creation: Creation) -> Resource:
        """One call that is never repeated; a security group gets its rules by a second one."""
        ec2 = self._ec2(creation.region, repeats=False)
        with classified(f"making {creation.kind} {creation.name}", self.secrets):
            made = _MAKERS[creation.kind](ec2, dict(creation.arguments))
        if creation.kind == "security-group":
            self._allow(made["GroupId"], creation)
        found = self._resource(creation.kind, made, creation.region)
        if found is None:
            raise UncertainError(f"AWS: the answer about {creation.name} lacks its tags.")
        return found

    def _allow(self, group_id: str, creation: Creation) -> None:
        """Set the rules of a group; asking twice does no harm, so the SDK may repeat it.

        Raises:
            ProviderError: the group is there without its rules, of no use to a machine.
        """
        rules = calls.ingress(group_id)
        ec2 = self._ec2(creation.region)
        try:
            ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=rules)
        except Exception as error:  # noqa: BLE001 - botocore makes its errors at run time
            if code_of(error) != _ALLOWED_ALREADY:
                told = sentence(f"opening port 22 of {creation.name}", error, self.secrets)
                raise ProviderError(told) from None

    def ours(self, regions: tuple[str, ...] | None) -> tuple[Resource, ...]:
        """Everything with our marks that is not gone."""
        with classified("listing what there is", self.secrets):
            places = self._marked_regions() if regions is None else regions
            return tuple(
                found
                for region in places
                for kind in KINDS
                for found in self._list(kind, region, {"Name": "tag-key", "Values": [RUN_TAG]})
            )

    def _marked_regions(self) -> tuple[str, ...]:
        """Enabled regions in which anything has our tag: one call each."""
        answer = self._ec2(_HOME).describe_regions()
        names = sorted(str(region["RegionName"]) for region in answer["Regions"])
        wanted = [{"Name": "key", "Values": [RUN_TAG]}]
        return tuple(n for n in names if self._ec2(n).describe_tags(Filters=wanted)["Tags"])

    def _list(self, kind: str, region: str, wanted: _Json) -> Iterator[Resource]:
        row = KINDS[kind]
        ec2 = self._ec2(region)
        options: _Json = {"Filters": [wanted]}
        if row.paginator == _DESCRIBED_WITH_OWNER:
            options["OwnerIds"] = ["self"]
        if ec2.can_paginate(row.paginator):
            pages = ec2.get_paginator(row.paginator).paginate(**options)
        else:
            pages = (getattr(ec2, row.paginator)(**options),)
        for page in pages:
            for item in _items(page, row.many):
                found = self._resource(kind, item, region)
                if found is not None and found.state != "gone":
                    yield found

    def look(self, kept: Kept, marks: Marks) -> Resource | None:
        """The resource of that id, if it is there and the run's."""
        wanted = {"Name": f"tag:{RUN_TAG}", "Values": [marks.run]}
        with classified(f"looking at {kept.kind} {kept.name}", self.secrets):
            found = list(self._list(kept.kind, kept.region, wanted))
        return next((one for one in found if one.id == kept.id and one.marks == marks), None)

    def destroy(self, resource: Resource) -> None:
        """One call; what is not there is as good."""
        row = KINDS[resource.kind]
        value = [resource.id] if row.argument.endswith("s") else resource.id
        call = partial(getattr(self._ec2(resource.region), row.destroy), **{row.argument: value})
        with classified(f"ending {resource.kind} {resource.name}", self.secrets):
            try:
                call()
            except Exception as error:
                if not is_gone(error):
                    raise

    def _resource(self, kind: str, item: _Json, region: str) -> Resource | None:
        """What an item of the API is of ours; None where it does not carry our marks."""
        tags = {str(tag["Key"]): str(tag["Value"]) for tag in item.get("Tags") or ()}
        short = {k.removeprefix(f"{PREFIX}:"): v for k, v in tags.items() if k.startswith(PREFIX)}
        marks, row = read_marks(short), KINDS[kind]
        if marks is None:
            return None
        found = Resource(
            kind=kind,
            id=str(item[row.id]),
            name=str(item.get(row.name) or tags.get("Name", "")),
            region=region,
            marks=marks,
        )
        if kind != MACHINE:
            gone = str(item.get("State", "")) in row.dead
            return replace(found, state="gone") if gone else found
        state = str((item.get("State") or {}).get("Name", ""))
        born = item.get("LaunchTime")
        return replace(
            found,
            state="gone" if state in row.dead else _STATES.get(state, "running"),
            created_at=None if born is None else born.astimezone(UTC),
            address=str(item.get("PublicIpAddress") or ""),
            instance_type=str(item.get("InstanceType", "")),
            purchase="spot" if item.get("InstanceLifecycle") == "spot" else "on_demand",
        )


def _items(page: _Json, path: str) -> Iterator[_Json]:
    if path == KINDS[MACHINE].many:
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]
    else:
        yield from page[path]


def _make_key(ec2: Any, arguments: _Json) -> _Json:  # noqa: ANN401 - boto3's
    made: _Json = ec2.import_key_pair(**arguments)
    return {**made, "Tags": arguments["TagSpecifications"][0]["Tags"]}


def _make_group(ec2: Any, arguments: _Json) -> _Json:  # noqa: ANN401 - boto3's
    made: _Json = ec2.create_security_group(**arguments)
    tags = arguments["TagSpecifications"][0]["Tags"]
    return {**made, "Tags": tags, "GroupName": arguments["GroupName"]}


def _make_machine(ec2: Any, arguments: _Json) -> _Json:  # noqa: ANN401 - boto3's
    instance: _Json = ec2.run_instances(**arguments)["Instances"][0]
    return {**instance, "Tags": arguments["TagSpecifications"][0]["Tags"]}


_MAKERS = {"key-pair": _make_key, "security-group": _make_group, MACHINE: _make_machine}


CLOUD = AwsCloud
