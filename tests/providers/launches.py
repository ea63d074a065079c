"""Launches, offers and sessions for tests of the lifecycle."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import structs

from pricing.catalog.offer import Offer
from pricing.errors import ProviderError
from pricing.money import usd
from providers.interface import Cloud, LaunchSpec, Place, Resource
from providers.journal.journal import Journal
from providers.lifecycle.session import Clock, Patience, Session
from providers.ownership_tags import OwnershipTags, new_run
from providers.ssh.connection import Proof, Status

HASTY = Patience(
    pause_s=5.0,
    running_s=120.0,
    bootstrap_s=20.0,
    gone_s=600.0,
    unasked_s=10.0,
    calls=3,
    longest_wait_s=5.0,
)
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGSb1GZ8xkE1bIfqPH4n1qzqXf0Ww9aXo9v1cQYy7m1H gpucost"
)
SIZES = {
    "memory": "one-gpu",
    "digitalocean": "gpu-b200x8-1440gb",
    "aws": "g6.xlarge",
    "lambda": "gpu_1x_a10",
}


def no_wait(_: float) -> None:
    """Do not wait."""


def an_offer(provider: str = "memory", **changes: Any) -> Offer:
    """An offer of a provider at 3 USD/h."""
    offer = Offer(
        provider=provider,
        region="*",
        instance_type=SIZES.get(provider, "one-gpu"),
        gpu="L4",
        gpu_count=1,
        gpu_memory_gib=24,
        purchase="on_demand",
        usd_per_hour=usd("3"),
        source="a test",
        as_of=date(2026, 11, 20),
    )
    return structs.replace(offer, **changes)


def a_spec(
    offer: Offer | None = None, *, regions: tuple[str, ...] = (), **changes: Any
) -> LaunchSpec:
    """A launch of one machine for an hour."""
    offer = offer or an_offer()
    deadline = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    marks = OwnershipTags(run=new_run(), deadline=deadline, owner="ada", plan="plan-7")
    spec = LaunchSpec(
        marks=marks,
        places=tuple(
            Place(offer=offer, region=region, user_data="#cloud-config\n{}\n")
            for region in regions or ("",)
        ),
        count=1,
        ttl_s=Decimal(3600),
        max_usd=Decimal(1000),
        public_key=PUBLIC_KEY,
        image="an-image",
    )
    return replace(spec, **changes)


def a_session(cloud: Cloud, folder: Path, **changes: Any) -> Session:
    """A session with a journal of its own that never waits."""
    session = Session(
        cloud=cloud,
        journal=Journal(folder),
        clock=Clock(sleep=no_wait),
        patience=HASTY,
    )
    return replace(session, **changes)


class Said:
    """A way into machines that answers in turn, and fails to take the token if told so."""

    def __init__(self, *words: Status, takes: bool = True, faults: tuple[str, ...] = ()) -> None:
        self.words = list(words)
        self.takes = takes
        self.faults = list(faults)
        self.delivered: list[str] = []

    def status(self, machine: Resource) -> Status:
        """The next word; the last one for ever."""
        _ = machine
        return self.words.pop(0) if len(self.words) > 1 else self.words[0]

    def deliver(self, machine: Resource, machines: tuple[Resource, ...]) -> None:
        """Take it or not."""
        assert machine in machines
        if not self.takes:
            raise ProviderError("the token could not be written")
        self.delivered.append(machine.name)

    def proof(self, machine: Resource) -> Proof:
        """It ends itself, once it has run out of faults."""
        fault = self.faults.pop(0) if self.faults else ""
        return Proof(deadline=machine.marks.deadline, clock=None, fault=fault)

    def set_deadline(self, machine: Resource, deadline: datetime, life_s: int) -> None:
        """Nothing is told to it."""
        raise ProviderError(f"{machine.name} takes neither {deadline} nor {life_s} s")


PENDING, READY = Status(state="pending"), Status(state="ready")
