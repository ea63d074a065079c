"""`gpucost provision --mig` and `--power-cap`: on the machine, or refused with what there is."""

import json

import pytest

from tests.bootstrap.box import parts
from tests.gpucost.conftest import Call

OCEAN = ("provision", "--type", "digitalocean/gpu-h100x1-80gb", "--ttl", "2h", "--dry-run")


def test_slices_and_cap_reach_the_machine(call: Call) -> None:
    """The machine's script makes the slices and the cap that were named."""
    ran = call(*OCEAN, "--mig", "3g.40gb,2g.20gb", "--power-cap", "500", "-f", "json")
    assert ran.code == 0, ran.err
    (machine,) = [one for one in json.loads(ran.out)["calls"] if one["kind"] == "machine"]
    text = parts(machine["arguments"]["user_data"])["cloud-config"]
    assert "nvidia-smi mig -cgi 3g.40gb,2g.20gb -C" in text
    assert "nvidia-smi -pl 500" in text


def test_a_cap_of_amds_gpus_is_set_and_read_back(call: Call) -> None:
    """There ROCm's tool sets it."""
    words = ("--type", "digitalocean/gpu-mi300x1-192gb", "--ttl", "2h", "--dry-run", "-f", "json")
    ran = call("provision", *words, "--power-cap", "600")
    assert ran.code == 0, ran.err
    (machine,) = [one for one in json.loads(ran.out)["calls"] if one["kind"] == "machine"]
    text = parts(machine["arguments"]["user_data"])["cloud-config"]
    assert "rocm-smi --setpoweroverdrive 600 --autorespond y" in text


@pytest.mark.parametrize(
    ("type_", "asked", "told"),
    [
        ("digitalocean/gpu-h100x1-80gb", ("--mig", "9g.90gb"), "has 1g.10gb"),
        ("digitalocean/gpu-h100x1-80gb", ("--mig", "7g.80gb,7g.80gb"), "at most 1 of 7g.80gb fit"),
        (
            "digitalocean/gpu-h100x1-80gb",
            ("--mig", "4g.40gb,2g.20gb,2g.20gb"),
            "they take 8 compute slices, and a H100-SXM-80GB has 7",
        ),
        (
            "digitalocean/gpu-h100x1-80gb",
            ("--mig", "3g.40gb,3g.40gb,1g.10gb"),
            "they take 9 eighths of the memory",
        ),
        ("aws/g6.xlarge/us-east-1", ("--mig", "1g.10gb"), "L4 of aws/g6.xlarge"),
        ("digitalocean/gpu-h100x1-80gb", ("--power-cap", "900"), "takes 700 W at most"),
        ("digitalocean/gpu-mi300x1-192gb", ("--power-cap", "800"), "takes 750 W at most"),
        ("ssh/root@10.0.0.5", ("--mig", "1g.10gb"), "the machine is yours"),
    ],
)
def test_what_a_gpu_cannot_do_is_refused(
    call: Call, type_: str, asked: tuple[str, ...], told: str
) -> None:
    """Slices that the GPU has not, and a cap above its limit, are refused before anything."""
    ran = call("provision", "--type", type_, "--ttl", "2h", "--dry-run", *asked)
    assert ran.code == 2
    assert told in ran.err
