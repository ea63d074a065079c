"""The stand-ins misbehave as their world says: each switch, seen through the real SDKs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from providers.digitalocean.access import VARIABLES, DigitalOceanApi
from tests.providers.fakes.account import digitalocean_environment
from tests.providers.fakes.aws_account import IMAGE, AwsAccount
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.driven_time import DrivenTime, driven_time
from tests.providers.fakes.world import NEVER, Denied, World

_SIZE = "gpu-b200x8-1440gb"
_REGION = "us-east-1"


@pytest.fixture
def time() -> Iterator[DrivenTime]:
    """A time that passes by sleeping."""
    with driven_time() as driven:
        yield driven


class _Droplets:
    """Calls of pydo that repeat nothing."""

    def __init__(self, fake: DigitalOcean) -> None:
        self.fake = fake
        self.dates: list[str] = []
        access = VARIABLES.read(digitalocean_environment())
        self.sdk = DigitalOceanApi(access=access, on_date=self.dates.append, retries=0)

    def make(self) -> str:
        """One more machine."""
        body = {"name": "one", "region": "nyc2", "size": _SIZE, "image": "ubuntu", "tags": ["ours"]}
        return str(self.sdk.change("POST", "/v2/droplets", body, "making")["droplet"]["id"])

    def listed(self, **filters: str) -> list[str]:
        """Ids on all pages of a list."""
        droplets = self.sdk.pages("/v2/droplets", "droplets", "listing", filters)
        return [str(one["id"]) for one in droplets]

    def tagged(self) -> list[str]:
        """Ids that carry our tag."""
        return self.listed(tag_name="ours")

    def is_read(self, key: str) -> bool:
        """Whether a read by id finds it."""
        return self.sdk.find(f"/v2/droplets/{key}", "reading") is not None

    def born(self, key: str) -> datetime:
        """The creation time that it tells."""
        answer = self.sdk.get(f"/v2/droplets/{key}", "reading")
        return datetime.fromisoformat(answer["droplet"]["created_at"])

    def end(self, key: str) -> None:
        """Destroy it."""
        self.sdk.delete(f"/v2/droplets/{key}", "ending")


class _Instances:
    """Calls of boto3 that repeat nothing."""

    def __init__(self, fake: AwsAccount) -> None:
        import boto3  # noqa: PLC0415 - heavy
        from botocore.config import Config  # noqa: PLC0415 - the same

        self.fake = fake
        self.dates: list[str] = []
        limits = Config(retries={"total_max_attempts": 1})
        self.sdk = boto3.client("ec2", region_name=_REGION, config=limits)
        self.sdk.meta.events.register("after-call.ec2", self._on_answer)

    def _on_answer(self, http_response: Any, **_: object) -> None:
        self.dates.append(http_response.headers["Date"])

    def make(self) -> str:
        """One more machine."""
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "ours", "Value": "yes"}]}]
        options = {"InstanceType": "t2.micro", "MinCount": 1, "MaxCount": 1}
        made = self.sdk.run_instances(ImageId=IMAGE, TagSpecifications=tags, **options)
        return str(made["Instances"][0]["InstanceId"])

    def _found(self, **options: Any) -> list[Any]:
        answer = self.sdk.describe_instances(**options)
        return [one for group in answer["Reservations"] for one in group["Instances"]]

    def listed(self) -> list[str]:
        """Ids of the list that are not gone."""
        found = self._found()
        return [one["InstanceId"] for one in found if one["State"]["Name"] != "terminated"]

    def tagged(self) -> list[str]:
        """Ids that carry our tag."""
        wanted = [{"Name": "tag-key", "Values": ["ours"]}]
        return [one["InstanceId"] for one in self._found(Filters=wanted)]

    def is_read(self, key: str) -> bool:
        """Whether a read by id finds it."""
        try:
            return bool(self._found(InstanceIds=[key]))
        except self.sdk.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "InvalidInstanceID.NotFound":
                raise
            return False

    def born(self, key: str) -> datetime:
        """The creation time that it tells."""
        return self._found(InstanceIds=[key])[0]["LaunchTime"]  # type: ignore[no-any-return]

    def end(self, key: str) -> None:
        """Terminate it."""
        self.sdk.terminate_instances(InstanceIds=[key])


@pytest.fixture(params=["digitalocean", "aws"])
def account(request: pytest.FixtureRequest, time: DrivenTime) -> Any:
    """An empty account of each provider."""
    assert time.ahead_s == 0
    if request.param == "aws":
        return _Instances(request.getfixturevalue("aws_account"))
    return _Droplets(request.getfixturevalue("digitalocean"))


def test_the_plain_world_is_instant_and_complete(account: Any) -> None:
    """Without a switch everything is shown at once."""
    key = account.make()
    assert account.listed() == account.tagged() == [key]
    assert account.is_read(key)


@pytest.mark.parametrize(
    ("switch", "look"),
    [
        ("list_lag_s", lambda a, key: a.listed() == [key]),
        ("read_lag_s", lambda a, key: a.is_read(key)),
        ("tag_lag_s", lambda a, key: a.tagged() == [key]),
    ],
)
def test_what_is_late_is_shown_in_time(
    account: Any, time: DrivenTime, switch: str, look: Callable[[Any, str], bool]
) -> None:
    """Lists, reads by id and tags show a machine after their lag, and not before."""
    account.fake.world = World(**{switch: 60.0})
    key = account.make()
    assert not look(account, key)
    time.sleep(30)
    assert not look(account, key)
    time.sleep(31)
    assert look(account, key)


def test_a_lag_of_lists_is_none_of_reads(account: Any) -> None:
    """Each switch moves its own read only."""
    account.fake.world = World(list_lag_s=60)
    assert account.is_read(account.make())
    account.fake.world = World(tag_lag_s=NEVER)
    key = account.make()
    assert key in account.listed()
    assert key not in account.tagged()


def test_what_was_ended_is_shown_for_a_while(account: Any, time: DrivenTime) -> None:
    """An ended machine stays in lists for the lag of its end."""
    account.fake.world = World(end_lag_s=60)
    key = account.make()
    account.end(key)
    time.sleep(50)
    assert account.listed() == [key]
    time.sleep(20)
    account.listed()
    assert account.listed() == []


def test_a_lost_page_is_in_no_list(account: Any) -> None:
    """Pages are small, one of them is missing, and reads by id find what was on it."""
    account.fake.world = World(page_size=1, lost_page=2)
    keys = [account.make() for _ in range(3)]
    assert sorted(account.listed()) == sorted((keys[0], keys[2]))
    assert account.is_read(keys[1])


@pytest.mark.parametrize("hours", [-3, 3])
def test_its_clock_is_wrong(account: Any, hours: int) -> None:
    """The Date header and the creation time are both by the provider's clock."""
    account.fake.world = World(skew_s=hours * 3600.0)
    born = account.born(account.make())
    for told in (born, parsedate_to_datetime(account.dates[-1])):
        assert abs(told - datetime.now(UTC) - timedelta(hours=hours)) < timedelta(minutes=1)


@pytest.mark.parametrize("count", [1, 20])
def test_answers_are_lost_as_often_as_asked(account: Any, count: int) -> None:
    """So many answers in a row are cut off after the work; the next one comes."""
    account.fake.world = World(lost_answers=count)
    key = account.make()
    for _ in range(count):
        with pytest.raises(Exception, match=r"(?i)connection|closed|aborted"):
            account.listed()
    assert account.listed() == [key]
    account.fake.world = World(lost_answers=1, lost_calls="change")
    with pytest.raises(Exception, match=r"(?i)connection|closed|aborted"):
        account.make()
    assert len(account.listed()) == 2


def test_what_is_denied_fails_for_ever(account: Any) -> None:
    """One kind is refused, the others are not; a region is where the provider has them."""
    account.fake.world = World(denied=(Denied(kind="volume"),))
    sdk = account.sdk
    is_aws = isinstance(account, _Instances)
    volumes = sdk.describe_volumes if is_aws else partial(sdk.get, "/v2/volumes", "reading")
    for _ in range(3):
        with pytest.raises(Exception, match=r"(?i)forbidden|UnauthorizedOperation"):
            volumes()
    assert account.listed() == []
    if isinstance(account, _Instances):
        account.fake.world = World(denied=(Denied(region=_REGION, calls="all"),))
        with pytest.raises(ClientError):
            account.make()


def test_calls_take_their_time(account: Any, time: DrivenTime) -> None:
    """A call takes the latency, and nobody waits for it."""
    account.fake.world = World(latency_s=30)
    account.listed()
    account.listed()
    assert 60 <= time.ahead_s < 61


def test_deleting_a_tag_untags_every_droplet(digitalocean: DigitalOcean) -> None:
    """As the API documents: the Droplets live on without the mark (pydo#468 beside it)."""
    account = _Droplets(digitalocean)
    key = account.make()
    account.sdk.delete("/v2/tags/ours", "ending")
    assert account.tagged() == []
    assert account.listed() == [key]


def test_a_terminate_may_come_too_early(aws_account: AwsAccount, time: DrivenTime) -> None:
    """Within the lag of reads by id EC2 does not find what it has just made."""
    account = _Instances(aws_account)
    aws_account.world = World(read_lag_s=30)
    key = account.make()
    with pytest.raises(ClientError, match="NotFound"):
        account.end(key)
    time.sleep(31)
    account.end(key)
    assert aws_account.alive_ids() == []


def test_time_is_one_for_several_processes(tmp_path: Path) -> None:
    """What one process sleeps, another one is later by, over a file."""
    shared = tmp_path / "time"
    before = datetime.now(UTC)
    with driven_time(shared) as one:
        one.sleep(7200)
    with driven_time(shared) as other:
        assert datetime.now(UTC) - before >= timedelta(hours=2)
        assert other.ahead_s == 7200
    assert datetime.now(UTC) - before < timedelta(minutes=1)
