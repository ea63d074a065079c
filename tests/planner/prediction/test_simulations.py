"""Simulations and renderings: what they compute in decides which chips they may run on.

The speeds are the runs of CSC's chemistry benchmarks (github.com/rkronberg/chem-benchmarks,
2023-09): one V100 of Puhti against one A100 of Mahti, the same build and input on both.
"""

import pytest

from planner.choice.requirements import Requirements
from planner.choice.workload import apply_requirements
from planner.diagnosis.diagnose import diagnose
from planner.prediction.kernels import lacks_of
from planner.prediction.predict import predict
from planner.profile.frameworks import arithmetic, ends
from planner.profile.kinds import JobKind
from planner.profile.model import Profile
from pricing.hardware import gpus
from tests.planner.factories import a_profile

V100 = "V100-32GB"
BUSY = {"util.kernel_time": 0.95, "mem.used_gib": 4.0}
PUBLISHED = {
    "GROMACS 2022.4, STMV": 20.566 / 13.725,
    "GROMACS 2022.4, ADH": 336.037 / 216.032,
    "Amber 22, cellulose": 132.87 / 86.53,
}


def simulating(framework: str, gpu: str = V100, precision: str | None = None) -> Profile:
    """A program that fills a GPU."""
    return a_profile(BUSY, gpu=gpu, framework=framework, precision=precision, kind="unknown")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_molecular_dynamics_is_predicted_within_a_tenth(name: str) -> None:
    """The interval holds each of the three, and the middle is near."""
    speed = predict(simulating(name.split(",", maxsplit=1)[0]), gpu="A100-SXM-40GB")
    assert not speed.weak
    assert speed.low <= PUBLISHED[name] <= speed.high
    assert speed.mid == pytest.approx(PUBLISHED[name], rel=0.1)


@pytest.mark.parametrize("code", ["VASP 6.4", "Quantum ESPRESSO", "OpenFOAM", "LAMMPS", "CUDA"])
def test_what_computes_or_may_compute_in_double_keeps_its_rate(code: str) -> None:
    """No board with FP64 for compatibility, unless today's is one or single is named."""
    lacks = lacks_of(simulating(code), gpus()[V100])
    assert lacks(gpus()["A100-SXM-80GB"]) is None
    assert lacks(gpus()["RTX-4090"]) is not None
    assert lacks_of(simulating(code, "T4"), gpus()["T4"])(gpus()["L4"]) is None
    assert lacks_of(simulating(code, precision="fp32"), gpus()[V100])(gpus()["L4"]) is None


@pytest.mark.parametrize(
    ("framework", "today", "other", "runs"),
    [
        ("vLLM 0.11", "T4", "P40", False),
        ("vLLM 0.11", "P40", "P4", True),  # it runs there today: a build of its own
        ("llama.cpp", "T4", "P40", True),
        ("llama.cpp", "T4", "K80", False),
        ("PyTorch 2.9", "T4", "K80", False),
        ("XGBoost", "T4", "K80", True),
        ("vLLM", "H100-SXM-80GB", "MI300X", True),
    ],
)
def test_a_chip_is_not_older_than_the_program_supports(
    framework: str, today: str, other: str, *, runs: bool
) -> None:
    """CUDA 12 ends Kepler; vLLM, SGLang and LMDeploy begin with Volta; other makers' own words."""
    lacks = lacks_of(simulating(framework, today), gpus()[today])
    assert (lacks(gpus()[other]) is None) == runs


def test_double_precision_on_a_consumer_board_is_named_by_the_program_alone() -> None:
    """Quantum ESPRESSO on an RTX 4090, 1/64 of its FP32 rate: nobody has to state the precision."""
    first = diagnose(simulating("Quantum ESPRESSO", "RTX-4090"))[0]
    assert first.code == "slow-fp64"
    assert first.actions == ("fp64-gpu",)


@pytest.mark.parametrize("code", ["GROMACS", "NAMD3", "Schrödinger Desmond", "Blender 4.1"])
def test_what_computes_in_single_may_run_on_any_board(code: str) -> None:
    """Its own arithmetic is single or mixed precision."""
    assert arithmetic(code) == "single"
    assert lacks_of(simulating(code), gpus()[V100])(gpus()["RTX-4090"]) is None


def test_double_precision_lies_between_the_ratios_of_the_chips() -> None:
    """By hand, A100 SXM 40 GB to PCIe 80 GB: FP64 1.0, bandwidth 1.24, power 0.75."""
    speed = predict(simulating("VASP", "A100-SXM-40GB"), gpu="A100-PCIe-80GB")
    assert not speed.weak
    assert (speed.low, speed.high) == (pytest.approx(0.75), pytest.approx(1.244, rel=0.01))


@pytest.mark.parametrize(
    ("framework", "kind"),
    [
        ("LAMMPS", JobKind.SIMULATION),
        ("blender", JobKind.SIMULATION),
        ("cuda", JobKind.UNKNOWN),
        ("unreal engine", JobKind.UNKNOWN),
        ("pytorch", JobKind.UNKNOWN),
        (None, JobKind.UNKNOWN),
    ],
)
def test_a_known_program_that_ends_is_planned_as_work(framework: str | None, kind: JobKind) -> None:
    """Of unstated kind alone; a language or a live engine says nothing of an end."""
    planned = apply_requirements(a_profile(framework=framework, kind="unknown"), Requirements())
    assert planned.job.kind is kind
    assert ends(framework) == (kind is JobKind.SIMULATION)
    stated = apply_requirements(a_profile(framework=framework, kind="training"), Requirements())
    assert stated.job.kind is JobKind.TRAINING
