"""Machines to set up: every kind that a plan can ask for."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from providers.registry import CLOUDS
from templates.bootstrap_files import MachineBootstrap

HOSTILE = 'a"; rm -rf / #\n$(reboot)`id`'
_ONE = MachineBootstrap(
    run="k3f9xw2m",
    deadline=datetime(2026, 11, 21, 20, 15, tzinfo=UTC),
    ttl_s=28_800,
    end="api",
    end_id_url="http://169.254.169.254/metadata/v1/id",
    end_url="https://api.digitalocean.com/v2/droplets/",
    gpu_vendor="nvidia",
    gpu_count=1,
    environment={},
    launcher={"nproc_per_node": 1},
    sharing=None,
    jobs=(),
    scratch=True,
)


def a_machine(**changes: Any) -> MachineBootstrap:
    """A machine with one NVIDIA GPU for one job."""
    return replace(_ONE, **changes)


_AWS = CLOUDS["aws"].notices
assert _AWS is not None
NOTICES: dict[str, str] = dict(_AWS)
EIGHT: dict[str, int | str] = {"nproc_per_node": 8, "numa": "auto"}
MACHINES: dict[str, MachineBootstrap] = {
    "one H100 at DigitalOcean": a_machine(),
    "eight H100, starved": a_machine(
        gpu_count=8,
        launcher=EIGHT | {"max_restarts": 3},
        environment={"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "10"},
    ),
    "two nodes of eight": a_machine(
        gpu_count=8,
        launcher=EIGHT | {"nnodes": "1:2", "max_restarts": 2},
        environment={"NCCL_SOCKET_IFNAME": "^lo,docker"},
    ),
    "two of eight GPUs": a_machine(gpu_count=8, launcher={"nproc_per_node": 2, "numa": "auto"}),
    "spot at AWS": a_machine(
        end="poweroff",
        environment={"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"},
        notices=NOTICES,
        idle_s=1800,
    ),
    "AMD over Infinity Fabric": a_machine(
        gpu_vendor="amd", gpu_count=8, launcher=EIGHT, interconnect="xgmi"
    ),
    "AMD": a_machine(gpu_vendor="amd", gpu_count=8, launcher=EIGHT),
    "AMD, capped": a_machine(gpu_vendor="amd", gpu_count=8, launcher=EIGHT, power_cap_w=500),
    "shared by MPS": a_machine(sharing="mps", jobs=("a", "b", "c")),
    "shared in turns": a_machine(sharing="time-slicing", jobs=("infer-a", "infer b")),
    "jobs on slices": a_machine(
        sharing="mig",
        jobs=("a", "b", "the c"),
        mig=("3g.40gb", "2g.20gb", "2g.20gb"),
        slices=("2g.20gb", "3g.40gb", "2g.20gb"),
    ),
    "sliced by MIG": a_machine(mig=("3g.40gb", "2g.20gb", "2g.20gb")),
    "eight over NVLink, capped": a_machine(
        gpu_count=8, launcher=EIGHT, interconnect="nvlink", power_cap_w=500
    ),
    "without an end of its own": a_machine(end="none"),
    "the user's own": a_machine(end="none", scratch=False, gpu_count=0, gpu_vendor=""),
    "hostile names": a_machine(sharing="mps", jobs=(HOSTILE, "b")),
}
