"""Machines to set up: every kind that a plan can ask for."""

from typing import Any

Machine = dict[str, Any]
HOSTILE = 'a"; rm -rf / #\n$(reboot)`id`'


def a_machine(**changes: Any) -> Machine:
    """A machine with one NVIDIA GPU for one job."""
    machine: Machine = {
        "run": "k3f9xw2m",
        "deadline": "2026-11-21 20:15:00 UTC",
        "ttl_s": 28_800,
        "end": "digitalocean",
        "end_url": "https://api.digitalocean.com",
        "gpu_vendor": "nvidia",
        "gpu_count": 1,
        "vcpus": 20,
        "nodes": 1,
        "actions": (),
        "sharing": None,
        "jobs": (),
        "scratch": True,
    }
    return machine | changes


LOADING = ("dataloader-workers", "dataloader-prefetch", "pinned-memory", "local-cache")
MACHINES: dict[str, Machine] = {
    "one H100 at DigitalOcean": a_machine(),
    "eight H100, starved": a_machine(gpu_count=8, vcpus=160, actions=LOADING),
    "two nodes of eight": a_machine(gpu_count=8, vcpus=160, nodes=2, actions=("numa-binding",)),
    "spot at AWS": a_machine(end="poweroff", vcpus=4, actions=("spot", "compile", "tf32")),
    "AMD": a_machine(gpu_vendor="amd", gpu_count=8, actions=("allocator-tuning",)),
    "shared by MPS": a_machine(sharing="mps", jobs=("a", "b", "c")),
    "shared in turns": a_machine(sharing="time-slicing", jobs=("infer-a", "infer b")),
    "without an end of its own": a_machine(end="none", actions=("nccl-tuning",)),
    "numeric actions": a_machine(actions=("mixed-precision", "larger-batch", "no-such-action")),
    "cores unknown": a_machine(vcpus=None, actions=LOADING),
    "the user's own": a_machine(end="none", scratch=False, gpu_count=0, gpu_vendor=""),
    "hostile names": a_machine(sharing="mps", jobs=(HOSTILE, "b"), actions=(HOSTILE,)),
}
