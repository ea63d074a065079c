"""What a loop has rented is told by the journal, whatever became of the loop itself."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from gpucost.jobs.request import JobRequest, job_folder
from gpucost.loop.loop_steps import rented
from gpucost.machines.state import open_journal
from tests.providers.launches import a_spec


def test_launches_are_found_by_the_folder_of_their_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open one counts with what was confirmed, an ended one with its ledger; others do not."""
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "state"))
    now = datetime.now(UTC)
    ours, other = a_spec(), a_spec()
    with open_journal() as journal:
        for spec in (ours, other):
            journal.open_run(spec, Decimal("3.25"), now)
    for spec, name in ((ours, "loop"), (other, "elsewhere")):
        request = JobRequest(command="true", folder=str(tmp_path / name))
        job_folder(spec.marks.run).keep(request)
    (one,) = rented((tmp_path / "loop",))
    assert (one.run, one.is_open, one.usd) == (ours.marks.run, True, Decimal("3.25"))
    with open_journal() as journal:
        journal.mark_run(ours.marks.run, "ended", now)
    (one,) = rented((tmp_path / "loop",))
    assert (one.is_open, one.usd, one.launched_nothing) == (False, Decimal(0), True)
