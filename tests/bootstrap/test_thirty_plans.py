"""Thirty launches as the command line asks for them, and odd machines: every script is clean."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpucost.launch.choice import LaunchChoice, choose_type
from gpucost.launch.options import LaunchOptions, check_machine
from gpucost.launch.provisioning import build_spec
from gpucost.prices.cache import load_catalog
from planner.actions.settings import MachineSettings, shared_settings
from providers.registry import launchable
from templates.bootstrap_files import MOST_PLAIN, render_bootstrap
from tests.bootstrap.box import parts
from tests.bootstrap.machines import MACHINES
from tests.bootstrap.test_documents import HEREDOC, tool

MOST_BYTES = {"aws": 16_384, "digitalocean": 65_536}
"""User data that the providers take: the EC2 User Guide, DigitalOcean's API reference."""

SECRETS = {
    "DIGITALOCEAN_TOKEN": "dop_v1_" + "ab" * 32,
    "GPUCOST_DIGITALOCEAN_REAPER_TOKEN": "dop_v1_" + "cd" * 32,
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI" + "K7MDENG",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjE",
    "LAMBDA_API_KEY": "secret_gpu_" + "ef" * 16,
}
_ALONE = LaunchOptions(ttl_s=Decimal(28_800))
_RECIPE = MachineSettings(
    environment={
        "OMP_NUM_THREADS": "10",
        "NCCL_SOCKET_IFNAME": "^lo,docker",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    },
    launcher={"nproc_per_node": 8, "numa": "auto", "max_restarts": 3},
)


def _wish(**asked: Any) -> LaunchOptions:
    return LaunchOptions(ttl_s=Decimal(28_800), **asked)


_WISHES: Mapping[str, tuple[str, int, str, LaunchOptions]] = {
    # name: type, machines, purchase, what is asked
    "one L4": ("aws/g6.xlarge/us-east-1", 1, "on_demand", _ALONE),
    "one H100, spot": ("aws/p5.4xlarge/ap-south-1", 1, "spot", _ALONE),
    "one H100, spot, idle": ("aws/p5.4xlarge/ap-south-1", 1, "spot", _wish(idle_s=1800)),
    "one L4, idle": ("aws/g6.xlarge/us-east-1", 1, "on_demand", _wish(idle_s=60)),
    "one L4, own image": ("aws/g6.xlarge/us-east-1", 1, "on_demand", _wish(image="ami-0abc")),
    "one L4, stays": ("aws/g6.xlarge/us-east-1", 1, "on_demand", _wish(self_destroy=False)),
    "four L4": ("aws/g6.12xlarge/us-east-1", 1, "on_demand", _wish(idle_s=900)),
    "eight H100": ("aws/p5.48xlarge/us-east-1", 1, "on_demand", _ALONE),
    "eight H100, spot": ("aws/p5.48xlarge/eu-north-1", 1, "spot", _wish(idle_s=3600)),
    "eight H100, capped": ("aws/p5.48xlarge/us-east-1", 1, "on_demand", _wish(power_cap_w=500)),
    "two nodes": ("aws/p5.48xlarge/us-east-1", 2, "on_demand", _ALONE),
    "two nodes, spot, idle": ("aws/p5.48xlarge/eu-north-1", 2, "spot", _wish(idle_s=1800)),
    "four nodes": ("aws/p4d.24xlarge/us-east-1", 4, "on_demand", _ALONE),
    "everything": (
        "aws/p5.48xlarge/eu-north-1",
        2,
        "spot",
        _wish(idle_s=1800, power_cap_w=400, mig=("3g.40gb", "2g.20gb")),
    ),
    "one H100": ("digitalocean/gpu-h100x1-80gb", 1, "on_demand", _ALONE),
    "one H100, idle": ("digitalocean/gpu-h100x1-80gb", 1, "on_demand", _wish(idle_s=1800)),
    "one H100, sliced": (
        "digitalocean/gpu-h100x1-80gb",
        1,
        "on_demand",
        _wish(mig=("3g.40gb", "3g.40gb"), idle_s=1800),
    ),
    "one H100, capped": ("digitalocean/gpu-h100x1-80gb", 1, "on_demand", _wish(power_cap_w=350)),
    "eight H100 there": ("digitalocean/gpu-h100x8-640gb", 1, "on_demand", _wish(idle_s=1800)),
    "two nodes there": ("digitalocean/gpu-h100x8-640gb", 2, "on_demand", _ALONE),
    "one MI300X": ("digitalocean/gpu-mi300x1-192gb", 1, "on_demand", _ALONE),
    "one MI300X, idle": ("digitalocean/gpu-mi300x1-192gb", 1, "on_demand", _wish(idle_s=1800)),
    "eight MI300X, idle": ("digitalocean/gpu-mi300x8-1536gb", 1, "on_demand", _wish(idle_s=1800)),
    "eight MI300X, stays": (
        "digitalocean/gpu-mi300x8-1536gb",
        1,
        "on_demand",
        _wish(self_destroy=False),
    ),
    "own machine": ("ssh/root@10.0.0.5", 1, "on_demand", _ALONE),
}
_SHARED = {
    "two share by MPS": ("digitalocean/gpu-h100x1-80gb", "mps", 2),
    "seven share by MPS, idle": ("digitalocean/gpu-h100x1-80gb", "mps", 7),
    "two take turns": ("aws/g6.xlarge/us-east-1", "time-slicing", 2),
    "three take turns, idle": ("aws/g6.xlarge/us-east-1", "time-slicing", 3),
}


def _choices() -> Iterator[tuple[str, LaunchChoice, LaunchOptions]]:
    """Every launch: the name of the case, what is launched, what is asked."""
    catalog = load_catalog(date(2026, 11, 22))
    for name, (place, count, purchase, wish) in _WISHES.items():
        yield name, choose_type(place, None, purchase, count, catalog), wish
    for name, (place, mode, jobs) in _SHARED.items():
        one = choose_type(place, None, "on_demand", 1, catalog)
        shared = LaunchChoice(
            offers=one.offers,
            region=one.region,
            machines=(shared_settings(mode, jobs, one.offers[0].vcpus),),
            sharing=mode,
            jobs=tuple(f"job {n}" for n in range(jobs)),
        )
        yield name, shared, _wish(idle_s=1800) if "idle" in name else _ALONE
    one = choose_type("digitalocean/gpu-h100x1-80gb", None, "on_demand", 1, catalog)
    sliced = LaunchChoice(
        offers=one.offers,
        machines=(shared_settings("mig", 2, one.offers[0].vcpus),),
        sharing="mig",
        jobs=("job 1", "job 2"),
        slices=("3g.40gb", "4g.40gb"),
    )
    yield "jobs on slices", sliced, _ALONE
    eight = choose_type("aws/p5.48xlarge/us-east-1", None, "on_demand", 1, catalog)
    recipe = LaunchChoice(offers=eight.offers, region=eight.region, machines=(_RECIPE,))
    yield "a recipe's settings", recipe, _wish(idle_s=1800)
    for provider in sorted(launchable() - {"aws", "digitalocean"}):
        offer = next(
            one
            for one in catalog.offers
            if one.provider == provider and one.purchase == "on_demand" and one.gpu_count == 1
        )
        place = f"{provider}/{offer.instance_type}"
        choice = choose_type(place, None, "on_demand", 1, catalog)
        yield f"one GPU at {provider}", choice, _wish(self_destroy=False)


@pytest.fixture(scope="module")
def rendered() -> dict[str, tuple[str, str]]:
    """Provider and user data of every launch, made where secrets are in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, secret in SECRETS.items():
            patch.setenv(name, secret)
        found = {name: (one.provider, _user_data(one, wish)) for name, one, wish in _choices()}
        return found | {
            name: ("aws", render_bootstrap(one, most_bytes=MOST_PLAIN))
            for name, one in MACHINES.items()
        }


def _user_data(choice: LaunchChoice, wish: LaunchOptions) -> str:
    check_machine(choice, wish)
    spec = build_spec(choice, wish, datetime(2026, 11, 22, tzinfo=UTC), None)
    return spec.places[0].user_data


def _texts(document: str) -> dict[str, str]:
    """Every file and script of a document, by name."""
    if document.startswith("["):  # of a machine of one's own
        return {one["path"]: one["text"] for one in json.loads(document)}
    found = parts(document)
    config = yaml.safe_load(found["cloud-config"])
    hook = found.get("cloud-boothook", "")
    texts = {one["path"]: one["content"] for one in config["write_files"]}
    texts |= {path: text for _, path, text in HEREDOC.findall(hook)}
    return texts | ({"boothook": hook} if hook else {})


def test_there_are_thirty(rendered: dict[str, tuple[str, str]]) -> None:
    """One and eight GPUs, slices, sharing, nodes, spot, every provider, AMD, idle, a recipe."""
    assert len(rendered) >= 30 + len(MACHINES)
    assert {provider for provider, _ in rendered.values()} == launchable() | {"ssh"}
    assert len({text for _, text in rendered.values()}) >= 28  # each run's name differs, too


@pytest.mark.parametrize("step", [pytest.param(5, id="a fifth"), pytest.param(1, id="all")])
def test_every_script_is_clean(
    step: int, rendered: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    """Shellcheck finds nothing in any script of any launch; of a fifth, at each change."""
    scripts: dict[str, Path] = {}
    for at, (_, document) in enumerate([*rendered.values()][::step]):
        for name, text in _texts(document).items():
            if text.startswith("#!") and text not in scripts:
                scripts[text] = tmp_path / f"{at}-{Path(name).name}"
                scripts[text].write_text(text, encoding="utf-8")
    assert len(scripts) >= 100 // step
    command = [tool("shellcheck"), *map(str, scripts.values())]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[:3000]


def test_cloud_init_takes_every_document(
    rendered: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    """cloud-init's own schema holds every cloud-config to be valid."""
    tool("cloud-init")
    for at, (provider, document) in enumerate(rendered.values()):
        if provider != "ssh":
            (tmp_path / str(at)).write_text(parts(document)["cloud-config"], encoding="utf-8")
    ran = subprocess.run(
        ["/usr/bin/python3", "-c", _SCHEMA, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in ran.stderr:
        pytest.skip("cloud-init's modules are not where the system's Python finds them")
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) >= 29


_SCHEMA = """
import pathlib, sys
import yaml
from cloudinit.config.schema import get_schema, validate_cloudconfig_schema
schema, files = get_schema(), list(pathlib.Path(sys.argv[1]).iterdir())
for file in files:
    validate_cloudconfig_schema(yaml.safe_load(file.read_text()), schema, strict=True)
print(len(files))
"""


def test_every_document_is_small_and_tells_no_secret(
    rendered: dict[str, tuple[str, str]],
) -> None:
    """Each fits what its provider takes, and holds no token of the environment."""
    for name, (provider, document) in rendered.items():
        assert len(document.encode("ascii")) <= MOST_BYTES.get(provider, 16_384), name
        whole = document + "".join(_texts(document).values())
        assert [secret for secret in SECRETS.values() if secret in whole] == [], name
