"""`gpucost list` says who did not answer; what a provider wrote is no command of who runs CI."""

from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from gpucost.views.output import Output
from gpucost.views.runs import show_list, show_run
from providers.interface import MACHINE, Deployment, JournaledResource
from tests.providers.launches import a_spec

AT = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("answered", "said", "not_said"),
    [
        ({"aws": True}, "no machines running (checked at aws)", "unknown"),
        ({"aws": False}, "machines running: unknown (no answer from aws)", "no machines"),
        (
            {"aws": True, "lambda": False},
            "machines running: unknown (checked at aws; no answer from lambda)",
            "no machines",
        ),
        ({}, "no machines running (local record; providers not contacted)", "unknown"),
    ],
)
def test_a_provider_that_did_not_answer_is_no_proof(
    answered: dict[str, bool], said: str, not_said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only providers that told all of their machines are said to have been checked."""
    show_list((), Output(), AT, MappingProxyType({}), answered)
    printed = capsys.readouterr()
    assert said in printed.err
    assert not_said not in printed.err


def test_what_a_provider_wrote_of_a_run_begins_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, as in the log of a CI job, its reasons and names end no line and begin none."""
    evil = "refused\n::error::owned\n##[add-mask]a\x1b]0;t\x07"
    machine = JournaledResource(
        kind=MACHINE, name=evil, region="nyc2", id="7", state="made", intended_at=AT
    )
    run = Deployment(
        marks=a_spec().marks,
        provider="digitalocean",
        offer=None,
        region="nyc2",
        count=1,
        state="launching",
        started_at=AT,
        ended_at=None,
        predicted_usd=None,
        resources=(machine,),
        reason=evil,
    )
    show_run(run, [(AT, evil)], Output(), AT)
    printed = capsys.readouterr().out
    assert printed.count("owned") == 3
    assert [line for line in printed.splitlines() if line.lstrip().startswith("::")] == []
    assert "##[" not in printed
    assert "\x1b" not in printed
