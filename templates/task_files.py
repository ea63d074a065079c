"""Fills the files that other tools start a task from: SkyPilot, dstack, Kubernetes, Terraform."""

from __future__ import annotations

import json
import shlex
from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from pricing.hardware import gpus

if TYPE_CHECKING:
    from planner.documents.task import ToolTask

FILES = {
    "skypilot": "skypilot.yaml.j2",
    "dstack": "dstack.yaml.j2",
    "kubernetes": "kubernetes.yaml.j2",
    "terraform": "terraform.{provider}.tf.j2",
}
"""The template of each tool, for each provider where they differ."""

_IDLE_MIN = 10  # minutes that SkyPilot waits after the command before it takes machines down


def render_task(tool: str, task: ToolTask) -> str:
    """Return the file of a task.

    Args:
        tool: one of FILES.
        task: with the tool's own names.
    """
    gpu = gpus().get(task.offer.gpu)
    return (
        _environment()
        .get_template(FILES[tool].format(provider=task.provider))
        .render(
            task=task,
            idle_min=_IDLE_MIN,
            gpu_spec=f"{task.gpu}:{task.gpus}",
            resource="amd.com/gpu" if gpu and gpu.vendor == "AMD" else "nvidia.com/gpu",
        )
    )


def _heredoc(text: str) -> str:
    """A shell script as text of Terraform."""
    return f"<<-EOT\n{_plain(text).rstrip()}\nEOT"


def _plain(text: str) -> str:
    """Text in which Terraform evaluates nothing."""
    return text.replace("${", "$${").replace("%{", "%%{")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("templates", "tasks"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - YAML and HCL; every value goes through tojson or shell
    )
    made.filters |= {
        "tojson": json.dumps,
        "shell": shlex.quote,
        "oneline": lambda text: " ".join(str(text).split()),
        "hcl": lambda text: _plain(json.dumps(text)),
        "heredoc": _heredoc,
    }
    return made
