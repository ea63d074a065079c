"""Fills the files that other tools start a task from: SkyPilot, dstack, Kubernetes, Terraform."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from pricing.hardware import gpus
from templates import templates_in
from templates.bootstrap_deadline import ANY_DAY
from templates.bootstrap_files import MachineBootstrap, render_arming, render_bootstrap
from templates.strangers import for_file, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jinja2 import Environment

    from planner.documents.framework_config import FrameworkConfig, Value
    from planner.documents.selection import SharedGpu, SharedJob
    from planner.documents.task import ToolTask

FILES = {
    "skypilot": "skypilot.yaml.j2",
    "dstack": "dstack.yaml.j2",
    "kubernetes": "kubernetes.yaml.j2",
    "terraform": "terraform.{provider}.tf.j2",
}
"""The template of each tool, for each provider where they differ."""

_FLEETS = {
    "device-plugin": "fleet.device-plugin.yaml.j2",
    "dra": "fleet.dra.yaml.j2",
    "kai": "fleet.kai.yaml.j2",
    "hami": "fleet.hami.yaml.j2",
    "slurm": "fleet.slurm.sh.j2",
}
"""The template of each way to share GPUs in a cluster."""

_BEFORE_S = {"skypilot": 1800, "terraform": 0}
"""Seconds that a tool has before the command begins, in which the machine does not end."""

_IDLE_MIN = 10  # minutes that SkyPilot waits after the command before it takes machines down


def render_task(tool: str, task: ToolTask, notices: Mapping[str, str]) -> str:
    """Return the file of a task.

    Args:
        tool: one of FILES.
        task: with the tool's own names.
        notices: where a machine of its provider reads that it is taken back; empty: nowhere.
    """
    gpu = gpus().get(task.offer.gpu)
    ends = task.off_is_free and task.ttl_s is not None
    # What is told of maintenance concerns each machine, the rest those that the provider may want.
    notices = notices if task.spot or "at_risk_says" in notices else {}
    has_own_end = ends or (tool == "skypilot" and bool(notices))
    machine = _machine(task, _BEFORE_S[tool], notices, ends=ends) if has_own_end else None
    template = _environment().get_template(FILES[tool].format(provider=task.provider))
    text = template.render(
        task=task,
        idle_min=_IDLE_MIN,
        gpu_spec=f"{task.gpu}:{task.gpus}",
        arming=render_arming(machine) if machine else "",
        bootstrap=render_bootstrap(machine) if machine else "",
        ends=ends,
        has_notices=bool(notices) and task.spot,
        maintained="at_risk_says" in notices,
        resource="amd.com/gpu" if gpu and gpu.vendor == "AMD" else "nvidia.com/gpu",
    )
    return for_file(text)


def render_fleet(
    way: str, gpus: tuple[SharedGpu, ...], period: str, ttl_s: int | None, queue: str | None = None
) -> str:
    """Return the file that puts the jobs of a fleet on their shared GPUs.

    Args:
        way: one of _FLEETS.
        gpus: who is where.
        period: of the dollars, in words.
        ttl_s: longest life of what does not serve; None where all serve.
        queue: of Kueue (device plugin) or KAI; None: none.
    """
    template = _environment().get_template(_FLEETS[way])
    shares = Counter(_resource(job) for gpu in gpus for job in gpu.jobs)
    text = template.render(
        gpus=gpus, period=period, ttl_s=ttl_s, queue=queue, shares=shares, claim=_claim
    )
    return for_file(text)


def _resource(job: SharedJob) -> str:
    """Return what the device plugin calls a job's share of a GPU."""
    return f"nvidia.com/mig-{job.slice}" if job.slice else "nvidia.com/gpu"


def _claim(gpu: SharedGpu, slice_: str | None) -> str:
    """Return the name of a claim on a GPU, or of the template of claims on its slices."""
    return f"gpucost-gpu-{gpu.id}" + (f"-{slice_.replace('+', '-')}" if slice_ else "")


def _machine(
    task: ToolTask, before_s: int, notices: Mapping[str, str], *, ends: bool
) -> MachineBootstrap:
    """Return what the scripts on the machine need to know; it ends by being switched off."""
    gpu = gpus().get(task.offer.gpu)
    launcher = task.launcher or {"nproc_per_node": 1}
    return MachineBootstrap(
        run=task.name,
        deadline=ANY_DAY,
        ttl_s=(task.ttl_s or 0) + before_s,
        end="poweroff" if ends else "none",
        end_id_url="",
        end_url="",
        gpu_vendor="" if gpu is None else gpu.vendor.lower(),
        gpu_count=task.gpus,
        environment=task.environment,
        launcher={k: v if isinstance(v, str) else int(v) for k, v in launcher.items()},
        sharing=None,
        jobs=(),
        scratch=True,
        idle_s=task.idle_s if ends else None,
        notices=notices,
    )


def _plain(text: str) -> str:
    """Return text in which Terraform evaluates nothing."""
    return text.replace("${", "$${").replace("%{", "%%{")


@cache
def _environment() -> Environment:
    environment = templates_in("tasks")
    environment.filters |= {  # every value goes through one that quotes it
        "tojson": json.dumps,
        "shell": shlex.quote,
        "oneline": lambda text: " ".join(str(text).split()),
        "hcl": lambda text: _plain(json.dumps(text)),
        "heredoc": lambda text: f"<<EOT\n{_plain(text).rstrip()}\nEOT",
    }
    return environment


_SYMBOL = re.compile(r"torch\.[a-z0-9_]+")
_MADE = "Written by gpucost for {option}: what is safe, and the numeric actions asked for."


def render_config(config: FrameworkConfig) -> str:
    """Return the file of a framework."""
    return for_file(_FORMS.get(config.framework, _python)(config))


def _yaml(config: FrameworkConfig) -> str:
    lines = [*_comments(config)]
    for name, value in config.settings.items():
        if isinstance(value, dict):
            lines += [f"{name}:", *(f"  {inner}: {json.dumps(v)}" for inner, v in value.items())]
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return "\n".join(lines or ["{}"]) + "\n"


def _python(config: FrameworkConfig) -> str:
    lines = list(_comments(config))
    symbols = any(_is_symbol(v) for part in _sections(config) for v in part[1].values())
    lines += ["", "import torch"] if symbols else []
    for name, values in _sections(config):
        inner = "".join(f"    {key!r}: {_literal(value)},\n" for key, value in values.items())
        lines += ["", f"{name.upper()} = {{\n{inner}}}"]
    return "\n".join(lines) + "\n"


def _sections(config: FrameworkConfig) -> Iterator[tuple[str, Mapping[str, Value]]]:
    for name, value in config.settings.items():
        if isinstance(value, dict):
            yield name, value


def _is_symbol(value: Value) -> bool:
    return isinstance(value, str) and _SYMBOL.fullmatch(value) is not None


def _literal(value: Value) -> str:
    return str(value) if _is_symbol(value) else repr(value)


def _comments(config: FrameworkConfig) -> Iterator[str]:
    yield f"# {printable(_MADE.format(option=config.option))}"
    for name, value in config.environment.items():
        yield f"# environment: {name}={printable(value)}"
    for code, how in config.manual_steps.items():
        yield f"# {code}: {printable(how)}"


_FORMS: dict[str, Callable[[FrameworkConfig], str]] = {
    "transformers": lambda config: json.dumps(config.settings, indent=1) + "\n",
    "accelerate": _yaml,
    "lightning": _yaml,
}
