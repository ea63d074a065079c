"""What a command said, and what the journal holds, against what the account has."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from providers.interface import Deployment, JournaledResource
from providers.journal.journal import FILE, Journal, JournalError
from providers.journal.ledger import bill_machine
from tests.chaos.accounts import Account
from tests.chaos.wire import Ended

_INTENT = timedelta(seconds=80)  # the longest that a call and its repetitions take in a trial
_SECOND = timedelta(seconds=2)  # providers tell whole seconds, also of what time it is
_NOTHING = re.compile(
    r"nothing to end|you have no resources at|nothing is left|no machines running|was found\."
)
_GONE = re.compile(r"^(?:\w+: )?([a-z2-9]{8}) is gone", re.MULTILINE)


@dataclass(kw_only=True)
class Count:
    """What trials of one kind came to; all but the first five must be 0.

    Attributes:
        trials: how many.
        kills: of them, with a process that was killed.
        billed: machines whose ledger was held against the provider's.
        may_stay: machines after the deadline with nobody there that the preview has announced.
        told: what went wrong, with the log.
        machines, side_resources: of ours that are left after the recovery.
        late: machines after the deadline with nobody there, which nothing announced.
        foreign: of others that are gone.
        cap: launches that cost more than the cap.
        ledger: machines whose ledger disagrees with the provider's.
        lies: sentences and entries of the journal that the account denies.
        bugs: commands that ended with a traceback or exit code 1.
        refused: recoveries that did not end with 0.
    """

    trials: int = 0
    kills: int = 0
    billed: int = 0
    may_stay: int = 0
    told: list[str] = field(default_factory=list)
    machines: int = 0
    side_resources: int = 0
    late: int = 0
    foreign: int = 0
    cap: int = 0
    ledger: int = 0
    lies: int = 0
    bugs: int = 0
    refused: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left, touched, late, dear or untrue."""
        return not any(getattr(self, name) for name in BAD)

    def add(self, other: "Count") -> None:
        """Add the counts of another kind."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


BAD = (
    "machines",
    "side_resources",
    "late",
    "foreign",
    "cap",
    "ledger",
    "lies",
    "bugs",
    "refused",
)


def runs_of(state: Path) -> tuple[Deployment, ...]:
    """What the journal holds; nothing where it cannot be read."""
    if not (state / FILE).is_file():
        return ()
    try:
        journal = Journal(state)
    except JournalError:
        return ()
    try:
        return journal.deployments()
    except JournalError:
        return ()
    finally:
        journal.close()


def lies(ended: Ended, account: Account, state: Path) -> Iterator[str]:
    """What was said, or written down, of machines that the account denies."""
    machines = account.computers.now()
    alive = {one.seen.run for one in machines.values()} | {*account.taken.values()}
    for run in _GONE.findall(ended.output):
        if run in alive:
            yield f"{run} is said to be gone"
    said = _NOTHING.search(ended.output)
    if said and alive:
        yield f"{said[0]!r} is said, and {sorted(alive)} lives"
    if ended.was_killed:
        return
    now = datetime.now(UTC)
    for run in runs_of(state):
        if run.state == "ended" and run.marks.run in alive:
            yield f"{run.marks.run} is ended in the journal"
        for one in run.machines:
            machine = machines.get(one.id)
            if one.state == "gone" and machine is not None:
                yield f"{one.id} is gone in the journal"
            promised = run.state == "ready" and run.self_destroy is not False
            armed = machine is not None and (machine.is_armed(now) or account.ends_pool(machine))
            if promised and machine is not None and not armed:
                yield f"{run.marks.run} is ready, and nothing ends {one.id}"


def check_ledger(
    account: Account, state: Path, count: Count, log: Path, answers: Sequence[bytes]
) -> None:
    """Hold every machine of the journal against the life that the account saw.

    Args:
        account: whose machines they were.
        state: folder of the journal.
        count: gets what disagrees.
        log: named where it does.
        answers: of the account, to commands that were not killed.
    """
    runs = runs_of(state)
    known = {one.id: (run, one) for run in runs for one in run.machines if one.id}
    for key, (born, died) in account.lives().items():
        if died is None:
            continue  # counted as left
        if key not in known and key in account.computers.ended:
            continue  # its making was never told, and nobody came before it ended itself
        if key not in known and account.makes_nodes and not _is_shown(key, answers):
            continue  # it went with its pool, and no answer to anybody who lived on showed it
        count.billed += 1
        run, one = known.get(key, (None, None))
        told = "is not in the journal"
        if one is not None and run is not None:
            told = _disagrees(run, one, born, died)
        if told:
            count.ledger += 1
            count.told.append(f"ledger: {key} {told}: {log}")
    open_runs = [run.marks.run for run in runs if run.state != "ended"]
    if open_runs:
        count.ledger += 1
        count.told.append(f"ledger: {open_runs} still open: {log}")


def _is_shown(key: str, answers: Sequence[bytes]) -> bool:
    """Whether an id stands in an answer."""
    word = re.compile(rb"(?<![\w-])" + re.escape(key.encode()) + rb"(?![\w-])")
    return any(word.search(one) for one in answers)


def _disagrees(run: Deployment, one: JournaledResource, born: datetime, died: datetime) -> str:
    """What is wrong with a machine's ledger; empty: nothing.

    It begins when the provider made the machine, ends when it was seen to be gone, never before
    the provider ended it, and bills at least the seconds between; all by the provider's clock.
    """
    if one.billed_from is None or one.billed_until is None:
        return "has no times"
    # Lambda does not tell when an instance was made: there its bill may begin with the intent.
    early = born - one.billed_from > (_INTENT if run.provider == "lambda" else _SECOND)
    if early or one.billed_from - born > _SECOND or died - one.billed_until > _SECOND:
        return f"lived {born} to {died}, and is billed {one.billed_from} to {one.billed_until}"
    billed_s, usd = bill_machine(one, run.offer, one.billed_until)
    if usd is None or usd <= 0 or billed_s < (died - born - _SECOND).total_seconds():
        return f"lived {died - born}, and is billed {billed_s} s, {usd} USD"
    return ""
