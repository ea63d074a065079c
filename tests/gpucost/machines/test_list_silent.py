"""`gpucost list` says who did not answer: nothing heard is not nothing running."""

from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from gpucost.views.output import Output
from gpucost.views.runs import show_list


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
    show_list((), Output(), datetime(2026, 11, 28, tzinfo=UTC), MappingProxyType({}), answered)
    printed = capsys.readouterr()
    assert said in printed.err
    assert not_said not in printed.err
