"""Which run a measurement is a part of, and on which of its machines it was taken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DIGITS = 12
# Variables that processes of one launch share, and no others: Slurm, torchrun, Open MPI, MPICH.
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID")
_LAUNCHERS = (
    *_SLURM,
    "TORCHELASTIC_RUN_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PMIX_NAMESPACE",
    "PMI_JOBID",
)
# Options of torchrun and of `accelerate launch`: that there are several machines, and which it is.
_MACHINES = ("--nnodes", "--num_machines", "--num-machines")
_PLACES = ("--node-rank", "--machine-rank", "--local-addr")


def host_name() -> str:
    """Return this machine's name, without its domain."""
    return os.uname().nodename.partition(".")[0]


def node_of(host: str) -> str:
    """Return what profiles call a machine: a hash, for the name may tell too much."""
    import hashlib  # noqa: PLC0415 - a command waits for us

    return hashlib.sha256(host.encode()).hexdigest()[:_DIGITS]


def usable_cpus() -> str:
    """Return the cores that this process may use, as Linux lists them: `0-3,8`."""
    spans: list[list[int]] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if spans and spans[-1][-1] == cpu - 1:
            spans[-1] = [spans[-1][0], cpu]
        else:
            spans.append([cpu])
    return ",".join("-".join(map(str, span)) for span in spans)


def launch_of(environ: Mapping[str, str], words: Sequence[str] = ()) -> str | None:
    """Return what the processes of one launch have in common; None where no launcher shows.

    Args:
        environ: what Slurm, torchrun or MPI tells its processes.
        words: the command, where a launcher stands in it that is started on several machines: its
            words but for those that say which machine it is.
    """
    import hashlib  # noqa: PLC0415 - a command waits for us

    # A Slurm job runs many things; what its step runs is one launch.
    names = _LAUNCHERS if environ.get(_SLURM[1]) else [n for n in _LAUNCHERS if n not in _SLURM]
    known = [f"{name}={environ[name]}" for name in names if environ.get(name)]
    spread = any(word.startswith(_MACHINES) and word.partition("=")[2] != "1" for word in words)
    known += _without_place(words) if spread else ()
    return hashlib.sha256("\0".join(known).encode()).hexdigest()[:_DIGITS] if known else None


def _without_place(words: Sequence[str]) -> list[str]:
    """Return the words of a launcher without those that differ from machine to machine."""
    kept: list[str] = []
    skipped = False
    for word in words:
        plain = word.replace("_", "-")
        if not skipped and not plain.startswith(_PLACES):
            kept.append(word)
        skipped = plain in _PLACES
    return kept


def run_here(environ: Mapping[str, str]) -> dict[str, str | int]:
    """Return the fields of `model.Run` as they are known outside the program.

    A Slurm step on several machines is one run of as many processes as it has tasks. On one machine
    the tasks may just as well be jobs of their own (a sweep): there the program's own ranks decide.
    """
    found: dict[str, str | int] = {"node": node_of(host_name()), "cpus": usable_cpus()}
    job, step = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_STEP_ID", "")
    if job.isdecimal():
        found["id"] = f"slurm {job}.{step}" if step.isdecimal() else f"slurm {job}"
    nodes, tasks = environ.get("SLURM_STEP_NUM_NODES", ""), environ.get("SLURM_NTASKS", "")
    if step.isdecimal() and nodes.isdecimal() and int(nodes) > 1:
        found["world"] = max(int(tasks) if tasks.isdecimal() else 0, int(nodes))
    return found
