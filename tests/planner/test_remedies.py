"""Actions: what they gain, where, and for whom."""

import pytest

from planner.diagnose import diagnose
from planner.profile.model import Profile
from planner.remedies import ACTIONS, Action, action, fixes
from planner.signals import measure
from tests.planner.factories import a_profile

each_action = pytest.mark.parametrize("one", ACTIONS.values(), ids=lambda a: a.code)


@each_action
def test_an_effect_has_a_part_a_range_and_a_source(one: Action) -> None:
    """No gain without the part it speeds up and where the figure comes from."""
    assert (one.effect is None) == (one.part is None) == (one.estimate is None)
    assert one.effort_hours >= 0
    if one.effect is not None:
        assert one.source
        assert 0 < one.effect[0] <= one.effect[1] <= one.effect[2]


def chosen(profile: Profile) -> list[str]:
    """The fixes that the findings of a profile call for."""
    return [a.code for a in fixes(diagnose(profile), measure(profile))]


STARVED = {"util.kernel_time": 0.2}


def test_workers_gain_little_on_a_full_cpu() -> None:
    """More workers find no cores; with cores free they gain as published."""
    full = measure(a_profile(STARVED, host={"cpu_util": 0.97}))
    free = measure(a_profile(STARVED, host={"cpu_util": 0.3}))
    assert action("dataloader-workers", full).effect == (1.0, 1.05, 1.3)
    assert action("dataloader-workers", free).effect == (1.0, 1.5, 2.9)


@pytest.mark.parametrize(
    ("gpu", "effect"),
    [
        ("Tesla T4", (1.0, 2.71, 4.75)),
        ("V100-16GB", (1.0, 2.71, 4.75)),
        ("A100-SXM-80GB", (0.97, 1.77, 2.21)),
        ("H100", (0.97, 1.77, 2.21)),
        (None, (0.97, 1.77, 2.21)),
    ],
)
def test_mixed_precision_gains_more_without_tf32(
    gpu: str | None, effect: tuple[float, float, float]
) -> None:
    """On Volta and Turing the FP32 base has no tensor cores."""
    assert action("mixed-precision", measure(a_profile(gpu=gpu))).effect == effect


def test_fixes_leave_results_unchanged() -> None:
    """Only safe actions with a known effect are applied unasked, each once."""
    found = chosen(a_profile(STARVED, host={"cpu_util": 0.97}, precision="fp32"))
    assert found == ["gpu-preprocessing", "dataloader-workers"]
    assert all(ACTIONS[code].kind == "safe" for code in found)


def test_a_busy_gpu_needs_no_fix() -> None:
    """Nothing is changed where nothing is wrong."""
    assert chosen(a_profile({"util.kernel_time": 0.95, "util.sm_active": 0.9})) == []
