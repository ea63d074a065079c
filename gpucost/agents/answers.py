"""What agents may name, and what tools answer: documents short enough for an agent to read."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from gpucost.agents.budget import AgentPreview
from gpucost.schemas.documents import one_of
from gpucost.views.runs import RUN_SCHEMA, DeploymentDocument
from planner.json_schema import Schema
from planner.models.document import encode
from planner.plan.bill import CostRange
from planner.plan.job import JobPlan
from planner.plan.plan import SCHEMA, Plan
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import usd

MOST_FILES = 1_000
MOST_BYTES = 256 << 20
_MOST_NAME = 1_000
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:+()-]{0,119}")
_DOLLARS = re.compile(r"[0-9]{1,7}(\.[0-9]{1,2})?")
_SHOWN = 60


def plain_word(name: str, value: str) -> str:
    """Return a name of a provider, a size, a code, a run: it begins no option and ends no line.

    Raises:
        InputError: it has other characters, or more than 120.
    """
    if not _WORD.fullmatch(value):
        raise InputError(Message("input.not-plain", name=name, value=shown(value)))
    return value


def positive_dollars(name: str, value: str) -> Decimal:
    """Return dollars that are more than 0, with at most two digits of cents.

    Raises:
        InputError: it is not such a number.
    """
    if not _DOLLARS.fullmatch(value) or usd(value) <= 0:
        raise InputError(f"{name} {shown(value)}: dollars above 0, such as 12.50.")
    return usd(value)


def readable_paths(root: Path, names: Iterable[str]) -> list[str]:
    """Return the paths of files and folders to read, none of which leads out of the root.

    Raises:
        InputError: all that is wrong with them, at once.
    """
    problems: list[str] = []
    paths = []
    for name in names:
        try:
            paths.append(str(_below(root, name)))
        except InputError as error:
            problems += error.problems
    problems += [] if problems else _too_much(root, paths)
    if not paths and not problems:
        problems.append("sources: name at least one file or folder.")
    if problems:
        raise InputError(problems)
    return paths


def new_plan(root: Path, name: str) -> str:
    """Return the path of a plan to write: new, or in place of an earlier plan.

    Raises:
        InputError: it would be outside of the root, or in place of something else.
    """
    path = _below(root, name, exists=False)
    if path.suffix != ".json":
        raise InputError(f"save_as {shown(name)}: a plan's name ends in .json.")
    if path.exists():
        with path.open("rb") as file:
            if SCHEMA.encode() not in file.read(4096):
                raise InputError(f"save_as {shown(name)}: what is there is not a plan; it stays.")
    elif not path.parent.is_dir():
        raise InputError(f"save_as {shown(name)}: its folder does not exist.")
    return str(path)


def _below(root: Path, name: str, *, exists: bool = True) -> Path:
    """Return where a name leads, links followed."""
    if not name or len(name) > _MOST_NAME or not name.isprintable():
        raise InputError(f"{shown(name)}: not the name of a file.")
    try:
        path = (root / name).resolve(strict=exists)
    except (OSError, RuntimeError):
        raise InputError(f"{shown(name)}: there is no such file below {root}.") from None
    if not path.is_relative_to(root):
        raise InputError(f"{shown(name)}: it leads out of {root}, which is all that may be read.")
    if exists and not (path.is_file() or path.is_dir()):
        raise InputError(f"{shown(name)}: neither a file nor a folder.")
    return path


def _too_much(root: Path, paths: Iterable[str]) -> list[str]:
    """Return what is too large to be read for an agent, or leads out of the root by a link."""
    files = size = 0
    for path in paths:
        walked = [path] if os.path.isfile(path) else _files(path)  # noqa: PTH113 - text, as walked
        for file in walked:
            files += 1
            if files > MOST_FILES:
                return [f"sources: more than {MOST_FILES} files; name fewer."]
            if not Path(file).resolve().is_relative_to(root):
                return [f"{shown(file)}: it leads out of {root}, which is all that may be read."]
            size += Path(file).stat().st_size if Path(file).exists() else 0
    if size > MOST_BYTES:
        return [f"sources: more than {MOST_BYTES >> 20} MiB; `gpucost plan` itself reads them."]
    return []


def _files(folder: str) -> Iterable[str]:
    """Yield what lies in a folder and below it, links to folders included."""
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]  # noqa: PTH114, PTH118 - as walked
        yield from (os.path.join(root, name) for name in (*files, *links))  # noqa: PTH118 - the same


def shown(value: str) -> str:
    """Return a value as an error shows it: one line, not long."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(value)} characters)"


MOST_ANSWER = 20_000
"""Characters of an answer; what is longer is cut, and says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOffer:
    """An offer, as `prices` answers it.

    Attributes:
        provider: as in the catalog.
        instance_type: the provider's size.
        region: the provider's name for it; `*` where one price holds everywhere.
        gpu: canonical model.
        gpu_count: GPUs of one machine; below 1 it is a slice of one GPU.
        purchase: how it is bought.
        usd_per_hour: of the whole machine.
        as_of: day on which the price was read.
        stale: whether the price is too old today.
    """

    provider: str
    instance_type: str
    region: str
    gpu: str
    gpu_count: float
    purchase: str
    usd_per_hour: Decimal
    as_of: date
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPrices:
    """What `prices` answers.

    Attributes:
        offers: the cheapest first.
        left_out: how many more there are.
    """

    offers: tuple[AgentOffer, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd:
    """What `down` answers.

    Attributes:
        run: its name.
        gone: true: each of its machines is proved to be gone.
        said: what was done, a sentence each.
    """

    run: str
    gone: bool
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlannedJob:
    """What a plan recommends for one job.

    Attributes:
        name: of the job.
        cause: the first finding, one sentence; None where nothing was found.
        today_usd: what it costs today, of the period; None where no price is known.
        recommended: the option's id; `o0` means leave it.
        placement: the GPU of the fleet that it is to share; None: its own way.
        machine: what is rented, PROVIDER/TYPE, or what the shared GPU is of; None where it is left.
        count: machines; None where it is left, or shares a GPU, as in the next.
        actions: codes of what changes.
        cost: of the option in the period [USD].
        why: one sentence.
    """

    name: str
    cause: str | None
    today_usd: Decimal | None
    recommended: str
    placement: int | None
    machine: str | None
    count: int | None
    actions: tuple[str, ...]
    cost: CostRange | None
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What `plan` answers; the whole plan is in its file.

    Attributes:
        file: where it was written, below the root.
        as_of: day of prices and rules.
        period: every dollar is of it.
        cost_before: today's bill of all jobs with a known price [USD].
        cost: the bill of what is recommended [USD]; None where it is not known.
        saves_usd: the difference; None where it is not known.
        jobs: in the plan's order.
        left_out: how many more there are.
    """

    file: str
    as_of: date
    period: Literal["month", "run"]
    cost_before: Decimal | None
    cost: CostRange | None
    saves_usd: Decimal | None
    jobs: tuple[AgentPlannedJob, ...]
    left_out: int


def provision_schema() -> Schema:
    """Return the JSON Schema (2020-12) of the answers of `provision`: a preview, then a run."""
    description = "A launch before it is confirmed; the run, once it is."
    schema = one_of("agent-provision", description, (AgentPreview, DeploymentDocument))
    schema["$defs"]["DeploymentDocument"]["properties"]["schema"] = {"const": RUN_SCHEMA}
    return schema


def priced(offers: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answer of `prices` of what the command prints."""
    names = tuple(AgentOffer.__dataclass_fields__)
    return shortened({"offers": [{n: offer[n] for n in names} for offer in offers]}, "offers")


def planned(plan: Plan, file: str) -> dict[str, Any]:
    """Return the answer of `plan`."""
    total = plan.recommended
    answer = AgentPlan(
        file=file,
        as_of=plan.as_of,
        period=plan.period,
        cost_before=None if total is None else total.cost_before,
        cost=None if total is None else total.cost,
        saves_usd=None if total is None else total.saves.usd,
        jobs=tuple(_job(plan, job) for job in plan.jobs),
        left_out=0,
    )
    return shortened(encode(answer), "jobs")


def _job(plan: Plan, job: JobPlan) -> AgentPlannedJob:
    placement = plan.placement_of(job)
    chosen = job.choice if placement is None else None
    rented = chosen or placement
    offer = None if rented is None else rented.offer
    return AgentPlannedJob(
        name=job.name,
        cause=None if job.verdict is None else job.verdict.cause,
        today_usd=job.baseline.cost.total,
        recommended=job.recommended,
        placement=job.placement,
        machine=None if offer is None else f"{offer.provider}/{offer.instance_type}",
        count=None if chosen is None else chosen.count,
        actions=() if chosen is None else chosen.actions,
        cost=None if chosen is None else chosen.cost.ends,
        why=None if chosen is None else chosen.why,
    )


def shortened(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a document with so many of a list as an answer holds, and how many were left out.

    Raises:
        InputError: not even the first of them can be answered.
    """
    full_list = list(document[name])
    length = len(json.dumps({**document, name: [], "left_out": len(full_list)}, ensure_ascii=False))
    entries: list[Any] = []
    for entry in full_list:
        length += len(json.dumps(entry, ensure_ascii=False)) + 2
        if length > MOST_ANSWER:
            break
        entries.append(entry)
    if full_list and not entries:
        raise InputError(f"the answer is longer than {MOST_ANSWER:,} characters; ask for less.")
    return {**document, name: entries, "left_out": len(full_list) - len(entries)}
