"""Predictions that are kept are told apart by all that a layout says."""

from dataclasses import fields, replace

import pytest

from planner.prediction.layout import Layout
from planner.prediction.scaling import told_by
from pricing.hardware import gpus

OTHER = {
    "gpu": gpus()["T4"],
    "gpu_count": 8,
    "interconnect": "nvlink",
    "nodes": 4,
    "network_gbps": 100.0,
    "cpu_cores": 16.0,
    "slice": "1g.10gb",
}


def _told(layout: Layout) -> object:
    return layout.kind, told_by(layout), layout.cpu_cores


@pytest.mark.parametrize("name", [field.name for field in fields(Layout)])
def test_layouts_that_differ_in_a_field_are_told_apart(name: str) -> None:
    """A field that predictions may depend on is part of what they are kept by; so is a new one."""
    layout = Layout(gpu=gpus()["L4"], gpu_count=4, nodes=2)
    assert _told(replace(layout, **{name: OTHER[name]})) != _told(layout)
