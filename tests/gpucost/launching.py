"""What tests of launches share: machines that are ready at once, and no waiting.

The fakes are imported where one is made: the processes of other tests need none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpucost.machines import state
from pricing.errors import ProviderError
from providers.digitalocean import access
from providers.lifecycle.session import Clock
from providers.ssh.connection import Proof, Status
from tests.providers.fakes.reach import reach_this_machine_only
from tests.providers.launches import HASTY, no_wait

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from providers.interface import Resource
    from tests.providers.fakes.aws_account import AwsAccount
    from tests.providers.fakes.digitalocean import DigitalOcean

OCEAN = ("provision", "--type", "digitalocean/gpu-h100x8-640gb", "--yes", "--allow-stale")
AMAZON = ("provision", "--type", "aws/g6.xlarge/us-east-1", "--yes", "--allow-stale")

LIFE_S = 7200
"""How long machines are to live at most, as they say."""


class Ready:
    """A way into machines that finds them ready, and keeps what was handed over."""

    def __init__(self) -> None:
        self.delivered: list[str] = []
        self.fault = ""
        self.reached = True
        self.takes = True
        self.ends: dict[str, tuple[datetime, int]] = {}

    def status(self, machine: Resource) -> Status:
        """Ready."""
        assert machine.address
        return Status(state="ready")

    def deliver(self, machine: Resource, machines: tuple[Resource, ...]) -> None:
        """Note it."""
        assert machine in machines
        self.delivered.append(machine.name)

    def proof(self, machine: Resource) -> Proof:
        """It ends itself at the deadline of its marks, or at the one that it was told since."""
        fault = self.fault if self.reached else "cannot be reached over SSH"
        deadline, life_s = self.ends.get(machine.id, (machine.marks.deadline, LIFE_S))
        answered = self.reached
        return Proof(deadline=deadline, clock=None, fault=fault, answered=answered, life_s=life_s)

    def set_deadline(self, machine: Resource, deadline: datetime, life_s: int) -> None:
        """Take it, or say that it did and go by the one before."""
        if not self.reached:
            raise ProviderError(f"{machine.name} cannot be reached over SSH")
        if self.takes:
            self.ends[machine.id] = (deadline, life_s)


def prepare(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Ready:
    """Never wait; reach this machine only; keep the journal in the test's folder."""
    reach_this_machine_only(monkeypatch)
    ready = Ready()
    monkeypatch.setattr(state, "CLOCK", Clock(sleep=no_wait))
    monkeypatch.setattr(state, "PATIENCE", HASTY)
    monkeypatch.setattr(access, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr(access, "BACKOFF_S", 0.0)
    monkeypatch.setattr("gpucost.launch.provisioning.open_login", lambda _: ready)
    monkeypatch.setattr(state, "login_again", lambda *_: ready)
    settings = {
        "GPUCOST_STATE_DIR": str(folder / "state"),
        "GPUCOST_OWNER": "ada",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return ready


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Machines that are ready."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture
def ocean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Ready) -> Iterator[DigitalOcean]:
    """A DigitalOcean that sells the size of `OCEAN`, and a token for its machines."""
    from tests.providers.fakes.account import REAPER, a_digitalocean  # noqa: PLC0415

    assert login.delivered == []
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        for size in fake.sizes:
            if size["slug"] == "gpu-h100x8-640gb":
                size |= {"regions": ["nyc2"], "price_hourly": 35.28}
        yield fake


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Ready) -> Iterator[AwsAccount]:
    """An empty AWS."""
    from tests.providers.fakes.account import an_aws  # noqa: PLC0415

    assert login.delivered == []
    with an_aws(tmp_path, monkeypatch) as fake:
        yield fake
