"""What a recording of less than a day leaves room for."""

import pytest
from msgspec.structs import replace

from planner.fleet.placements import busy_there
from planner.models.coefficients import fitted_as
from planner.prediction.sharing import peak_share
from planner.prediction.slices import memory_growth
from planner.profile.model import Profile, Statistics, Window
from tests.planner.factories import a_profile

ROOM = {
    "few": {"hours": 3.0, "use": 2.0, "memory": 1.5},
    "half": {"hours": 6.0, "use": 1.5, "memory": 1.2},
}
SEEN = Statistics(mean=0.1, p95=0.2, p99=0.3, max=0.5)


def service(
    hours: float | None, seen: Statistics = SEEN, kind: str = "inference_online"
) -> Profile:
    """A job recorded for some hours."""
    window = Window(duration_s=None if hours is None else hours * 3600.0)
    return replace(a_profile({"util.kernel_time": seen}, kind=kind), window=window)


@pytest.mark.parametrize(
    ("one", "peak", "memory"),
    [
        (service(1.0), 0.5, 1.5),
        (service(4.0), 0.5, 1.5),
        (service(6.0), 0.45, 1.2),
        (service(23.9), 0.45, 1.2),
        (service(24.0), 0.2, 1.0),
        (service(None), 0.2, 1.0),
        (service(6.0, kind="training"), 0.2, 1.0),
        (service(6.0, Statistics(mean=0.1, max=0.4)), 0.4, 1.2),
        (service(6.0, Statistics(mean=0.1, p95=0.2)), 0.2, 1.2),
        (service(6.0, Statistics(mean=0.1)), 0.1, 1.2),
        (service(6.0, Statistics(mean=0.7, p95=0.8, p99=0.9)), 1.35, 1.2),
    ],
    ids=str,
)
def test_a_service_seen_for_less_than_a_day_gets_room(
    one: Profile, peak: float, memory: float
) -> None:
    """The 99th percentile grows by the fitted factor, to the most that was seen; memory grows."""
    with fitted_as(sharing={"growth": ROOM}):
        assert peak_share(one) == pytest.approx(peak)
        assert memory_growth(one) == memory


def test_peaks_come_along_to_another_gpu() -> None:
    """On a GPU that is busy half as long, peaks are half as high, not forgotten."""
    there = busy_there(service(24.0), 0.5)
    assert peak_share(there) == pytest.approx(0.1)
    assert peak_share(busy_there(service(24.0), 9.0)) == 1.0
