"""The parts of the public API that take files or plain arguments."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from planner.choice.requirements import Requirements
from planner.models.document import encode
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError
from pricing.listing import listed
from pricing.message import Message
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
        raise InputError(Message("input.several-jobs", names=names))
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
    return to_plan(draft_plan(profiles, catalog, limits, as_of=as_of, executor=executor))


def with_launchable(requirements: Requirements) -> Requirements:
    """Return requirements that name providers to launch on: those of this version by default."""
    if requirements.launchable is not None:
        return requirements
    return replace(requirements, launchable=launchable())


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
