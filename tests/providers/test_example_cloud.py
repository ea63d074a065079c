"""The example of CONTRIBUTING.md keeps the contract of a cloud."""

from pathlib import Path

import pytest

from providers.interface import Cloud, Connection, LaunchSpec
from tests.providers.contract import CloudContract
from tests.providers.example_cloud import FOLDER
from tests.providers.example_cloud.cloud import connect
from tests.providers.launches import a_spec, an_offer


class TestExample(CloudContract):
    """It keeps the contract of a cloud."""

    @pytest.fixture
    def cloud(self, tmp_path: Path) -> Cloud:
        """An account without anything of ours."""
        return connect(Connection(environment={FOLDER: str(tmp_path / "account")}))

    @pytest.fixture(params=[1, 2])
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One or two machines."""
        return a_spec(an_offer("example"), count=request.param, regions=("here",))
