"""`gpucost doctor`: what this installation has and lacks; read-only, no network."""

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

import click

from gpucost.output import Output, Table, output_options, print_json, print_table
from gpucost.parameters import today
from gpucost.price_cache import CACHE, load_catalog, price_folder
from gpucost.settings import PROJECT_FILE
from gpucost.version import __version__
from pricing import store

_CREDENTIALS = (
    ("DIGITALOCEAN_TOKEN", "DigitalOcean: needed to refresh prices and launch, not to plan"),
    ("AWS_ACCESS_KEY_ID", "AWS: the SDK's own chain; needed to refresh prices and launch"),
)
_PACKAGES = (
    *("boto3", "click", "jinja2", "pandas", "platformdirs", "prometheus_client", "pydo", "rich"),
)


@click.command(name="doctor", epilog="Example: gpucost doctor -f json")
@output_options
def command(output: Output) -> None:
    """Check this installation: versions, price age, credentials, files; read-only."""
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
    for variable, use in _CREDENTIALS:
        yield variable, "set" if os.environ.get(variable) else "not set", use
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
