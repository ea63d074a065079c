"""Reads what to set on a machine back from plan.json."""

import re
from collections.abc import Mapping
from typing import Any

from planner.actions.machine_settings import VARIABLES, MachineSettings, plain_settings
from planner.actions.settings import Settings
from pricing.errors import InputError

_Json = Mapping[str, Any]
_NNODES = re.compile(r"[1-9]\d{0,4}(:[1-9]\d{0,4})?")


def read_machine(job: _Json, option: _Json | None) -> MachineSettings:
    """Return what is set on each machine of an option, and what each action would set there.

    A plan of a version that did not carry it has it worked out from the option's actions.

    Raises:
        InputError: it holds what no plan of ours does.

    Args:
        job: the job's part of plan.json.
        option: the option's; None for the job as it runs today.
    """
    values = _values(job, option)
    part = job["baseline"] if option is None else option
    told = part.get("machine")
    if told is None:
        return _without(part, values, option["actions"] if option else ())
    _check(told, job["name"])
    launcher = told["launcher"]
    nnodes = str(launcher.get("nnodes", "1"))
    return MachineSettings(
        values=values,
        environment=dict(told["environment"]),
        nproc_per_node=int(launcher["nproc_per_node"]),
        nodes=int(nnodes.rpartition(":")[2]),
        nnodes=nnodes,
        max_restarts=launcher.get("max_restarts"),
        numa="numa" in launcher,
        checkpoint_every_s=told["checkpoint_every_s"],
    )


def _check(told: _Json, job: str) -> None:
    """What is read here is run on machines, so that only what we write is taken."""
    problems = [
        f"{job}: machine.environment names {name!r:.60}, which gpucost never sets; plan again."
        for name in told["environment"]
        if name not in VARIABLES
    ]
    launcher = told["launcher"]
    counts = (launcher["nproc_per_node"], launcher.get("max_restarts", 0))
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        problems.append(f"{job}: machine.launcher holds {counts}, which are no counts; plan again.")
    if not _NNODES.fullmatch(str(launcher.get("nnodes", "1"))):
        problems.append(
            f"{job}: machine.launcher.nnodes is {launcher['nnodes']!r:.60}; plan again."
        )
    if problems:
        raise InputError(problems)


def _values(job: _Json, option: _Json | None) -> dict[str, Settings]:
    if option is not None:
        told = option.get("settings", {}).items()
    else:
        told = ((one["code"], one["settings"]) for one in job.get("remedies", ()))
    return {code: dict(values) if isinstance(values, Mapping) else {} for code, values in told}


def _without(part: _Json, values: dict[str, Settings], actions: tuple[str, ...]) -> MachineSettings:
    offer = part["offer"]
    gpus = max(1, round(offer["gpu_count"])) if offer else 1
    plain = plain_settings(gpus, 1, None)
    return MachineSettings(
        values=values, nproc_per_node=plain.nproc_per_node, numa=plain.numa
    ).also(actions)
