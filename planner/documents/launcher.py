"""What a recipe puts in front of a command: torchrun for several GPUs, numactl for their memory."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from planner.documents.recipe import AskedRecipe
from planner.profile.kinds import APPLIED, LEFT
from planner.profile.trials import Change

THREADS = "OMP_NUM_THREADS"
_NUMA = "numa-binding"
_PARALLEL = ("data-parallel", "sharded-data-parallel")
_PYTHON = re.compile(r"^python[0-9.]*$")
_LAUNCHERS = frozenset(
    ("torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "horovodrun")
)
# On a machine that gpucost launched, this starts torchrun and binds its processes.
_OF_THE_MACHINE = "/opt/gpucost/run"
_LAUNCHING_MODULES = frozenset(("torch.distributed.run", "torch.distributed.launch"))
# What a script that works as one of several processes has in it; Trainers and Accelerators do it.
_ASKS_FOR_RANK = re.compile(
    r"init_process_group|LOCAL_RANK|WORLD_SIZE|Accelerator\(|Trainer\(|Fabric\(|init_device_mesh"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """This machine, as far as a launcher depends on it.

    Attributes:
        exists: whether a path is there.
        installed: whether a program is on the path.
        text_of: the text of a script; None where it cannot be read.
        gpus: of the machine; None where unknown.
        gpu_node: NUMA node of the first GPU; None where there is one node, or nobody says.
    """

    exists: Callable[[str], bool]
    installed: Callable[[str], bool]
    text_of: Callable[[str], str | None]
    gpus: int | None = None
    gpu_node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the command is started.

    Attributes:
        command: with what is put in front of it.
        processes: on this machine.
        changes: what is settled by it.
    """

    command: tuple[str, ...]
    processes: int = 1
    changes: tuple[Change, ...] = ()


def launch(
    recipe: AskedRecipe,
    command: Sequence[str],
    environ: Mapping[str, str],
    surroundings: Surroundings,
) -> Launch:
    """Return how a recipe has a command started, and why not where it does not."""
    argv, processes, changes = tuple(command), 1, []
    parallel = [code for code in recipe.actions if code in _PARALLEL]
    for code in parallel:
        why = _why_not_torchrun(recipe, argv, surroundings) if processes == 1 else None
        if why is None and processes == 1:
            argv, processes = _torchrun(recipe, argv), _processes(recipe)
        reason = f"torchrun starts {processes} processes" if why is None else why
        changes.append(Change(action=code, outcome=LEFT if why else APPLIED, what=reason))
    if _NUMA in recipe.actions:
        why = _why_not_numactl(processes, environ, surroundings)
        if why is None:
            node = surroundings.gpu_node
            argv = ("numactl", f"--cpunodebind={node}", f"--preferred={node}", *argv)
        reason = f"cores and memory of NUMA node {surroundings.gpu_node}" if why is None else why
        changes.append(Change(action=_NUMA, outcome=LEFT if why else APPLIED, what=reason))
    return Launch(command=argv, processes=processes, changes=tuple(changes))


def _processes(recipe: AskedRecipe) -> int:
    value = recipe.launcher.get("nproc_per_node", 1)
    return int(value) if isinstance(value, int | float) else 1


def _torchrun(recipe: AskedRecipe, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command as torchrun starts it, with the same Python."""
    restarts = recipe.launcher.get("max_restarts", 0)
    options = ["--standalone", f"--nproc-per-node={_processes(recipe)}"]
    options.append(f"--max-restarts={restarts}")
    return (argv[0], "-m", "torch.distributed.run", *options, *argv[1:])


def _why_not_torchrun(
    recipe: AskedRecipe, argv: tuple[str, ...], surroundings: Surroundings
) -> str | None:
    processes = _processes(recipe)
    names = {PurePath(word).name for word in argv[:3]}
    if names & _LAUNCHERS or set(argv) & _LAUNCHING_MODULES:
        return "the command starts its processes itself"
    if argv[0].endswith(_OF_THE_MACHINE):
        return f"{_OF_THE_MACHINE} starts them on this machine"
    if processes == 1:
        return "the recipe's machine has one GPU for it"
    if recipe.launcher.get("nnodes", "1") != "1":
        return "several machines need a common address: torchrun --nnodes, --rdzv-endpoint"
    if surroundings.gpus is not None and surroundings.gpus < processes:
        return f"it needs {processes} GPUs, and this machine has {surroundings.gpus}"
    script = argv[1] if len(argv) > 1 else ""
    if not _PYTHON.match(PurePath(argv[0]).name) or not script or script == "-c":
        return "torchrun starts `python SCRIPT` or `python -m MODULE`, and this is neither"
    if script == "-m":
        return None
    if script.startswith("-"):
        return "options of Python stand before the script: put torchrun into the command"
    text = surroundings.text_of(script)
    if text is not None and not _ASKS_FOR_RANK.search(text):
        return f"{script} never asks for its rank: {processes} copies would do the same work"
    return None


def _why_not_numactl(
    processes: int, environ: Mapping[str, str], surroundings: Surroundings
) -> str | None:
    if surroundings.gpu_node is None:
        return "this machine has one NUMA node, or does not say which one is beside the GPU"
    if processes > 1:
        return "each process has a node of its own: torchrun --numa-binding=node"
    if THREADS not in environ:
        return (
            f"fewer cores would change the number of threads, and sums in their last bits: set "
            f"{THREADS}, and it is bound"
        )
    if not surroundings.installed("numactl"):
        return "numactl is not installed"
    return None
