"""Applies the rule table to a profile: findings, ranked, and the actions that they call for."""

from collections.abc import Collection, Iterable
from decimal import Decimal

import msgspec

from planner.actions import ACTIONS, action
from planner.actions.action import Action, compatible
from planner.diagnosis.rules import RULES, Case, Rule, at_work_share
from planner.profile.model import Profile
from planner.signals.condition import Signals, Test
from planner.signals.finding import Certainty, Finding, Reading, Severity
from planner.signals.signals import idle_share, read_signals, verdict_doubt
from planner.signals.thresholds import BUSY, FAILING, LEFT_ON, SM
from pricing.errors import InputError
from pricing.hardware import vendor_of
from pricing.message import Message, join
from pricing.money import cents

_NOTHING = Finding(
    code="unmeasured", severity="info", confidence="possible", cause=Message("cause.nothing-read")
)
_STARTED = "cause.mostly-start-up"
# What happened is so, however little was read beside it.
_FACTS = ("job.ended", "health.grave", "health.problems")
# What ends the job, or will: before that is mended nothing else counts.
_ENDS = ("job.ended", "host.ram_growth_gib_per_h", "host.ram_fraction.max")
_GPU_UNSEEN = Message("cause.gpu-unseen")
# DCGM reads NVIDIA's GPUs alone; AMD SMI and Intel's XPU Manager call theirs so.
_COUNTERS = {
    "AMD": "cu_occupancy (amd-smi process, rocm-smi --showpids)",
    "Intel": "EU Array Active (xpu-smi stats -e)",
}
_OF_DCGM = (
    "cause.gpu-use-unmeasured",
    "cause.gpus-little-power",
    "cause.kernels-little-power",
    "cause.sm-activity-unmeasured",
)
_READ_OF_GPU = ("util.kernel_time.mean", "util.sm_active.mean", "power.fraction.mean")
_SEVERITY_ORDER: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2, "info": 5}
# Praise comes after what limits the work; then what is not known; then remarks.
_INFO_ORDER = {"well-used": 3, "unmeasured": 4}
_CONFIDENCE_ORDER: dict[Certainty, int] = {"measured": 0, "likely": 1, "possible": 2}
_WAITS = 0.3  # a GPU that waits this much of the time is not limited by its kernels
_WORTH_SAYING = 0.01  # of the bill; a cause with nothing left to claim repeats another one
_SEVERITY_FROM: tuple[tuple[float, Severity], ...] = ((0.3, "high"), (0.1, "medium"), (0.0, "low"))


def diagnose(
    profile: Profile, *, cost: Decimal | None = None, signals: Signals | None = None
) -> tuple[Finding, ...]:
    """Return what the profile shows, the verdict first.

    No second of the bill is claimed twice: causes share the idle and the busy part of the time, the
    surest cause first.

    Args:
        profile: what was measured.
        cost: the bill of the job's machines for the period; without it findings carry shares, not
            dollars.
        signals: of the profile, where they were read before.
    """
    signals = read_signals(profile) if signals is None else signals
    counter = _COUNTERS.get(vendor_of(profile.hardware.gpu))
    hits = [hit for rule in RULES if (hit := _apply(rule, signals, counter)) is not None]
    findings = _share_out(hits, signals) or [_NOTHING]
    if (why := verdict_doubt(profile)) is not None:
        facts = [f for f in findings if any(reading.metric in _FACTS for reading in f.evidence)]
        if why.code == _STARTED:  # what a start does says nothing of the work
            findings = [*facts, msgspec.structs.replace(_NOTHING, cause=why)]
        else:
            findings = [f if f in facts else _doubt(f, why) for f in findings]
    return tuple(_price(finding, cost) for finding in sorted(findings, key=_rank))


def without_actions(findings: tuple[Finding, ...], codes: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings with no action of these codes: the user has ruled them out."""
    remaining = (tuple(code for code in f.actions if code not in codes) for f in findings)
    pairs = zip(findings, remaining, strict=True)
    return tuple(msgspec.structs.replace(finding, actions=actions) for finding, actions in pairs)


def rule(code: str) -> Rule:
    """Return the rule of a finding code.

    Raises:
        InputError: there is no such code; the known ones are listed.
    """
    match = next((rule for rule in RULES if rule.code == code), None)
    if match is None:
        raise InputError(
            f"{code} is not a finding code; known: {', '.join(r.code for r in RULES)}."
        )
    return match


def _apply(rule: Rule, signals: Signals, counter: str | None) -> tuple[Case, Finding] | None:
    """Return the case of a rule that holds; `counter` tells work from waiting where no DCGM is."""
    case = next((c for c in rule.cases if all(t.holds(signals) for t in c.tests)), None)
    if case is None:
        return None
    codes = rule.actions if case.actions is None else case.actions
    # Without what the GPU or the kind of job rules out, such as TF32 before Ampere.
    actions = tuple(code for code in codes if ACTIONS[code].applies(signals))
    unseen = _waits_unseen(case, signals)
    cause = _GPU_UNSEEN if unseen else case.cause
    if counter and (code := getattr(cause, "code", "")) in _OF_DCGM:
        cause = Message(f"{code}-here", counter=counter)
    finding = Finding(
        code=rule.code,
        severity=case.severity or rule.severity,
        confidence="possible" if unseen else case.confidence,
        cause=join((cause, _named(case, signals)), "sentences"),
        evidence=() if unseen else _evidence(case.tests, signals),
        against=_evidence((t for t in rule.against if t.holds(signals)), signals),
        actions=actions,
        waste_fraction=case.waste.share(signals) if case.waste and not unseen else None,
    )
    return case, finding


def _waits_unseen(case: Case, signals: Signals) -> bool:
    """Return whether a case says that a GPU waits of which nothing was read.

    Where the program spends its time was seen; that a GPU waits for it was not.
    """
    by_place = any(test.signal.startswith("waits.") for test in case.tests)
    return by_place and all(signals[name] is None for name in _READ_OF_GPU)


def _named(case: Case, signals: Signals) -> str:
    """Return what the finding is about, as a further sentence; nothing where nobody looked."""
    named = signals[case.names] if case.names else None
    return named if isinstance(named, Message) else ""


def _evidence(tests: Iterable[Test], signals: Signals) -> tuple[Reading, ...]:
    readings = (reading_at(test, signals) for test in tests)
    return tuple(reading for reading in readings if reading is not None)


def reading_at(test: Test, signals: Signals) -> Reading | None:
    """Return the reading beside a test; None for what was not measured or only sets scope."""
    value = signals[test.signal]
    if value is None or test.quiet:
        return None
    shown = round(value, 4) if isinstance(value, float) else value
    # Where use was not read, SM activity stands for it.
    metric = SM if test.signal == BUSY and value == signals[SM] else test.signal
    return Reading(metric=metric, value=shown, test=test.words)


def _share_out(hits: list[tuple[Case, Finding]], signals: Signals) -> list[Finding]:
    """Let causes claim from the idle and the busy time in order of confidence, then of size."""
    busy = signals[BUSY]
    busy_share = busy * at_work_share(signals) if isinstance(busy, float) else None
    # Where busy time is unknown, all causes share the whole.
    left = {"all": 1.0} if busy_share is None else {"idle": 1.0 - busy_share, "busy": busy_share}
    left.update({"outside": 1.0, "gpus": 1.0})
    # The other shares are of the steps' time, which is what the rest of the run leaves.
    outside = (
        f.waste_fraction
        for c, f in hits
        if c.waste and c.waste.pool == "outside" and f.confidence != "possible"
    )
    within = 1.0 - min(1.0, sum(share or 0.0 for share in outside))
    waiting = any(
        case.waste and case.waste.pool == "idle" and (finding.waste_fraction or 0.0) >= _WAITS
        for case, finding in hits
    )
    shared = []
    for case, finding in sorted(hits, key=lambda hit: _claim_order(hit[1])):
        if case.waste is None or finding.waste_fraction is None:
            shared.append(finding)
        elif case.waste.pool == "busy" and waiting and finding.confidence != "measured":
            shared.append(_blocked(finding))
        else:
            pool = case.waste.pool if case.waste.pool in left else "all"
            claimed = max(0.0, min(finding.waste_fraction, left[pool]))
            left[pool] -= claimed
            claimed *= 1.0 if pool == "outside" else within
            if claimed >= _WORTH_SAYING or finding.confidence == "measured":
                severity = next(s for limit, s in _SEVERITY_FROM if claimed >= limit)
                if severity == "high" and finding.confidence == "possible":
                    severity = "medium"
                if pool == "outside" and case.severity is not None:
                    severity = case.severity
                shared.append(
                    msgspec.structs.replace(
                        finding, waste_fraction=round(claimed, 4), severity=severity
                    )
                )
    return shared


def _blocked(finding: Finding) -> Finding:
    """Return the finding as minor: faster kernels gain nothing while the GPU waits."""
    cause = join((finding.cause, Message("cause.gains-nothing-yet")), "sentences")
    return msgspec.structs.replace(finding, cause=cause, severity="low", waste_fraction=None)


def _doubt(finding: Finding, why: Message) -> Finding:
    """Return a finding of too little as possible: it shows what is there, not what goes on."""
    severity: Severity = "medium" if finding.severity == "high" else finding.severity
    return msgspec.structs.replace(
        finding,
        confidence="possible",
        severity=severity,
        cause=join((finding.cause, why), "sentences"),
        waste_fraction=None,
    )


def _claim_order(finding: Finding) -> tuple[int, float, str]:
    return (_CONFIDENCE_ORDER[finding.confidence], -(finding.waste_fraction or 0.0), finding.code)


def _rank(finding: Finding) -> tuple[int, int, float, str]:
    # Before anything is tuned; what was measured comes before why it is so.
    grave = finding.severity == "high" and (
        finding.code in {FAILING, "poor-scaling"} or ends_job(finding)
    )
    order = -1 if grave else _SEVERITY_ORDER[finding.severity]
    return (
        _INFO_ORDER.get(finding.code, order) if finding.severity == "info" else order,
        _CONFIDENCE_ORDER[finding.confidence],
        -(finding.waste_fraction or 0.0),
        finding.code,
    )


def ends_job(finding: Finding) -> bool:
    """Return whether a finding is of what ended the job or will: an error, or memory."""
    return any(reading.metric in _ENDS for reading in finding.evidence)


def _price(finding: Finding, cost: Decimal | None) -> Finding:
    if cost is None or finding.waste_fraction is None:
        return finding
    return msgspec.structs.replace(
        finding, waste_usd=cents(cost * Decimal(str(finding.waste_fraction)))
    )


SWITCH_HOURS = 1.0  # what takes no longer is done beside a better action of the same mechanism


def reclaimable(findings: tuple[Finding, ...], profile: Profile) -> float | None:
    """Return the share of held time that `idle-shutdown` may save; None without a reason."""
    called = {
        f.code for f in findings if "idle-shutdown" in f.actions and f.confidence != "possible"
    }
    if called == {LEFT_ON}:
        return profile.idle_around_fraction
    return idle_share(profile) if called else None


def fixes(findings: tuple[Finding, ...], signals: Signals) -> tuple[Action, ...]:
    """Return the safe actions that the findings call for and that gain something, best first.

    Of each mechanism the strongest, and beside it what is only a switch.
    """
    codes = dict.fromkeys(code for finding in findings for code in finding.actions)
    useful = compatible(
        fix
        for fix in (action(code, signals) for code in codes)
        if fix.kind == "safe" and _gain(fix) > 1.0 and fix.is_proved(signals)
    )
    return tuple(
        fix for fix in useful if fix.effort_hours <= SWITCH_HOURS or fix is _strongest(fix, useful)
    )


def _gain(cure: Action) -> float:
    return cure.gain[1] if cure.gain else 1.0


def _strongest(cure: Action, actions: Iterable[Action]) -> Action:
    return max((a for a in actions if a.mechanism == cure.mechanism), key=_gain)
