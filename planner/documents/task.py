"""An option as a task that another tool can start: its machine, settings, command and end."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from planner.actions import ACTIONS
from planner.actions.settings import Settings
from planner.documents.machine import read_machine
from planner.documents.recipe import SCHEMA, Recipe
from planner.models.copies import CopiesWindow, windows
from planner.plan.bill import CLUSTER, RentedOffer, that_start, tools
from planner.plan.read import FoundOption
from pricing.catalog.offer import BOUGHT, EVERYWHERE
from pricing.errors import InputError
from pricing.message import Message

_NAME = re.compile(r"[^a-z0-9]+")
AutoscalerKind = Literal["keda", "hpa"]
AUTOSCALERS: tuple[AutoscalerKind, ...] = get_args(AutoscalerKind)
_LONGEST_NAME = 41  # what dstack takes, the strictest of the tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """What follows demand with the copies of a service on Kubernetes.

    Attributes:
        kind: KEDA by the clock, or a HorizontalPodAutoscaler by the use of the GPU.
        fewest: copies, at any time.
        most: copies, at the peak.
        windows: when more than the fewest run, for KEDA.
        zone: of the hours.
        busy_percent: of its GPU that a copy takes in the busiest planned hour, at least 1.
    """

    kind: AutoscalerKind
    fewest: int
    most: int
    windows: tuple[CopiesWindow, ...]
    zone: str
    busy_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTask:
    """What a tool is told.

    Attributes:
        name: lower-case letters, digits and dashes.
        option: JOB/ID of the plan.
        offer: the machine.
        machines: of one copy of the job.
        copies: of the job.
        gpus: of one machine, whole.
        spot: whether it may be taken back.
        region: None where one price holds everywhere.
        provider: the tool's name of the provider; None for a cluster.
        gpu: the tool's name of the GPU; None where the machine's type says it.
        instance_type: None where the tool is asked for a GPU.
        environment: variables of the job.
        recipe: what `gpucost run --recipe` applies in the job's own processes, JSON; None: nothing.
        command: what runs, in a shell.
        launcher: what torchrun is told; None where it starts nothing.
        serves: whether the job answers requests and has no end of its own.
        image: of a container; None where the machine's own system is used.
        ttl_s: longest life; None for what serves.
        idle_s: it ends once no GPU has worked for so long; None: no such rule.
        by_code: what only the program can do, a line each.
        off_is_free: whether the hours of a machine end with its power.
        names_both: whether the tool wants the GPU beside the type.
        by_hour: copies in each hour of a day or week where they follow demand; empty: always all.
        autoscaler: what follows demand; None: nothing in the file does.
    """

    name: str
    option: str
    offer: RentedOffer
    machines: int
    copies: int
    gpus: int
    spot: bool
    region: str | None
    provider: str | None
    gpu: str | None
    instance_type: str | None
    environment: Mapping[str, str]
    recipe: str | None
    command: str
    launcher: Settings | None
    serves: bool
    image: str | None
    ttl_s: int | None
    idle_s: int | None
    by_code: tuple[str, ...]
    off_is_free: bool
    names_both: bool
    by_hour: tuple[int, ...] = ()
    autoscaler: Autoscaler | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What only the user knows.

    Attributes:
        command: what to run.
        ttl_s: longest life of the machines; None where it serves.
        image: container to run in.
        idle_s: end it once no GPU has worked for so long; None: no such rule.
        autoscaler: what is to follow demand on Kubernetes; None: KEDA, where copies follow it.
        zone: of the hours of the demand; None: UTC.
    """

    command: str
    ttl_s: float | None
    image: str | None = None
    idle_s: float | None = None
    autoscaler: AutoscalerKind | None = None
    zone: str | None = None


def make_task(tool: str, option: FoundOption, recipe: Recipe, request: TaskRequest) -> ToolTask:
    """Return an option as a task of a tool.

    Args:
        tool: a word of `tools()`.
        option: the option.
        recipe: of that option.
        request: what to run, for how long at most.

    Raises:
        InputError: the tool cannot start it; the message says which can.
    """
    offer = option.offer
    if offer is None:
        raise InputError(f"{option.name}: no machine with a known price; name another option.")
    row = tools()[tool]
    problems = [*_refusals(tool, option, offer), *_unsaid(tool, option, request)]
    problems += [*_idle(tool, offer, request), *_unscalable(tool, option, request)]
    if problems:
        raise InputError(problems)
    machine = read_machine(option)
    nodes = max(1, machine.nodes)
    by_type = tool != CLUSTER and row.takes_type(offer)
    several = machine.processes > 1 or nodes > 1
    return ToolTask(
        name=task_name(f"{option.job.name}-{option.id}"),
        option=option.name,
        offer=offer,
        machines=nodes,
        copies=max(1, option.count // nodes),
        gpus=math.ceil(offer.gpu_count),
        spot=offer.purchase == "spot",
        region=None if offer.region == EVERYWHERE else offer.region,
        provider=row.providers.get(offer.provider),
        gpu=row.gpu(offer),
        instance_type=offer.instance_type if by_type else None,
        environment=recipe.environment,
        recipe=_in_process(recipe),
        command=request.command,
        launcher=recipe.launcher if several else None,
        serves=option.job.answers and request.ttl_s is None,
        image=request.image,
        ttl_s=None if request.ttl_s is None else round(request.ttl_s),
        idle_s=None if request.idle_s is None else round(request.idle_s),
        by_code=tuple(_by_code(recipe)),
        off_is_free=offer.provider in row.off_is_free,
        names_both=offer.provider in row.names_both,
        by_hour=option.option.scaling.by_hour if option.option and option.option.scaling else (),
        autoscaler=_autoscaler(tool, option, request),
    )


def _refusals(tool: str, option: FoundOption, offer: RentedOffer) -> list[str]:
    row, where = tools()[tool], f"{offer.provider}/{offer.instance_type}"
    if tool != CLUSTER and offer.purchase not in BOUGHT:
        terms = {"machine": where, "purchase": offer.purchase, "provider": offer.provider}
        return [Message("input.no-terms", option=option.name, tool=row.title, **terms)]
    if tool != CLUSTER and not row.can_start(offer):
        alternatives = that_start(offer)
        how = (
            f"--to {', --to '.join(alternatives)} can"
            if alternatives
            else "none of the exports can"
        )
        return [f"{option.name}: {row.title} does not start {where} for us; {how}."]
    if offer.gpu_count < 1:
        return [f"{option.name}: {where} is a part of a GPU, which {row.title} is not asked for."]
    if option.option and option.option.sharing:
        how = "`gpucost provision` sets that up, an export does not"
        return [f"{option.name}: its jobs share a GPU ({option.option.sharing}); {how}."]
    return []


def _unsaid(tool: str, option: FoundOption, request: TaskRequest) -> list[str]:
    problems = []
    if request.ttl_s is None and not (tool == CLUSTER and option.job.answers):
        problems.append("how long at most? Give --ttl, such as --ttl 8h: nothing runs for ever.")
    if tool == CLUSTER and request.image is None:
        problems.append("in which container? Give --image, such as --image pytorch/pytorch:2.9.")
    return problems


def _idle(tool: str, offer: RentedOffer, request: TaskRequest) -> Iterator[str]:
    if request.idle_s is None:
        return
    row = tools()[tool]
    least_s = row.least_idle_s(offer, request.image)
    if least_s is None:
        yield f"--idle: nothing ends what {row.title} starts for us there when it is idle."
    elif request.idle_s < least_s:
        yield f"--idle {request.idle_s:g}s: {row.title} takes {least_s} s at least."


def _unscalable(tool: str, option: FoundOption, request: TaskRequest) -> Iterator[str]:
    """Yield why what was asked for cannot follow demand."""
    if request.autoscaler is None and request.zone is None:
        return
    flag = "--autoscaler" if request.autoscaler else "--tz"
    scaling = option.option.scaling if option.option else None
    if tool != CLUSTER:
        yield f"{flag}: {tools()[tool].title} is told no schedule of copies; --to kubernetes is."
    elif not scaling or len(scaling.by_hour) == 1 or request.ttl_s is not None:
        yield Message("input.no-demand", flag=flag, option=option.name)
    elif request.autoscaler == "hpa" and scaling.fewest == 0:
        yield Message("input.hpa-to-none", option=option.name)


def _autoscaler(tool: str, option: FoundOption, request: TaskRequest) -> Autoscaler | None:
    scaling = option.option.scaling if option.option else None
    if tool != CLUSTER or not scaling or len(scaling.by_hour) == 1 or request.ttl_s is not None:
        return None
    return Autoscaler(
        kind=request.autoscaler or AUTOSCALERS[0],
        fewest=scaling.fewest,
        most=scaling.peak,
        windows=windows(scaling.by_hour, scaling.start_s),
        zone=request.zone or "Etc/UTC",
        busy_percent=max(1, round(100 * scaling.busiest_fraction)),
    )


def _in_process(recipe: Recipe) -> str | None:
    """Return the part of a recipe that the probe applies; launcher and variables are the tool's."""
    applied = [a for a in recipe.actions if ACTIONS[a.code].in_process]
    actions = [{"code": a.code, "settings": dict(a.settings)} for a in applied]
    recipe_values = {"schema": SCHEMA, "job": recipe.job, "actions": actions}
    return json.dumps(recipe_values, separators=(",", ":")) if actions else None


def _by_code(recipe: Recipe) -> Iterator[str]:
    for action in recipe.actions:
        how = ACTIONS[action.code]
        if how.by == "code" and not how.in_process:
            values = ", ".join(f"{name}={value}" for name, value in action.settings.items())
            entry = f"{action.code} ({values})" if values else action.code
            yield f"{entry}: {how.lines.get('pytorch', how.words)}"


def task_name(text: str) -> str:
    """Return a name that every tool takes: lower-case letters, digits and dashes."""
    short = _NAME.sub("-", text.lower()).strip("-")[:_LONGEST_NAME].rstrip("-")
    return short if short[:1].isalpha() else f"job-{short}"[:_LONGEST_NAME]
