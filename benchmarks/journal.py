"""What commands cost with a journal of many runs, in processor seconds of a whole process.

For each number of runs a journal is filled with launches that came and went (a key, a firewall, a
machine each), and commands run against a stand-in of DigitalOcean on this machine: `list`,
`provision --dry-run`, `provision`, `list` of what it made, `down`, `reap`. No command waits between
two looks at the provider. Prints seconds and always exits 0: on a shared machine a time is a
measurement, not a test, and processor seconds are least disturbed by others.

Usage: python benchmarks/journal.py [RUNS ...]
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pricing.catalog.offer import Offer  # noqa: E402 - of this checkout
from providers.interface import MACHINE, Creation, JournaledResource, Resource  # noqa: E402
from providers.journal.journal import Journal  # noqa: E402
from tests.providers.fakes.account import TOKEN  # noqa: E402
from tests.providers.fakes.digitalocean import DigitalOcean  # noqa: E402
from tests.providers.fakes.server import serving  # noqa: E402
from tests.providers.fakes.sizes import the_sizes  # noqa: E402
from tests.providers.launches import a_spec, an_offer  # noqa: E402

RUNS = (30, 300, 3000, 10000)
SIZE = "gpu-h100x8-640gb"
LAUNCH = (
    "provision",
    "--type",
    f"digitalocean/{SIZE}",
    "--ttl",
    "2h",
    "--allow-stale",
    "--no-self-destroy",
    "--no-wait",
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--version",),
    ("list",),
    ("list", "--all"),
    (*LAUNCH, "--dry-run"),
    (*LAUNCH, "--yes"),
    ("list",),
    ("reap", "--yes"),
    ("down", "--all", "--yes"),
)
WITHOUT_PAUSES = """
import sys
from gpucost.launch import state
from gpucost.cli import run
from providers.lifecycle.session import Clock

state.CLOCK = Clock(sleep=lambda _: None)
sys.exit(run(sys.argv[1:]))
"""


def fill(folder: Path, runs: int) -> None:
    """Write a journal of runs that came and went, one an hour."""
    journal = Journal(folder)
    journal._base.execute("PRAGMA synchronous = OFF")  # noqa: SLF001 - only to fill it quickly
    offer = an_offer("digitalocean", instance_type=SIZE, usd_per_hour=Decimal("35.28"))
    first = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=runs + 1)
    for number in range(runs):
        _come_and_go(journal, offer, first + timedelta(hours=number))
    journal.close()


def _come_and_go(journal: Journal, offer: Offer, at: datetime) -> None:

    spec = a_spec(offer, regions=("nyc2",))
    run, end = spec.marks.run, at + timedelta(minutes=50)
    journal.open_run(spec, Decimal("70.56"), at)
    for kind in ("ssh-key", "firewall", MACHINE):
        name, born = spec.marks.name(kind), at if kind == MACHINE else None
        named = {"kind": kind, "name": name, "region": "nyc2"}
        journal.intend(run, Creation(**named, call="", arguments={}), at)
        journal.record(Resource(**named, id=name, marks=spec.marks, created_at=born), at)
        kept = JournaledResource(**named, id=name, state="made", intended_at=at, billed_from=born)
        journal.mark_gone(run, kept, end)
    journal.mark_run(run, "ended", end)


def seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """Return the processor time of one whole process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        (sys.executable, "-c", WITHOUT_PAUSES, *arguments),
        cwd=environment["HOME"],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    if ran.returncode != 0:
        print(f"gpucost {' '.join(arguments)}: exit {ran.returncode}: {ran.stderr[-400:]}")
    return took


def main(arguments: Sequence[str]) -> None:
    """Time every command with every number of runs, and print it."""
    counts = tuple(int(text) for text in arguments) or RUNS
    load = os.getloadavg()[0]
    print(f"processor seconds of whole processes, {os.cpu_count()} cores, load {load:.1f}")
    print(f"{'runs in the journal':<42}" + "".join(f"{count:>9}" for count in counts))
    table: dict[int, list[float]] = {}
    for count in counts:
        fake = DigitalOcean(token=TOKEN, sizes=the_sizes())
        for size in fake.sizes:
            if size["slug"] == SIZE:
                size["regions"] = ["nyc2"]
        with tempfile.TemporaryDirectory() as folder:
            authority = Path(folder) / "ca.pem"
            with serving(fake, authority) as address:
                environment = {
                    "HOME": folder,
                    "PATH": os.environ["PATH"],
                    "GPUCOST_OWNER": "ada",
                    "GPUCOST_STATE_DIR": f"{folder}/state",
                    "DIGITALOCEAN_TOKEN": TOKEN,
                    "GPUCOST_DIGITALOCEAN_ENDPOINT": address,
                    "GPUCOST_DIGITALOCEAN_CA": str(authority),
                    "AWS_EC2_METADATA_DISABLED": "true",
                }
                fill(Path(folder) / "state", count)
                table[count] = [seconds(command, environment) for command in COMMANDS]
    for at, command in enumerate(COMMANDS):
        name = " ".join(part for part in command if part not in LAUNCH[1:])
        print(f"{name:<42}" + "".join(f"{table[count][at]:9.2f}" for count in counts))


if __name__ == "__main__":
    main(sys.argv[1:])
