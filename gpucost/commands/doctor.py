"""`gpucost doctor`: what this installation has and lacks; read-only."""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distributions, requires

import click

from gpucost.arguments.parameters import today
from gpucost.arguments.settings import PROJECT_FILE
from gpucost.files.user_folders import CACHE
from gpucost.launch.checks import check_launches
from gpucost.prices.cache import load_catalog, price_folder
from gpucost.schemas.small_documents import InstallationCheck
from gpucost.version import __version__
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.listing import counted
from pricing.refresh import store
from providers.registry import CLOUDS

_NEED = re.compile(r"[\w.-]+")


@click.command(name="doctor", epilog="Example: gpucost doctor -f json")
@output_options
def command(output: Output) -> None:
    """Check this installation: versions, price age, credentials, files, launches; read-only.

    Providers whose credentials are in the environment are asked for their limits, their clock and
    what of ours they hold; without credentials there is no network.
    """
    checks = [(name, state, detail) for name, state, detail in _checks()]
    if output.format == "json":
        print_json([InstallationCheck(check=c, state=s, detail=d) for c, s, d in checks])
        return
    print_table(Table(columns=("check", "state", "detail"), rows=tuple(checks)), output)


def _checks() -> Iterator[tuple[str, str, str]]:
    yield "gpucost", "ok", f"{__version__}, Python {platform.python_version()}"
    yield _packages()
    yield _prices()
    yield _refreshed()
    for variable in (one for provider in CLOUDS.values() for one in provider.variables):
        yield variable.name, "set" if os.environ.get(variable.name) else "not set", variable.use
    yield from check_launches()
    smi = shutil.which("nvidia-smi")
    yield "nvidia-smi", "found" if smi else "not found", "only needed to record, not to plan"
    there = PROJECT_FILE.is_file()
    yield str(PROJECT_FILE), "read" if there else "none", "defaults for this folder"


def _packages() -> tuple[str, str, str]:
    """Return whether what gpucost was installed with is there, by the installation's own list."""
    try:
        needs = requires("gpucost") or ()
        missing = [name for name in _names(needs) if not tuple(distributions(name=name))]
    except PackageNotFoundError:
        return "packages", "unknown", "gpucost itself is not installed, it runs from its folder"
    told = f"missing: {', '.join(missing)}; pip install gpucost" if missing else "all there"
    return "packages", "fail" if missing else "ok", told


def _names(needs: Iterable[str]) -> Iterator[str]:
    """Yield the names in a list of requirements, without those of extras."""
    yield from (found[0] for need in needs if ";" not in need and (found := _NEED.match(need)))


def _prices() -> tuple[str, str, str]:
    catalog = load_catalog(today())
    stale = sum(catalog.is_stale(offer) for offer in catalog.offers)
    detail = (
        f"{counted(catalog.count, 'offer')}, read {catalog.oldest} to {catalog.newest}; "
        f"{stale} of {len(catalog.offers)} in force are over 30 days old and may have risen "
        "by over a fifth since, or are undated"
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
