"""`gpucost provision`: launch an option of a plan until a deadline, with a preview and a cap."""

from dataclasses import replace
from typing import Any

import click

from gpucost.arguments.command_group import GroupedCommand
from gpucost.arguments.parameters import options, today
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
from providers.ssh.connection import networks

_MOST = 64


@click.command(
    name="provision",
    cls=GroupedCommand,
    listed="provision",
    epilog="Example: gpucost provision --ttl 8h --max-cost 60 --dry-run",
)
@click.argument("plan", required=False, metavar="[PLAN]")
@options(
    "option.provision placement type.provision region.provision ttl "
    "count.provision purchase.provision max-cost ssh-key ssh-from subnet "
    "security-group end-role image.provision idle power-cap mig run.provision "
    "sync.provision data.provision collect recipe.provision container kubernetes min max "
    "wait dry-run.provision yes allow-stale no-self-destroy",
    count={"type": click.IntRange(1, _MOST)},
    purchase={"type": click.Choice(BOUGHT)},
    min={"type": click.IntRange(0, _MOST)},
    max={"type": click.IntRange(1, _MOST)},
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
