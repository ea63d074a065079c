"""Carries out what `gpucost reap` judged: each run on its own, so that none hinders another."""

from gpucost.files.user_folders import state_folder
from gpucost.machines.confirm import confirm
from gpucost.views.output import Output
from pricing.errors import GpucostError, LaunchInterruptedError
from pricing.listing import counted
from providers.lifecycle.reap import Verdict, carry_out
from providers.lifecycle.session import Session
from providers.ssh.connection import drop_key

Judged = list[tuple[Session, Verdict]]
"""What is to be done with each run, and the session in which it is done."""


def carry_out_all(pairs: Judged, output: Output, *, yes: bool) -> list[GpucostError]:
    """Remove, adopt and close what was judged, once removals are confirmed; return what failed.

    Raises:
        LaunchInterruptedError: interrupted meanwhile; a next `gpucost reap` goes on.
        RefusedError, InputError: not confirmed.
    """
    removed = [verdict for _, verdict in pairs if verdict.action == "remove"]
    if removed:
        things = sum(len(verdict.resources) for verdict in removed)
        confirm(f"Remove {counted(things, 'resource')} of {counted(len(removed), 'run')}?", yes=yes)
    troubles: list[GpucostError] = []
    for session, verdict in pairs:
        try:
            carry_out(session, verdict)
            if verdict.action in ("remove", "close"):
                drop_key(state_folder(), verdict.marks.run)
        except KeyboardInterrupt as error:
            told = f"interrupted at {verdict.marks.run}; `gpucost reap` goes on."
            raise LaunchInterruptedError(told) from error
        except GpucostError as error:
            troubles.append(error)
    if removed and not troubles:
        output.say(f"{counted(len(removed), 'run')} removed.")
    return troubles
