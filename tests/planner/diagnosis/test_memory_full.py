"""Memory that fills up is said with the time that is left, full GPU memory beside a good verdict.

The right answers were worked out by hand: free GiB over GiB an hour; held over what CUDA shows.
"""

from msgspec.structs import replace

from planner.diagnosis.diagnose import diagnose
from planner.plan.making import to_plan
from planner.profile.model import Host, Statistics
from templates.language.translate import use_language
from templates.markdown import with_commands
from templates.reports.first_screen import first_screen
from tests.planner.factories import a_profile, plan, running, sold

BUSY = {"util.kernel_time": 0.99, "util.sm_active": 0.93}


def test_a_leak_says_when_memory_is_full() -> None:
    """Of 32 GiB 20 are held and grow by 6 an hour: 12 GiB are full in 2 h."""
    profile = a_profile(BUSY, kind="training")
    host = Host(ram_used_gib=Statistics(max=20.0), ram_growth_gib_per_h=Statistics(mean=6.0))
    hardware = replace(profile.hardware, ram_gib=32.0)
    causes = [str(f.cause) for f in diagnose(replace(profile, host=host, hardware=hardware))]
    assert any("the 12 GiB that are free are full in 2 h" in cause for cause in causes)


def test_full_gpu_memory_is_a_note_beside_a_good_verdict() -> None:
    """An A10G shows 22.35 of its 24 GiB: 22.1 GiB held are 99 %, not 92 %."""
    metrics = {**BUSY, "mem.used_gib": Statistics(mean=20.5, max=22.1)}
    profile = a_profile(metrics, kind="training", gpu="A10G")
    sale = sold("a10g", "1.00", gpu="A10G", gpu_memory_gib=24.0)
    with use_language("en"):
        notes = [
            line.text
            for line in first_screen(to_plan(plan(running(profile, sale), offers=(sale,)))).notes
        ]
    assert any(note.startswith("Nearly all GPU memory is held") for note in notes)


def test_a_share_inside_a_command_stays_in_its_code() -> None:
    """The code of a command does not end before the % of an option's value."""
    assert with_commands("state it: gpucost plan --cpu 95% --cores 4.").endswith(
        "`gpucost plan --cpu 95% --cores 4`."
    )
