"""Which run a measurement is a part of, and on which of its machines it was taken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = 12


def host_name() -> str:
    """Return this machine's name, without its domain."""
    return os.uname().nodename.partition(".")[0]


def node_of(host: str) -> str:
    """Return what profiles call a machine: a hash, for the name may tell too much."""
    import hashlib  # noqa: PLC0415 - a command waits for us

    return hashlib.sha256(host.encode()).hexdigest()[:_DIGITS]


def run_here(environ: Mapping[str, str]) -> dict[str, str | int]:
    """Return the fields of `model.Run` as they are known outside the program.

    A Slurm step on several machines is one run of as many processes as it has tasks. On one machine
    the tasks may just as well be jobs of their own (a sweep): there the program's own ranks decide.
    """
    found: dict[str, str | int] = {"node": node_of(host_name())}
    job, step = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_STEP_ID", "")
    if job.isdecimal():
        found["id"] = f"slurm {job}.{step}" if step.isdecimal() else f"slurm {job}"
    nodes, tasks = environ.get("SLURM_STEP_NUM_NODES", ""), environ.get("SLURM_NTASKS", "")
    if step.isdecimal() and nodes.isdecimal() and int(nodes) > 1:
        found["world"] = max(int(tasks) if tasks.isdecimal() else 0, int(nodes))
    return found
