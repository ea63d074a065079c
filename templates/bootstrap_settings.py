"""What actions of a plan are on a machine: variables in the environment of its jobs.

Variables named GPUCOST_* are read by no library: they carry a figure to a training script. The rest
are those of PyTorch, NCCL and OpenMP, as their documentation names them. An action that is not here
(a change of code, a choice of machine) leaves no trace on a machine.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

_CACHE = "/scratch/cache"
_MOST_WORKERS = 16

ENVIRONMENT: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "allocator-tuning": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        "dataloader-workers": {"GPUCOST_DATALOADER_WORKERS": "{workers}"},
        "dataloader-prefetch": {"GPUCOST_PREFETCH_FACTOR": "4"},
        "persistent-workers": {"GPUCOST_PERSISTENT_WORKERS": "1"},
        "pinned-memory": {"GPUCOST_PIN_MEMORY": "1"},
        "async-copy": {"GPUCOST_NON_BLOCKING": "1"},
        "local-cache": {
            "GPUCOST_CACHE_DIR": _CACHE,
            "HF_HOME": f"{_CACHE}/huggingface",
            "TORCH_HOME": f"{_CACHE}/torch",
        },
        "compile": {"TORCHINDUCTOR_CACHE_DIR": f"{_CACHE}/inductor"},
        "mixed-precision": {"GPUCOST_PRECISION": "amp-bf16"},
        "tf32": {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"},
        "nccl-tuning": {"NCCL_DEBUG": "WARN", "NCCL_SOCKET_IFNAME": "^lo,docker0"},
    }
)
"""Action -> variables; {workers} is the loader workers that fit the cores of a GPU."""


def environment(
    actions: Iterable[str], *, vcpus: float | None, processes: int, nodes: int
) -> dict[str, str]:
    """The variables of a machine, by name.

    Args:
        actions: codes of the option.
        vcpus: of the machine; None where unknown, and then no number of workers is set.
        processes: of the job on this machine.
        nodes: machines of the job.
    """
    wanted = set(actions)
    if nodes > 1:
        wanted.add("nccl-tuning")
    cores = None if vcpus is None else max(1, int(vcpus) // max(1, processes))
    values = {"workers": "" if cores is None else str(min(_MOST_WORKERS, max(1, cores - 1)))}
    found = {"TMPDIR": "/scratch"}
    if cores is not None:
        found["OMP_NUM_THREADS"] = str(max(1, cores // 2))
    for action in sorted(wanted & set(ENVIRONMENT)):
        filled = {name: text.format(**values) for name, text in ENVIRONMENT[action].items()}
        found |= {name: text for name, text in filled.items() if text}
    return dict(sorted(found.items()))


def sharing(mode: str, jobs: int) -> dict[str, str]:
    """The variables of jobs that share a GPU; under MPS each may use twice its equal share."""
    if mode != "mps":
        return {}
    share = min(100, round(200 / max(1, jobs)))
    return {
        "CUDA_MPS_PIPE_DIRECTORY": "/run/gpucost-mps",
        "CUDA_MPS_LOG_DIRECTORY": "/var/log/gpucost-mps",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(share),
    }


def deadline_units(values: Mapping[str, Any]) -> tuple[str, str]:
    """The systemd service and timer that end the machine at its deadline.

    The timer knows the deadline as a time of day and as a time since boot, so that neither a wrong
    clock nor a reboot outlives it.
    """
    service = (
        "[Unit]\nDescription=End this machine at its deadline\n\n"
        "[Service]\nType=simple\nExecStart=/opt/gpucost/end.sh\n"
    )
    timer = (
        "[Unit]\nDescription=Deadline of this machine\n\n"
        f"[Timer]\nOnCalendar={values['deadline']}\nOnBootSec={values['ttl_s']}s\n"
        "AccuracySec=1s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    return service, timer
