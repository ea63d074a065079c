"""A launch from a choice (live price, deadline, cap, bootstrap, refusals) to ready machines."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from msgspec import structs

from gpucost.arguments.parameters import today
from gpucost.files.writing import state_folder
from gpucost.jobs.driving import drive, preview_job
from gpucost.jobs.request import JobRequest, job_folder
from gpucost.launch.choice import LaunchChoice
from gpucost.launch.options import LaunchOptions, bootstrap_of, check_self_destroy, pool_told
from gpucost.machines.state import (
    CLOCK,
    PATIENCE,
    hold_budgets,
    login_to,
    open_journal,
    session_with,
    this_owner,
)
from gpucost.views.launch import nothing_made, show_preview
from gpucost.views.output import Output
from gpucost.views.runs import show_run
from pricing.billing.quote import Quote
from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.catalog.price_age import OLD_DAYS
from pricing.errors import GpucostError, InputError, MissingCredentialsError, ProviderError
from pricing.message import Message
from pricing.money import plain, price_text, show, usd
from pricing.refresh.reading import Row
from providers.interface import (
    LEAST_SKEW_S,
    MACHINE,
    OWN,
    Cloud,
    Creation,
    Deployment,
    LaunchSpec,
    Place,
    Preview,
    Resource,
)
from providers.journal.journal import Journal, JournalError
from providers.journal.ledger import quote_machines
from providers.lifecycle.launch import launch
from providers.lifecycle.session import skew_told
from providers.ownership_tags import OwnershipTags, new_run
from providers.provider import Request, SelfEnd
from providers.registry import CLOUDS, cloud_class, fetcher, priced
from providers.ssh.connection import CALLER, Login, drop_key, make_key
from templates.bootstrap_deadline import END_S
from templates.bootstrap_files import MOST_PLAIN, render_bootstrap, render_files

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrices:
    """Prices as the provider tells them now.

    Attributes:
        prices: by type, region and way of buying.
        before: planned prices of the offers, by place.
        read_at: when.
        failure: why there are none; empty: there are.
    """

    prices: Mapping[_Key, Decimal]
    before: Mapping[str, Decimal]
    read_at: datetime
    failure: str = ""

    def now(self, offer: Offer) -> Offer | None:
        """Return the offer at its live price; the dearest region's where it has none.

        None: not known.
        """
        keys = [
            key
            for key in self.prices
            if (key[0], key[2]) == (offer.instance_type, offer.purchase)
            and (EVERYWHERE in (offer.region, key[1]) or key[1] == offer.region)
        ]
        if not keys:
            return None
        price = max(self.prices[key] for key in keys)
        day = self.read_at.date()
        return structs.replace(offer, usd_per_hour=price, as_of=day, as_of_text="", dated=True)

    def planned(self, offer: Offer) -> Decimal:
        """Return the price that was planned with."""
        return self.before.get(offer.place, offer.usd_per_hour)


def read_live(offers: tuple[Offer, ...], region: str) -> LivePrices:
    """Return the live prices of the offers' machines in their regions.

    Raises:
        MissingCredentialsError: names the variable.
    """
    now = datetime.now(UTC)
    before = {offer.place: offer.usd_per_hour for offer in offers}
    provider = offers[0].provider
    if provider not in priced():
        return LivePrices(prices={}, before=before, read_at=now, failure=f"{provider} tells none")
    named = dict.fromkeys((region, *(offer.region for offer in offers)))
    regions = tuple(name for name in named if name not in ("", EVERYWHERE))
    types = tuple({offer.instance_type for offer in offers})
    request = Request(now=now, environment=os.environ, regions=regions, instance_types=types)
    try:
        reading = fetcher(provider)(request)
    except MissingCredentialsError:
        raise
    except ProviderError as error:
        return LivePrices(prices={}, before=before, read_at=now, failure=error.problems[0])
    prices = {_key(row): usd(row["usd_per_hour"]) for row in reading.rows if _is_price(row)}
    live = LivePrices(prices=prices, before=before, read_at=now)
    if live.now(offers[0]) is None:
        problem = f"the answer does not list {offers[0].instance_type}"
        return replace(live, failure=problem)
    return live


def _is_price(row: Row) -> bool:
    try:
        return usd(row["usd_per_hour"]) > 0
    except InputError:
        return False


def _key(row: Row) -> _Key:
    return row["instance_type"], row["region"], row["purchase"]


MOST_CHANGE = Decimal("0.01")
"""A live price that differs by more from the planned one is refused."""

_HOURS_PER_DAY = 24


def build_spec(
    choice: LaunchChoice, options: LaunchOptions, now: datetime, live: LivePrices | None
) -> LaunchSpec:
    """Return the launch of a choice at live prices; where there is none, at the dearest known."""
    ttl = timedelta(seconds=float(options.ttl_s))
    deadline = (now + ttl).replace(microsecond=0)
    marks = OwnershipTags(
        run=new_run(),
        deadline=deadline,
        owner=this_owner(),
        plan=choice.plan,
        started=now.replace(microsecond=0),
    )
    offers: list[Offer | None] = [*_priced(choice, live)] or [None]
    places = [_target(choice, options, marks, offer, at) for at, offer in enumerate(offers)]
    end = CLOUDS[choice.provider].end
    end_s = Decimal(END_S[end.kind if options.self_destroy else "none"])
    end_s += end.outside_s if options.end_role else 0
    high = None if choice.pool is None else choice.pool.max_nodes
    worst = quote_after(places[0].offer, high or choice.count, options.ttl_s + end_s, now)
    cap = options.max_usd
    if cap is None:
        cap = Decimal(0) if worst is None else worst.exact
    return LaunchSpec(
        marks=marks,
        places=tuple(places),
        count=choice.count,
        ttl_s=options.ttl_s,
        max_usd=cap,
        ssh_key=options.ssh_key,
        image=options.image,
        self_destroy=options.self_destroy and end.kind != "none",
        ssh_from=options.ssh_from,
        subnet=options.subnet,
        security_group=options.security_group,
        end_s=end_s,
        end_role=options.end_role,
        idle_s=options.idle_s,
        pool=choice.pool,
    )


def _priced(choice: LaunchChoice, live: LivePrices | None) -> Iterator[Offer]:
    """Yield the offers at the price that counts; one after the first only at a live one."""
    dearest = choice.dearest or tuple(offer.usd_per_hour for offer in choice.offers)
    for at, (offer, worst) in enumerate(zip(choice.offers, dearest, strict=True)):
        now = None if live is None else live.now(offer)
        if now is not None or not at or live is None:
            yield structs.replace(offer, usd_per_hour=worst) if now is None else now


def _target(
    choice: LaunchChoice, options: LaunchOptions, marks: OwnershipTags, offer: Offer | None, at: int
) -> Place:
    region = "" if at else choice.region
    if offer is not None and not region and offer.region != "*":
        region = offer.region
    if choice.pool is not None:  # its nodes boot what the provider gives them
        return Place(offer=offer, region=region)
    machine = bootstrap_of(choice, options, marks, offer, choice.machines[at])
    if offer is None:
        user_data = render_files(machine)
    else:
        user_data = render_bootstrap(machine, most_bytes=MOST_PLAIN)
    return Place(offer=offer, host=choice.host, region=region, user_data=user_data)


def quote_after(offer: Offer | None, count: int, lived_s: Decimal, now: datetime) -> Quote | None:
    """Return the bill of all machines if they live that long; None for the user's own."""
    if offer is None:
        return None
    return quote_machines(offer, count, lived_s, now)


def preview(
    cloud: Cloud | type[Cloud],
    spec: LaunchSpec,
    notes: tuple[str, ...],
    live: LivePrices | None,
    options: LaunchOptions,
) -> Preview:
    """Return what the launch would do and cost, with everything that speaks against it."""
    first = spec.places[0]
    day = spec.marks.deadline - timedelta(seconds=float(spec.ttl_s))
    total = quote_after(first.offer, spec.most_machines, spec.ttl_s, day)
    worst = quote_after(first.offer, spec.most_machines, spec.most_s, day)
    return Preview(
        spec=spec,
        calls=tuple(_calls(cloud, spec)),
        ends=cloud.termination_steps(spec),
        total=total,
        most=worst,
        notes=notes,
        warnings=tuple(_warnings(spec, live, options)),
        refusals=tuple(_refusals(spec, worst, live, options)),
    )


def _calls(cloud: Cloud | type[Cloud], spec: LaunchSpec) -> Iterator[Creation]:
    """Yield the calls at the first place; words stand for the id of a machine not yet made."""
    for creation in cloud.resources_to_create(spec, spec.places[0]):
        yield creation
        if creation.kind == MACHINE:
            machine = Resource(
                kind=MACHINE,
                id=f"(the id of {creation.name})",
                name=creation.name,
                region=creation.region,
                marks=spec.marks,
            )
            yield from cloud.external_terminators(spec, machine)


def _warnings(spec: LaunchSpec, live: LivePrices | None, options: LaunchOptions) -> Iterator[str]:
    offer = spec.places[0].offer
    if spec.provider == OWN:
        yield Message("launch.yours")
        return
    if live is None:
        old = offer is not None and offer.is_stale(today()) and not options.allow_stale
        yield Message("launch.price-unread-old" if old else "launch.price-unread", days=OLD_DAYS)
    elif live.failure:
        yield Message("launch.price-unreadable", why=live.failure)
    if offer is not None and (live is None or live.failure):
        yield from offer.warnings(today())
    if CLOUDS[spec.provider].not_in_total:
        yield CLOUDS[spec.provider].not_in_total
    if offer is not None and offer.purchase == "spot":
        yield Message("launch.spot", cap=show(spec.max_usd))
    yield from _network_told(spec)
    if spec.self_destroy and not options.waits:
        yield Message("launch.no-wait", minutes=PATIENCE.bootstrap_s / 60)
    yield from _ends_told(spec)


def _network_told(spec: LaunchSpec) -> Iterator[str]:
    """Yield what joins the machines, and who reaches them."""
    if spec.pool is not None:
        yield from pool_told(spec, spec.pool)
        return
    if CLOUDS[spec.provider].joins_plainly and spec.most_machines > 1:
        yield Message("launch.plain-network")
    if spec.ssh_from == CALLER:
        yield Message("launch.ssh-from-here")


def _ends_told(spec: LaunchSpec) -> Iterator[str]:
    """Yield what nobody ends, and what that costs at worst: what remains impossible."""
    end = CLOUDS[spec.provider].end
    if end.token and spec.self_destroy:
        yield Message("launch.token-handed", token=end.token, reach=end.reach)
    if end.kind != "poweroff" and not (spec.self_destroy or spec.end_role):
        why = f": {end.lacks}" if end.lacks else ""
        resource = "machine" if spec.pool is None else "pool"
        yield Message("launch.no-own-end", resource=resource, why=why)
    if spec.places[0].offer is not None:
        yield _left_alone(spec, end, spec.places[0].offer)


def _left_alone(spec: LaunchSpec, end: SelfEnd, offer: Offer) -> str:
    """Return when nobody ends it, and what each day of that costs."""
    usd = show(offer.usd_per_hour * spec.most_machines * _HOURS_PER_DAY)
    cost = Message("launch.a-day", usd=usd)
    if spec.end_role:
        code = "left-schedule" if spec.pool is None else "left-pool-schedule"
        return Message(f"launch.{code}", outside=end.outside, cost=cost)
    if end.kind == "cluster" and spec.self_destroy:
        late = plain(spec.end_s)
        return Message("launch.left-cluster", late=late, reach=end.reach, cost=cost)
    if not spec.self_destroy or end.token:
        code = "left-token" if spec.self_destroy else "left-alone"
        return Message(f"launch.{code}", cost=cost)
    named = f" (--end-role lets {end.outside} do it)" if end.outside else ""
    return Message("launch.left-unstarted", cost=cost, named=named)


def _refusals(
    spec: LaunchSpec, worst: Quote | None, live: LivePrices | None, options: LaunchOptions
) -> Iterator[str]:
    if worst is None:
        return
    if worst.exact > spec.max_usd:
        yield Message(
            "launch.over-cap",
            machines=spec.most_machines,
            place=spec.places[0].text,
            most=show(worst.exact),
            late=plain(spec.end_s),
            cap=show(spec.max_usd),
        )
    begins = spec.marks.deadline - timedelta(seconds=float(spec.ttl_s))
    ends = begins + timedelta(seconds=float(spec.most_s))
    yield from hold_budgets(spec.marks.owner, begins, ends, worst.exact)
    if options.allow_stale:
        return
    offer = worst.offer
    if live is not None:
        yield from _changed(offer, live)
        if live.failure and offer.is_stale(today()):
            day = offer.date_text
            yield Message("launch.old-price", place=offer.place, day=day, days=OLD_DAYS)


def _changed(offer: Offer, live: LivePrices) -> Iterator[str]:
    """Yield that the price that counts is not the planned one."""
    planned = live.planned(offer)
    change = abs(offer.usd_per_hour - planned) / planned
    if change <= MOST_CHANGE:
        return
    code = "costs-at-most" if live.failure else "costs-now"
    costs = Message(f"launch.{code}", place=offer.place, usd=price_text(offer.usd_per_hour))
    yield Message(
        "launch.price-changed",
        costs=costs,
        planned=price_text(planned),
        percent=change * 100,
        provider=offer.provider,
    )


def with_key(spec: LaunchSpec, public_key: str) -> LaunchSpec:
    """Return the launch with the run's own key."""
    return replace(spec, public_key=public_key)


_KEY_TO_COME = "ssh-ed25519 AAAA made-at-the-launch"
"""Stands in previews for the public key of the run, which is made once they are confirmed."""


def dry_run(
    choice: LaunchChoice, options: LaunchOptions, job: JobRequest | None, output: Output
) -> None:
    """Print what would be done; what would refuse is a warning."""
    problems: list[str] = []
    try:
        check_self_destroy(choice.provider, options)
    except GpucostError as error:
        problems += error.problems
    spec = build_spec(choice, options, datetime.now(UTC), None)
    launch = preview(cloud_class(choice.provider), _with_key_to_come(spec), (), None, options)
    show_preview(launch, None if job is None else preview_job(job), output, dry=True)
    refusals = (*problems, *launch.refusals)
    for refusal in refusals:
        output.say(f"warning: a launch would be refused: {refusal}")
    output.say(nothing_made(launch, refused=bool(refusals)))


def previewed(cloud: Cloud, choice: LaunchChoice, options: LaunchOptions) -> Preview:
    """Return what the launch would do and cost, at live prices and as the provider can do it."""
    live = read_live(choice.offers, choice.region) if choice.offers else None
    spec, notes = _checked(cloud, choice, options, live)
    if abs(cloud.skew_s) >= LEAST_SKEW_S:  # its answers told that it is later or earlier there
        spec, notes = _checked(cloud, choice, options, live)
        notes = (*notes, *skew_told(cloud.name, cloud.skew_s))
    return preview(cloud, spec, notes, live, options)


def _checked(
    cloud: Cloud, choice: LaunchChoice, options: LaunchOptions, live: LivePrices | None
) -> tuple[LaunchSpec, tuple[str, ...]]:
    """Return the launch with a deadline by the provider's clock, as far as that is known."""
    spec = build_spec(choice, options, CLOCK.at(cloud.skew_s), live)
    return cloud.check(_with_key_to_come(spec))


def _with_key_to_come(spec: LaunchSpec) -> LaunchSpec:
    return with_key(spec, _KEY_TO_COME) if _has_key(spec) else spec


def _has_key(spec: LaunchSpec) -> bool:
    """Return whether the run gets a key of its own: nobody logs in to the nodes of a pool."""
    return spec.provider != OWN and spec.pool is None


def launch_confirmed(cloud: Cloud, spec: LaunchSpec, output: Output, *, wait: bool) -> None:
    """Launch what was confirmed, and print the run; a run that came to nothing keeps no key."""
    with open_journal() as journal:
        done = _launched(cloud, spec, journal, output, wait=wait)
        show_run(done, journal.events(spec.marks.run), output, CLOCK.at(cloud.skew_s))


def launch_job(cloud: Cloud, spec: LaunchSpec, job: JobRequest, output: Output) -> None:
    """Launch what was confirmed, run its job there, and end it; see `gpucost.jobs.driving`."""
    folder = job_folder(spec.marks.run)
    folder.keep(job)
    with open_journal() as journal:
        try:
            done = _launched(cloud, spec, journal, output, wait=True)
        except GpucostError:
            folder.drop()
            raise
        output.say(f"{spec.marks.run} is ready")
        drive(done, journal, output)


def _launched(
    cloud: Cloud, spec: LaunchSpec, journal: Journal, output: Output, *, wait: bool
) -> Deployment:
    state, run = state_folder(), spec.marks.run
    session = session_with(cloud, journal, output)
    try:
        login = open_login(spec) if wait and spec.pool is None else None
        return launch(session, spec, login, lambda spec: _keyed(spec, state))
    except GpucostError:
        with contextlib.suppress(JournalError):
            deployment = journal.deployment(run)
            if deployment is None or deployment.state == "ended":
                drop_key(state, run)
        raise


def _keyed(spec: LaunchSpec, state: Path) -> LaunchSpec:
    return with_key(spec, make_key(state, spec.marks.run)) if _has_key(spec) else spec


def open_login(spec: LaunchSpec) -> Login:
    """Return the way into the machines of a launch, with the end token where they need one."""
    host, run = spec.places[0].host, spec.marks.run
    return login_to(spec.provider, run, state_folder(), host, self_destroy=spec.self_destroy)
