"""Did others work on the machine while a run was measured? Then a difference may be theirs."""

from planner.profile.model import Profile

# Of all cores: who wants one more waits for it. As what a profile notes of itself.
_FULL = 0.9
# Of all cores: less than this of others' work is the machine's own; our choice.
_THEIRS = 0.1


def others_work(profile: Profile) -> str | None:
    """Return how full the machine was with others' work; None where it was not, or is not known."""
    host, machine = profile.host, profile.machine
    whole = machine.cpu_util.typical if machine and machine.cpu_util else None
    own, cores = (
        host.cpu_util.typical if host and host.cpu_util else None,
        profile.hardware.cpu_cores,
    )
    if whole is None or own is None or machine is None or not machine.cpu_cores or not cores:
        return None
    share = own * cores / machine.cpu_cores
    if whole < _FULL or whole - share < _THEIRS:
        return None
    return f"{whole:.0%} of the machine's cores were busy, {share:.0%} with this job"
