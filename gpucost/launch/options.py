"""What is asked of a launch and its machines, and whether they can do it."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpucost.launch.choice import LaunchChoice
from planner.actions.settings import MachineSettings
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.hardware import Gpu, gpus
from providers.deployment import NodePool
from providers.interface import OWN, LaunchSpec
from providers.ownership_tags import OwnershipTags
from providers.provider import check_form
from providers.registry import CLOUDS, pools_at
from providers.ssh.address import CALLER
from templates.bootstrap_deadline import LEAST_IDLE_S
from templates.bootstrap_files import MachineBootstrap

_ROLE = re.compile(r"arn:[a-z-]+:iam::\d{12}:role/[\w+=,.@/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """What the command line asks of a launch.

    Attributes:
        ttl_s: longest life.
        max_usd: cap; None: the previewed total at the TTL.
        ssh_key, image: as in `LaunchSpec`.
        allow_stale: go ahead with a price that is old or has changed.
        self_destroy: whether the machine ends itself.
        ssh_from, subnet, security_group, end_role: as in `LaunchSpec`.
        waits: whether the launch waits until the machines are ready.
        idle_s: the machines end themselves once no GPU has worked for so long; None: no such rule.
        power_cap_w: of each GPU, in watts; None: as it is.
        mig: profiles of the slices of each GPU; empty: as it is.
    """

    ttl_s: Decimal
    max_usd: Decimal | None = None
    ssh_key: str = ""
    image: str = ""
    allow_stale: bool = False
    self_destroy: bool = True
    ssh_from: tuple[str, ...] = CALLER
    subnet: str = ""
    security_group: str = ""
    end_role: str = ""
    waits: bool = True
    idle_s: int | None = None
    power_cap_w: int | None = None
    mig: tuple[str, ...] = ()


def check_self_destroy(provider: str, options: LaunchOptions) -> None:
    """Check that a machine or pool which must end without us can.

    Raises:
        InputError: the token for it is not there, or would not be handed over.
    """
    end, title = CLOUDS[provider].end, CLOUDS[provider].title
    if options.self_destroy and end.lacks and not options.end_role:
        resource = "node pool" if CLOUDS[provider].pools_of else "machine"
        role = (
            f"Give --end-role, with which {end.outside} ends it, or say" if end.outside else "Say"
        )
        raise InputError(
            f"a {resource} at {title} cannot end itself at its deadline: {end.lacks}. {role} "
            "--no-self-destroy, and let `gpucost watch --install` end it from a computer that runs."
        )
    if not options.self_destroy or not end.token:
        return
    if not options.waits:
        raise InputError(
            "--no-wait leaves a machine before it has what it ends itself with; "
            "say --no-self-destroy, too, or leave it out."
        )
    check_form(end.token, provider, end.reach, os.environ.get(end.token, ""))


def check_end_role(provider: str, role: str) -> None:
    """Check that a role which is to end machines from outside could do so there.

    Raises:
        InputError: nothing there takes one, or it is not the name of a role.
    """
    if role and not CLOUDS[provider].end.outside:
        raise InputError(f"--end-role: nothing at {CLOUDS[provider].title} ends machines so.")
    if role and not _ROLE.fullmatch(role):
        raise InputError(
            f"--end-role {role} is not the ARN of a role, arn:aws:iam::ACCOUNT:role/NAME."
        )


def check_machine(choice: LaunchChoice, options: LaunchOptions) -> None:
    """Check what is asked of the machines themselves.

    Raises:
        InputError: they are to end when idle and cannot, or a GPU has no such slices or cap.
    """
    problems = [*_idle(choice, options), *_mig(choice, options), *_power(choice, options)]
    if problems:
        raise InputError(problems)


def _idle(choice: LaunchChoice, options: LaunchOptions) -> Iterator[str]:
    if options.idle_s is None:
        return
    if choice.provider == OWN:
        yield "--idle: the machine is yours, and nothing ends it; leave --idle out."
    elif not CLOUDS[choice.provider].by_machine:
        yield f"--idle: nothing on a machine can end it at {CLOUDS[choice.provider].title}."
    elif not options.self_destroy:
        yield "--idle and --no-self-destroy exclude each other; leave one out."
    if any(offer.gpu_count < 1 for offer in choice.offers):
        yield "--idle: a machine without a whole GPU has none that could be idle."
    if options.idle_s < LEAST_IDLE_S:
        yield (
            f"--idle {options.idle_s}s is shorter than {LEAST_IDLE_S} s: the machine looks every "
            "ten seconds, and a pause between two epochs is not the end of a job."
        )


def _mig(choice: LaunchChoice, options: LaunchOptions) -> Iterator[str]:
    if not options.mig and not choice.slices:
        return
    slices, named = (
        (options.mig, "--mig") if options.mig else (choice.slices, "slices of the placement")
    )
    if options.mig and choice.slices:
        yield "--mig: the placement has slices of its own; leave --mig out."
    elif options.mig and choice.sharing:
        yield "--mig: jobs of this placement share whole GPUs; leave --mig out."
    if not choice.offers:
        yield "--mig: the machine is yours; slice its GPUs yourself."
    for offer, gpu in _gpus_of(choice):
        profiles = {profile.profile: profile for profile in gpu.mig} if gpu else {}
        if not profiles:
            yield f"{named}: {offer.gpu} of {offer.place} cannot be sliced, or how is not known."
            continue
        wrong = [name for name in slices if name not in profiles]
        if wrong:
            yield f"{named} {', '.join(wrong)}: {offer.gpu} has {', '.join(profiles)}."
        elif gpu is not None and (why := gpu.why_not_sliced(slices)):
            yield f"{named}: {why}"


def _power(choice: LaunchChoice, options: LaunchOptions) -> Iterator[str]:
    if options.power_cap_w is None:
        return
    if not choice.offers:
        yield "--power-cap: the machine is yours; set its cap yourself."
    for offer, gpu in _gpus_of(choice):
        if gpu is None or gpu.vendor not in ("NVIDIA", "AMD"):
            yield f"--power-cap: {offer.gpu} of {offer.place} is not NVIDIA's or AMD's."
        elif gpu.tdp_w is not None and options.power_cap_w > gpu.tdp_w:
            yield (
                f"--power-cap {options.power_cap_w}: a {offer.gpu} takes {gpu.tdp_w:g} W at most; "
                "a cap is below that."
            )


def _gpus_of(choice: LaunchChoice) -> Iterator[tuple[Offer, Gpu | None]]:
    for offer in choice.offers:
        yield offer, gpus().get(offer.gpu)


def _largest_first(slices: tuple[str, ...], gpu: Gpu | None) -> tuple[str, ...]:
    """Return profiles in the order to make them: a large one does not fit behind small ones."""
    size = (
        {profile.profile: (profile.compute_slices, profile.memory_gib) for profile in gpu.mig}
        if gpu
        else {}
    )
    return tuple(sorted(slices, key=lambda name: size.get(name, (0, 0.0)), reverse=True))


def bootstrap_of(
    choice: LaunchChoice,
    options: LaunchOptions,
    marks: OwnershipTags,
    offer: Offer | None,
    settings: MachineSettings,
) -> MachineBootstrap:
    """Return what the bootstrap needs to know, what the plan decided for the machine included."""
    provider = CLOUDS[choice.provider]
    gpu = None if offer is None else gpus().get(offer.gpu)
    spot = offer is not None and offer.purchase == "spot" and options.self_destroy
    return MachineBootstrap(
        run=marks.run,
        deadline=marks.deadline,
        ttl_s=int(options.ttl_s),
        end=provider.end.kind if options.self_destroy else "none",
        end_title=provider.title,
        end_id_url=provider.end.id_url,
        end_url=provider.end.url_with(os.environ),
        end_post=provider.end.post and provider.end.url_with(os.environ, provider.end.post),
        gpu_vendor="" if gpu is None else gpu.vendor.lower(),
        gpu_count=0 if offer is None else int(offer.gpu_count),
        environment=settings.environment,
        launcher=settings.launcher,
        sharing=choice.sharing,
        jobs=choice.jobs,
        scratch=offer is not None,
        idle_s=options.idle_s if provider.by_machine else None,
        interconnect="" if offer is None else offer.interconnect or "",
        notices=provider.notices if spot else {},
        power_cap_w=options.power_cap_w,
        mig=options.mig or _largest_first(choice.slices, gpu),
        slices=choice.slices,
    )


_OF_MACHINES = (
    "placement",
    "ssh_key",
    "ssh_from",
    "subnet",
    "security_group",
    "image",
    "idle",
    "power_cap",
    "mig",
    "run",
    "sync",
    "data",
    "collect",
    "recipe",
    "container",
)
"""Options that say what is done on a machine of its own; a cluster sets its nodes up itself."""


def check_pool(typed: Mapping[str, Any]) -> None:
    """Refuse options that do not fit a node pool, or that only fit one.

    Args:
        typed: options of `gpucost provision` by name.

    Raises:
        InputError: all that is wrong with them, at once.
    """
    low, high, count = typed["min_nodes"], typed["max_nodes"], typed["count"]
    if typed["kubernetes"] is None:
        flags = [flag for flag, value in (("--min", low), ("--max", high)) if value is not None]
        if flags:
            raise InputError(f"{' and '.join(flags)}: of which cluster? Give --kubernetes CLUSTER.")
        return
    problems = []
    if not typed["kubernetes"].strip():
        problems.append("--kubernetes is empty; give the name or the id of a cluster.")
    wrong = [f"--{name.replace('_', '-')}" for name in _OF_MACHINES if typed.get(name)]
    if wrong:
        problems.append(
            f"{', '.join(wrong)}: of machines of their own, and a cluster sets up its nodes "
            "itself; `gpucost export --to kubernetes` writes the job that runs on them."
        )
    if (low is None) != (high is None):
        problems.append("--min and --max go together: the limits of an autoscaler.")
    elif low is not None and low > high:
        problems.append(f"--min {low} is more than --max {high}.")
    elif low is not None and count is not None and not low <= count <= high:
        problems.append(f"--count {count} is not between --min {low} and --max {high}.")
    if problems:
        raise InputError(problems)


def pool_of(provider: str, typed: Mapping[str, Any]) -> NodePool:
    """Return the pool that is asked for, of a provider's machines.

    Raises:
        InputError: gpucost makes no node pools there.
    """
    row = pools_at(provider)
    if row is None:
        places = ", ".join(sorted(row_of.pools_of for row_of in CLOUDS.values() if row_of.pools_of))
        raise InputError(f"--kubernetes: gpucost makes no node pools at {provider}; at {places}.")
    return NodePool(
        provider=row.name,
        cluster=typed["kubernetes"].strip(),
        min_nodes=typed["min_nodes"],
        max_nodes=typed["max_nodes"],
    )


def first_nodes(typed: Mapping[str, Any]) -> int:
    """Return with how many nodes a pool begins: as asked, else the least, and one at least."""
    return typed["count"] or max(1, typed["min_nodes"] or 1)


def pool_told(spec: LaunchSpec, pool: NodePool) -> Iterator[str]:
    """Yield what must be known of a pool before saying yes."""
    title = CLOUDS[pool.provider].title
    yield f"a node pool of the {title} cluster {pool.text}; its control plane is not in the total"
    if spec.most_machines > spec.count:
        yield (
            f"it begins with {spec.count} and may grow to {spec.most_machines}: totals and cap are "
            f"of {spec.most_machines} nodes for the whole time"
        )
    yield (
        "nobody logs in to its nodes: ready means that the provider says they run. What runs on "
        "them ends with the pool"
    )
