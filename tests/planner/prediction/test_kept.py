"""What is kept of predictions, of one job or for all, changes none of them."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.actions import ACTIONS
from planner.diagnosis.diagnose import diagnose
from planner.models.coefficients import coefficients, fitted_as, kept
from planner.prediction.layout import Layout
from planner.prediction.predict import Predictions, predict_from, split_time
from pricing.hardware import gpus
from tests.planner.jobs_drawn import COMPLETE, LINKS, Drawn, Source, job

WAYS = ((), (ACTIONS["dataloader-workers"],), (ACTIONS["gpu-preprocessing"],))


def layouts(source: Source) -> list[Layout]:
    """Some that differ in one thing each, so that what is kept of one is asked for another."""
    nodes = source.pick((None, 1, 2))
    one = Layout(
        gpu=gpus()[source.pick(COMPLETE)],
        gpu_count=(nodes or 1) * source.pick((1, 1, 2, 8)),
        nodes=nodes,
        interconnect=source.pick(LINKS),
        cpu_cores=source.pick((None, 8.0, 64.0)),
    )
    return [
        one,
        replace(one, interconnect="pcie"),
        replace(one, interconnect="nvlink"),
        replace(one, network_gbps=10.0),
        replace(one, network_gbps=400.0),
        replace(one, cpu_cores=16.0),
        replace(one, gpu_count=one.gpu_count * 2),
        replace(one, gpu=gpus()[source.pick(COMPLETE)]),
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_prediction_does_not_hang_on_what_was_asked_before(data: st.DataObject) -> None:
    """All targets of a job one after another, and each by itself: the same numbers and words."""
    source = Drawn(data.draw)
    profile = job(source)
    parts = split_time(diagnose(profile))
    predictions = Predictions(profile=profile, parts=parts)
    for target in layouts(source):
        for actions in WAYS:
            alone = predict_from(profile, (), target, actions, parts)
            assert predictions.speed(target, actions) == alone


def test_what_a_law_answered_is_kept_but_for_other_coefficients() -> None:
    """A law is asked once; within an evaluation it is asked anew, and nothing of that is kept."""
    asked = []

    @kept(8)
    def law(times: float) -> float:
        asked.append(times)
        return times * float(coefficients("scale")["probe_factor"])

    shipped = law(2.0)
    assert law(2.0) == shipped
    with fitted_as(scale={"probe_factor": 7.0}):
        assert law(2.0) == law(2.0) == 14.0
    assert law(2.0) == shipped
    assert asked == [2.0] * 3
