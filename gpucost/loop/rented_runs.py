"""What a loop has rented, found by the folder that its results come to, and what that costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from gpucost.jobs.job_folder import job_folder
from gpucost.machines.state import CLOCK, open_journal
from pricing.errors import RefusedError
from providers.interface import Deployment
from providers.journal.ledger import bill_run


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedRun:
    """A launch of a loop.

    Attributes:
        run: its id.
        is_open: whether something of it may be there.
        usd: its bill so far; while it is open what it costs at its deadline.
        launched_nothing: whether no machine of it was ever made.
    """

    run: str
    is_open: bool
    usd: Decimal
    launched_nothing: bool


def rented(folders: Iterable[Path]) -> tuple[RentedRun, ...]:
    """Return the launches whose results come to one of the folders, in the order of their start.

    Raises:
        JournalError: the journal cannot be used.
        RefusedError: what one costs is not known.
    """
    wanted = {str(folder.resolve()) for folder in folders}
    with open_journal() as journal:
        runs = journal.deployments()
    ours = [run for run in runs if _folder_of(run) in wanted]
    return tuple(_rented(run) for run in sorted(ours, key=lambda run: run.started_at))


def _folder_of(run: Deployment) -> str | None:
    request = job_folder(run.marks.run).request()
    return None if request is None else str(Path(request.folder).resolve())


def _rented(run: Deployment) -> RentedRun:
    is_open = run.ended_at is None
    usd = run.predicted_usd if is_open else bill_run(run, CLOCK.at(0.0)).usd
    if usd is None:
        raise RefusedError(
            f"{run.marks.run}: what it costs is not known, so what is left of the budget is not, "
            f"either; `gpucost show {run.marks.run}` looks."
        )
    made = any(machine.billed_from is not None for machine in run.machines)
    return RentedRun(run=run.marks.run, is_open=is_open, usd=usd, launched_nothing=not made)
