"""Every provider keeps the contract of a cloud, and every provider is in the registry."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from providers.aws.cloud import connect as connect_aws
from providers.digitalocean.cloud import connect as connect_digitalocean
from providers.interface import Cloud, Connection, LaunchSpec, Place
from providers.lambda_cloud.cloud import connect as connect_lambda
from providers.ssh.cloud import connect as connect_ssh
from tests.providers.contract import CloudContract
from tests.providers.fakes.account import digitalocean_environment
from tests.providers.fakes.aws_account import AwsAccount
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.lambda_account.account import Lambda
from tests.providers.fakes.memory import MemoryCloud
from tests.providers.fakes.sshd import Machine, a_machine
from tests.providers.launches import a_spec, an_offer


class TestMemory(CloudContract):
    """The provider in memory."""

    @pytest.fixture
    def cloud(self) -> Cloud:
        """Empty."""
        return MemoryCloud()

    @pytest.fixture(params=[1, 2])
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One or two machines."""
        return a_spec(count=request.param, regions=("here",))


class TestDigitalOcean(CloudContract):
    """DigitalOcean over https, each exchange held against its OpenAPI document."""

    @pytest.fixture
    def cloud(self, digitalocean: DigitalOcean) -> Iterator[Cloud]:
        """An account without anything of ours."""
        yield connect_digitalocean(Connection(environment=digitalocean_environment()))
        assert digitalocean.violations == []

    @pytest.fixture(params=[1, 2])
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One or two machines."""
        return a_spec(an_offer("digitalocean"), count=request.param, regions=("nyc2",))


class TestLambda(CloudContract):
    """Lambda over https, each request held against the documented fields."""

    @pytest.fixture
    def cloud(self, lambda_account: Lambda) -> Cloud:
        """An account without anything of ours."""
        assert lambda_account.bills == {}
        return connect_lambda(Connection(environment=os.environ))

    @pytest.fixture(params=[1, 2])
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One or two machines, which do not end themselves."""
        count, region = request.param, ("us-east-1",)
        return a_spec(an_offer("lambda"), count=count, regions=region, image="", self_destroy=False)


class TestAws(CloudContract):
    """AWS: moto's EC2 behind a server of our own, which validates types, images and keys."""

    @pytest.fixture
    def cloud(self, aws_account: AwsAccount) -> Cloud:
        """An account without anything of ours."""
        assert aws_account.instances() == []
        return connect_aws(Connection())

    @pytest.fixture(params=[("g6.xlarge", 1, "on_demand"), ("p5.48xlarge", 2, "spot")], ids=str)
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One small machine, or two large ones on spot."""
        size, count, purchase = request.param
        offer = an_offer("aws", instance_type=size, purchase=purchase, region="us-east-1", vcpus=4)
        return a_spec(offer, count=count, regions=("us-east-1",), image="")


class TestSsh(CloudContract):
    """A machine that the user has: a real sshd here, with a root folder of its own."""

    @pytest.fixture
    def machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
        """The machine, known to the user, who has a key for it."""
        with a_machine(tmp_path / "machine") as one:
            home = tmp_path / ".ssh"
            home.mkdir(mode=0o700)
            shutil.copy(one.key, home / "id_ed25519")
            (home / "known_hosts").write_text(one.host_key(), encoding="utf-8")
            monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
            yield one

    @pytest.fixture
    def cloud(self, machine: Machine, tmp_path: Path) -> Cloud:
        """A state folder that knows the machine from before."""
        cloud = connect_ssh(Connection(state=str(tmp_path / "state")))
        cloud.remember(machine.host)
        return cloud

    @pytest.fixture
    def spec(self, machine: Machine) -> LaunchSpec:
        """A set-up that is ready at once."""
        script = '#!/bin/sh\necho ready > "$GPUCOST_ROOT/var/lib/gpucost/status"\n'
        file = {"path": "/opt/gpucost/bootstrap.sh", "mode": "0755", "text": script}
        place = Place(offer=None, host=machine.host, user_data=json.dumps([file]))
        return a_spec(places=(place,), self_destroy=False)
