"""What a machine of a launch is told: how it ends and what is set on it; checked before."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from planner.actions.settings import MachineSettings
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.hardware import Gpu, gpus
from providers.interface import OWN
from providers.ownership_tags import OwnershipTags
from providers.registry import CLOUDS
from templates.bootstrap_deadline import LEAST_IDLE_S
from templates.bootstrap_files import MachineBootstrap

if TYPE_CHECKING:
    from gpucost.launch.choice import LaunchChoice
    from gpucost.launch.preview import Wish


def check_machine(choice: "LaunchChoice", wish: "Wish") -> None:
    """Check what is asked of the machines themselves.

    Raises:
        InputError: they are to end when idle and cannot, or a GPU has no such slices or cap.
    """
    problems = [*_idle(choice, wish), *_mig(choice, wish), *_power(choice, wish)]
    if problems:
        raise InputError(problems)


def _idle(choice: "LaunchChoice", wish: "Wish") -> Iterator[str]:
    if wish.idle_s is None:
        return
    if choice.provider == OWN:
        yield "--idle: the machine is yours, and nothing ends it; leave --idle out."
    elif CLOUDS[choice.provider].end.kind == "none":
        yield f"--idle: nothing on a machine can end it at {CLOUDS[choice.provider].title}."
    elif not wish.self_destroy:
        yield "--idle and --no-self-destroy exclude each other; leave one out."
    if any(offer.gpu_count < 1 for offer in choice.offers):
        yield "--idle: a machine without a whole GPU has none that could be idle."
    if wish.idle_s < LEAST_IDLE_S:
        yield (
            f"--idle {wish.idle_s}s is shorter than {LEAST_IDLE_S} s: the machine looks every "
            "ten seconds, and a pause between two epochs is not the end of a job."
        )


def _mig(choice: "LaunchChoice", wish: "Wish") -> Iterator[str]:
    if not wish.mig and not choice.slices:
        return
    asked, named = (wish.mig, "--mig") if wish.mig else (choice.slices, "slices of the placement")
    if wish.mig and choice.slices:
        yield "--mig: the placement has slices of its own; leave --mig out."
    elif wish.mig and choice.sharing:
        yield "--mig: jobs of this placement share whole GPUs; leave --mig out."
    if not choice.offers:
        yield "--mig: the machine is yours; slice its GPUs yourself."
    for offer, gpu in _gpus_of(choice):
        known = {one.profile: one for one in gpu.mig} if gpu else {}
        if not known:
            yield f"{named}: {offer.gpu} of {offer.place} cannot be sliced, or how is not known."
            continue
        wrong = [name for name in asked if name not in known]
        if wrong:
            yield f"{named} {', '.join(wrong)}: {offer.gpu} has {', '.join(known)}."
        elif gpu is not None and (why := gpu.why_not_sliced(asked)):
            yield f"{named}: {why}"


def _power(choice: "LaunchChoice", wish: "Wish") -> Iterator[str]:
    if wish.power_cap_w is None:
        return
    if not choice.offers:
        yield "--power-cap: the machine is yours; set its cap yourself."
    for offer, gpu in _gpus_of(choice):
        if gpu is None or gpu.vendor not in ("NVIDIA", "AMD"):
            yield f"--power-cap: {offer.gpu} of {offer.place} is not NVIDIA's or AMD's."
        elif gpu.tdp_w is not None and wish.power_cap_w > gpu.tdp_w:
            yield (
                f"--power-cap {wish.power_cap_w}: a {offer.gpu} takes {gpu.tdp_w:g} W at most; "
                "a cap is below that."
            )


def _gpus_of(choice: "LaunchChoice") -> Iterator[tuple[Offer, Gpu | None]]:
    for offer in choice.offers:
        yield offer, gpus().get(offer.gpu)


def _largest_first(slices: tuple[str, ...], gpu: Gpu | None) -> tuple[str, ...]:
    """Return profiles in the order to make them: a large one does not fit behind small ones."""
    size = {one.profile: (one.compute_slices, one.memory_gib) for one in gpu.mig} if gpu else {}
    return tuple(sorted(slices, key=lambda name: size.get(name, (0, 0.0)), reverse=True))


def bootstrap_of(
    choice: "LaunchChoice",
    wish: "Wish",
    marks: OwnershipTags,
    offer: Offer | None,
    settings: MachineSettings,
) -> MachineBootstrap:
    """Return what the bootstrap needs to know, what the plan decided for the machine included."""
    provider = CLOUDS[choice.provider]
    gpu = None if offer is None else gpus().get(offer.gpu)
    spot = offer is not None and offer.purchase == "spot" and wish.self_destroy
    return MachineBootstrap(
        run=marks.run,
        deadline=marks.deadline,
        ttl_s=int(wish.ttl_s),
        end=provider.end.kind if wish.self_destroy else "none",
        end_title=provider.title,
        end_id_url=provider.end.id_url,
        end_url=provider.end.url_with(os.environ),
        gpu_vendor="" if gpu is None else gpu.vendor.lower(),
        gpu_count=0 if offer is None else int(offer.gpu_count),
        environment=settings.environment,
        launcher=settings.launcher,
        sharing=choice.sharing,
        jobs=choice.jobs,
        scratch=offer is not None,
        idle_s=wish.idle_s if provider.end.kind != "none" else None,
        interconnect="" if offer is None else offer.interconnect or "",
        notices=asdict(provider.notices) if spot and provider.notices else {},
        power_cap_w=wish.power_cap_w,
        mig=wish.mig or _largest_first(choice.slices, gpu),
        slices=choice.slices,
    )
