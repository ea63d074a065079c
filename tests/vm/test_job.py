"""One command against a real machine: from a plan to `after.json`, and nothing is left.

DigitalOcean is a stand-in whose create call boots the user data that it was given; the rest is as
anywhere: SSH, the scripts of the bootstrap and of the steps, uv, gpucost, the recipe.
"""

import gzip
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gpucost.cli import run
from providers.digitalocean.cloud import DigitalOceanCloud
from providers.interface import MACHINE, Creation, Resource
from providers.provider import SelfEnd
from providers.ssh.connection import SshAccess
from tests.conftest import ROOT
from tests.fake_nvml.fixture import LIBRARY, build
from tests.fake_nvml.machines import h100
from tests.fake_nvml.scenario import Scenario
from tests.providers.fakes.account import REAPER, a_digitalocean
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.vm.image import Image
from tests.vm.machine import Disks, VirtualMachine
from tests.vm.metadata import ADDRESS
from tests.vm.test_boot import image, started, tell
from tests.vm.wheels import MOUNTED, build_wheels

__all__ = ["image", "started"]

_PLANNED = str(ROOT / "examples" / "visual-search.json")
_LIKE = "gpu-h100x1-80gb"
"""A size of the stand-in that is sold under another name."""

_IDLE_S = 120
_TRACE = "/var/lib/gpu-shim/trace"
_SCRATCH_BYTES = 3 * 2**30
_TRAIN = """import os, pathlib, subprocess, time
kept = [subprocess.run(["/opt/gpucost/armed"], capture_output=True, text=True).stdout]
kept += [f"{name}={os.environ.get(name)}" for name in ("TMPDIR", "GPUCOST_DATA_FOLDER")]
kept += sorted(os.listdir("/run/gpucost/working"))
pathlib.Path("outputs/told.txt").write_text("\\n".join(kept))
until = time.monotonic() + 20
while time.monotonic() < until:
    sum(range(100_000))
"""


def _gpu_that_works(folder: Path) -> tuple[str, ...]:
    """Commands that give the machine the driver's library as well: an H100 of a stand-in."""
    library = gzip.compress((build(folder) / LIBRARY).read_bytes())
    trace = gzip.compress(Scenario(devices={"0": h100()}).text().encode())
    put = {f"/usr/lib/x86_64-linux-gnu/{LIBRARY}": library, _TRACE: trace}
    return (
        "mkdir -p /var/lib/gpu-shim",
        *(f"echo {b64encode(v).decode()} | base64 -d | gunzip >{k}" for k, v in put.items()),
        f"echo FAKE_NVML_TRACE={_TRACE} >>/etc/environment",
    )


@contextmanager
def _droplets_boot(
    ocean: DigitalOcean, image: Image, folder: Path, started: list[VirtualMachine]
) -> Iterator[None]:
    """A Droplet is a virtual machine, whose address is a port of this computer."""
    disks = Disks(scratch_bytes=_SCRATCH_BYTES, brought=build_wheels(image.disk.parent))
    gpu = _gpu_that_works(folder / "nvml")
    create, destroy, enter = DigitalOceanCloud.create, DigitalOceanCloud.destroy, SshAccess.open

    def boot(self: DigitalOceanCloud, creation: Creation) -> Resource:
        made = create(self, creation)
        if creation.kind != MACHINE:
            return made
        (key,) = ocean.estate.things["ssh_keys"].values()
        allow = f"echo '{key['public_key']}' >>/root/.ssh/authorized_keys"
        steps = "".join(f"  - {json.dumps(one)}\n" for one in (allow, *MOUNTED, *gpu))
        vm = VirtualMachine(
            image,
            folder,
            ocean.estate.user_data[made.id],
            vendor_data=f"#cloud-config\nbootcmd:\n{steps}",
            disks=disks,
        )
        vm.metadata.machine = made.id
        started.append(vm)
        return made

    def switch_off(self: DigitalOceanCloud, resource: Resource) -> bool:
        was_there = destroy(self, resource)
        if resource.kind == MACHINE:
            started[0].stop()
        return was_there

    def enter_it(self: SshAccess, _: str) -> Any:
        return enter(self, f"127.0.0.1:{started[0].port}")

    with (
        mock.patch.object(DigitalOceanCloud, "create", boot),
        mock.patch.object(DigitalOceanCloud, "destroy", switch_off),
        mock.patch.object(SshAccess, "open", enter_it),
        # The API is at the only address that this machine reaches.
        mock.patch.object(SelfEnd, "url_with", return_value=f"http://{ADDRESS}/v2/droplets/"),
        mock.patch("providers.ssh.shell.has_rsync", return_value=False),
    ):
        yield


def test_one_command_from_a_plan_to_its_proof(
    image: Image,
    tmp_path: Path,
    started: list[VirtualMachine],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No file is edited: plan, recipe, and one `provision --run` that leaves `after.json`."""
    project, machine = tmp_path / "my code", tmp_path / "machine"
    for one in (project, machine):
        one.mkdir()
    (project / "train.py").write_text(_TRAIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    settings = {"GPUCOST_STATE_DIR": "state", "GPUCOST_OWNER": "ada"}
    for name, value in (settings | {"GPUCOST_DIGITALOCEAN_REAPER_TOKEN": REAPER}).items():
        monkeypatch.setenv(name, value)
    assert run(("plan", _PLANNED, "-q", "-o", "plan.json")) == 0
    assert run(("recipe", "plan.json", "-q", "-o", "recipe.json")) == 0
    (planned,) = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["jobs"]
    option = next(o for o in planned["options"] if o["offer"]["provider"] == "digitalocean")
    launch = ("provision", "plan.json", "--option", f"{planned['name']}/{option['id']}")
    limits = ("--ttl", "2h", "--idle", f"{_IDLE_S}s", "--ssh-from", "anywhere")
    job = ("--run", "python3 train.py", "--sync", str(project), "--collect", "outputs/", "--recipe")
    with (
        a_digitalocean(tmp_path, monkeypatch) as ocean,
        _droplets_boot(ocean, image, machine, started),
    ):
        for size in ocean.sizes:
            if size["slug"] == _LIKE:
                price = float(option["offer"]["usd_per_hour"])
                size |= {"slug": option["offer"]["instance_type"], "price_hourly": price}
                size |= {"regions": ["nyc2"]}
        start_s = time.time()
        with capfd.disabled():
            code = run((*launch, *limits, *job, "recipe.json", "--yes", "--allow-stale"))
        tell(f"exit {code}, {time.time() - start_s:.0f} s from the command to the end")
        assert code == 0
        assert ocean.estate.things["droplets"] == {}
        assert ocean.estate.things["ssh_keys"] == {}
    assert started[0].process.poll() is not None
    came = next((tmp_path / "gpucost-runs").glob("*/"))
    after = json.loads((came / "after.json").read_text("utf-8"))
    assert after["schema"] == "gpucost.profile/v1"
    assert "changes" in after
    assert after["gpus"]
    told = (came / "outputs" / "told.txt").read_text(encoding="utf-8")
    tell(told)
    assert "fault=\n" in told
    assert "TMPDIR=/scratch" in told
    assert "GPUCOST_DATA_FOLDER=/scratch/gpucost/data" in told
