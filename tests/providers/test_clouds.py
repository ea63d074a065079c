"""Every provider keeps the contract of a cloud, and every provider is in the registry."""

from collections.abc import Iterator

import pytest

from providers.digitalocean.cloud import connect as connect_digitalocean
from providers.interface import Cloud, Connection, LaunchSpec
from providers.memory import MemoryCloud
from tests.providers.contract import CloudContract
from tests.providers.fakes.account import digitalocean_environment
from tests.providers.fakes.digitalocean import DigitalOcean
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
