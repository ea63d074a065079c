"""A program that does an amount of work and ends is planned so, where its kind is not said."""

import pytest

from planner.choice.requirements import Requirements
from planner.choice.workload import of_known_end, workload
from tests.planner.factories import a_profile


@pytest.mark.parametrize(
    ("program", "kind", "as_ending"),
    [
        ("lammps", "unknown", True),
        ("OpenFOAM 11", "unknown", True),
        ("blender-optix", "unknown", True),
        ("cuda", "unknown", False),
        ("vllm", "unknown", False),
        (None, "unknown", False),
        ("lammps", "interactive", False),
    ],
)
def test_a_simulation_ends(program: str | None, kind: str, *, as_ending: bool) -> None:
    """LAMMPS computes its steps and ends, so a faster GPU saves hours; a language says nothing."""
    profile = a_profile(framework=program, kind=kind)
    work = workload(profile, Requirements(), "month")
    assert work.fixed_work == as_ending
    assert any("--kind inference_offline" in str(note) for note in work.notes) == as_ending
    assert of_known_end(profile).job.kind == ("inference_offline" if as_ending else kind)
