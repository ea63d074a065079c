"""What to do now on today's machine, and the cheapest measurement that would settle what is open.

A job that wastes money needs a next step even where it is left alone: its cause may be unknown, its
cure may not surely pay, or no machine may help it because it does nothing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from operator import attrgetter

import msgspec

from planner.actions import ACTIONS, Action, action
from planner.actions.action import compatible
from planner.choice.baseline import LIMITS, Baseline, bill_of_work, seconds
from planner.choice.changes import END, LOOK, READ_LOG, effort_usd, must_end
from planner.choice.context import CPU_MOVE_H, STAGES, USE_GPU, JobContext
from planner.choice.option import Option
from planner.choice.ranking import may_move, recommended_option
from planner.choice.search import MORE, SCALE_DOWN, is_late, may_scale, price_changes
from planner.choice.workload import END_WHEN_IDLE, Workload
from planner.diagnosis.diagnose import SWITCH_HOURS, ends_job, without_actions
from planner.models.coefficients import coefficients
from planner.models.communication import link_class
from planner.models.estimate import digits, digits_of
from planner.plan.bill import CostRange, offer_on, that_start
from planner.plan.job import Now, Proof
from planner.plan.option import STAY
from planner.prediction.layout import layout_of
from planner.profile.kinds import JobKind
from planner.serving.measured_service import overload
from planner.signals.finding import Finding, Saved
from planner.signals.signals import open_hours
from planner.signals.thresholds import BUSIEST, FAILING, LEFT_ON
from pricing.billing.quote import quote
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import BOUGHT, TERMS_H, Offer
from pricing.listing import as_typed
from pricing.message import Message, join
from pricing.money import HOURS_PER_MONTH, cents, plain, show, whole_dollars

MINUTES = 15  # steps settle within minutes; billing by the hour is in the price where it applies
_AFTER_TRIAL = 1.07  # the run-to-run spread that remains
_AFTER_COUNTERS = 1.43  # the counter form's interval
_TWO = 2
_CORES_DIFFER = (Decimal("1.25"), Decimal(1), Decimal("0.8"))  # hours on other cores; our estimate
_WORTH = 1.1  # less than this much narrower is not a reason to rent


_FEWER, _NETWORK = "fewer-gpus", "fast-network"
_OF_SERVER = ("kv-cache-room", "raise-batch-cap")  # what keeps requests waiting, before any copy
_ELSEWHERE = ("smaller-gpu", "newer-gpu", MORE, "move-provider", _FEWER)  # not done here unpriced
_KIND = attrgetter("provider", "gpu", "region", "purchase")
_QUICK_H = 2.0  # done within an afternoon
_SWITCH_H = 0.25  # to turn on what others need, such as pinned memory
_WASTED = 0.1  # of the bill; less waste needs no cure
_GAINS = 1.1  # on its part of the time; less is not worth a try
_IDLE_CORES = "first.idle-cores"
_RECORD = "gpucost profile -o profile.json -- COMMAND"


def cure_now(
    context: JobContext,
    priced: Mapping[str, Saved],
    choice: Option | None,
    options: Sequence[Option],
) -> Now | None:
    """Return what to do here and now; None where nothing is worth it, or known.

    What is recommended, where that stays on today's machine, or else fewer copies there. Else the
    cure that saves most after its work, of the first finding that has one; else one of unknown
    gain, where all of the waste over the horizon would pay for its work.

    Args:
        context: of the job.
        priced: what each action saves alone on today's machine, by its code.
        choice: the recommended option; None for "leave it".
        options: that are listed.
    """
    findings = without_actions(context.findings, _against(choice))
    if (without := _without_gpu(context)) is not None:
        return without
    if must_end(findings):
        return _restart(findings)
    if findings and findings[0].code == FAILING:
        return _unpriced(context, findings[:1])
    scaled = (o for o in options if o.scaling and (choice or is_late(context)))
    staying = next((o for o in (choice, *scaled) if o and context.baseline.is_here(o.offer)), None)
    step = _on_idle_cores(context, findings) or _too_slow(context, staying)
    step = step or (_chosen(staying, context) if staying else None)
    if step is not None:
        return step
    # Where the network that the machines have can be switched on, no GPU need be given up for it.
    fewer = None if _NETWORK in priced else _fewer_gpus(context, options)
    if fewer and findings and findings[0].code == "poor-scaling":
        return fewer
    steps = [step for step in (fewer, _cpu_stage(context)) if step and step.saves]
    ready = {code: step for step in steps for code in step.actions}
    priced = {**priced, **{code: step.saves for code, step in ready.items() if step.saves}}
    for finding in findings:
        best = _best(finding, priced, context)
        if best is not None:
            joint = ready.get(best) or _together(finding, best, priced, context)
            return joint or _try_with_end(best, context, priced)
        if finding is findings[0] and (grave := _of_grave(finding, context, priced)) is not None:
            return grave  # the cure of a lesser cause does not mend this one
    worst = _worst(findings)
    if worst is None:
        return _unpriced(context, findings)
    cure = None if _is_open(worst) else _cure(worst, context, priced)
    return None if cure is None else _try(cure, context, priced.get(cure.code))


def _against(choice: Option | None) -> frozenset[str]:
    """Return the actions that nobody takes with the recommended option: each does the opposite."""
    codes = choice.actions if choice else ()
    chosen = frozenset(code for code in codes if ACTIONS[code].kind == "structural")
    return frozenset(code for code, cure in ACTIONS.items() if not chosen.isdisjoint(cure.excludes))


def _restart(findings: Sequence[Finding]) -> Now:
    """Return to start a job anew that hangs; where it may only wait, to read its log before."""
    if any(READ_LOG in finding.actions for finding in findings):
        return Now(kind="end", what=ACTIONS[READ_LOG].title, actions=(READ_LOG,))
    return Now(kind="end", what=Message("first.restart"), actions=(END,))


def _without_gpu(context: JobContext) -> Now | None:
    """Return the step to machines without a GPU; None where none carries the job for less."""
    machine, today, count = context.cpu_machine, context.baseline.quote, context.baseline.count
    if machine is None or today is None:
        return None
    low, mid, high = (cents(today.by_time - machine.usd * part) for part in _CORES_DIFFER)
    saves = Saved(low=low, mid=mid, high=high)
    step = _step((USE_GPU,), _way(ACTIONS[USE_GPU]), saves, CPU_MOVE_H, context)
    text = Message("first.cpu-machine", n=count, machine=machine.name, vcpus=machine.vcpus)
    return msgspec.structs.replace(step, what=text)


def _cpu_stage(context: JobContext) -> Now | None:
    """Return the step that puts a part of the job on machines without a GPU, before the rest.

    What goes between them lies in the provider's object storage, as long as the job takes. None
    where no part is shown to need no GPU, or where that saves nothing.
    """
    stage, today, offer = context.cpu_stage, context.baseline.quote, context.baseline.offer
    if stage is None or today is None or offer is None:
        return None
    finding, machine = stage
    share = finding.waste_fraction or 0.0
    hours, gib = context.work.hours.mid, context.profile.job.dataset_gib or 0.0
    size, kept_h = round(gib * 2**30), seconds(hours)
    storage = Usage(
        duration_s=0, as_of=today.usage.as_of, object_storage_bytes=size, storage_h=kept_h
    )
    stored = quote(offer, storage).lines if size else ()
    data_usd = sum((line.usd for line in stored if line.what == "object-storage"), Decimal(0))
    part_usd = today.by_time * Decimal(str(share)) - data_usd
    low, mid, high = (cents(part_usd - machine.usd * part) for part in _CORES_DIFFER)
    code = next(code for code in finding.actions if code in STAGES)
    saves = Saved(low=low, mid=mid, high=high)
    text = Message(
        "first.cpu-stage",
        n=context.baseline.count,
        machine=machine.name,
        hours=hours * share,
        usd=whole_dollars(machine.usd),
        rest=hours * (1 - share),
        data=Message("first.stage-data", gib=gib, usd=show(data_usd)) if data_usd else "",
    )
    step = _step((code,), _way(ACTIONS[code]), saves, ACTIONS[code].effort_hours, context)
    return msgspec.structs.replace(step, what=text)


def _is_of_cores(now: Now) -> bool:
    return isinstance(now.what, Message) and now.what.code == _IDLE_CORES


def _on_idle_cores(context: JobContext, findings: Sequence[Finding]) -> Now | None:
    """Return the step to all threads of today's machine, which cost nothing more.

    None where the job has them, or its input is not what it waits for.
    """
    if context.idle_cores is None or not findings or findings[0].code != "data-loading":
        return None
    cost, saves = context.baseline.cost, None
    used, count = context.idle_cores
    if cost is not None and context.work.fixed_work:
        target = replace(layout_of(context.profile), cpu_cores=count)
        speed = context.predictions.speed(target)
        rates = (1.0 / max(1.0, s) for s in (speed.low, speed.mid, speed.high))
        low, mid, high = (cents(cost * Decimal(str(1.0 - rate))) for rate in rates)
        saves = Saved(low=low, mid=mid, high=high, time_factor=digits(1.0 / speed.mid))
    text = Message(_IDLE_CORES, used=used, n=count)
    step = _step((), "gpucost explain data-loading", saves, SWITCH_HOURS, context)
    return msgspec.structs.replace(step, what=text)


def _fewer_gpus(context: JobContext, options: Iterable[Option]) -> Now | None:
    """Return the step to the cheapest machine with fewer GPUs of today's kind that takes no longer.

    None where its provider has no such machine there.
    """
    today, cost = context.baseline.offer, context.baseline.cost
    if today is None or cost is None:
        return None
    gpus = today.gpu_count * context.baseline.count
    longest_h = context.work.hours.mid * _AFTER_TRIAL
    same_kind = (o for o in options if _KIND(o.offer) == _KIND(today) and o.hours.mid <= longest_h)
    fewer = (o for o in same_kind if o.offer.gpu_count * o.count < gpus)
    unchanged = (o for o in fewer if o.cost < cost and {*o.actions} <= {_FEWER, *context.trial})
    option = min(unchanged, key=lambda o: o.cost, default=None)
    if option is None:
        return None
    where = f"{option.count}x {option.offer.name}" if option.count > 1 else option.offer.name
    n = round(option.offer.gpu_count * option.count)
    text = Message("first.fewer-gpus", n=n, machine=where)
    command = _rents(context, option.offer, option.id) or _way(ACTIONS[_FEWER])
    step = _chosen(option, context)
    return msgspec.structs.replace(step, what=text, actions=(_FEWER,), command=command)


def _too_slow(context: JobContext, copies: Option | None) -> Now | None:
    """Return what to do where requests take longer than they may: more copies, or the host.

    Where the GPU works for a small part of the measured mean, neither a faster one nor a smaller
    model helps. None where neither is shown.

    Args:
        context: of the job.
        copies: of it, as many as keep the target on today's machines; None where none do.
    """
    job, load, cost = context.profile.job, context.load or 0.0, context.baseline.cost
    now = context.work.replicas
    if queue := overload(context.profile):
        called = {code for finding in context.findings for code in finding.actions}
        setting = next((code for code in _OF_SERVER if code in called), None)
        more_usd = None if cost is None or setting else cents(-cost / now)
        saves = None if more_usd is None else Saved(low=more_usd, mid=more_usd, high=more_usd)
        step = _try(ACTIONS[setting or MORE], context, saves)
        text = Message(f"first.{setting or 'overloaded'}", queue=queue)
        return msgspec.structs.replace(step, what=text)
    mean_ms = job.latency_ms.mean if job.latency_ms else None
    if not is_late(context) or context.work.service:
        return None
    if copies and (scaling := copies.scaling) and scaling.peak > now:
        s, share = (scaling.latency_ms or 0.0) / 1000.0, scaling.busiest_fraction
        text = Message("first.more-copies", n=scaling.peak, today=now, share=share, s=s)
        return msgspec.structs.replace(_chosen(copies, context), what=text)
    service_ms = 1000.0 * load / (job.requests_per_s or math.inf)
    if not service_ms or load >= BUSIEST or not mean_ms or 2 * service_ms >= mean_ms:
        return None
    text = Message("first.host-latency", gpu=service_ms, mean=mean_ms)
    return Now(kind="try", what=text, actions=(), command=_RECORD, effort_hours=SWITCH_HOURS)


def cheaper_for_target(
    now: Now | None, choice: Option | None, baseline: Baseline
) -> tuple[Now | None, Option | None]:
    """Return a step here and the option, without what costs more for a missed latency target.

    A look at the host, where the GPU is not what takes the time, costs less than any option; a
    change of unknown gain does not go before a machine that keeps the target for less than today.
    Nor does anybody move to pay more than on the idle cores of today's machine.
    """
    if now is not None and _is_of_cores(now):
        dearer = now.usd and choice and now.usd.mid <= choice.cost
        return now, None if dearer else choice
    broken = {item.reason for item in baseline.broken if item.reason in LIMITS}
    if now is None or choice is None or broken != {"latency"}:
        return now, choice
    if now.mends_limit and (now.usd is None or now.usd.mid < choice.cost):
        return now, None
    limit = baseline.cost if now.usd is None else now.usd.mid if now.mends_limit else None
    return (None if limit is not None and choice.cost < limit else now), choice


def _of_grave(finding: Finding, context: JobContext, priced: Mapping[str, Saved]) -> Now | None:
    """Return the cure of a grave cause that is sure or ends the job, though its gain is unknown."""
    sure = finding.confidence == "measured" or ends_job(finding)
    if finding.severity != "high" or not sure:
        return None
    cure = _cure(finding, context, priced) if finding.waste_fraction else None
    return _try(cure, context, priced.get(cure.code)) if cure else _unpriced(context, (finding,))


def _worst(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that wastes most; None where little is wasted."""
    wasting = [f for f in findings if (f.waste_fraction or 0.0) >= _WASTED]
    return max(wasting, key=lambda f: f.waste_fraction or 0.0, default=None)


def _is_open(finding: Finding) -> bool:
    """Return whether the cause of a waste has to be measured first."""
    return finding.code == "unmeasured" or finding.confidence == "possible"


def _best(finding: Finding, priced: Mapping[str, Saved], context: JobContext) -> str | None:
    """Return the action of a finding that saves most over the horizon after its work, if any."""
    if finding.confidence == "possible":
        return None
    rate, periods = context.asked.engineer_usd_per_hour, context.periods

    def net(code: str, saves: Decimal) -> Decimal:
        return saves * periods - effort_usd(ACTIONS[code].effort_hours, rate)

    cures = (action(code, context.signals) for code in finding.actions)
    proved = (cure for cure in cures if cure.is_proved(context.signals))
    helping = (cure.code for cure in proved if cure.gain is None or cure.gain[2] >= _GAINS)
    effective = [code for code in helping if code in priced and priced[code].mid >= 1]
    expected = {code: net(code, priced[code].mid) for code in effective}
    lost = finding.waste_usd or Decimal(0)
    # Sessions that end when idle are set up once, for those to come as for the one that was seen.
    once = {END_WHEN_IDLE} if context.work.storage_h is None else set[str]()
    # What may pay at best is worth naming where that much is wasted.
    at_best = [c for c in effective if c in once or net(c, min(lost, priced[c].high)) > 0]
    paying = [code for code in effective if expected[code] > 0] or at_best
    return max(paying, key=expected.__getitem__, default=None)


def _together(
    finding: Finding, best: str, priced: Mapping[str, Saved], context: JobContext
) -> Now | None:
    """Return the best cure with quick ones of its finding that add to it, or are a switch."""
    first, today = action(best, context.signals), context.baseline.offer
    cost = context.baseline.cost
    if first.kind == "numeric" or today is None or cost is None:
        return None
    of_finding = [cure for cure in context.fixes if cure.code in finding.actions]
    for longest, adds in ((SWITCH_HOURS, Decimal(1)), (_SWITCH_H, Decimal(0))):
        quick = (c for c in of_finding if c.effort_hours <= longest and c.code != best)
        cures = compatible((first, *quick))
        if len(cures) == 1:
            continue
        (saves,) = price_changes(context, (cures,), today, cost)
        if saves.mid >= priced[best].mid + adds:
            hours = sum(cure.effort_hours for cure in cures)
            return _step(tuple(cure.code for cure in cures), _way(first), saves, hours, context)
    return None


def _unpriced(context: JobContext, findings: Iterable[Finding]) -> Now | None:
    """Return the first change of the program itself that a grave finding of unknown waste names.

    Where memory ran out, with the other quick changes that free some: how much is missing is not
    known.
    """
    grave = (f for f in findings if is_late(context) or f.severity in {"high", "medium"})
    codes = [code for item in grave if item.confidence != "possible" for code in item.actions]
    cures = [ACTIONS[code] for code in codes if ACTIONS[code].kind != "structural"]
    if not cures:
        return None
    first, *further = cures
    quick = (cure for cure in further if cure.memory and cure.effort_hours <= _QUICK_H)
    frees = compatible(quick) if first.memory else ()
    step = (first, *frees)
    hours = sum(cure.effort_hours for cure in step)
    way = f"gpucost explain {first.code}" if frees else _way(first)
    return _step(tuple(cure.code for cure in step), way, None, hours, context)


def _try_with_end(code: str, context: JobContext, priced: Mapping[str, Saved]) -> Now:
    """Return a cure, and beside it that the machine ends when the job does, where it is left on."""
    cure, today, cost = action(code, context.signals), context.baseline.offer, context.baseline.cost
    left_on = next((finding for finding in context.findings if finding.code == LEFT_ON), None)
    pays = left_on is not None and _best(left_on, priced, context) is not None
    if not pays or code == END_WHEN_IDLE or today is None or cost is None:
        return _try(cure, context, priced[code])
    end = ACTIONS[END_WHEN_IDLE]
    (saves,) = price_changes(context, ((cure, end),), today, cost)
    codes, hours = (END_WHEN_IDLE, code), cure.effort_hours + end.effort_hours
    return _step(codes, _way(cure), saves, hours, context)


def _try(cure: Action, context: JobContext, saves: Saved | None) -> Now:
    return _step((cure.code,), _way(cure), saves, cure.effort_hours, context)


def _chosen(option: Option, context: JobContext) -> Now:
    """Return the recommended option, which stays on today's machine."""
    cost, bill, saves = context.baseline.cost, option.usd_range, None
    if cost is not None:
        low, mid, high = (cents(cost - usd) for usd in (bill.high, option.cost, bill.low))
        factor = digits(context.work.time_factor(option.hours.mid, option.actions))
        fixed = context.work.fixed_work
        saves = Saved(low=low, mid=mid, high=high, time_factor=factor if fixed else None)
    command = f"gpucost run plan.json --option {_named(context, option.id)} -- COMMAND"
    if option.actions and not any(ACTIONS[code].in_process for code in option.actions):
        command = _way(ACTIONS[option.actions[0]])
    step = _step(option.actions, command, saves, option.benefit.effort_hours, context)
    return msgspec.structs.replace(step, option=option.id)


def _step(
    codes: tuple[str, ...],
    command: str,
    saves: Saved | None,
    effort_hours: float,
    context: JobContext,
) -> Now:
    cost, paid, pays_back = context.baseline.cost, None, None
    if saves is not None and cost is not None:
        spans = (max(Decimal(0), cents(cost) - usd) for usd in (saves.high, saves.mid, saves.low))
        paid = CostRange(**dict(zip(("low", "mid", "high"), spans, strict=True)))
        effort = effort_usd(effort_hours, context.asked.engineer_usd_per_hour)
        ratio = effort / saves.mid if saves.mid > 0 else None
        pays_back = None if ratio is None else float(ratio)
    title = join((ACTIONS[code].title for code in codes), "plus")
    if line := ACTIONS[codes[0]].line_for(context.signals) if codes else "":
        title = Message("first.in-program", what=title, line=line)
    ends = next((f for f in context.findings if END_WHEN_IDLE in f.actions), None)
    if END_WHEN_IDLE in codes and ends is not None and LOOK in ends.actions:
        # Work may go on there that nobody looked for: a question first.
        title = Message("first.look-first", look=ACTIONS[LOOK].title, what=title)
    return Now(
        kind="try",
        what=title,
        actions=codes,
        command=command,
        usd=paid,
        saves=saves,
        time_factor=saves.time_factor if saves else None,
        pays_back_periods=digits_of(pays_back),
        effort_hours=effort_hours,
    )


def _named(context: JobContext, option: str) -> str:
    return as_typed(f"{context.profile.job.name}/{option}")


def _way(cure: Action) -> str:
    if cure.kind == "numeric":
        return f"gpucost recipe plan.json --option o0 --numeric {cure.code}"
    return f"gpucost explain {cure.code}"


def _cure(cause: Finding, context: JobContext, priced: Mapping[str, Saved]) -> Action | None:
    """Return the first action of unknown saving whose work the waste would pay for."""
    signals, rate = context.signals, context.asked.engineer_usd_per_hour
    at_stake = None if cause.waste_usd is None else cause.waste_usd * context.periods
    # What saves no dollar of a machine that is paid for may still save hours there.
    paid = context.baseline.owed > 0
    weighed = {c for c, saves in priced.items() if not paid or (saves.time_factor or 0.0) >= 1.0}
    codes = [code for code in cause.actions if code not in weighed and code not in _ELSEWHERE]
    useless = {END_WHEN_IDLE} if paid else set()  # what is owed is owed while it is off, too
    if not may_scale(context):
        useless.add(SCALE_DOWN)  # of one copy nothing is left to take away
    cures = [action(code, signals) for code in codes if code not in useless]
    rated = [fix for fix in cures if fix.effect is not None]
    helping = [fix for fix in rated if fix.gain and fix.gain[1] >= _GAINS] if rated else cures
    if at_stake is None:
        proved = [cure for cure in helping if cure.is_proved(signals)] or helping
        return min(proved, key=lambda cure: cure.effort_hours, default=None)
    paying = (cure for cure in helping if effort_usd(cure.effort_hours, rate) < at_stake)
    return min(paying, key=lambda cure: not cure.is_proved(signals), default=None)


def find_proof(
    context: JobContext, options: tuple[Option, ...], named: tuple[str, str], now: Now | None
) -> Proof | None:
    """Return the cheapest measurement that would settle what is open; None: nothing is worth one.

    Where a job stays, what is open of its cause comes first, and costs nothing; where it moves, the
    speed there; then what the cure gains.

    Args:
        context: of the job.
        options: that are listed.
        named: ids of what is recommended and of the cheapest; `o0` is today's machine.
        now: what to do here.
    """
    if now is not None and (
        now.kind == "end" or now.actions in ((USE_GPU,), (LOOK,)) or _is_of_cores(now)
    ):
        return None
    if not may_move(context):
        open_cause = next(filter(_is_open, context.findings), context.findings[0])
        return _record(context, open_cause)
    trials = [suggest_experiment(context, options, *named)]
    trials.insert(0 if named[0] == STAY else 1, None if now else _record(context))
    first, second = trials
    proof = first or second or _in_turns(context, now, options)
    verdict = context.findings[0]
    if proof or now or named[0] != STAY or verdict.code == "well-used":
        return proof
    # What is shown first and is not sure ends in the measurement that would make it so.
    is_sure = verdict.confidence == "measured" or (verdict.waste_fraction or 0.0) < _WASTED
    return _record(context, verdict) if is_sure else _recording(verdict)


def _record(context: JobContext, first: Finding | None = None) -> Proof | None:
    open_cause = (f for f in context.findings if _is_open(f) and f.severity != "info")
    worst = first or _worst(context.findings) or next(open_cause, None)
    return None if worst is None or not _is_open(worst) else _recording(worst)


def _recording(finding: Finding) -> Proof:
    unmeasured = finding.code == "unmeasured"
    what = Message("first.record" if unmeasured else "first.confirm", code=finding.code)
    return Proof(option=STAY, what=what, command=_RECORD, minutes=MINUTES, usd=Decimal("0.00"))


def _in_turns(context: JobContext, now: Now | None, options: tuple[Option, ...]) -> Proof | None:
    """Return the measurement of a cure here: on and off within one run, else before and after."""
    if now is None or not context.work.fixed_work:
        return None
    same = (o.id for o in options if o.actions == now.actions and context.baseline.is_here(o.offer))
    option = next(same, STAY)
    turns = all(ACTIONS[code].in_turns for code in now.actions)
    numeric = [code for code in now.actions if ACTIONS[code].kind == "numeric"]
    flags = "".join(f" --numeric {code}" for code in numeric)
    run = f"gpucost run plan.json --option {_named(context, option)}{flags} --ab -- COMMAND"
    after = "gpucost profile -o after.json -- COMMAND && gpucost verify profile.json after.json"
    return Proof(
        option=option,
        what=Message("probe.in-turns" if turns else "probe.before-after", n=MINUTES),
        command=run if turns else after,
        minutes=MINUTES,
        usd=cents(Decimal(0)),
        roll_back_factor=1,
    )


def steady_use(context: JobContext, choice: Option | None) -> str | None:
    """Return what the shortest term of machines costs that are used long enough for it.

    Of the recommended machines, else of today's, where they are rented by the hour and nothing is
    owed for them: of those that run all the time; beside it what spot capacity costs where work
    that ends runs on it. A term is owed whole (`pricing.alternatives`), so it is cheaper from its
    share of the price by the hour on.
    """
    today, month = context.baseline, context.work.storage_h is not None
    offer = today.offer if choice is None else choice.offer
    if offer is None or offer.purchase != "on_demand" or today.owed or not month:
        return None
    if choice is None and (today.broken or today.tenancy or context.work.replicas > 1):
        return None  # nobody binds himself to what does not do, is not all his, or may be too many
    count = today.count if choice is None else choice.count
    if choice is not None and (copies := choice.scaling) is not None:
        count = count // copies.peak * copies.fewest
    if not may_move(context):
        return None
    hours = (today.hours if choice is None else choice.hours).mid
    ways = tuple(context.catalog.bought_otherwise(offer))
    usd_most = offer.usd_per_hour * Decimal(repr(hours))
    pays = (o for o in ways if o.purchase in TERMS_H if o.usd_per_hour * HOURS_PER_MONTH < usd_most)
    term = min(pays, key=lambda o: (TERMS_H[o.purchase], o.usd_per_hour), default=None)
    if term is None or not count:
        return None
    usd, months = term.usd_per_hour * HOURS_PER_MONTH, TERMS_H[term.purchase] / HOURS_PER_MONTH
    owed, since_h = whole_dollars(usd * count), usd / offer.usd_per_hour
    code = "first.term" if count == 1 else "first.term-of-several"
    text = Message(code, n=months, usd=owed, hours=since_h, machines=count)
    spot = min((o.usd_per_hour for o in ways if o.purchase == "spot"), default=None)
    if not spot or not context.work.fixed_work or spot >= offer.usd_per_hour:
        return text
    share = offer.usd_per_hour / spot - 1
    return join((text, Message("first.spot", usd=plain(spot * count), share=share)))


def close_at_night(context: JobContext, priced: Mapping[str, Saved]) -> str | None:
    """Return what a machine that people use costs if it is off when they are not there.

    That ends nobody's session; ending in each pause saves no less (`planner.choice.search`).
    """
    people, saves = open_hours(context.profile), priced.get(END_WHEN_IDLE)
    cost = context.baseline.cost
    if people is None or saves is None or not cost or saves.low <= 0 or saves.low == saves.high:
        return None
    days, begin, end, _ = people
    usd, percent = whole_dollars(cost - saves.low), saves.low / cost * 100
    hours = {"days": days, "begin": begin, "end": end}
    return Message("first.off-hours", **hours, usd=usd, percent=percent)


def _roll_back(option: Option, context: JobContext) -> float | None:
    """Return the hours over today's at which an option costs as much as today's machine."""
    today = context.baseline.cost
    by_time = option.quote.by_time
    if today is None or not by_time or today <= option.cost - by_time:
        return None
    ratio = (today - option.cost + by_time) / by_time
    return digits(context.work.time_factor(option.hours.mid * float(ratio), option.actions))


def _rents(context: JobContext, offer: Offer, option: str) -> str | None:
    """Return what to type to run the job on an option; None where a person rents it."""
    job = f"--option {_named(context, option)} --ttl 1h --run COMMAND"
    if context.asked.can_launch(offer):
        return f"gpucost provision plan.json {job}"
    tools = that_start(offer_on(offer, context.catalog.as_of))
    return f"gpucost export plan.json --to {tools[0]} {job}" if tools else None


def suggest_experiment(
    context: JobContext, options: tuple[Option, ...], recommended: str, cheapest: str = STAY
) -> Proof | None:
    """Return the experiment that narrows the answer most for its cost; None where none is worth it.

    The answer is the recommended option, else the one that would be, were it surer: what is named
    as the cheapest, or else the first, but none that takes too long at its best
    (`planner.choice.ranking.takes_too_long`).
    """
    work, longest = context.work, context.asked.most_time_factor
    if context.profile.hardware.owned or not work.fixed_work:
        return None  # nothing that is rented saves what its owner has paid for
    in_time = [o for o in options if work.time_factor(o.hours.low, o.actions) <= longest]
    paid, choice = context.baseline.cost, recommended_option(options, recommended)
    # What is dearer however the experiment goes is not worth one.
    cheaper = [o for o in in_time if paid is None or o.usd_range.low < paid]
    cheaper.sort(key=lambda o: o.speed.weak)  # what can be rented first
    first = [o for o in cheaper if o.id == cheapest]
    abouts = [choice] if choice else [*first, *cheaper[:1]]
    trials = (_best_trial(context, about) for about in abouts if about.hours.low > 0.0)
    return next(filter(None, trials), None)


def _best_trial(context: JobContext, about: Option) -> Proof | None:
    """Return the experiment that narrows what an option takes most for its cost."""
    useful = [trial for trial in _experiments(context, about) if math.exp(trial.narrows) >= _WORTH]
    best = max(useful, key=lambda trial: (trial.narrows, -trial.usd), default=None)
    if best is None:
        return None
    # One that narrows half as much as the best one for half its money or less will do.
    thrifty = [
        trial for trial in useful if 2 * trial.narrows >= best.narrows and 2 * trial.usd <= best.usd
    ]
    return min(thrifty, key=lambda trial: (trial.usd, -trial.narrows), default=best)


def _experiments(context: JobContext, about: Option) -> Iterator[Proof]:
    training = context.profile.job.kind.trains
    now, day = digits(math.sqrt(about.hours.high / about.hours.low)), context.catalog.as_of
    offer, count = _by_the_hour(about.offer, context.catalog), about.count
    back = _roll_back(about, context)
    proof = partial(Proof, option=about.id, minutes=MINUTES, factor_now=now, roll_back_factor=back)
    gpus = round(offer.gpu_count) * count
    same = offer.gpu == context.gpu.name and gpus == context.profile.gpu_count
    if same and not about.actions:
        return
    software = any(ACTIONS[code].kind != "structural" for code in about.actions)
    code = "probe.run-with-changes" if software else "probe.run"
    where = f"{count} x {offer.name}" if count > 1 else offer.name
    if not context.baseline.is_paid(about.offer, count):  # else it is measured where it runs
        yield proof(
            what=Message(code, n=MINUTES, machine=where),
            command=_rents(context, offer, about.id),
            offer=offer_on(offer, day),
            count=count,
            usd=cents(_usd(offer, count, context)),
            factor_after=_AFTER_TRIAL,
        )
    two = _machine_of_two(context, offer) if gpus > _TWO and training else None
    if two is not None:
        scaled = float(coefficients("scale")["probe_factor"])
        link = link_class(two.interconnect, two.gpu)
        yield proof(
            what=Message("probe.two-gpus", n=MINUTES, machine=two.name, link=link),
            command=f"gpucost provision --type {as_typed(two.name)} --ttl 1h --run COMMAND"
            if context.asked.can_launch(two)
            else None,
            offer=offer_on(two, day),
            count=1,
            usd=cents(_usd(two, 1, context)),
            factor_after=digits(math.exp(math.hypot(math.log(scaled), math.log(_AFTER_TRIAL)))),
        )
    serving = context.profile.job.kind is JobKind.INFERENCE_OFFLINE
    has_dcgm = context.gpu.vendor == "NVIDIA"
    if serving and has_dcgm and context.profile.mean("util.dram_active") is None:
        yield proof(
            what=Message("probe.counters"),
            command=_RECORD,
            usd=Decimal("0.00"),
            factor_after=min(now, _AFTER_COUNTERS),
        )


def _by_the_hour(offer: Offer, catalog: Catalog) -> Offer:
    """Return the machine without a term, where it is sold so: nobody buys a year to measure."""
    if offer.purchase in BOUGHT:
        return offer
    ways = catalog.bought_otherwise(offer)
    return next((way for way in ways if way.purchase == "on_demand"), offer)


def _machine_of_two(context: JobContext, offer: Offer) -> Offer | None:
    key = (offer.provider, offer.gpu, offer.purchase, _TWO)
    matching = (
        o for o in context.catalog.offers if (o.provider, o.gpu, o.purchase, o.gpu_count) == key
    )
    return min(matching, key=lambda o: (o.usd_per_hour, o.place), default=None)


def _usd(offer: Offer, count: int, context: JobContext) -> Decimal:
    """Return the bill of the experiment, by the provider's own rules, without the job's data."""
    no_work = Workload(hours=context.work.hours, units=None, fixed_work=True)
    return bill_of_work(offer, count, MINUTES / 60.0, no_work, context.catalog).exact
