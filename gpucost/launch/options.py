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
from pricing.message import Message
from providers.interface import OWN, LaunchSpec, NodePool
from providers.ownership_tags import OwnershipTags
from providers.provider import check_form
from providers.registry import CLOUDS, pools_at
from providers.ssh.connection import CALLER
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
        details = {"resource": resource, "title": title, "lacks": end.lacks, "role": role}
        raise InputError(Message("launch.cannot-end", **details))
    if not options.self_destroy or not end.token:
        return
    if not options.waits:
        raise InputError(Message("launch.no-token-no-wait"))
    check_form(end.token, provider, end.reach, os.environ.get(end.token, ""))


def check_end_role(provider: str, role: str) -> None:
    """Check that a role which is to end machines from outside could do so there.

    Raises:
        InputError: nothing there takes one, or it is not the name of a role.
    """
    if role and not CLOUDS[provider].end.outside:
        raise InputError(Message("launch.end-role-nowhere", title=CLOUDS[provider].title))
    if role and not _ROLE.fullmatch(role):
        raise InputError(Message("launch.end-role-form", role=role))


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
        yield Message("launch.idle-yours")
    elif not CLOUDS[choice.provider].by_machine:
        yield Message("launch.idle-nowhere", title=CLOUDS[choice.provider].title)
    elif not options.self_destroy:
        yield Message("launch.idle-excluded")
    if any(offer.gpu_count < 1 for offer in choice.offers):
        yield Message("launch.idle-no-gpu")
    if options.idle_s < LEAST_IDLE_S:
        yield Message("launch.idle-short", asked=options.idle_s, least=LEAST_IDLE_S)


def _mig(choice: LaunchChoice, options: LaunchOptions) -> Iterator[str]:
    if not options.mig and not choice.slices:
        return
    slices, named = (
        (options.mig, "--mig") if options.mig else (choice.slices, "slices of the placement")
    )
    if options.mig and choice.slices:
        yield Message("launch.mig-placement")
    elif options.mig and choice.sharing:
        yield Message("launch.mig-shared")
    if not choice.offers:
        yield Message("launch.mig-yours")
    for offer, gpu in _gpus_of(choice):
        profiles = {profile.profile: profile for profile in gpu.mig} if gpu else {}
        if not profiles:
            yield Message("launch.mig-unknown", named=named, gpu=offer.gpu, place=offer.place)
            continue
        wrong = [name for name in slices if name not in profiles]
        if wrong:
            details = {"wrong": ", ".join(wrong), "profiles": ", ".join(profiles)}
            yield Message("launch.mig-wrong", named=named, gpu=offer.gpu, **details)
        elif gpu is not None and (why := gpu.why_not_sliced(slices)):
            yield f"{named}: {why}"


def _power(choice: LaunchChoice, options: LaunchOptions) -> Iterator[str]:
    if options.power_cap_w is None:
        return
    if not choice.offers:
        yield Message("launch.power-yours")
    for offer, gpu in _gpus_of(choice):
        if gpu is None or gpu.vendor not in ("NVIDIA", "AMD"):
            yield Message("launch.power-vendor", gpu=offer.gpu, place=offer.place)
        elif gpu.tdp_w is not None and options.power_cap_w > gpu.tdp_w:
            details = {"watts": options.power_cap_w, "tdp": gpu.tdp_w}
            yield Message("launch.power-high", gpu=offer.gpu, **details)


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
    "placement ssh-key ssh-from subnet security-group image idle power-cap mig run sync data "
    "collect recipe container"
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
            raise InputError(Message("launch.pool-which", flags=" and ".join(flags)))
        return
    problems = []
    if not typed["kubernetes"].strip():
        problems.append(Message("launch.pool-empty"))
    wrong = [f"--{flag}" for flag in _OF_MACHINES.split() if typed.get(flag.replace("-", "_"))]
    if wrong:
        problems.append(Message("launch.pool-options", flags=", ".join(wrong)))
    if (low is None) != (high is None):
        problems.append(Message("launch.pool-both"))
    elif low is not None and low > high:
        problems.append(Message("launch.pool-order", low=low, high=high))
    elif low is not None and count is not None and not low <= count <= high:
        problems.append(Message("launch.pool-count", count=count, low=low, high=high))
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
    yield Message("launch.pool", title=CLOUDS[pool.provider].title, pool=pool.text)
    if spec.most_machines > spec.count:
        yield Message("launch.pool-grows", count=spec.count, most=spec.most_machines)
    yield Message("launch.pool-nodes")
