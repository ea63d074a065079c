"""The first lines of one job: what is paid and wasted, what to do, what to type next."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from pricing.billing.quote import OF_THE_DATA
from pricing.catalog.offer import TERMS_H
from pricing.listing import as_typed
from pricing.message import Message
from templates import report_text
from templates.language.translate import _, join, plan_file, translate_text, word
from templates.report_text import (
    CODES,
    cost_range,
    gpus_named,
    machine_name,
    money_range,
    money_text,
    old_price,
    period_words,
    where_it_runs,
    whole_dollars,
)
from templates.reports.decision import (
    copies,
    ends_machine,
    is_today,
    measured_first,
    payback,
    sentence,
    shown_part,
    stay,
    tried_first,
    work_hours,
)
from templates.reports.fleet_rows import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.plan.bill import CostRange, RentedOffer
    from planner.plan.job import JobPlan, Now, Proof, Way
    from planner.plan.option import Option
    from planner.plan.plan import Plan
    from planner.signals.finding import Finding

_SAME_TIME = 1.05
_ZERO, _ENDLESS = Decimal(0), Decimal("inf")
_NO_SHARE = Decimal("0.005")  # shown as 0 %
_LEFT_ON, _END_IDLE, _TOO_LARGE = "left-on", "idle-shutdown", "memory-pressure"
_MONTH_H = 744.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A labelled line, such as `Wasted: $253 (62 %)`.

    Attributes:
        label: what it is.
        text: the rest of it.
        kind: `pay`, `waste`, `advice` or `note`; `spare` where a full screen leaves it out.
    """

    label: str
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One of the numbered things to do.

    Attributes:
        label: `Now`, `Next` or `Cheapest`.
        id: of the option; None where it is none.
        text: where, and with which changes.
        figures: dollars with their range, the saving, then work, payback and run time.
        cost: of the period [USD]; None where it is unknown, or nothing changes.
    """

    label: str
    id: str | None = None
    text: str
    figures: tuple[str, ...] = ()
    cost: CostRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstScreen:
    """The first lines of a plan.

    Attributes:
        title: whose plan, and where it runs today.
        facts: what is paid, what is wasted and why.
        busy_fraction: share of the time that the GPU is busy, 0-1; None where it is unknown.
        by_sm_activity: whether that is SM activity, as nothing else was read.
        gpus: GPUs of what is advised, GPUs held, and where the former are; None of a single job.
        actions: what to do, in this order.
        rows: of a fleet the jobs that save most: name, dollars, what to do.
        notes: what would narrow the answer, and what to type.
        more: where there is more to read.
        commands: what to type, in this order.
        paid_usd: in the period today; None where it is unknown.
        wasted_usd: of that; None where it is unknown.
        cause: of most of it, in words; empty where none is known.
    """

    title: str
    facts: tuple[Line, ...]
    busy_fraction: float | None = None
    by_sm_activity: bool = False
    gpus: tuple[int, int, str] | None = None
    actions: tuple[Action, ...]
    rows: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[Line, ...]
    more: str
    commands: tuple[str, ...] = ()
    paid_usd: Decimal | None = None
    wasted_usd: Decimal | None = None
    cause: str = ""

    @property
    def busy_text(self) -> str:
        """How busy the GPU is, by what was read of it; empty where that is unknown."""
        if self.busy_fraction is None:
            return ""
        share = report_text.percent(self.busy_fraction)
        if self.by_sm_activity:
            return _("SM active {share}", share=share)
        return _("GPU busy {share}", share=share)

    @property
    def lines(self) -> list[Line]:
        """The facts, actions and notes as labelled sentences, for pages and markdown."""
        facts = list(self.facts)
        if busy := self.busy_text:
            facts[0] = replace(facts[0], text=_("{one}; {other}", one=facts[0].text, other=busy))
        if self.gpus:
            facts.append(Line(label=_("GPUs"), text="{1} -> {0}{2}".format(*self.gpus)))
        for number, action in enumerate(self.actions, start=1):
            text = _(": ").join(filter(None, (action.text, join(action.figures))))
            facts.append(Line(label=f"{number} {action.label}", text=text))
        return [*facts, *self.notes]


def job_screen(job: JobPlan, plan: Plan, read_from: str = "") -> FirstScreen:
    """Return the first lines of one job of a plan, as `first_screen`."""
    today = job.baseline
    busy = None if job.busy_fraction is UNSET else float(job.busy_fraction)
    where = machine_name(today.offer, today.count) if today.offer else gpus_named(today)
    if today.offer is not None:
        part, n = shown_part(job), gpus_of(job)
        shown = n or f"{today.offer.gpu_count * today.count:g}"
        where = _("{n}x {gpu} on {where}", n=shown, gpu=today.offer.gpu, where=where)
        if part is not None and part[1] == n:  # else a slice of one
            where = _("{held} of {machine}", held=part[0], machine=where)
    if today.assumed and today.offer is not None:
        price = assumed_price(today.offer, job, plan)
        where = _("{where} (assumed, {price}; --machine sets it)", where=where, price=price)
    facts = [Line(label=_("You pay"), text=_pay(job, plan), kind="pay")]
    facts.extend(_wasted(job, _job_died(job, plan)))
    rests = _notes(job, plan.warnings, "read.idle-end")
    facts.extend(Line(label=_("Idle"), text=translate_text(note)) for note in rests)
    actions = _actions(job, plan)
    reasons = _why_nothing_moves(job, actions)
    facts.extend(line for line in reasons if line.kind == "advice")
    if shared := _sharing(job, plan):
        facts.append(Line(label=_("Advice"), text=shared, kind="advice"))
    texts = (*_unbilled(job, plan), *_warnings(job, plan))
    notes = [Line(label=_("Note"), text=text, kind="note") for text in texts]
    notes += [line for line in reasons if line.kind == "note"]
    notes += _schedules(job, actions)
    if off_hours := job.answer.off_hours:
        notes.append(Line(label=_("Safer"), text=translate_text(off_hours), kind="note"))
    if launchable := _launchable(job, plan):
        notes.append(Line(label=_("Or launch"), text=launchable))
    notes += _spare(job, plan, actions)
    command = next_command(job, plan)
    if command:
        notes.append(_run_line(command, job))
    how = job.answer.now.command if job.answer.now else None
    return FirstScreen(
        title=f"{job.name}: {where}{read_from}",
        facts=tuple(facts),
        busy_fraction=busy,
        by_sm_activity=any(_notes(job, plan.warnings, "note.by-sm-activity")),
        actions=tuple(actions),
        notes=tuple(notes),
        more=_more(job, plan),
        commands=tuple(dict.fromkeys(filter(None, (how and _typed(how, job, plan), command)))),
        paid_usd=today.cost.total,
        wasted_usd=_wasted_usd(job),
        cause=translate_text(job.verdict.cause) if job.verdict else "",
    )


def assumed_price(offer: RentedOffer, job: JobPlan, plan: Plan) -> str:
    """Return what a GPU of the assumed machine costs, and one at another seller."""
    usd = money_text(offer.usd_per_hour / Decimal(str(offer.gpu_count)))
    for note in _notes(job, plan.assumptions, "note.machine-assumed-other-seller"):
        single = {name: note.params[name] for name in ("one", "seller")}
        return _("{usd} a GPU-hour, {one} for one at {seller}", **{"usd": usd, **single})
    return _("{usd} a GPU-hour", usd=usd)


def _why_nothing_moves(job: JobPlan, actions: Sequence[Action]) -> list[Line]:
    """Return why nothing moves; below what is to be done, or is cheaper, as a note."""
    now = job.answer.now
    if job.choice is not None or ends_machine(job) or (now is not None and now.mends_limit):
        return []
    if not (actions or now) or (job.answer.reason is None and not _is_measured(job, actions)):
        return [Line(label=_("Advice"), text=stay(job), kind="advice")]
    if job.answer.reason is None:
        return []
    return [Line(label=_("Why stay"), text=translate_text(job.answer.reason), kind="note")]


def _is_measured(job: JobPlan, actions: Sequence[Action]) -> bool:
    """Return whether all that is to be done is to measure, or to try what may not pay."""
    return job.answer.now is None and [action.id for action in actions] == [None]


def _sharing(job: JobPlan, plan: Plan) -> str:
    """Return on which GPU a job is to be, with whom; empty where it goes its own way."""
    shared = plan.placement_of(job)
    if shared is None:
        return ""
    where = f"GPU {shared.id} ({machine_name(shared.offer)})"
    neighbors = [name for name in shared.jobs if name != job.name]
    if neighbors:
        return _("share {where} with {others}", where=where, others=names(neighbors))
    return _("run alone on {where}", where=where)


def _warnings(job: JobPlan, plan: Plan) -> list[str]:
    """Return what a reader must know of the recording, and before the recommended change."""
    option, today, texts = job.choice, job.baseline, list(doubts_of_recording(plan, job.name))
    texts += map(translate_text, _notes(job, plan.warnings, "read.unwatched"))
    full = (f.cause for f in job.findings if f is not job.verdict and f.code == _TOO_LARGE)
    texts += map(translate_text, full)
    if option is None:
        return texts
    hours = option.hours
    monthly = plan.period == "month" and not option.scaling
    # The same GPU timed twice differs by less than a tenth.
    if monthly and hours.high > 1.1 * max(_MONTH_H, today.hours.mid):
        texts.append(
            _(
                "At the slow end of its range it takes {hours} h: more than a month has.",
                hours=f"{hours.high:.0f}",
            )
        )
    if today.broken_limits:
        limits = join(translate_text(broken.detail) for broken in today.broken_limits)
        texts.append(_("Today's machine breaks a limit: {limits}.", limits=limits))
    return texts


_SMALL_PARTS = ("boot-disk", "address")  # a few dollars a month


def doubts_of_recording(plan: Plan, name: str | None = None) -> Iterator[str]:
    """Yield the warnings that a reader must see beside the figures; with a name, of that job."""
    for warning in (*plan.warnings, *plan.assumptions):
        job, note = note_of(warning)
        if note is not None and note.code in CODES["first"] and name in {None, job}:
            text = translate_text(note if name else warning)
            text = text.removeprefix(f"{name}{_(': ')}")
            yield f"{text[0].upper()}{text[1:]}"


def note_of(warning: str) -> tuple[str, Message | None]:
    """Return the job that a warning is about and the note itself; None where it has no code."""
    job, note = "", warning
    while isinstance(note, Message) and note.code == "note.about":
        job, note = job or str(note.params["job"]), cast("str", note.params["note"])
    if not isinstance(note, Message):
        return job, None
    return job or str(note.params.get("job", "")), note


def _notes(job: JobPlan, notes: Iterable[str], *codes: str) -> Iterator[Message]:
    """Yield the notes on a job that have such a code."""
    for name, note in map(note_of, notes):
        if note is not None and name == job.name and note.code in codes:
            yield note


def _job_died(job: JobPlan, plan: Plan) -> tuple[str, str, Decimal | None] | None:
    """Return why the job left its GPU, as code and in words, and what nothing running costs."""
    for warning in plan.warnings:
        name, note = note_of(warning)
        if note is None or name != job.name or note.code not in CODES["died"]:
            continue
        paid = job.baseline.cost.total
        if paid is None or any(finding.code == _LEFT_ON for finding in job.findings):
            return note.code, translate_text(note), None
        return note.code, translate_text(note), paid * Decimal(str(note.params["share"]))
    return None


def _schedules(job: JobPlan, actions: Sequence[Action]) -> list[Line]:
    """Return the copies by the hour of what is to be done, numbered as it is where they differ."""
    options = ((number, job.option(a.id)) for number, a in enumerate(actions, 1) if a.id)
    numbers: dict[str, str] = {}
    for number, option in options:
        if option is not None and option.scaling:
            numbers.setdefault(_scaled(option, option.scaling.by_hour), str(number))
    differ = len(numbers) > 1
    texts = (
        _(": ").join((_("step {n}", n=number), text)) if differ else text
        for text, number in numbers.items()
    )
    return [Line(label=_("Copies"), text=text) for text in texts]


def _scaled(option: Option, by_hour: Sequence[int]) -> str:
    """Return the copies by the hour, and how many where they take less than expected."""
    text, maximum = copies(by_hour), math.ceil(option.count * option.hours.high / _MONTH_H)
    if len(by_hour) > 1 or maximum <= option.count:
        is_alone = tuple(by_hour) == (1,)
        return _("{text}; a spare costs as much again", text=text) if is_alone else text
    return _("{text}; up to {n} if each takes less than predicted", text=text, n=maximum)


def gpus_of(job: JobPlan) -> int:
    """Return the whole GPUs of a job today; 0 of a slice, and where its machine is not known."""
    offer, share = job.baseline.offer, job.baseline.share
    if share is not None and share.beside:
        return int(share.held)
    return int(offer.gpu_count * job.baseline.count) if offer else 0


def pay_of_owned() -> str:
    """Return what an owned machine costs that has no price."""
    return _("nothing by the hour: you own it (--price USD counts it)")


def _pay(job: JobPlan, plan: Plan) -> str:
    cost = job.baseline.cost
    if cost.total is None:
        owned = job.baseline.owned
        return pay_of_owned() if owned else _("unknown: --machine sets today's machine")
    usd = report_text.today_cost(cost)
    text = _("{usd} {period}", usd=usd, period=period_words(plan))
    if job.baseline.offer and (old := old_price(job.baseline.offer.age_days)):
        text = _("{paid} ({old})", paid=text, old=old)
    data = sum((line.usd for line in cost.lines if line.what in OF_THE_DATA), _ZERO)
    if data > cost.total / 2:
        text = _("{paid}, {usd} of it for data", paid=text, usd=whole_dollars(data))
    if (part := shown_part(job)) is not None:
        shares = {"held": part[0], "of": part[1]}
        text = _("{paid}, {held}/{of} of the machine (--whole-machine: all)", paid=text, **shares)
    return text


def _unbilled(job: JobPlan, plan: Plan) -> Iterator[str]:
    """Yield what is in no bill although the job reads it."""
    for note in _notes(job, plan.assumptions, *CODES["unbilled"]):
        yield _("Storage of {gib} GiB is not included.", gib=f"{note.params['gib']:,g}")


def _wasted(job: JobPlan, died: tuple[str, str, Decimal | None] | None) -> Iterator[Line]:
    """Yield the verdict, and beside it that the job left its GPU or its machine."""
    first, paid, within = job.program_finding, job.baseline.cost.total, _ZERO
    is_same = False
    if job.verdict is not None and job.verdict is not first:
        yield Line(label=_("Diagnosis"), text=translate_text(job.verdict.cause))
        if first is None or first.severity == "info":
            return
    if died is not None:
        code, text, lost = died
        is_same = code != "read.job-ended" and first is not None and first.code == _TOO_LARGE
        within = _part_of_waste(lost, first)
        if lost is not None:
            amount = whole_dollars(lost)
            if within:
                amount = _("{usd} of the waste", usd=amount)
            text = _("{amount}: {cause}", amount=amount, cause=text)
        yield Line(label=_("Idle"), text=text)
    if first is None or (first.severity == "info" and first.code == "unmeasured"):
        text = _("Not enough was measured to say how much of it is wasted.")
        yield Line(label=_("Wasted"), text=text)
    elif not is_same:  # else the line above says it
        yield _waste(first, paid, within, _wasted_usd(job))
    for finding in _idle_beside(job):
        amount = _("{usd} of the waste", usd=whole_dollars(finding.waste_usd))
        text = _("{amount}: {cause}", amount=amount, cause=translate_text(finding.cause))
        yield Line(label=_("Idle"), text=text)


def _idle_beside(job: JobPlan) -> list[Finding]:
    """Return what else of the paid time is idle and ends with the machine, beside the verdict.

    No second is counted by two findings.
    """
    first = job.program_finding
    return [
        finding
        for finding in job.findings
        if finding is not first
        and finding.waste_usd
        and finding.confidence != "possible"
        and _END_IDLE in finding.actions
        and (finding.code == _LEFT_ON or (first is not None and first.code == _LEFT_ON))
    ]


def _wasted_usd(job: JobPlan) -> Decimal | None:
    """Return what the verdict and the other idle hours come to; None where that is not known."""
    first = job.program_finding
    if first is None or first.waste_usd is None:
        return None
    idle_usd = sum((finding.waste_usd or _ZERO for finding in _idle_beside(job)), _ZERO)
    return first.waste_usd + idle_usd


def _part_of_waste(lost: Decimal | None, first: Finding | None) -> Decimal:
    """Return what the time after the job left takes of a finding's waste; 0: it is not part of it.

    It is where the finding counts all time in which no kernel runs, and not what it timed itself.
    """
    if lost is None or first is None or first.waste_usd is None or lost >= first.waste_usd:
        return _ZERO
    return lost if first.code in CODES["waits"] and first.confidence != "measured" else _ZERO


def _waste(
    first: Finding, paid: Decimal | None, other_usd: Decimal, together: Decimal | None
) -> Line:
    """Return what is wasted and why.

    Args:
        first: the verdict.
        paid: for the period.
        other_usd: part of its waste whose cause stands in a line of its own.
        together: its waste and that of the findings beside it.
    """
    cause, waste = translate_text(first.cause), first.waste_usd
    if not waste or together is None or not paid:
        if not first.waste_fraction or paid is not None:
            return Line(label=_("Diagnosis"), text=cause)
        share = report_text.percent(first.waste_fraction)
        return Line(label=_("Wasted"), text=_("{amount}: {cause}", amount=share, cause=cause))
    share = report_text.percent(float(together / paid))
    amount = _("{usd} ({share})", usd=whole_dollars(together), share=share)
    if together > waste:
        amount = _("{amount}, of which {part}", amount=amount, part=whole_dollars(waste))
    elif other_usd:
        more = whole_dollars(round(waste, 0) - round(other_usd, 0))
        amount = _("{amount}; the other {rest}", amount=amount, rest=more)
    text = _("{amount}: {cause}", amount=amount, cause=cause)
    return Line(label=_("Wasted"), text=text, kind="waste")


def _actions(job: JobPlan, plan: Plan) -> list[Action]:
    """Return what to do now here, what next elsewhere, and the cheapest where it saves."""
    answer, actions, now = job.answer, list[Action](), job.answer.now
    trial = now if now is not None and (now.kind == "try" or ends_machine(job)) else None
    if trial is not None:
        actions.append(trial_action(trial, job, plan))
    for label, way in ((_("Next"), answer.next), (_("Cheapest"), answer.cheapest)):
        option, is_next = job.option(way.option) if way is not None else None, way is answer.next
        if way is None or option is None or not (is_next or _is_cheapest(way, option, trial)):
            continue
        todo = _todo(option, plan, trial)
        if not is_today(option, job.baseline):
            where = where_it_runs(option, is_manual=not way.start)
            todo = _("{where}, {todo}", where=where, todo=todo) if todo else where
        why = (
            (_left_out(option, trial, job), _pays_sooner(way, trial, job, plan)) if is_next else ()
        )
        if doubts := _("; ").join(filter(None, (*why, *_doubts(way, option)))):
            todo = _("{text} ({doubts})", text=todo, doubts=doubts)
        saved = saved_words(way.saves.fraction, at_most=option.cost.at_least)
        figures = (cost_range(option.cost), saved, _work(way, plan))
        action = Action(label=label, id=way.option, text=todo, figures=figures, cost=way.usd)
        actions.append(action)
    if job.choice is not None and not actions:
        actions.append(_recommended(job.choice, plan))
    step = first_measured(job, plan) if now is None and not actions else None
    return actions if step is None else [step]


def first_measured(job: JobPlan, plan: Plan) -> Action | None:
    """Return what to measure, else to try, of a job that wastes and for which no step surely pays.

    None where it wastes little, or nothing is known that could help.
    """
    if proof := measured_first(job):
        text = translate_text(proof.what) if proof.offer is None else _settle(job, proof, plan)
        return Action(label=_("Measure"), text=text)
    if (code := tried_first(job)) is None:
        return None
    effort_h = {remedy.code: remedy.effort_hours or 0 for remedy in job.remedies}
    saves = _saving_at_most(job.program_finding)
    figures = (saves, work_hours(effort_h[code])) if code in effort_h else (saves,)
    text = f"{report_text.action(code, plan)}: gpucost explain {code}"
    return Action(label=_("Try"), text=text, figures=figures)


def _recommended(option: Option, plan: Plan) -> Action:
    """Return what a plan of an earlier version, which has no answer, recommends."""
    text = f"{machine_name(option.offer, option.count)}, {report_text.changes(option, plan)}"
    figures = cost_range(option.cost), saved_words(option.saves.fraction)
    return Action(label=_("Next"), id=option.id, text=text, figures=figures, cost=option.cost.ends)


def trial_action(now: Now, job: JobPlan, plan: Plan) -> Action:
    """Return the cure on today's machine; it is an option where it is what is recommended."""
    today, options = job.baseline.cost, [o for o in job.options if is_today(o, job.baseline)]
    id_ = next((option.id for option in options if option.actions == now.actions), None)
    work = work_hours(now.effort_hours or 0)
    first = job.program_finding
    is_cure = first is not None and not set(now.actions).isdisjoint(first.actions)
    figures: tuple[str, ...] = (_saving_at_most(first if is_cure else None), work)
    if (usd := now.usd) and now.saves and today.total:
        is_least = today.at_least and now.kind == "try"
        usd_range = money_range(usd.low, usd.mid, usd.high, at_least=is_least)
        share = now.saves.mid / today.total
        saved = saved_words(float(share), at_most=is_least)
        work_and_return = work if now.mends_limit else _work(now, plan)
        figures = (usd_range, saved, *([work_and_return] if now.kind == "try" else []))
        freed_h = job.baseline.hours.mid * (1 - (now.time_factor or 1))
        if share < _NO_SHARE and freed_h > 0:  # the bill stays although the hours fall
            freed = _("frees {hours} machine-hours, which are paid for", hours=f"{freed_h:,.0f}")
            figures = (freed, work)
    return Action(
        label=_("Now"), id=id_, text=translate_text(now.what), figures=figures, cost=now.usd
    )


def _saving_at_most(cause: Finding | None) -> str:
    """Return what a cure of unmeasured gain saves at most: what its cause wastes."""
    if cause is None or not cause.waste_usd:
        return _("saving unknown")
    return _("saves up to {usd}", usd=whole_dollars(cause.waste_usd))


def _is_cheapest(way: Way, option: Option, now: Now | None) -> bool:
    """Return whether it saves more than now, and over the horizon more than its data's move."""
    saved = (way.saves.usd or _ZERO) * (option.benefit.periods if option.benefit else 1)
    is_paid = _saves(way) and saved > (way.move_usd or _ZERO)
    return is_paid and (now is None or now.usd is None or way.usd.mid < now.usd.mid)


def _saves(way: Way) -> bool:
    return way.saves.usd is not None and way.saves.usd > 0


def _todo(option: Option, plan: Plan, now: Now | None) -> str:
    """Return the changes of an option, those of the step here by its number; no other's.

    A step elsewhere has a machine, too, which the option does not need.
    """
    codes, above = report_text.own_changes(option), now.actions if now is not None else ()
    above = above if set(above) <= set(codes) else ()
    titles = [report_text.action(code, plan) for code in codes if code not in above]
    titles = [title.partition(" (")[0] for title in titles] if now is not None else titles
    return _(" + ").join([_("step {n}", n=1), *titles] if above else titles)


def _doubts(way: Way, option: Option) -> list[str]:
    """Return what keeps a reader from taking an option at once."""
    doubts: list[str] = []
    if not way.start and not option.offer.by_hand_at:
        doubts.append(_("manual"))
    elif way.start and way.start[0] != "provision":
        doubts.append(_("via {tool}", tool=way.start[0]))
    if large := [part for part in option.cost.unknown if part not in _SMALL_PARTS]:
        parts = join(word("line", part) for part in large)
        doubts.append(_("{parts} not priced", parts=parts))
    if way.purchase == "spot":
        doubts.append(_("may be taken back, so it needs checkpoints"))
    elif way.purchase != "on_demand":
        doubts.append(word("purchase", way.purchase.replace("_", " ")))
    if hours := TERMS_H.get(way.purchase):
        owed = option.offer.usd_per_hour * option.count * hours
        doubts.append(_("{usd} owed whatever runs", usd=money_text(owed)))
    return [*doubts, *filter(None, (old_price(way.price_age_days),))]


def _less_but(job: JobPlan) -> Iterator[Line]:
    """Yield why an option that is listed for less than the cheapest is not called that."""
    way = job.answer.cheapest or job.answer.next
    lower = min(job.options, key=lambda o: o.cost.mid, default=None)
    if way is None or lower is None or not _saves(way) or lower.cost.mid >= way.usd.mid:
        return
    why = _("its price has no date")  # what else keeps an option from being called the cheapest
    if lower.offer.purchase == "spot":
        why = _("it may be taken back")
    elif lower.speed is not None and lower.speed.weak:
        why = _("its speed or its machine is not sure")
    elif lower.cost.at_least:
        why = _("a part of its bill is unknown")
    elif lower.cost.high > way.usd.high:
        why = _("may cost {usd}", usd=whole_dollars(lower.cost.high))
    text = _(
        "{where} ({id}) is listed at {usd} but {why}",
        where=f"{lower.offer.provider}/{lower.offer.instance_type}",
        id=lower.id,
        usd=whole_dollars(lower.cost.mid),
        why=why,
    )
    yield Line(label=_("For less"), text=text, kind="spare")


def _pays_sooner(way: Way, now: Now | None, job: JobPlan, plan: Plan) -> str:
    """Return why an option is recommended though the cure here leaves a smaller bill."""
    if now is None or now.usd is None or now.usd.mid >= way.usd.mid:
        return ""
    if way.effort_hours < (now.effort_hours or 0):
        return _("less work than 1")
    if way.usd.high < now.usd.high:
        return _("surer than 1")
    today = job.baseline
    has_wish = len(today.breaks) > len(today.broken_limits) or plan.objective == "time"
    return _("as asked for") if has_wish else ""


def _left_out(option: Option, now: Now | None, job: JobPlan) -> str:
    """Return why an option leaves out the step here; empty where it has it, or is another machine.

    A machine that keeps a broken limit needs no cure of that; a numeric one is for people to allow.
    """
    if now is None or set(now.actions) <= set(option.actions):
        return ""
    if job.baseline.broken_limits:
        return _("in place of step 1")
    numeric = {remedy.code for remedy in job.remedies if remedy.kind == "numeric"}
    return "" if numeric.isdisjoint(now.actions) else _("without step 1: it may change results")


def _work(step: Now | Way, plan: Plan) -> str:
    """Return the hours of work, when they are paid back, and how long the job takes then."""
    parts, factor = [work_hours(step.effort_hours or 0)], step.time_factor or 1.0
    moving_usd, saved = getattr(step, "move_usd", _ZERO), getattr(step.saves, "usd", None)
    if moving_usd and saved and moving_usd > saved / 10:  # less does not change the answer
        parts.append(_("{usd} to move data", usd=whole_dollars(moving_usd)))
    if step.pays_back_periods or (step.pays_back_periods is None and (saved or 1) > 0):
        is_least = moving_usd is None
        parts.append(payback(step.pays_back_periods, plan, is_least=is_least))
    if factor >= _SAME_TIME or factor * _SAME_TIME <= 1:
        parts.append(_("{times}x speed", times=f"{1 / factor:.2g}"))
    return join(parts)


def saved_words(share: float | None, *, at_most: bool = False) -> str:
    """Return the share of today's bill that is saved, or that is paid more."""
    if share is None:
        return _("saving unknown")
    if share < 0:
        return _("{share} more", share=report_text.percent(-share))
    amount = report_text.percent(share)
    return _("saves max {share}", share=amount) if at_most else _("saves {share}", share=amount)


def _launchable(job: JobPlan, plan: Plan) -> str:
    """Return what gpucost can start in place of a choice that nothing can; empty if no need."""
    way = job.answer.next
    if way is None or way.start:
        return ""
    longest_h = job.baseline.hours.mid * max(1.0, way.time_factor or 1.0)
    sure = (
        o
        for o in job.options
        if o.speed is not None and not o.speed.weak and not o.cost.at_least
        if not is_today(o, job.baseline) and o.cost.high < (job.baseline.cost.total or _ENDLESS)
    )
    in_time = (o for o in sure if o.hours.mid <= longest_h and o.offer.purchase == way.purchase)
    now = job.answer.now
    usd = now.usd if now else None
    limit_usd = min(usd.mid if usd else _ENDLESS, job.baseline.cost.total or _ENDLESS)
    first = next((o for o in in_time if o.provisionable and o.cost.mid < limit_usd), None)
    if first is None or (job.answer.cheapest and first.id == job.answer.cheapest.option):
        return ""
    where, saved = where_it_runs(first, is_manual=False), saved_words(first.saves.fraction)
    step = now if now is not None and now.kind == "try" else None
    codes = tuple(report_text.own_changes(first))
    if todo := _todo(first, plan, step):
        is_step = step is not None and codes == step.actions
        todo = todo if len(codes) == 1 or is_step else _("with {n} changes", n=len(codes))
        where = _("{where}, {todo}", where=where, todo=todo)
    cost = whole_dollars(first.cost.mid) if todo else cost_range(first.cost)  # one line of 80
    return _("{where}: {cost}, {saved}", where=where, cost=cost, saved=saved)


def _spare(job: JobPlan, plan: Plan, actions: Sequence[Action]) -> Iterator[Line]:
    """Yield what would settle the answer, and what a full screen leaves out."""
    ends = job.answer.now is not None and job.answer.now.kind == "end"
    is_open = job.kind == "unknown" and job.answer.next is None and not ends
    ask, kind = "", ""
    if is_open and job.busy_fraction != 0 and plan.period == "month":
        ask = _("if it ends by itself, say so (--kind training, simulation): faster is cheaper")
    yield from _less_but(job)
    if steady := job.answer.steady:
        yield Line(label=_("Steady use"), text=translate_text(steady), kind="spare")
    proof, is_priced = job.answer.proof, job.baseline.cost.total is not None
    is_step = _is_measured(job, actions) and measured_first(job) is not None
    if proof is not None and not is_step and (is_priced or proof.offer is None):
        is_next = job.answer.next is None and proof.offer is not None  # `Run` is its command
        kind = "" if is_next or ask or not actions else "spare"
        ask = _("; ").join(filter(None, (_settle(job, proof, plan), ask)))
    if ask:
        yield Line(label=_("Settle it"), text=ask, kind=kind)
    elif not (actions or job.answer.now) and job.verdict and (codes := job.verdict.actions):
        code = codes[0]
        yield Line(label=_("Try"), text=f"{report_text.action(code, plan)}: gpucost explain {code}")


def _is_run(job: JobPlan) -> bool:
    """Return whether the proof is a short run of what is next, so that one command is both."""
    proof, way = job.answer.proof, job.answer.next
    option = job.option(way.option) if way else None
    return proof is not None and option is not None and proof.offer == option.offer


def _settle(job: JobPlan, proof: Proof, plan: Plan) -> str:
    """Return what would narrow the plan most, and what to type for it unless `Run` is that."""
    if proof.offer is None or proof.factor_now is None or proof.factor_after is None:
        return _typed(sentence(proof), job, plan)
    text = _(
        "{minutes} min on {where} ({cost}): speed within {after}, now {now}",
        minutes=proof.minutes,
        where=f"{proof.offer.provider}/{proof.offer.instance_type}",
        cost=whole_dollars(proof.usd) if proof.usd else _("free"),
        now=report_text.percent(proof.factor_now - 1.0),
        after=report_text.percent(proof.factor_after - 1.0),
    )
    if proof.command is None or _is_run(job) or job.answer.next is None:
        return text
    return _("{what}: {command}", what=text, command=_typed(proof.command, job, plan))


def _more(job: JobPlan, plan: Plan) -> str:
    now = job.answer.now
    if now is not None and now.command and now.kind == "try":
        how = _typed(now.command, job, plan)
        if how != next_command(job, plan):
            return _("How: {command}   All options: --all   Why: -v", command=how)
    return _("All options: --all   Why: -v   Report: --report FILE")


def _typed(command: str, job: JobPlan, plan: Plan) -> str:
    """Return a command of the plan as short as it can be typed: ./plan.json is what is read."""
    if "gpucost run" not in command:
        command = command.replace(" plan.json", "", 1)
    if len(plan.jobs) > 1:
        return command
    name, _, end = map(re.escape, as_typed(f"{job.name}/o").rpartition("o"))
    return re.sub(rf"--option {name}(o\d+){end}(?= )", r"--option \1", command)


def next_command(job: JobPlan, plan: Plan) -> str:
    """Return what to type next, else where a person rents it."""
    way, now, proof = job.answer.next, job.answer.now, job.answer.proof
    if way is None and job.baseline.cost.total is None and job.answer.reason is None:
        return _("again with --machine PROVIDER/TYPE, or --price USD (an hour)")
    option = job.option(way.option) if way else None if now else job.choice
    start = way.start if way else ()
    if option is None or (now is not None and is_today(option, job.baseline)):
        if ends_machine(job):
            return ""
        if now is not None and now.kind == "end":
            return "gpucost profile -o profile.json -- COMMAND"
        step = proof if proof is not None and proof.offer is not None else now or proof
        return _typed(step.command if step and step.command else keep_command(job), job, plan)
    if not start and option.offer.by_hand_at:
        return translate_text(option.offer.by_hand_at)
    path = plan_argument()
    named = option.id if len(plan.jobs) == 1 else as_typed(f"{job.name}/{option.id}")
    # A run ends with its machine: it has the hours of the slow end of its range.
    is_trial = _is_run(job)
    hours = 1 if is_trial else math.ceil(option.hours.high) if plan.period == "run" else 8
    ttl = f"{hours}h"
    command = f"gpucost quote{path} --option {named}"
    if "provision" in start[:1]:
        flags = "--run COMMAND" if is_trial else "--dry-run"
        command = f"gpucost provision{path} --option {named} --ttl {ttl} {flags}"
    elif start:
        command = f"gpucost export{path} --to {start[0]} --option {named} --ttl {ttl}"
        command += " --run COMMAND"
    return command


def keep_command(job: JobPlan) -> str:
    """Return where to read on of a job that stays: its cause, else who sells its GPU; or empty."""
    if job.verdict is not None and job.verdict.severity != "info":
        return f"gpucost explain {as_typed(job.verdict.code)}"
    offer = job.baseline.offer
    return f"gpucost prices --gpu {as_typed(offer.gpu)} --sort gpu-price" if offer else ""


def _run_line(command: str, job: JobPlan) -> Line:
    """Return what to type next; of a service that it is a trial, where it ends what it starts."""
    text = with_plan(command)
    if job.answers and "--ttl" in command:
        text = _("a trial, which ends itself: {command}", command=text)
    return Line(label=_("Run"), text=text)


def plan_argument() -> str:
    """Return the plan's file with a blank before it; empty where commands find it themselves."""
    path = plan_file()
    return "" if path in {None, "plan.json"} else f" {as_typed(path or '')}"


def with_plan(command: str) -> str:
    """Return a command; where it reads a plan that was not written, what writes it first."""
    if plan_file() or not any(word in command for word in ("--option", " export ", " report ")):
        return command
    return _("again with -o plan.json, then {command}", command=command)
