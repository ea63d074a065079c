"""What jobs waste and why, as sentences."""

from collections.abc import Iterable

from gpucost.views.output import print_prose
from gpucost.views.terminal.size import terminal_height
from planner.diagnosis.rules.rule import Finding
from planner.profile.model import Profile
from planner.signals.condition import Evidence
from planner.signals.signals import SIGNALS
from templates import report_text

_AROUND = 3  # lines of a screen beside the findings: the answer, what to type next, the prompt
_JOBS_REPEATED = 8


def print_findings(found: list[tuple[Profile, tuple[Finding, ...]]]) -> None:
    """Print each job's findings as sentences, the verdict first; again where it scrolled away."""
    printed = sum(_print_job(profile, findings) for profile, findings in found)
    if printed + _AROUND > terminal_height() or len(found) > 1:
        wasteful = sorted(found, key=lambda one: -_wasted(one[1]))
        for profile, findings in wasteful[:_JOBS_REPEATED]:
            print_prose(_verdict(profile, findings))
        if len(found) > _JOBS_REPEATED:
            print_prose(f"These waste most; the other {len(found) - _JOBS_REPEATED} stand above.")


def _print_job(profile: Profile, findings: tuple[Finding, ...]) -> int:
    """Print the findings of a job, and return on how many lines."""
    lines = print_prose(_verdict(profile, findings))
    for finding in findings:
        share = finding.waste_fraction
        wastes = "" if share is None else f", wastes {100 * share:.0f} %"
        head = f"{finding.code}: {finding.severity}, {finding.confidence}{wastes}"
        lines += print_prose(head, indent="  ")
        if finding is not findings[0]:
            lines += print_prose(finding.cause, indent="    ")
        for word, text in (
            ("seen", shown_readings(finding.evidence)),
            ("against", shown_readings(finding.against)),
            ("try", ", ".join(finding.actions[:3])),
        ):
            if text:
                lines += print_prose(f"{word}: {text}", indent="    ")
    return lines


def _verdict(profile: Profile, findings: tuple[Finding, ...]) -> str:
    return f"{profile.job.name}: {findings[0].cause if findings else 'nothing found.'}"


def _wasted(findings: tuple[Finding, ...]) -> float:
    return (findings[0].waste_fraction or 0.0) if findings else 0.0


def shown_readings(evidence: Iterable[Evidence]) -> str:
    """Return readings for people: `GPU busy 22 %, CPU 96 %`."""
    return ", ".join(_reading(e) for e in evidence)


def _reading(one: Evidence) -> str:
    signal = SIGNALS[one.metric]
    return report_text.reading(signal.name, one.value, signal.unit)
