"""The parts of the public API that take files or plain arguments."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from planner import pipeline
from planner.choice.requirements import Requirements
from planner.models.document import encode
from planner.models.estimate import Estimate
from planner.plan.plan import Plan
from planner.plan.read import FoundOption
from planner.plan.read import find_option as find_in_plan
from planner.prediction.sharing import speeds_in
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError
from pricing.listing import listed
from providers.registry import launchable
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry as read


def load_profile(path: str | Path) -> Profile:
    """Return the profile in a file.

    Raises:
        InputError: the file cannot be read, is not a profile, or holds several.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from error
    profiles = parse_profiles(data, str(path))
    if len(profiles) != 1:
        raise InputError(f"{path}: holds {len(profiles)} profiles; one is wanted here.")
    return profiles[0]


def read_telemetry(
    paths: str | Path | Sequence[str | Path],
    **hints: Any,  # noqa: ANN401 - see Hints
) -> Profile:
    """Return the profile of one job measured in telemetry files.

    Args:
        paths: one file or several that complement each other.
        hints: what the files do not say: see `telemetry.readers.hints.Hints`.

    Raises:
        InputError: a file is not telemetry, or the files hold several jobs.
    """
    several = [paths] if isinstance(paths, str | Path) else paths
    profiles = read([str(path) for path in several], Hints(**hints))
    if len(profiles) != 1:
        names = listed([profile.job.name for profile in profiles], 10)
        raise InputError(
            f"several jobs are in there: {names}; give the files of one (in Python: job=NAME)."
        )
    return profiles[0]


def make_plan(
    profiles: tuple[Profile, ...],
    catalog: Catalog,
    requirements: Requirements,
    *,
    as_of: date,
    executor: Executor | None = None,
) -> Plan:
    """Return the cheapest, fastest or best-value way to run the jobs, with every reason.

    It is what plan.json holds, and what `load_plan` reads.

    Args:
        profiles: what was measured, in any order.
        catalog: every known price.
        requirements: the objective, the limits, what may be offered. Where they do not name the
            providers that can be launched on, those of this version are meant.
        as_of: day of prices and rules.
        executor: plans the jobs of a large fleet in parts: a `ProcessPoolExecutor`, or a cluster's
            (`distributed.Client.get_executor()`); the plan is the same. None: this process does.

    Raises:
        InputError: a GPU or a stated machine is not known, or a probe is of no job; of all jobs.
    """
    limits = with_launchable(requirements)
    return pipeline.make_plan(profiles, catalog, limits, as_of=as_of, executor=executor)


def with_launchable(requirements: Requirements) -> Requirements:
    """Return requirements that name providers to launch on: those of this version by default."""
    if requirements.launchable is not None:
        return requirements
    return replace(requirements, launchable=launchable())


def predict_sharing(
    profiles: Iterable[Profile],
    mode: str = "mps",
    on_slice: Mapping[str, tuple[str, float]] | None = None,
) -> tuple[Estimate, ...]:
    """Return each job's relative speed when all share one GPU, 1.0 = alone, in order of input.

    Args:
        profiles: the jobs; GPU use must be measured.
        mode: `mps`, `time-slicing`, `mig`: each gets a slice of its own, of the first's GPU, or
            `partition`: each gets a partition of its own, of the first's GPU, one of AMD's.
        on_slice: with `mig`, of jobs that were also measured on a slice: its name, and the speed
            there relative to the whole GPU, by the job's name; it tells the other slices better.

    Raises:
        InputError: another mode; `on_slice` is of no such job, slice or mode; GPU use of a job was
            not measured; a job that must be isolated (`job.trust`) would share without slices; the
            GPU cannot be cut so.
    """
    return speeds_in(tuple(profiles), mode, on_slice)


def find_option(plan: Plan, name: str) -> FoundOption:
    """Return the option called JOB/ID; `o0` is today's machine.

    Args:
        plan: made now, or read back with `load_plan`.
        name: the job may be left out where there is only one.

    Raises:
        InputError: none is called so, or several are; what there is is listed.
    """
    return find_in_plan(plan, name)


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the document of plan.json (`gpucost.plan/v1`) of a plan, made now or read back."""
    document: dict[str, Any] = encode(plan)
    return document


def render_report(plan: Plan, *, style: str = "md", lang: str = "en") -> str:
    """Return the report of a plan, made now or read back: the same text for both.

    Raises:
        NotBuiltYetError: another style than `md`, `html` and `github-comment`, another language
            than `en` and `zh`.
    """
    from templates.render import render_report as render  # noqa: PLC0415 - jinja2 only here

    return render(plan, style=style, lang=lang)
