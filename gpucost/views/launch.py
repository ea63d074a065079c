"""The preview of a launch: what it costs, each changing call, what must be known."""

import json
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from gpucost.views.output import (
    Output,
    Table,
    one_line,
    print_json,
    print_line,
    print_table,
    terminal_width,
)
from planner.plan.bill import RentedOffer, rented_offer
from pricing.money import Amount, cents_up, plain, show
from providers.interface import Creation, LaunchSpec, Preview


class JobStepDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A step that follows the launch.

    Attributes:
        step: its name, which `gpucost logs --step` takes.
        does: in words.
        what: of this job it takes.
    """

    step: str
    does: str
    what: str


class JobPreviewDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What follows a launch, over SSH.

    Attributes:
        steps: in order.
        collect: what comes back.
        notes: what must be known before saying yes.
    """

    steps: tuple[JobStepDocument, ...]
    collect: tuple[str, ...]
    notes: tuple[str, ...]


class JobEndDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended.

    Attributes:
        exit_status: of its command.
        collected: where what came back lies here.
        profile: the machine's own, measured meanwhile; None where nothing was measured.
        left_behind: what the machine sent and was not taken, with the reason.
    """

    exit_status: int
    collected: tuple[str, ...]
    profile: str | None
    left_behind: tuple[str, ...] = ()


_LONGEST = 60
SCHEMA = "gpucost.preview/v1"
_TENTH = Decimal("0.1")
_NOTHING = Decimal("0.00")


class NodePoolDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A node pool: its cluster, and the limits of its autoscaler, None where it has none.

    Attributes:
        cluster: its name.
        min_nodes: fewest.
        max_nodes: most.
    """

    cluster: str
    min_nodes: int | None
    max_nodes: int | None


class PreviewDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A launch before anything is done, as `gpucost provision --dry-run -f json` prints it.

    Attributes:
        schema: of the document.
        currency: of every amount.
        provider: where it would run.
        type: the provider's size.
        region: None where it is chosen at launch.
        offer: what is rented; None for the user's own machine.
        count: machines.
        ttl_s: their life at most.
        deadline: when they end themselves.
        owner: who launches.
        plan: the plan that is followed.
        total_at_ttl: dollars by the deadline, in cents.
        end_s: how much later their bill ends at worst.
        idle_s: they end themselves once no GPU has worked for so long; None: no such rule.
        total_at_end: dollars by then.
        max_cost: the cap.
        calls: the changing calls, in order.
        ends: what ends the machines, in words.
        warnings: what must be known, and why it would be refused.
        node_pool: of a cluster, whose nodes the machines are; left out where they are their own.
        job: what would run there; left out where nothing.
    """

    schema: str
    currency: str
    provider: str
    type: str
    region: str | None
    offer: RentedOffer | None
    count: int
    ttl_s: int
    deadline: str
    owner: str
    plan: str
    total_at_ttl: Amount
    end_s: int
    idle_s: int | None
    total_at_end: Amount
    max_cost: Amount
    calls: tuple[Creation, ...]
    ends: tuple[str, ...]
    warnings: tuple[str, ...]
    node_pool: NodePoolDocument | UnsetType = UNSET
    job: JobPreviewDocument | UnsetType = UNSET


def show_preview(
    launch: Preview, job: JobPreviewDocument | None, output: Output, *, dry: bool
) -> None:
    """Print a preview: on standard output in a dry run, else for people on standard error."""
    if dry and output.format == "json":
        print_json(msgspec.structs.replace(_document(launch), job=job or UNSET))
        return
    if dry and output.format in ("csv", "md"):
        print_table(_calls(launch), output)
        return
    job_lines = [] if job is None else _job_lines(job)
    for line in (*_lines(launch, dry=dry, verbose=output.verbose), *job_lines):
        if dry:
            print_line(line)
        else:
            output.say(line)


def preview_lines(launch: Preview) -> list[str]:
    """Return a preview for people, a line each."""
    return _lines(launch, dry=False, verbose=True)


def _lines(launch: Preview, *, dry: bool, verbose: bool) -> list[str]:
    spec = launch.spec
    first = spec.places[0]
    lines = [f"{spec.count} x {spec.provider}/{first.text}, {first.purchase}"]
    if launch.total is not None and launch.most is not None:
        lines += [f"  {line.what}: ${show(line.usd)} = {line.how}" for line in launch.total.lines]
        hours = plain((spec.ttl_s / 3600).quantize(_TENTH))
        lines.append(f"  at most ${show(launch.total.exact)} by the deadline, {hours} h from now")
        later = f"up to {plain(spec.end_s)} s later" if spec.end_s else "if it is ended then"
        lines.append(f"  at most ${show(launch.most.exact)} by the end of the bill, {later}")
        lines.append(f"  cap: ${show(spec.max_usd)}")
    lines.append(f"  owner {spec.marks.owner}, plan {spec.marks.plan}")
    lines += [f"  {note}" for note in launch.notes]
    fallbacks = [target.text for target in spec.places[1:]]
    if fallbacks:
        lines.append(f"  if there is no capacity: {', '.join(fallbacks)}")
    more = "" if verbose else " (-v: with their arguments)"
    lines.append(f"calls that change something{more}:" if dry else f"calls{more}:")
    lines += [f"  {_call(call) if verbose else _named(call)}" for call in launch.calls]
    lines.append(f"to end it: {'; '.join(launch.ends)}")
    if spec.idle_s is not None:
        lines.append(f"  {idle_told(spec.idle_s)}")
    return [*lines, *(f"note: {warning}" for warning in launch.warnings)]


def idle_told(idle_s: int) -> str:
    """Return what an idle rule does."""
    minutes = plain((Decimal(idle_s) / 60).quantize(_TENTH))
    return f"each machine ends itself after {minutes} min of idle GPUs"


def _job_lines(job: JobPreviewDocument) -> list[str]:
    """Return the steps after the launch, what comes back, and what must be known of them."""
    lines = [f"  {step.step}: {step.does}: {step.what}" for step in job.steps]
    back = f"  results: bring back {', '.join(job.collect)}, and end the machines"
    return ["then, over SSH:", *lines, back, *(f"note: {note}" for note in job.notes)]


def _call(creation: Creation) -> str:
    arguments = {key: _short(value) for key, value in creation.arguments.items()}
    if arguments.get("region") == "":
        arguments["region"] = "(chosen at launch)"
    return f"{creation.call} {json.dumps(arguments, ensure_ascii=False)}"


def _named(creation: Creation) -> str:
    """Return a call and what it makes, on one line."""
    return one_line(f"{creation.call}: {creation.kind} {creation.name}", terminal_width() - 2)


def _short(value: Any) -> Any:  # noqa: ANN401 - arguments of any call
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST].splitlines()[0]} ... ({len(value)} characters)"
    return value


def _calls(launch: Preview) -> Table:
    rows = tuple((call.call, call.kind, call.name, call.region) for call in launch.calls)
    return Table(columns=("call", "makes", "name", "region"), rows=rows)


def _document(launch: Preview) -> PreviewDocument:
    spec = launch.spec
    first = spec.places[0]
    return PreviewDocument(
        schema=SCHEMA,
        currency="USD",
        provider=spec.provider,
        type=first.instance_type,
        region=first.region or None,
        offer=None if first.offer is None else rented_offer(first.offer),
        count=spec.count,
        ttl_s=int(spec.ttl_s),
        deadline=spec.marks.deadline.isoformat(),
        owner=spec.marks.owner,
        plan=spec.marks.plan,
        total_at_ttl=_NOTHING if launch.total is None else launch.total.total,
        end_s=int(spec.end_s),
        idle_s=spec.idle_s,
        total_at_end=_NOTHING if launch.most is None else launch.most.total,
        max_cost=cents_up(spec.max_usd),
        calls=launch.calls,
        ends=launch.ends,
        warnings=(*launch.notes, *launch.warnings, *launch.refusals),
        node_pool=_node_pool(spec),
    )


def _node_pool(spec: LaunchSpec) -> NodePoolDocument | UnsetType:
    pool = spec.pool
    if pool is None:
        return UNSET
    low, high = pool.min_nodes, pool.max_nodes
    return NodePoolDocument(cluster=pool.cluster, min_nodes=low, max_nodes=high)


def nothing_made(launch: Preview, *, refused: bool) -> str:
    """Return the last line of a dry run: what a launch would come to."""
    if refused:
        return "dry run, nothing was made; a launch would be refused: see the warning."
    limit = "" if launch.most is None else f" of at most ${show(launch.most.exact)}"
    return f"dry run, nothing was made; leave out --dry-run for a launch{limit}."


def question(launch: Preview) -> str:
    """Return the question that is asked before anything is made."""
    if launch.most is None:
        return f"Set up {launch.spec.places[0].text}?"
    cost = f"at most ${show(launch.most.exact)}"
    return f"Launch {launch.spec.count} x {launch.spec.places[0].text} for {cost}?"
