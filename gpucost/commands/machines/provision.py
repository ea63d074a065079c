"""`gpucost provision`: launch an option of a plan until a deadline, with a preview and a cap."""

from dataclasses import replace
from typing import Any

import click

from gpucost.arguments.command_group import GroupedCommand
from gpucost.arguments.parameters import DOLLARS, DURATION, today
from gpucost.files.plan_file import DEFAULT_PLAN
from gpucost.jobs.driving import preview_job
from gpucost.jobs.request import request_job
from gpucost.launch.choice import (
    LaunchChoice,
    change,
    check_asked,
    choose_option,
    choose_placement,
    choose_type,
    with_dearest,
)
from gpucost.launch.options import (
    LaunchOptions,
    check_end_role,
    check_machine,
    check_pool,
    check_self_destroy,
    first_nodes,
    pool_of,
)
from gpucost.launch.provisioning import dry_run, launch_confirmed, launch_job, previewed
from gpucost.machines.state import confirm, open_cloud, open_journal
from gpucost.prices.cache import load_catalog
from gpucost.views.launch import question, show_preview
from gpucost.views.output import Output, output_options
from pricing.catalog.offer import BOUGHT
from pricing.errors import RefusedError
from providers.ssh.address import networks

_MOST = 64


@click.command(
    name="provision",
    cls=GroupedCommand,
    rare="--placement --ssh-from --subnet --security-group --end-role --image --power-cap --mig "
    "--kubernetes --min --max --wait --container --allow-stale",
    epilog="Example: gpucost provision --ttl 8h --max-cost 60 --dry-run",
)
@click.argument("plan", required=False, metavar="[PLAN]")
@click.option("--option", "option_id", metavar="JOB/ID", help="Option of the plan to launch.")
@click.option("--placement", type=int, help="Placement of the plan's fleet to launch.")
@click.option(
    "--type", "type_", metavar="PROVIDER/TYPE", help="Machine type to launch instead of a plan."
)
@click.option("--region", help="Region.  [default: the offer's, or chosen at launch]")
@click.option("--ttl", type=DURATION, help="Maximum lifetime of the machines, e.g. 8h (required).")
@click.option(
    "--count",
    type=click.IntRange(1, _MOST),
    help="Number of machines; either all are launched or none.",
)
@click.option("--purchase", type=click.Choice(BOUGHT), help="Purchase type.")
@click.option("--max-cost", type=DOLLARS, help="Cost cap in USD.  [default: the total at the TTL]")
@click.option(
    "--ssh-key", default="", help="Additional SSH key, stored at the provider, that may log in."
)
@click.option(
    "--ssh-from",
    multiple=True,
    metavar="ADDRESS",
    help="Network allowed to reach SSH, or `anywhere`.  [default: this computer's address]",
)
@click.option(
    "--subnet", default="", help="AWS: subnet of the machines.  [default: the default VPC's]"
)
@click.option(
    "--security-group", default="", help="AWS: security group to use instead of a new one."
)
@click.option(
    "--end-role",
    default="",
    metavar="ARN",
    help="AWS: role that ends machines which did not end themselves.",
)
@click.option(
    "--image", default="", help="Image to use instead of the provider's default for the size."
)
@click.option(
    "--idle", type=DURATION, help="End the machines after their GPUs have been idle this long."
)
@click.option(
    "--power-cap", type=click.IntRange(1), metavar="WATTS", help="Power limit of each GPU in watts."
)
@click.option("--mig", default="", metavar="3g.40gb,...", help="MIG slices of each GPU.")
@click.option(
    "--run",
    metavar="COMMAND",
    help="Run this command there, fetch its results, and end the machines.",
)
@click.option(
    "--sync", metavar="DIR", help="With --run: folder of its code to send; .gitignore is respected."
)
@click.option(
    "--data", metavar="SOURCE", help="With --run: its data: s3://..., https://... or a folder."
)
@click.option(
    "--collect",
    multiple=True,
    metavar="PATH",
    help="With --run: path below the code to fetch into gpucost-runs/ID (repeatable).",
)
@click.option("--recipe", metavar="FILE", help="With --run: recipe (of `gpucost recipe`) to apply.")
@click.option("--container", metavar="IMAGE", help="With --run: container image to run it in.")
@click.option(
    "--kubernetes",
    metavar="CLUSTER",
    help="Launch as a new node pool of this cluster (DOKS or EKS).",
)
@click.option(
    "--min",
    "min_nodes",
    type=click.IntRange(0, _MOST),
    help="Minimum number of nodes for its autoscaler.",
)
@click.option(
    "--max",
    "max_nodes",
    type=click.IntRange(1, _MOST),
    help="Maximum number of nodes for its autoscaler; the cost cap covers this number.",
)
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Wait until the machines are ready and proved to end themselves.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print each API call that would be made and the total; no network.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--allow-stale", is_flag=True, help="Launch even if the price is old or has changed.")
@click.option(
    "--no-self-destroy", is_flag=True, help="Do not require that the machines end themselves."
)
@output_options
def command(
    plan: str | None,
    option_id: str | None,
    placement: int | None,
    type_: str | None,
    output: Output,
    **typed: Any,
) -> None:
    """Launch machines until a deadline; by default PLAN's recommended option.

    Nothing is created before you confirm the preview. Either all machines are created or none; they
    carry owner, plan, run and deadline as tags and end themselves at the deadline. With --run a
    command runs there even if the connection breaks (`gpucost logs ID -f` reconnects), and the
    machines end with it. With --kubernetes they become a new node pool of an existing cluster.
    """
    check_asked(plan, option_id, placement, type_, region=typed["region"], ttl_s=typed["ttl"])
    check_pool({**typed, "placement": placement})
    job = request_job({**typed, "placement": placement})
    choice = _choice(plan, option_id, placement, type_, typed)
    options = _launch_options(typed)
    check_machine(choice, options)
    check_end_role(choice.provider, options.end_role)
    if typed["dry_run"]:
        dry_run(choice, options, job, output)
        return
    check_self_destroy(choice.provider, options)
    cloud = open_cloud(choice.provider)
    with open_journal():  # makes the folder and the owner's id, or refuses before anything is made
        pass
    launch = previewed(cloud, choice, options)
    if launch.refusals:
        raise RefusedError(launch.refusals)
    show_preview(launch, None if job is None else preview_job(job), output, dry=False)
    confirm(question(launch), yes=typed["yes"])
    if job is None:
        launch_confirmed(cloud, launch.spec, output, wait=options.waits)
    else:
        launch_job(cloud, launch.spec, job, output)


def _count(typed: dict[str, Any]) -> int | None:
    """Return the machines that are asked for; of a pool, the nodes that it begins with."""
    count: int | None = typed["count"]
    return count if typed["kubernetes"] is None else first_nodes(typed)


def _launch_options(typed: dict[str, Any]) -> LaunchOptions:
    """Return what is asked of the launch, as it was typed."""
    return LaunchOptions(
        ttl_s=typed["ttl"],
        max_usd=typed["max_cost"],
        ssh_key=typed["ssh_key"],
        image=typed["image"],
        allow_stale=typed["allow_stale"],
        self_destroy=not typed["no_self_destroy"],
        ssh_from=networks(typed["ssh_from"]),
        subnet=typed["subnet"],
        security_group=typed["security_group"],
        end_role=typed["end_role"],
        waits=typed["wait"],
        idle_s=None if typed["idle"] is None else int(typed["idle"]),
        power_cap_w=typed["power_cap"],
        mig=tuple(filter(None, typed["mig"].split(","))),
    )


def _choice(
    plan: str | None,
    option_id: str | None,
    placement: int | None,
    type_: str | None,
    typed: dict[str, Any],
) -> LaunchChoice:
    catalog = load_catalog(today())
    if type_ is not None:
        choice = choose_type(type_, typed["region"], typed["purchase"], _count(typed) or 1, catalog)
        return with_dearest(_pooled(choice, typed), catalog)
    path = plan or DEFAULT_PLAN
    if placement is not None:
        choice = choose_placement(path, placement, catalog)
    else:
        choice = choose_option(path, option_id, catalog)
    choice = change(choice, _count(typed), typed["purchase"], catalog)
    return with_dearest(_pooled(choice, typed), catalog)


def _pooled(choice: LaunchChoice, typed: dict[str, Any]) -> LaunchChoice:
    """Return the choice as a node pool, where a cluster is named; a pool has no fallbacks."""
    if typed["kubernetes"] is None:
        return choice
    pool = pool_of(choice.provider, typed)
    return replace(choice, offers=choice.offers[:1], machines=choice.machines[:1], pool=pool)
