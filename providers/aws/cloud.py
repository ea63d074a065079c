"""Launching on AWS through boto3: on demand and spot.

Each launch attempt has a ClientToken of its own, and RunInstances is never repeated by the SDK:
want of capacity comes as HTTP 500, and where to try next is the lifecycle's to decide.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from pricing.errors import ProviderError
from pricing.tables import objects
from providers import interface
from providers.aws import access, calls, inventory, placement, schedule
from providers.aws.calls import DEADLINE_TAG, KINDS, PROVIDER, SSH_FROM
from providers.aws.inventory import resource
from providers.ownership_tags import OwnershipTags
from providers.ssh.connection import with_caller

_ALLOWED_ALREADY = "InvalidPermission.Duplicate"
_NO_INSTANCE = "i-00000000000000000"
_UNREAD = (
    "ec2:DescribeInstanceAttribute is not allowed: that EC2 terminates what powers off is asked "
    "for, and not read back"
)
_LAG_S = 300.0
"""EC2's reads are eventually consistent; its guide lets a client wait up to five minutes.

docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
"""
_Json = dict[str, object]


def connect(connection: interface.Connection) -> "AwsCloud":
    """Return the account of the SDK's own chain of credentials.

    Raises:
        MissingCredentialsError: the chain finds none.
    """
    _ = connection
    with access.sdk_errors("finding credentials"):
        return AwsCloud(session=access.open_session())


@dataclass(kw_only=True)
class AwsCloud(interface.Cloud):
    """An account.

    Attributes:
        session: boto3's, with credentials.
        name: as in offers.
    """

    session: access.AwsClient = field(repr=False)
    name: str = PROVIDER
    lag_s: float = _LAG_S
    kinds: tuple[str, ...] = (*KINDS, interface.OUTSIDE)
    _account_id: str = ""
    _clients: access.AwsClients = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._clients = access.AwsClients(self.session, self.note_clock)

    def _ec2(self, region: str, *, repeats: bool = True) -> access.AwsClient:
        return self._clients.get("ec2", region, repeats=repeats)

    def _scheduler(self, region: str, *, repeats: bool = True) -> access.AwsClient:
        return self._clients.get("scheduler", region, repeats=repeats)

    @staticmethod
    def resources_to_create(
        spec: interface.LaunchSpec, target: interface.Place
    ) -> tuple[interface.Creation, ...]:
        """Return the calls of a launch; pure."""
        return tuple(calls.creations(spec, target))

    @staticmethod
    def external_terminators(
        spec: interface.LaunchSpec, machine: interface.Resource
    ) -> tuple[interface.Creation, ...]:
        """Return a schedule that ends the machine, where the account has a role for it; pure."""
        return (schedule.of_machine(spec, machine),) if spec.end_role else ()

    @staticmethod
    def termination_steps(spec: interface.LaunchSpec) -> tuple[str, ...]:
        """Return what ends it: our calls, and its own power-off, which terminates it; pure."""
        spot = spec.places[0].purchase == "spot"
        own = "at the deadline each machine powers off, and EC2 terminates what powers off"
        return (
            f"ec2:TerminateInstances ({spec.count})",
            *(("ec2:CancelSpotInstanceRequests",) if spot else ()),
            *((f"scheduler:DeleteSchedule ({spec.count})",) if spec.end_role else ()),
            "ec2:DeleteSecurityGroup",
            *(("ec2:DeleteKeyPair",) if spec.public_key else ()),
            own if spec.self_destroy else "at the deadline nothing happens by itself",
            *((schedule.in_words(spec),) if spec.end_role else ()),
        )

    def check(self, spec: interface.LaunchSpec) -> tuple[interface.LaunchSpec, tuple[str, ...]]:
        """Return the launch with the zones that have each type, and what the quotas say."""
        spec = with_caller(spec, placement.private_endpoint(self._ec2(access.HOME)))
        places: list[interface.Place] = []
        notes: list[str] = []
        for target in spec.places:
            placed = replace(
                target, region=target.region or (target.offer.region if target.offer else "")
            )
            with access.sdk_errors("reading where the type is offered"):
                named = filter(None, (placed.zone,))
                zones = tuple(named) or self.zones(placed.instance_type, placed.region)
            if not zones:
                notes.append(f"{target.instance_type} is not offered in {placed.region}")
                continue
            placed, zones, trouble = placement.place_in_network(
                self._ec2(placed.region), spec.subnet, placed, zones
            )
            if trouble:
                notes.append(trouble)
                continue
            with access.sdk_errors(f"looking at {spec.image}"):
                ec2 = self._ec2(placed.region)
                stay, remark, is_there = placement.volumes_that_stay(ec2, spec.image, placed.region)
            notes += filter(None, (remark,))
            if not is_there:
                continue
            placed = replace(placed, volumes=stay)
            notes += self._unread(placed.region) if spec.self_destroy else ()
            notes.append(placement.check_quota(self.session, placed, spec.count))
            places += [replace(placed, zone=zone) for zone in zones]
        if not places:
            raise interface.NoCapacityError(
                (*notes, "AWS offers the size nowhere that was asked for.")
            )
        return replace(spec, places=tuple(places)), tuple(dict.fromkeys(notes))

    def account(self) -> str:
        """Return the number of the account, which STS tells any caller; asked once."""
        if not self._account_id:
            with access.sdk_errors("asking whose account it is"):
                sts = access.client(self.session, "sts", self.session.region_name or access.HOME)
                self._account_id = str(sts.get_caller_identity()["Account"])
        return self._account_id

    def limits(self) -> tuple[str, ...]:
        """Return the quotas of machines with GPUs in the home region of the session."""
        region = self.session.region_name or access.HOME
        with access.sdk_errors("reading quotas"):
            self._ec2(region).describe_regions()
            return placement.quotas(self.session, region)

    def _unread(self, region: str) -> tuple[str, ...]:
        """Return what to say where a machine's end could not be read back; tried on none."""
        try:
            self._shutdown_of(region, _NO_INSTANCE)
        except Exception as error:  # noqa: BLE001 - botocore makes its errors at run time
            if access.code_of(error) == access.DENIED:
                return (_UNREAD,)
        return ()

    def _shutdown_of(self, region: str, instance: str) -> str:
        attribute = "instanceInitiatedShutdownBehavior"
        answer = self._ec2(region).describe_instance_attribute(
            InstanceId=instance, Attribute=attribute
        )
        return str(answer.get("InstanceInitiatedShutdownBehavior", {}).get("Value", ""))

    def zones(self, instance_type: str, region: str) -> tuple[str, ...]:
        """Return the zones of a region that offer a type."""
        pages = (
            self._ec2(region)
            .get_paginator("describe_instance_type_offerings")
            .paginate(
                LocationType="availability-zone",
                Filters=[{"Name": "instance-type", "Values": [instance_type]}],
            )
        )
        return tuple(sorted(str(o["Location"]) for p in pages for o in p["InstanceTypeOfferings"]))

    def create(self, creation: interface.Creation) -> interface.Resource:
        """Make one call that is never repeated; a security group gets its rules by a second one."""
        if creation.kind == interface.OUTSIDE:  # the name makes a second call one that does nothing
            with access.sdk_errors(f"making {creation.name}"):
                return schedule.create(self._scheduler(creation.region), creation)
        ec2 = self._ec2(creation.region, repeats=False)
        with access.sdk_errors(f"making {creation.kind} {creation.name}"):
            answer = _MAKERS[creation.kind](ec2, dict(creation.arguments))
        if creation.kind == "security-group":
            self._allow(str(answer["GroupId"]), creation)
        created = resource(creation.kind, answer, creation.region, {})
        if created is None:
            raise interface.UncertainError(f"AWS: the answer about {creation.name} lacks its tags.")
        return created

    def _allow(self, group_id: str, creation: interface.Creation) -> None:
        """Set the rules of a group; asking twice does no harm, so the SDK may repeat it.

        Raises:
            ProviderError: the group is there without its rules, of no use to a machine.
        """
        rules = calls.ingress(group_id, calls.ssh_from(creation))
        ec2 = self._ec2(creation.region)
        try:
            ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=rules)
        except Exception as error:  # noqa: BLE001 - botocore makes its errors at run time
            if access.code_of(error) != _ALLOWED_ALREADY:
                text = access.sentence(f"opening port 22 of {creation.name}", error)
                raise ProviderError(text) from None

    def _list(
        self, regions: interface.Regions, kinds: tuple[str, ...], marks_by_run: interface.MarksByRun
    ) -> interface.Listing:
        """Return everything with our marks or in our groups, each region and kind on its own."""
        tagged_kinds = tuple(kind for kind in kinds if kind in KINDS)
        listing = inventory.listing(self._clients, regions, tagged_kinds, marks_by_run)
        if interface.OUTSIDE not in kinds:
            return listing
        return self.with_schedules(listing, regions, marks_by_run)

    def with_schedules(
        self,
        listing: interface.Listing,
        regions: interface.Regions,
        marks_by_run: interface.MarksByRun,
        *,
        of_pools: bool = False,
    ) -> interface.Listing:
        """Return a listing with the schedules of our machines, or pools, as far as they are shown.

        Where they are not, for want of the service or of a permission, that need not be told: a
        schedule costs nothing, ends one machine of ours, and then itself.
        """
        runs = dict(marks_by_run) | {owned.marks.run: owned.marks for owned in listing.resources}
        places = {owned.region for owned in listing.resources} if regions is None else regions
        schedules: list[interface.Resource] = []
        for place in sorted(places):
            with suppress(Exception):  # botocore makes its errors at run time
                scheduler = self._scheduler(place, repeats=False)
                schedules += tuple(schedule.listed(scheduler, place, runs, of_pools=of_pools))
        return replace(listing, resources=(*listing.resources, *schedules))

    def look(
        self, entry: interface.JournaledResource, marks: OwnershipTags
    ) -> interface.ExistenceCheck:
        """Return what EC2 answers about that id."""
        if entry.kind == interface.OUTSIDE:
            with access.sdk_errors(f"looking at {entry.name}"):
                owned = schedule.find(self._scheduler(entry.region), entry.id, entry.region)
            if owned is None:
                return interface.ExistenceCheck.not_shown(f"AWS has no schedule {entry.id}")
            return interface.ExistenceCheck.present(owned)
        return inventory.look(self._clients, entry, marks)

    def self_termination_problem(self, machine: interface.Resource) -> str:
        """Return what EC2 says that it does when the instance powers off.

        Where that may not be read, `check` has said so.
        """
        with access.sdk_errors(f"reading what ends {machine.name}"):
            try:
                behaviour = self._shutdown_of(machine.region, machine.id)
            except Exception as error:
                if access.code_of(error) != access.DENIED:
                    raise
                return ""
        if behaviour == "terminate":
            return ""
        return f"EC2 answers its power-off with {behaviour or 'nothing'}, and not with its end"

    def mark(
        self, resource: interface.Resource, marks: OwnershipTags
    ) -> tuple[interface.Resource, ...]:
        """Rewrite the tag of the deadline; a schedule moves by as much."""
        with access.sdk_errors(f"moving the deadline of {resource.name}"):
            if resource.kind == interface.OUTSIDE:
                schedule.move(self._scheduler(resource.region), resource, marks)
            else:
                tag = {"Key": DEADLINE_TAG, "Value": marks.tags()["deadline"]}
                self._ec2(resource.region).create_tags(Resources=[resource.id], Tags=[tag])
        return ()

    def destroy(self, resource: interface.Resource) -> bool:
        """Make one call by id; False where AWS knows no such id."""
        if resource.kind == interface.OUTSIDE:
            call = partial(self._scheduler(resource.region).delete_schedule, Name=resource.id)
        else:
            row = KINDS[resource.kind]
            value = [resource.id] if row.argument.endswith("s") else resource.id
            ec2 = self._ec2(resource.region)
            call = partial(getattr(ec2, row.destroy), **{row.argument: value})
        with access.sdk_errors(f"ending {resource.kind} {resource.name}"):
            answer = access.if_known(call)
        # DeleteKeyPair says yes to a name that it does not know, and then names no id.
        return answer is not None and (resource.kind != "key-pair" or bool(answer.get("KeyPairId")))


def _make_key(ec2: access.AwsClient, arguments: _Json) -> _Json:
    answer: _Json = ec2.import_key_pair(**arguments)
    return {**answer, "Tags": _tags(arguments)}


def _make_group(ec2: access.AwsClient, arguments: _Json) -> _Json:
    arguments.pop(SSH_FROM)
    answer: _Json = ec2.create_security_group(**arguments)
    return {**answer, "Tags": _tags(arguments), "GroupName": arguments["GroupName"]}


def _make_machine(ec2: access.AwsClient, arguments: _Json) -> _Json:
    arguments |= placement.with_group_ids(ec2, arguments)
    instance: _Json = ec2.run_instances(**arguments)["Instances"][0]
    return {**instance, "Tags": _tags(arguments)}


def _tags(arguments: _Json) -> object:
    """Return the tags given to a create call; its answer may leave them out."""
    return objects(arguments["TagSpecifications"])[0]["Tags"]


_MAKERS = {"key-pair": _make_key, "security-group": _make_group, interface.MACHINE: _make_machine}


CLOUD = AwsCloud
