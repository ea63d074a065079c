"""The first lines of several jobs: what all of them pay and waste, who, what to end and share."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import UNSET

from planner.plan.bill import CostRange
from pricing.message import Message
from templates import report_text
from templates.language.translate import _, join, translate_text, word
from templates.report_text import machine_name, money_range, money_text, period_words, whole_dollars
from templates.reports import job_screen
from templates.reports.decision import staying, work_hours
from templates.reports.fleet_rows import Alike, group_alike, group_row, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.plan.job import JobPlan, Now
    from planner.plan.plan import Alternative, Fleet, Plan

_GROUPS_SHOWN = 5
_TEAMS_SHOWN = 3
_SERVICES_SHOWN = 2
_BUDGET = "note.budget-each"
_SPARE, _END_IDLE = "spare-copies", "idle-shutdown"
_ZERO = Decimal(0)


def fleet_screen(plan: Plan, read_from: str = "") -> job_screen.FirstScreen:
    """Return the first lines of several jobs.

    Args:
        plan: made now, or read back.
        read_from: what was read, in words.
    """
    costs = [job.baseline.cost.total for job in plan.jobs]
    paid = sum((cost for cost in costs if cost is not None), _ZERO)
    fleet, causes, wasted = plan.fleet, _waste_by_cause(plan), _wasted_usd(plan)
    gpus = fleet.gpus_before if fleet else sum(map(job_screen.gpus_of, plan.jobs))
    rows = group_alike(plan)
    command, groups = _fleet_command(plan, rows), [g for g in rows if not g.first.ended]
    ended = [job for group in rows if group.first.ended for job in group.jobs]
    stopped = [*_stopped(ended, plan), *_idle_stops(plan)]  # two lines each
    tries = _trials(plan)
    assumed, by_team = _assumed(plan), _teams(plan)
    longer = (
        2 * (len(stopped) + len(tries)) + 2 * len(assumed) + len(by_team) + (" --fleet" in command)
    )
    longer += any(getattr(note, "code", "") == _BUDGET for note in plan.assumptions)
    longer += 4 * len(_unwatched_notes(plan))
    shown = max(1, _GROUPS_SHOWN - longer)  # all of it is to be one screen
    steps = _fleet_actions(plan, tries)
    # A job that a step names is said: the room is for another one.
    groups.sort(key=lambda g: any(step.text.startswith(f"{g.title}: ") for step in steps))
    if assumed:  # what is saved is saved of what nobody stated
        steps = [
            replace(a, text=_("{text}, against the assumed machine", text=a.text)) if a.cost else a
            for a in steps
        ]
    more = sum(len(group.jobs) for group in groups[shown:])
    return job_screen.FirstScreen(
        title=_fleet_title(plan, gpus, rows) + _unwatched_jobs(plan) + read_from,
        facts=(
            job_screen.Line(label=_("You pay"), text=_all_pay(plan), kind="pay"),
            *assumed,
            *_unwatched(plan, paid),
            *wasted_by_all(causes, wasted, paid),
            *by_team,
        ),
        busy_fraction=_mean_busy(plan),
        gpus=_fewer_gpus(fleet, plan, gpus) if fleet else None,
        actions=(*stopped, *tries, *steps, *_watched_first(plan)),
        rows=tuple(_row(group, plan) for group in groups[:shown]),
        notes=(
            *_fleet_doubts(plan),
            job_screen.Line(label=_("Run"), text=job_screen.with_plan(command)),
        ),
        commands=(command,),
        paid_usd=paid,
        wasted_usd=wasted,
        cause=translate_text(max(causes, key=lambda cause: causes[cause], default="")),
        more=_("and {n} more: --all   ", n=more) * bool(more)
        + _("Why: -v   Report: --report FILE"),
    )


def _fleet_doubts(plan: Plan) -> Iterator[job_screen.Line]:
    """Yield the number of jobs of which too little was read, and of recordings in doubt."""
    labels = {
        "read.early-ends": _("Ended"),
        _BUDGET: _("Budget"),
        "note.maybe-one-job": _("Note"),
    }
    notes = map(job_screen.note_of, (*plan.warnings, *plan.assumptions))
    for note in dict.fromkeys(note for _job, note in notes):
        if note is not None and note.code in labels:
            yield job_screen.Line(label=labels[note.code], text=translate_text(note))
    fleet = plan.fleet
    unread = Message("share.too-little-read")
    if n := sum(job.detail == unread for job in fleet.unmoved) if fleet else 0:
        ask = _("too little was read of {n} jobs; a day of readings shows who can share", n=n)
        yield job_screen.Line(label=_("Settle it"), text=ask)
    if n := len(list(job_screen.doubts_of_recording(plan))):
        text = _("{n} doubts about recordings and their machines: -v", n=n)
        yield job_screen.Line(label=_("Note"), text=text, kind="spare")


def _row(group: Alike, plan: Plan) -> tuple[str, str, str]:
    row = group_row(group, plan)
    cost, option = row.cost.partition(" (")[0], group.first.choice
    text = row.what.partition(_(": "))[2] or row.what
    if option and not group.first.ended and plan.placement_of(group.first) is None:
        way = group.first.answer.next
        where = report_text.where_it_runs(option, is_manual=way is None or not way.start)
        text = _(": ").join((report_text.changes(option, plan), where))  # the action first
    return group.title, f"{whole_dollars(group.before)} -> {cost}", text


def _fleet_title(plan: Plan, gpus: int, groups: Sequence[Alike]) -> str:
    """Return how many jobs, or runs of which, there are, and on how many GPUs of those paid."""
    jobs = tuple({group.repeated: None for group in groups})
    if plan.period == "run" and len(jobs) < len(plan.jobs):
        return _("{n} runs of {jobs}", n=len(plan.jobs), jobs=names(jobs))
    paid = 0 if plan.use is UNSET else round(plan.use.gpus)
    if paid > gpus:
        return _("{n} jobs on {gpus} of {paid} GPUs", n=len(plan.jobs), gpus=gpus, paid=paid)
    if gpus == 1:
        return _("{n} jobs on 1 GPU", n=len(plan.jobs))
    return _("{n} jobs on {gpus} GPUs", n=len(plan.jobs), gpus=gpus)


def _all_pay(plan: Plan) -> str:
    """Return what all jobs cost today, and what of it is owed whatever runs."""
    costs = [job.baseline.cost for job in plan.jobs if job.baseline.cost.total is not None]
    if not costs and all(job.baseline.owned for job in plan.jobs):
        return job_screen.pay_of_owned()
    if not costs:
        return _("unknown; --machine or --price sets it")
    paid = sum((cost.total or _ZERO for cost in costs), _ZERO)
    runs = _("for all {n} runs", n=len(costs))
    period = runs if plan.period == "run" else period_words(plan)
    usd = money_text(paid, at_least=any(cost.at_least for cost in costs))
    text = _("{usd} {period}", usd=usd, period=period)
    if owed := plan.recommended.owed_usd if plan.recommended else _ZERO:
        usd = _("all") if owed >= paid else whole_dollars(owed)
        text = _("{paid}; {usd} of it owed whatever runs", paid=text, usd=usd)
    if unpriced := len(plan.jobs) - len(costs):
        text = _("{paid}; what {n} of the jobs cost is unknown", paid=text, n=unpriced)
    return text


def _assumed(plan: Plan) -> list[job_screen.Line]:
    """Return on which machines jobs were taken to run, where nothing says it."""
    prices = {
        machine_name(offer): job_screen.assumed_price(offer, job, plan)
        for job in plan.jobs
        if job.baseline.assumed and (offer := job.baseline.offer) is not None
    }
    if not prices:
        return []
    machines = names(tuple(prices))
    if len(prices) == 1:
        machines = _("{where} ({price})", where=machines, price=prices[machines])
    text = _("{machines}; --machine says what it is", machines=machines)
    return [job_screen.Line(label=_("Assumed"), text=text, kind="note")]


def _unwatched_notes(plan: Plan) -> list[Message]:
    """Return what was read of jobs that held GPUs of which nobody knows the use, once a source."""
    notes = [note for _job, note in map(job_screen.note_of, plan.warnings) if note is not None]
    return [note for note in dict.fromkeys(notes) if note.code == "read.unwatched"]


def _unwatched_jobs(plan: Plan) -> str:
    """Return how many more jobs there are on how many GPUs; empty for none."""
    counts = [note.params for note in _unwatched_notes(plan)]
    jobs, gpus = (sum(int(str(count[name])) for count in counts) for name in ("n", "gpus"))
    return (
        _(", and {n} more without GPU readings on {gpus} GPUs", n=jobs, gpus=gpus) if jobs else ""
    )


def _unwatched(plan: Plan, paid: Decimal) -> Iterator[job_screen.Line]:
    """Yield the hours of GPUs that nobody watched, and their dollars at what the others cost."""
    priced = [job for job in plan.jobs if job.baseline.cost.total is not None]
    hours = sum((job_screen.gpus_of(j) or 0) * float(j.baseline.hours.mid) for j in priced)
    for note in _unwatched_notes(plan):
        text = translate_text(note)
        if hours:
            usd = paid * Decimal(str(float(str(note.params["hours"])) / hours))
            text += " " + _("At what the others cost: {usd} paid.", usd=whole_dollars(usd))
        yield job_screen.Line(label=_("Unwatched"), text=text, kind="note")


def _mean_busy(plan: Plan) -> float | None:
    """Return the share of the time that GPUs are busy, over all that are paid and measured."""
    if plan.use is not UNSET:
        return None if plan.use.busy_fraction is None else float(plan.use.busy_fraction)
    shares = [(job.busy_fraction, job_screen.gpus_of(job) or 1) for job in plan.jobs]
    measured = [(float(busy), n) for busy, n in shares if busy is not UNSET]
    total = sum(n for _busy, n in measured)
    return sum(busy * n for busy, n in measured) / total if total else None


def _waste_by_cause(plan: Plan) -> dict[str, Decimal]:
    """Return what all jobs waste by the first cause of each, and the GPUs that nobody holds.

    Of what a job wastes it is that cause's own part: others may have the rest.
    """
    by_job, by_cause = _waste_by_job(plan), dict[str, Decimal]()
    for job in plan.jobs:
        if (first := job.program_finding) and first.waste_usd:
            part = min(first.waste_usd, by_job[job.name])
            by_cause[first.cause] = by_cause.get(first.cause, _ZERO) + part
    if plan.use is not UNSET and plan.use.free_usd:
        by_cause[_("No job holds these GPUs.")] = plan.use.free_usd
    return by_cause


def _wasted_usd(plan: Plan) -> Decimal:
    """Return what all jobs waste together, as the rows of who pays say it."""
    idle, wasted = _idle_by_job(plan), _ZERO if plan.use is UNSET else plan.use.wasted_usd
    return wasted + sum(usd - idle.get(job, _ZERO) for job, usd in _waste_by_job(plan).items())


def _waste_by_job(plan: Plan) -> dict[str, Decimal]:
    """Return what each job wastes: its GPUs while they idle, or what its first finding says.

    That is where nobody measured how busy they are, and of copies that no request needs.
    """
    idle = _idle_by_job(plan)
    first = [(job.name, job.program_finding) for job in plan.jobs]
    counts = ((n, f.waste_usd) for n, f in first if f and (n not in idle or f.code == _SPARE))
    return {**idle, **{name: usd or _ZERO for name, usd in counts}}


def _idle_by_job(plan: Plan) -> Mapping[str, Decimal]:
    return {} if plan.use is UNSET else plan.use.idle_by_job


def wasted_by_all(
    by_cause: Mapping[str, Decimal], wasted: Decimal, paid: Decimal
) -> list[job_screen.Line]:
    """Return what all jobs waste together, and the cause of most of it."""
    if not wasted or not paid:
        return []
    cause = max(by_cause, key=lambda cause: by_cause[cause], default="")
    amount = _(
        "{usd} ({share})",
        usd=whole_dollars(wasted),
        share=report_text.percent(float(wasted / paid)),
    )
    if not cause:
        return [job_screen.Line(label=_("Wasted"), text=amount, kind="waste")]
    if by_cause[cause] < wasted:
        largest = whole_dollars(by_cause[cause])
        amount = _("{amount}; the largest part, {usd}", amount=amount, usd=largest)
    text = _("{amount}: {cause}", amount=amount, cause=translate_text(cause))
    return [job_screen.Line(label=_("Wasted"), text=text, kind="waste")]


def _teams(plan: Plan) -> list[job_screen.Line]:
    """Return who pays most, today and after what is recommended."""
    labels = () if plan.teams is UNSET else plan.teams
    teams = [team for team in labels if team.name and team.usd]
    if not teams:
        return []
    free = [team for team in labels if not team.held and team.by == teams[0].by]
    first = sorted((team for team in teams if team.by == teams[0].by), key=lambda team: -team.usd)
    parts = [
        f"{team.name} {whole_dollars(team.usd)}{_idle_part(team.idle_usd, team.usd)}"
        f" -> {whole_dollars(team.recommended_usd)}"
        for team in first[:_TEAMS_SHOWN]
    ]
    more = len(first) - _TEAMS_SHOWN
    text = join(parts) + (_(" and {more} more", more=more) if more > 0 else "")
    for row in free:
        usd, then = whole_dollars(row.usd), whole_dollars(row.recommended_usd)
        if row.usd:
            text = _("{teams}; held by no job {usd} -> {then}", teams=text, usd=usd, then=then)
        elif row.recommended_usd:
            text = _("{teams}; GPUs that jobs leave, still billed: {usd}", teams=text, usd=then)
    return [
        job_screen.Line(
            label=_("By {label}", label=word("label", teams[0].by.replace("_", " "))), text=text
        )
    ]


def _idle_part(idle_usd: Decimal, usd: Decimal) -> str:
    """Return the part of a team's dollars that its idle GPUs cost; empty where there is none."""
    if not idle_usd or not usd:
        return ""
    share = report_text.percent(float(idle_usd / usd))
    return _(" ({share} idle)", share=share)


def _stopped(jobs: Sequence[JobPlan], plan: Plan) -> list[job_screen.Action]:
    """Return the jobs to be ended, as what is done first, and those to be looked at before."""
    sure = Alike(jobs=tuple(job for job in jobs if not job.is_looked_at))
    looked = Alike(jobs=tuple(job for job in jobs if job.is_looked_at))
    actions = []
    if sure.jobs:
        text = _("{jobs}: no kernel ran in all of the recording", jobs=sure.title)
        figures = (_frees(_gpus_of_ended(sure.jobs)), _given_back(sure, plan))
        actions.append(job_screen.Action(label=_("Stop"), text=text, figures=figures))
    if looked.jobs:
        figures = (_frees(_gpus_of_ended(looked.jobs)), _("$0 until then"))
        text = _look_at(looked, plan)
        actions.append(job_screen.Action(label=_("Look"), text=text, figures=figures))
    return actions


def _look_at(looked: Alike, plan: Plan) -> str:
    """Return what to see of jobs before they are ended, and when the bill of their machines ends.

    A machine is billed while any of its jobs is there.
    """
    shares = [job.baseline.share for job in looked.jobs]
    names_on = {name for share in shares if share for name in share.beside}
    names_on.update(job.name for job in looked.jobs)
    billed = Alike(jobs=tuple(job for job in plan.jobs if job.name in names_on))
    return _(
        "{jobs}: {look}; the bill of {machines} ({usd} {period}) ends only once all {n} jobs there"
        " have left",
        jobs=looked.title,
        look=staying(looked.first, plan),
        machines=names(tuple({machine_name(job.baseline.offer): None for job in looked.jobs})),
        usd=whole_dollars(billed.before),
        period=period_words(plan),
        n=len(billed.jobs),
    )


def _gpus_of_ended(jobs: Sequence[JobPlan]) -> int:
    return sum(round(job.ended.gpus) for job in jobs if job.ended)


def _frees(n: int) -> str:
    return _("frees 1 GPU") if n == 1 else _("frees {n} GPUs", n=n)


def _given_back(stopped: Alike, plan: Plan) -> str:
    """Return the dollars that ending jobs gives back, alone; GPUs of what is owed are free only."""
    saves = _stop_saves(stopped.jobs)
    if saves is None:
        return _("saving unknown")
    if saves:
        text = _("{usd} {period}", usd=whole_dollars(saves), period=period_words(plan))
        if first := {name for job in stopped.jobs if job.ended for name in job.ended.leaving_first}:
            text = _("{usd} once {n} others have moved", usd=text, n=len(first))
        idle = sum((_idle_by_job(plan).get(job.name, saves) for job in stopped.jobs), _ZERO)
        free = _ZERO if plan.use is UNSET else min(plan.use.free_usd, saves - idle)
        split = _("{usd}, {free} of it held by no job", usd=text, free=whole_dollars(free))
        return split if free >= 1 else text
    if any(job.ended and job.ended.is_owed for job in stopped.jobs) or _is_owed(plan):
        return _("$0 (owned)")
    return _("$0 while their machines stay")


def _stop_saves(jobs: Sequence[JobPlan]) -> Decimal | None:
    """Return what ending the jobs among these that are to end saves alone; None where unknown."""
    together = Alike(jobs=tuple(job for job in jobs if job.ended))
    before, after = together.before, together.ended
    return None if before is None or after is None else before - after


def _is_owed(plan: Plan) -> bool:
    """Return whether all that is paid today is owed whatever runs, but for the data.

    Of jobs without any price only the GPUs that are owned are packed.
    """
    total = plan.recommended
    if total is None or len(total.unknown) == len(plan.jobs):
        return total is not None
    return total.owed_usd > 0 and total.cost.mid >= total.owed_usd


def _trials(plan: Plan) -> list[job_screen.Action]:
    """Return services that fewer copies may answer, and jobs for a paid machine that is idle."""
    return [
        action
        for note in plan.warnings
        if isinstance(note, Message) and (action := _trial(note)) is not None
    ][:_SERVICES_SHOWN]


def _trial(note: Message) -> job_screen.Action | None:
    """Return what a note of the plan says to try first; None where it says nothing of it."""
    params = note.params
    if note.code == "note.fewer-copies":
        text = _(
            "{enough} copies of {name} in place of {n}, step by step; watch the latency",
            **{key: params[key] for key in ("enough", "name", "n")},
        )
        share = 1.0 - float(str(params["enough"])) / float(str(params["n"]))
    elif note.code == "note.on-paid":
        text = _(
            "run {name} on the machine of {idle}, which is paid and does nothing",
            name=params["name"],
            idle=params["idle"],
        )
        share = float(str(params["fraction"]))
    else:
        return None
    return job_screen.Action(
        label=_("Try"), text=text, figures=(f"${params['usd']}", job_screen.saved_words(share))
    )


def _fleet_actions(plan: Plan, tries: Sequence[job_screen.Action]) -> list[job_screen.Action]:
    """Return what can be done on today's machines, then all of it, or what is cheaper still."""
    fleet, total = plan.fleet, plan.recommended
    if total is None:
        return []
    before, cost = total.cost_before, total.cost
    stops = _stop_saves(plan.jobs) or _ZERO
    actions: list[job_screen.Action] = []
    shares = fleet is not None and fleet.cost_after < fleet.cost_before - stops
    dear = shares and fleet is not None and fleet.taken is None and not total.packed
    if fleet and shares and not dear:
        usd = CostRange.exactly(fleet.cost_after)
        actions.append(_step(_("At home"), _shared(fleet, plan), usd, before))
    elif fleet and _is_owed(plan):
        n = fleet.gpus_before - _gpus_of_ended(plan.jobs) - fleet.gpus_after
        free = (_frees(n), _("$0 (owned)"))
        share = job_screen.Action(label=_("At home"), text=_shared(fleet, plan), figures=free)
        actions += [share] if n > 0 else []
    only_stops = cost.mid == before - stops
    if not only_stops and not (actions and fleet and cost.mid == fleet.cost_after):
        text = _("as recommended job by job")
        text = _all_to(fleet.taken, plan) if fleet and fleet.taken else text
        text = _("{text}, without what is to be tried", text=text) if tries else text
        if any(job.is_looked_at for job in plan.jobs):
            text = _("{text}, once what is looked at has ended", text=text)
        text = _("recommended: {text}", text=text) if fleet and fleet.taken else text
        actions.append(_step(_("In all"), text, cost, before, at_least=total.at_least))
    if not actions:
        why = _too_dear_to_share(fleet, plan, stops) if fleet and dear else ""
        return [] if tries else _steps_unpaid(plan, why)
    if actions[-1].cost is None:
        return actions
    work, days = work_hours(plan.roi.effort_hours), plan.roi.payback_days
    back = "" if days is None else _("payback {time}", time=_("{n} d", n=f"{days:.0f}"))
    figures = (*actions[-1].figures, join(filter(None, (work, back))))
    actions[-1] = replace(actions[-1], figures=figures)
    cheaper = [a for a in (fleet.alternatives if fleet else ()) if a.cost_after < cost.mid]
    if cheaper and len(actions) == 1:
        best = min(cheaper, key=lambda a: a.cost_after)
        usd = CostRange.exactly(best.cost_after)
        actions.append(_step(_("Cheapest"), _all_to(best, plan), usd, before))
    return actions


def _idle_stops(plan: Plan) -> list[job_screen.Action]:
    """Return what shutting machines down when they are idle saves, each job on its own machine."""
    steps = [(job, now) for job in plan.jobs if (now := job.answer.now) and now.saves]
    steps = [(job, now) for job, now in steps if now.actions == (_END_IDLE,) and not job.ended]
    total = plan.recommended
    if not steps or total is None:
        return []
    saves = [now.saves for _job, now in steps if now.saves]
    low, mid, high = (
        total.cost_before - sum((getattr(saving, end) for saving in saves), _ZERO)
        for end in ("high", "mid", "low")
    )
    title = Alike(jobs=tuple(job for job, _now in steps)).title
    text = _(": ").join((title, translate_text(steps[0][1].what)))
    return [_step(_("Now"), text, CostRange(low=low, mid=mid, high=high), total.cost_before)]


def _step(
    label: str, text: str, cost: CostRange, before: Decimal, *, at_least: bool = False
) -> job_screen.Action:
    """Return what all jobs are to do, what they cost then and what that saves."""
    usd = money_range(cost.low, cost.mid, cost.high, at_least=at_least)
    figures = (usd, job_screen.saved_words(saved_share(cost.mid, before)))
    return job_screen.Action(label=label, text=text, figures=figures, cost=cost)


def _steps_unpaid(plan: Plan, why: str) -> list[job_screen.Action]:
    """Return what to try or to measure where nothing surely saves, or else that all stays, and why.

    Args:
        plan: of several jobs.
        why: nothing is shared; empty where nothing could be.
    """
    steps = ((job, job.answer.now) for job in plan.jobs if not job.ended)
    if cures := [(job, now) for job, now in steps if now is not None]:
        return [_largest_cure(cures, plan)]
    if step := _first_measured(plan):
        return [replace(step, text=_("; ").join(filter(None, (step.text, why))))]
    if _unwatched_notes(plan):
        return []
    stay = any(job.ended for job in plan.jobs)
    text = _("keep the others as they are") if stay else _("keep as is")
    text = _("{stay}: {why}", stay=text, why=why) if why else text
    return [job_screen.Action(label=_("Now"), text=text)]


def _largest_cure(cures: Sequence[tuple[JobPlan, Now]], plan: Plan) -> job_screen.Action:
    """Return the cure of the job that wastes most."""
    by_job = _waste_by_job(plan)
    job, now = max(cures, key=lambda cure: by_job.get(cure[0].name, _ZERO))
    action = job_screen.trial_action(now, job, plan)
    return replace(action, text=_(": ").join((job.name, action.text)))


def _first_measured(plan: Plan) -> job_screen.Action | None:
    """Return what to measure or to try of the jobs of the cause that wastes most; None: no job."""
    by_job = _waste_by_job(plan)
    by_step: dict[str, list[JobPlan]] = {}
    for job in plan.jobs:
        if (step := job_screen.first_measured(job, plan)) is not None and not job.ended:
            by_step.setdefault(step.text, []).append(job)

    def wasted(jobs: Sequence[JobPlan]) -> Decimal:
        return sum((by_job.get(job.name, _ZERO) for job in jobs), _ZERO)

    jobs = max(by_step.values(), key=wasted, default=[])
    step = job_screen.first_measured(jobs[0], plan) if jobs else None
    return step and replace(step, text=_(": ").join((Alike(jobs=tuple(jobs)).title, step.text)))


def _watched_first(plan: Plan) -> Iterator[job_screen.Action]:
    """Yield that the jobs of which nobody knows the use are to be measured."""
    if n := sum(int(str(note.params["n"])) for note in _unwatched_notes(plan)):
        text = _("{n} not watched: log nvidia-smi or DCGM on their nodes while they run", n=n)
        yield job_screen.Action(label=_("Measure"), text=text)


def _too_dear_to_share(fleet: Fleet, plan: Plan, stops: Decimal) -> str:
    """Return what sharing saves and that its work is not paid back."""
    effort_h = sum(group.effort_hours for group in fleet.recommended_groups)
    return _(
        "sharing saves {usd} {period}, which does not pay for its {hours} of work",
        usd=whole_dollars(fleet.cost_before - stops - fleet.cost_after),
        period=period_words(plan),
        hours=work_hours(effort_h),
    )


def _fewer_gpus(fleet: Fleet, plan: Plan, gpus: int) -> tuple[int, int, str] | None:
    """Return the GPUs of what is advised, those held, and where the former are; None: no fewer."""
    total, after = plan.recommended, (fleet.taken or fleet).gpus_after
    acts = total is None or total.packed or _is_owed(plan) or any(job.ended for job in plan.jobs)
    return (after, gpus, "" if fleet.taken else _(" at home")) if acts and after < gpus else None


def _shared(fleet: Fleet, plan: Plan) -> str:
    """Return how the GPUs of today are shared."""
    text = _("share today's GPUs")
    today = {job.baseline.offer.instance_type for job in plan.jobs if job.baseline.offer}
    smaller = {p.offer.instance_type for p in fleet.placements} - today
    if smaller and today:  # a machine of several gives none of its GPUs back
        text = _("share GPUs, on {machines} instead", machines=join(sorted(smaller)))
    if any(placement.timetable is not UNSET for placement in fleet.placements):
        text = _("{text} by a timetable", text=text)
    if fleet.gpus_after == fleet.gpus_lower_bound:
        text = _("{text} (proven minimum)", text=text)
    return text


def _all_to(alternative: Alternative, plan: Plan) -> str:
    """Return how many jobs go to how many GPUs of another machine."""
    moved, offer = len(alternative.jobs), alternative.offer
    everyone = moved == len(plan.jobs)
    who = _("all jobs") if everyone else _("{n} of the jobs", n=moved)
    placements = () if alternative.placements is UNSET else alternative.placements
    n = sum(item.offer == offer for item in placements)
    if everyone and not n:
        n = alternative.gpus_after
    where = {"who": who, "gpu": offer.gpu, "where": machine_name(offer)}
    return (
        _("{who} to {n}x {gpu}, {where}", n=n, **where)
        if n
        else _("{who} to {gpu}, {where}", **where)
    )


def saved_share(cost: Decimal, before: Decimal) -> float:
    """Return what is saved, as a share of what is paid; 0.0 where nothing is."""
    return float(1 - cost / before) if before else 0.0


def _shares_machines(plan: Plan) -> bool:
    """Return whether a GPU that is shared stands in a machine of several."""
    placements = map(plan.placement_of, plan.jobs)
    return any(p and len(p.jobs) > 1 and p.offer.gpu_count > 1 for p in placements)


def _fleet_command(plan: Plan, groups: Sequence[Alike]) -> str:
    path = job_screen.plan_argument()
    placed = [item for item in plan.placements if item.is_exportable]
    if placed:
        by = " --by dra" if _shares_machines(plan) else ""
        answers = {job.name for job in plan.jobs if job.answers}
        ttl = "" if all(answers.issuperset(item.jobs) for item in placed) else " --ttl 8h"
        run = f"--image IMAGE --run COMMAND{ttl}"
        return f"gpucost export{path} --to kubernetes --fleet{by} {run}"
    moving = [job for group in groups for job in group.jobs if job.answer.next]
    startable = (job for job in moving if job.answer.next and job.answer.next.start)
    job = next(startable, None)
    return job_screen.next_command(job, plan) if job else f"gpucost report{path} -o report.md"
