"""What a loop has done so far, in `loop.json` of its folder (`gpucost.loop/v1`)."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec

from gpucost.files.writing import write_file
from planner.models.document import convert, to_text
from planner.plan.job import Effect
from pricing.errors import InputError
from pricing.money import Amount

NAME = "loop.json"
SCHEMA = "gpucost.loop/v1"
HERE = "here"
"""Where a round ran that rented nothing."""

Verdict = Literal["proved", "not-proved", "worse"]
Done = Literal["chosen", "measured", "verified"]


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment.

    Attributes:
        folder: of its files, below the loop's; "" is the loop's own.
        before: profile that it is held against, below the loop's folder.
        option: JOB/ID in its plan.json.
        where: `here`, or PROVIDER/TYPE that is rented.
        settings: what it adds, in words, such as `dataloader-workers (num_workers 3)`.
        costs_usd: what the experiment was expected to cost; None without a price.
        can_save_usd: what the option saves at best over the plan's horizon.
        done: the last step that is done: chosen (plan.json and recipe.json are there), measured
            (after.json), verified (proof.json).
        verdict: of the verification.
        why: of the verdict, one sentence.
        speedup: measured, a 95 % interval.
        saves_usd: as measured, of the plan's period; None where unknown.
        period: of `saves_usd`.
    """

    folder: str
    before: str
    option: str
    where: str
    settings: tuple[str, ...]
    costs_usd: Amount | None = None
    can_save_usd: Amount | None = None
    done: Done = "chosen"
    verdict: Verdict | None = None
    why: str = ""
    speedup: Effect | None = None
    saves_usd: Amount | None = None
    period: Literal["month", "run"] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has its verdict."""
        return self.done == "verified"

    @property
    def key(self) -> tuple[str, ...]:
        """What was tried where, so that nothing is tried twice."""
        return (self.where, *self.settings)


class LoopRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A loop.

    Attributes:
        command: that is made faster.
        profiled: whether before.json is measured.
        rounds: experiments in order; the last one may be under way.
        spent_usd: on all that was rented, as the ledger counts it.
        ended: why it stopped, in sentences; empty while it goes on.
    """

    schema: str = SCHEMA
    command: tuple[str, ...]
    profiled: bool = False
    rounds: tuple[Round, ...] = ()
    spent_usd: Amount = Decimal(0)
    ended: tuple[str, ...] = ()

    @property
    def under_way(self) -> Round | None:
        """The round without a verdict yet."""
        return self.rounds[-1] if self.rounds and not self.rounds[-1].is_over else None

    @property
    def proved(self) -> Round | None:
        """The last round that was proved here: what the next one is held against."""
        won = (step for step in reversed(self.rounds) if step.verdict == "proved")
        return next((step for step in won if step.where == HERE), None)

    def with_round(self, step: Round) -> "LoopRecord":
        """Return the record with its last round replaced, or with one more after a verdict."""
        earlier = self.rounds[:-1] if self.under_way else self.rounds
        return msgspec.structs.replace(self, rounds=(*earlier, step))


def read_record(folder: Path, command: tuple[str, ...]) -> LoopRecord:
    """Return what is done in a folder; nothing yet where it holds no loop.

    Raises:
        InputError: its loop is of another command, or the file is damaged.
    """
    path = folder / NAME
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LoopRecord(command=command)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}; {_ANEW}.") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise InputError(f"{path}: not the record of a loop ({SCHEMA}); {_ANEW}.")
    try:
        record = convert(LoopRecord, raw)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: some of its values cannot be; {_ANEW}.") from error
    if record.command != command:
        raise InputError(
            f"{folder}: holds the loop of another command ({' '.join(record.command)}); {_ANEW}."
        )
    return record


_ANEW = "give --folder another name, or remove the folder, to begin anew"


def write_record(folder: Path, record: LoopRecord) -> None:
    """Write the record whole, or not at all."""
    write_file(str(folder / NAME), to_text(record))
