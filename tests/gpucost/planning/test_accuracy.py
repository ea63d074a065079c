"""`gpucost accuracy`: the scores that shipped."""

import json
from importlib.resources import files

import pytest

from tests.gpucost.conftest import Call

SHIPPED = json.loads(files("planner.models.data").joinpath("accuracy.json").read_text("utf-8"))


def test_the_shipped_scores_are_shown(call: Call) -> None:
    """As JSON, every score that shipped; nothing is said beside it, nothing is written."""
    shown = call("accuracy", "-f", "json")
    assert (shown.code, shown.err) == (0, "")
    assert shown.json == SHIPPED


@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_every_row_names_its_baselines(form: str, call: Call) -> None:
    """Printed in any form, a class stands beside peak, bandwidth, geometric mean and no change."""
    shown = call("accuracy", "-f", form)
    assert shown.code == 0
    assert all(word in shown.out for word in ("peak", "bandwidth", "no", "LLM"))
