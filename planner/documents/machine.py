"""Reads what to set on a machine back from plan.json."""

import re

import msgspec

from planner.actions.settings import VARIABLES, MachineSettings, plain_settings
from planner.plan.read import FoundOption
from pricing.errors import InputError

_NNODES = re.compile(r"[1-9]\d{0,4}(:[1-9]\d{0,4})?")


def read_machine(option: FoundOption) -> MachineSettings:
    """Return what is set on each machine of an option.

    A plan of a version that did not carry it has it worked out from the option's actions.

    Raises:
        InputError: it holds what no plan of ours does.
    """
    if option.machine is None:
        gpus = max(1, round(option.offer.gpu_count)) if option.offer else 1
        plain = msgspec.structs.replace(plain_settings(gpus, 1, None), environment={})
        return plain.also(option.actions, option.settings)
    _check(option.machine, option.job.name)
    return option.machine


def _check(setup: MachineSettings, job: str) -> None:
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
