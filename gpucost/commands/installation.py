"""`gpucost doctor`, `iam-policy` and `schema`: what this installation has, needs and writes."""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, distributions, requires

import click
from click.shell_completion import get_completion_class

from gpucost.arguments.parameters import options, today
from gpucost.arguments.settings import PROJECT_FILE
from gpucost.files.writing import CACHE, state_folder
from gpucost.machines.state import CLOCK, offer_here, open_cloud, open_journal
from gpucost.prices.cache import load_catalog, price_folder
from gpucost.schemas.documents import DOCUMENTS
from gpucost.schemas.small_documents import InstallationCheck
from gpucost.version import __version__
from gpucost.views.output import (
    Output,
    Table,
    common_options,
    output_options,
    print_if_json,
    print_json,
    print_table,
)
from pricing.catalog.price_age import OLD_DAYS
from pricing.errors import GpucostError, InputError
from pricing.listing import counted
from pricing.money import HOURS_PER_MONTH, price_text, show
from pricing.refresh import store
from providers.journal.journal import FILE, JournalError
from providers.provider import permissions, reading
from providers.registry import CLOUDS

_MOST_SKEW_S = 60.0


def check_launches() -> Iterator[tuple[str, str, str]]:
    """Yield name, state and detail of the journal and of each provider with credentials."""
    folder = state_folder()
    if not (folder / FILE).exists():
        yield "journal", "none", f"no launches recorded in {folder}"
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
    """Yield the limits, the clock and the orphans at one provider."""
    try:
        cloud = open_cloud(provider)
        limits, inventory = cloud.limits(), cloud.list_owned(None)
    except GpucostError as error:
        yield provider, "fail", error.problems[0]
        return
    yield from ((f"{provider} quota", "read", limit) for limit in limits)
    wrong = abs(cloud.skew_s) > _MOST_SKEW_S
    skew = f"{provider} is {cloud.skew_s:+.0f} s ahead of this machine"
    yield f"{provider} clock", "fail" if wrong else "ok", skew
    yield from ((f"{provider} orphans", "fail", resource.text) for resource in inventory.gaps)
    yield from ((f"{provider} orphans", "fail", resource) for resource in inventory.strangers)
    resources = inventory.resources
    late = {
        resource.marks.run
        for resource in resources
        if resource.marks.deadline < CLOCK.at(cloud.skew_s)
    }
    machines = sum(resource.is_machine for resource in resources)
    summary = (
        f"{counted(machines, 'machine')} of ours, {counted(len(late), 'run')} past their deadline"
    )
    advice = "; gpucost reap removes them" if late else ""
    yield f"{provider} orphans", "fail" if late else "ok", summary + advice


_NEED = re.compile(r"[\w.-]+")


_STYLES = {"ok": "green", "fail": "red"}


@click.command(name="doctor", epilog="Example: gpucost doctor --hardware")
@options("hardware")
@output_options
def doctor(
    hardware: bool,  # noqa: FBT001 - click's flag
    output: Output,
) -> None:
    """Check this installation: versions, price age, credentials, files, launches; read-only.

    Providers whose credentials are set are asked for their limits, their clock and your resources
    there; without credentials no network is used. With --hardware this machine is checked instead:
    what guides ask of one for GPUs, and what it costs while it falls short.
    """
    checks = tuple(_node_checks() if hardware else _checks())
    documents = [InstallationCheck(check=c, state=s, detail=d) for c, s, d in checks]
    if not print_if_json(documents, output):
        styles = tuple(_STYLES.get(state, "") for _, state, _ in checks) if hardware else ()
        columns = ("check", "state", "detail")
        print_table(Table(columns=columns, rows=checks, styles=styles), output)


def _node_checks() -> Iterator[tuple[str, str, str]]:
    """Yield this machine's rows, and what it costs.

    Raises:
        GpuUnavailableError: there is no GPU that can be read, and what to do.
    """
    from telemetry.measure.node import node_rows  # noqa: PLC0415 - opens the driver
    from telemetry.measure.nvml_reader import GpuUnavailableError, NvmlReader  # noqa: PLC0415

    try:
        reader = NvmlReader()
    except GpuUnavailableError as error:
        raise GpuUnavailableError(
            (
                f"doctor --hardware: {error.problems[0]}",
                "The list is of machines with GPUs; nothing else of this one was checked.",
                "Run it on the GPU machine, such as one of yours: gpucost ssh ID",
            )
        ) from None
    with closing(reader):
        rows = tuple(node_rows(reader))
    yield from rows
    failed = sum(state == "fail" for _, state, _ in rows)
    offer = offer_here(None, metadata=True)
    if offer is None:
        yield "price", "unknown", "this machine does not say who rents it out"
        return
    hour, month = offer.usd_per_hour, offer.usd_per_hour * HOURS_PER_MONTH
    cost = f"{offer.place}: ${price_text(hour)}/h, ${show(month)} a month"
    advice = f"; {failed} points fail: ask for another host, or take one that has them"
    yield "price", "read", cost + (advice if failed else "")


def _checks() -> Iterator[tuple[str, str, str]]:
    yield "gpucost", "ok", f"{__version__}, Python {platform.python_version()}"
    yield _packages()
    yield _prices()
    yield _refreshed()
    for variable in (variable for provider in CLOUDS.values() for variable in provider.variables):
        yield variable.name, "set" if os.environ.get(variable.name) else "not set", variable.use
    yield from check_launches()
    smi = shutil.which("nvidia-smi")
    yield "nvidia-smi", "found" if smi else "not found", "needed to measure, not to plan"
    exists = PROJECT_FILE.is_file()
    yield str(PROJECT_FILE), "read" if exists else "none", "defaults for this folder"


def _packages() -> tuple[str, str, str]:
    """Return whether what gpucost was installed with is there, by the installation's own list."""
    try:
        needs = requires("gpucost") or ()
        missing = [name for name in _names(needs) if not tuple(distributions(name=name))]
    except PackageNotFoundError:
        return "packages", "unknown", "gpucost is not installed; it runs from its folder"
    detail = f"missing: {', '.join(missing)}; pip install gpucost" if missing else "all installed"
    return "packages", "fail" if missing else "ok", detail


def _names(needs: Iterable[str]) -> Iterator[str]:
    """Yield the names in a list of requirements, without those of extras."""
    yield from (match[0] for need in needs if ";" not in need and (match := _NEED.match(need)))


def _prices() -> tuple[str, str, str]:
    catalog = load_catalog(today())
    stale = sum(catalog.is_stale(offer) for offer in catalog.offers)
    detail = (
        f"{counted(catalog.count, 'offer')}, read {catalog.oldest} to {catalog.newest}; "
        f"{stale} of {len(catalog.offers)} in force are old (over {OLD_DAYS} days) or undated"
    )
    return "prices", "old" if stale else "ok", detail


def _refreshed() -> tuple[str, str, str]:
    folder = price_folder()
    stored = store.load(folder)
    if stored.problems:
        return "refreshed prices", "fail", stored.problems[0]
    providers = sorted({offer.provider for offer in stored.offers})
    if not providers:
        return "refreshed prices", "none", f"gpucost prices update writes to {folder} ({CACHE})"
    return "refreshed prices", "read", f"{', '.join(providers)}, in {folder}"


@click.command(name="iam-policy", epilog="Example: gpucost iam-policy --read-only")
@options(
    "provider.iam-policy read-only make",
    provider={"type": click.Choice(tuple(permissions())), "default": next(iter(permissions()))},
)
@common_options
def iam_policy(
    provider: str,
    read_only: bool,  # noqa: FBT001 - click's flag
    make: bool,  # noqa: FBT001 - the same
    output: Output,
) -> None:
    """Print the permissions that gpucost needs: an IAM policy, or the scopes of a token."""
    if make and provider != "aws-end-role":
        raise InputError("--make: of --provider aws-end-role alone.")
    if make:
        from providers.aws import access, schedule  # noqa: PLC0415 - the SDK, only where it is used

        role = schedule.make_role(access.open_session())
        output.say(f'in your own settings file it holds for every launch: end-role = "{role}"')
        click.echo(role)
        return
    allowed = permissions()[provider]
    allowed = reading(allowed) if read_only else allowed
    if isinstance(allowed, list):
        print_table(Table(columns=("scope", "for"), rows=tuple(map(tuple, allowed))), output)
    else:
        print_json(allowed)


_FORMS = {"one": "an object", "cut": "an object", "list": "an array", "line": "an object a line"}


@click.command(name="schema", epilog="Example: gpucost schema plan")
@click.argument("name", required=False, type=click.Choice(tuple(DOCUMENTS)), metavar="[NAME]")
@output_options
def schema(name: str | None, output: Output) -> None:
    """Print the JSON Schema (2020-12) of a document; without NAME list the documents.

    Each field has its meaning and unit. Later versions may add fields.
    """
    if name is not None:
        print_json(DOCUMENTS[name].schema)
        return
    rows = tuple(
        (document.name, _FORMS[document.form], document.written) for document in DOCUMENTS.values()
    )
    documents = [{"name": name, "form": form, "written": by} for name, form, by in rows]
    if not print_if_json(documents, output):
        print_table(Table(columns=("name", "is", "written by"), rows=rows), output)


_SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion", epilog='Example: eval "$(gpucost completion bash)"')
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell; evaluate it in the shell's start-up file.

    It completes commands and options, providers, GPUs, regions and machine types of the bundled
    catalog, codes of findings and actions, JOB/ID of the plan named or of ./plan.json, the runs of
    the journal, and files.
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"this click has no completion for {shell}.")
    click.echo(script(ctx.find_root().command, {}, "gpucost", "_GPUCOST_COMPLETE").source())
