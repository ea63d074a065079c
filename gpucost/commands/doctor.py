"""`gpucost doctor`: what this installation has and lacks; read-only."""

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

import click

from gpucost.arguments.parameters import today
from gpucost.arguments.settings import PROJECT_FILE
from gpucost.launch.state import CLOCK, open_cloud, open_journal, state_folder
from gpucost.prices.cache import CACHE, load_catalog, price_folder
from gpucost.version import __version__
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.errors import GpucostError
from pricing.refresh import store
from providers.lifecycle.journal import FILE, JournalError
from providers.registry import CLOUDS

_PACKAGES = (
    "boto3",
    "click",
    "jinja2",
    "pandas",
    "paramiko",
    "platformdirs",
    "prometheus_client",
    "pydo",
    "rich",
)
_MOST_SKEW_S = 60.0


@click.command(name="doctor", epilog="Example: gpucost doctor -f json")
@output_options
def command(output: Output) -> None:
    """Check this installation: versions, price age, credentials, files, launches; read-only.

    Providers whose credentials are in the environment are asked for their limits, their clock and
    what of ours they hold; without credentials there is no network.
    """
    checks = [(name, state, detail) for name, state, detail in _checks()]
    if output.format == "json":
        print_json([dict(zip(("check", "state", "detail"), c, strict=True)) for c in checks])
        return
    print_table(Table(columns=("check", "state", "detail"), rows=tuple(checks)), output)


def _checks() -> Iterator[tuple[str, str, str]]:
    yield "gpucost", "ok", f"{__version__}, Python {platform.python_version()}"
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    packages = f"missing: {', '.join(missing)}; pip install gpucost" if missing else "all there"
    yield "packages", "fail" if missing else "ok", packages
    yield _prices()
    yield _refreshed()
    for variable in (one for provider in CLOUDS.values() for one in provider.variables):
        yield variable.name, "set" if os.environ.get(variable.name) else "not set", variable.use
    yield from _launches()
    smi = shutil.which("nvidia-smi")
    yield "nvidia-smi", "found" if smi else "not found", "only needed to record, not to plan"
    there = PROJECT_FILE.is_file()
    yield str(PROJECT_FILE), "read" if there else "none", "defaults for this folder"


def _prices() -> tuple[str, str, str]:
    catalog = load_catalog(today())
    stale = sum(catalog.is_stale(offer) for offer in catalog.offers)
    detail = (
        f"{catalog.count} offers, read {catalog.oldest} to {catalog.newest}; "
        f"{stale} of {len(catalog.offers)} in force are older than 30 days or undated"
    )
    return "prices", "stale" if stale else "ok", detail


def _refreshed() -> tuple[str, str, str]:
    folder = price_folder()
    stored = store.load(folder)
    if stored.problems:
        return "refreshed prices", "fail", stored.problems[0]
    providers = sorted({offer.provider for offer in stored.offers})
    if not providers:
        return "refreshed prices", "none", f"gpucost prices update writes to {folder} ({CACHE})"
    return "refreshed prices", "read", f"{', '.join(providers)}, in {folder}"


def _launches() -> Iterator[tuple[str, str, str]]:
    """The journal, and what each provider says."""
    folder = state_folder()
    if not (folder / FILE).exists():
        yield "journal", "none", f"nothing was launched from {folder}"
    try:
        if (folder / FILE).exists():
            with open_journal() as journal:
                runs = [run for run in journal.deployments() if run.state != "ended"]
                yield "journal", "ok", f"{len(runs)} open runs, in {folder}"
    except JournalError as error:
        yield "journal", "fail", error.problems[0]
    for name, provider in CLOUDS.items():
        if any(os.environ.get(variable) for variable in provider.asked_with):
            yield from _provider(name)


def _provider(provider: str) -> Iterator[tuple[str, str, str]]:
    """Limits, clock and orphans at one provider."""
    try:
        cloud = open_cloud(provider)
        limits, seen = cloud.limits(), cloud.ours(None)
    except GpucostError as error:
        yield provider, "fail", error.problems[0]
        return
    yield from ((f"{provider} quota", "read", limit) for limit in limits)
    wrong = abs(cloud.skew_s) > _MOST_SKEW_S
    skew = f"{provider} is {cloud.skew_s:+.0f} s ahead of this machine"
    yield f"{provider} clock", "fail" if wrong else "ok", skew
    yield from ((f"{provider} orphans", "fail", one.text) for one in seen.unasked)
    yield from ((f"{provider} orphans", "fail", one) for one in seen.strangers)
    there = seen.resources
    late = {one.marks.run for one in there if one.marks.deadline < CLOCK.at(cloud.skew_s)}
    machines = sum(one.is_machine for one in there)
    told = f"{machines} machines of ours, {len(late)} runs past their deadline"
    advice = "; gpucost reap removes them" if late else ""
    yield f"{provider} orphans", "fail" if late else "ok", told + advice
