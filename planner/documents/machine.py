"""Reads what to set on a machine back from plan.json."""

import re

from planner.actions.settings import VARIABLES, MachineSettings, Settings, plain_settings
from planner.plan.option import MachineSetup
from planner.plan.read import FoundOption
from pricing.errors import InputError

_NNODES = re.compile(r"[1-9]\d{0,4}(:[1-9]\d{0,4})?")


def read_machine(option: FoundOption) -> MachineSettings:
    """Return what is set on each machine of an option, and what each action would set there.

    A plan of a version that did not carry it has it worked out from the option's actions.

    Raises:
        InputError: it holds what no plan of ours does.
    """
    setup = option.machine
    values = {code: dict(settings) for code, settings in option.settings.items()}
    if setup is None:
        return _without(option, values)
    _check(setup, option.job.name)
    launcher = setup.launcher
    nnodes = str(launcher.get("nnodes", "1"))
    restarts = launcher.get("max_restarts")
    return MachineSettings(
        values=values,
        environment=dict(setup.environment),
        nproc_per_node=int(launcher["nproc_per_node"]),
        nodes=int(nnodes.rpartition(":")[2]),
        nnodes=nnodes,
        max_restarts=None if restarts is None else int(restarts),
        numa="numa" in launcher,
        checkpoint_every_s=setup.checkpoint_every_s,
    )


def _check(setup: MachineSetup, job: str) -> None:
    """Refuse a document with what we never write: what it says is run on machines."""
    problems = [
        f"{job}: machine.environment names {name!r:.60}, which gpucost never sets; plan again."
        for name in setup.environment
        if name not in VARIABLES
    ]
    launcher = setup.launcher
    counts = (launcher["nproc_per_node"], launcher.get("max_restarts", 0))
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        problems.append(
            f"{job}: machine.launcher holds {counts}, which are not counts; plan again."
        )
    if not _NNODES.fullmatch(str(launcher.get("nnodes", "1"))):
        problems.append(
            f"{job}: machine.launcher.nnodes is {launcher['nnodes']!r:.60}; plan again."
        )
    if problems:
        raise InputError(problems)


def _without(option: FoundOption, values: dict[str, Settings]) -> MachineSettings:
    gpus = max(1, round(option.offer.gpu_count)) if option.offer else 1
    plain = plain_settings(gpus, 1, None)
    return MachineSettings(
        values=values, nproc_per_node=plain.nproc_per_node, numa=plain.numa
    ).also(option.actions)
