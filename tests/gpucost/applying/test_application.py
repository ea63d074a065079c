"""What of a recipe is done how, before the command starts."""

import pytest

from planner.actions import ACTIONS
from planner.documents.application import IN_PROCESS, application, in_turns
from planner.documents.launcher import Surroundings, launch
from planner.documents.recipe import AskedRecipe

COMMAND = ("python", "train.py", "--epochs", "3")
RANKS = "dist.init_process_group()"


def here(
    *, there: str = "", text: str = RANKS, gpus: int | None = 4, node: int | None = None
) -> Surroundings:
    """Return a machine with one path, and one text in every script."""
    return Surroundings(
        exists=lambda path: path == there,
        installed=lambda name: name == "numactl",
        text_of=lambda _: text,
        gpus=gpus,
        gpu_node=node,
    )


HERE = here()


def test_an_empty_recipe_changes_nothing() -> None:
    """Without actions and variables the command runs as it is, and nothing is said."""
    done = application(AskedRecipe(), COMMAND, {}, HERE)
    assert (done.command, done.environment, done.in_process, done.changes) == (COMMAND, {}, {}, ())


@pytest.mark.parametrize("code", ACTIONS)
def test_every_action_is_applied_or_left_with_a_reason(code: str) -> None:
    """No action of the catalog is silently ignored: it is the probe's, or something is said."""
    done = application(AskedRecipe(actions={code: {}}), COMMAND, {}, HERE)
    if code in IN_PROCESS:
        assert code in done.in_process
        return
    assert [change.action for change in done.changes] == [code] * len(done.changes)
    assert all(change.outcome == "left" and change.what for change in done.changes)
    assert done.changes


def test_what_the_program_must_do_comes_with_the_way_to_do_it() -> None:
    """An action that cannot be applied from outside names its how-to."""
    done = application(AskedRecipe(actions={"async-copy": {}}), COMMAND, {}, HERE)
    assert ACTIONS["async-copy"].lines["pytorch"] in str(done.changes[0].what)


@pytest.mark.parametrize(
    ("name", "value", "environ", "there", "reason"),
    [
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1", {}, "", None),
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1", {"HOME": "/"}, "", None),
        (
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "1",
            {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": ""},
            "",
            "in the environment already",
        ),
        ("OMP_NUM_THREADS", "4", {}, "", "last bits"),
        ("TORCH_HOME", "/scratch/cache/torch", {}, "", "no /scratch on this machine"),
        ("TORCH_HOME", "/scratch/cache/torch", {}, "/scratch", None),
    ],
)
def test_a_variable_is_set_where_it_is_free_and_safe(
    name: str, value: str, environ: dict[str, str], there: str, reason: str | None
) -> None:
    """The caller's variables stay, thread counts and folders that are not there are left."""
    recipe = AskedRecipe(environment={name: value})
    done = application(recipe, COMMAND, environ, here(there=there))
    assert (name in done.environment) == (reason is None)
    (change,) = done.changes
    assert change.outcome == ("applied" if reason is None else "left")
    assert (reason or name) in str(change.what)


PARALLEL = AskedRecipe(
    actions={"data-parallel": {}},
    environment={"OMP_NUM_THREADS": "4"},
    launcher={"nproc_per_node": 4, "max_restarts": 2},
)


def test_torchrun_starts_a_script_that_asks_for_its_rank() -> None:
    """The same Python starts it, with the words behind it as they were; threads are set."""
    done = application(PARALLEL, COMMAND, {}, HERE)
    assert done.command == (
        "python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4",
        "--max-restarts=2", "train.py", "--epochs", "3",
    )  # fmt: skip
    assert done.environment == {"OMP_NUM_THREADS": "4"}
    assert done.changes[0].sentence == "applied data-parallel: torchrun starts 4 processes"


@pytest.mark.parametrize(
    ("command", "machine", "words"),
    [
        (COMMAND, here(text="print('alone')"), "4 copies would do the same work"),
        (COMMAND, here(gpus=2), "it needs 4 GPUs, and this machine has 2"),
        (("torchrun", "train.py"), HERE, "starts its processes itself"),
        (("python", "-m", "torch.distributed.run", "train.py"), HERE, "processes itself"),
        (("/usr/bin/accelerate", "launch", "train.py"), HERE, "starts its processes itself"),
        (("/opt/gpucost/run", "python", "train.py"), HERE, "starts them on this machine"),
        (("bash", "train.sh"), HERE, "this is neither"),
        (("python", "-c", "import train"), HERE, "this is neither"),
        (("python", "-u", "train.py"), HERE, "options of Python"),
    ],
)
def test_torchrun_is_left_where_it_would_do_harm(
    command: tuple[str, ...], machine: Surroundings, words: str
) -> None:
    """Copies of the same work, too few GPUs, a launcher of its own: the command runs as it is."""
    started = launch(PARALLEL, command, {}, machine)
    assert (started.command, started.processes) == (command, 1)
    (change,) = started.changes
    assert change.outcome == "left"
    assert words in str(change.what)


@pytest.mark.parametrize(
    ("environ", "node", "words"),
    [
        ({"OMP_NUM_THREADS": "8"}, 1, None),
        ({}, 1, "number of threads"),
        ({"OMP_NUM_THREADS": "8"}, None, "one NUMA node"),
    ],
)
def test_memory_is_bound_where_results_stay(
    environ: dict[str, str], node: int | None, words: str | None
) -> None:
    """Numactl goes in front where several nodes are, and the number of threads does not follow."""
    recipe = AskedRecipe(actions={"numa-binding": {}}, launcher={"numa": "auto"})
    started = launch(recipe, COMMAND, environ, here(node=node))
    (change,) = started.changes
    if words is None:
        assert started.command == ("numactl", "--cpunodebind=1", "--preferred=1", *COMMAND)
    else:
        assert started.command == COMMAND
        assert words in str(change.what)


def test_all_that_is_not_tried_in_turns_is_named() -> None:
    """Of actions and variables alike: what holds for a whole run is left, and nothing is silent."""
    variable = {"NCCL_DEBUG": "WARN", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    actions = {"compile": {}, "fused-optimizer": {}, "allocator-tuning": {}}
    done = in_turns(AskedRecipe(actions=actions, environment=variable), COMMAND, {})
    assert list(done.in_process) == ["compile"]
    assert done.environment == {}
    said = [(change.action, change.outcome, change.what.split()[0]) for change in done.changes]
    assert said == [
        ("fused-optimizer", "left", "cannot"),
        ("allocator-tuning", "left", "cannot"),
        ("environment", "left", "NCCL_DEBUG=WARN"),
    ]
