"""A record of own outcomes: it centres what is off, widens what was too sure, never narrows."""

import math
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.estimate import Estimate, Interval
from planner.models.track_record import (
    PastPrediction,
    correction,
    outcome_line,
    parse_outcomes,
    track_record,
)
from pricing.errors import InputError

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TOLD = Interval(low=1.5, mid=2.0, high=3.0)
SHIPPED = Estimate(low=1.5, mid=2.0, high=3.0, basis="shipped")


def outcome(
    measured: float, number: int = 0, told: Interval = TOLD, *, moved: bool = False
) -> PastPrediction:
    """Return an outcome, measured to 2 %."""
    return PastPrediction(
        id=f"{number:04}",
        recorded=NOW,
        job="train",
        option="train/o1",
        actions=("dataloader-workers",),
        moved=moved,
        predicted=told,
        measured=Interval(low=measured / 1.02, mid=measured, high=measured * 1.02),
        verdict="proved",
    )


def outcomes(*measured: float) -> list[PastPrediction]:
    """Return an outcome each."""
    return [outcome(one, number) for number, one in enumerate(measured)]


_ENDS = st.tuples(st.floats(0.2, 5), st.floats(1, 3), st.floats(1, 3)).map(
    lambda drawn: Interval(low=drawn[0] / drawn[1], mid=drawn[0], high=drawn[0] * drawn[2])
)
_RECORDS = st.lists(st.tuples(st.floats(0.1, 10), _ENDS), min_size=1, max_size=30)


@given(_RECORDS, _ENDS)
def test_never_narrower_than_shipped(record: list[tuple[float, Interval]], told: Interval) -> None:
    """Whatever is in the record, the interval is at least as wide as the shipped one, in logs."""
    known = [outcome(m, number, ends) for number, (m, ends) in enumerate(record)]
    shipped = Estimate(low=told.low, mid=told.mid, high=told.high, basis="shipped")
    own = correction(known).applied_to(shipped)
    assert own.mid / own.low >= shipped.mid / shipped.low * (1 - 1e-9)
    assert own.high / own.mid >= shipped.high / shipped.mid * (1 - 1e-9)


@given(_RECORDS)
def test_never_narrower_than_what_was_seen(record: list[tuple[float, Interval]]) -> None:
    """The corrected interval of each recorded prediction holds 90 % of what was measured."""
    wide = [
        (
            m,
            msgspec.structs.replace(
                e, low=min(e.low, e.mid / 1.05), high=max(e.high, e.mid * 1.05)
            ),
        )
        for m, e in record
    ]
    known = [outcome(m, number, ends) for number, (m, ends) in enumerate(wide)]
    law, inside = correction(known), 0
    for measured, told in wide:
        own = law.applied_to(Estimate(low=told.low, mid=told.mid, high=told.high, basis=""))
        inside += own.low * (1 - 1e-9) <= measured <= own.high * (1 + 1e-9)
    assert inside >= 0.9 * len(wide)


def test_few_outcomes_stay_close_to_the_shipped() -> None:
    """One outcome inside its interval changes nothing."""
    own = correction(outcomes(2.3)).applied_to(SHIPPED)
    assert (own.low, own.mid, own.high) == pytest.approx((1.5, 2.0, 3.0))


def test_one_outcome_far_out_widens_and_does_not_move() -> None:
    """Whether predictions are off or only too sure, one outcome cannot tell."""
    law = correction(outcomes(9.0))
    assert law.shift == 0.0
    assert law.applied_to(SHIPPED).high >= 9.0 * (1 - 1e-9)


def test_many_outcomes_that_agree_centre() -> None:
    """Twenty that measured 2.4 where 2.0 was told move the next prediction to 2.4, nearly."""
    own = correction(outcomes(*[2.4] * 20)).applied_to(SHIPPED)
    assert own.mid == pytest.approx(2.4, rel=0.02)
    assert "20 outcomes of your own" in own.basis


def test_more_outcomes_move_more() -> None:
    """The shift grows with the number of outcomes that agree, from none to nearly all."""
    shifts = [correction(outcomes(*[2.4] * n)).shift for n in (1, 3, 10, 100)]
    assert shifts == sorted(shifts)
    assert shifts[0] == 0.0
    assert shifts[-1] == pytest.approx(math.log(1.2), rel=0.02)


def test_misses_on_both_sides_widen_and_do_not_move() -> None:
    """Half of them far above, half far below: wider, at the same middle."""
    law = correction(outcomes(*[4.5, 2.0 / 2.25] * 8))
    assert law.widened > 1.9
    assert law.shift == 0.0


def test_sorts_do_not_teach_each_other() -> None:
    """What a move did says nothing about changes on today's machine."""
    record = track_record("r", [outcome(9.0, 1, moved=True)])
    assert record.same_machine.applied_to(SHIPPED) == SHIPPED
    assert record.moved.widened > 1.0


def test_what_a_record_had_corrected_is_not_corrected_twice() -> None:
    """An outcome of a centred prediction teaches the same as that of the shipped one."""
    shipped = outcome(2.4, 1)
    told = Interval(low=TOLD.low * 1.2, mid=TOLD.mid * 1.2, high=TOLD.high * 1.2)
    centred = msgspec.structs.replace(outcome(2.4, 1, told), shift=math.log(1.2))
    assert centred.log_error == pytest.approx(shipped.log_error)
    assert correction([centred] * 1).widened == correction([shipped]).widened


def test_an_outcome_recorded_twice_counts_once() -> None:
    """The last line of an id counts."""
    twice = track_record("r", [outcome(2.3, 1), outcome(2.3, 1)])
    assert twice.same_machine.outcomes == 1


def test_a_line_reads_back() -> None:
    """Written and read back, an outcome is the same, and a cut last line is left out."""
    known = outcomes(2.4, 0.5)
    text = "".join(map(outcome_line, known))
    assert parse_outcomes(text, "r") == tuple(known)
    assert parse_outcomes(text + '{"schema', "r") == tuple(known)


@pytest.mark.parametrize("line", ["[]", "x", "{}", '{"schema":"gpucost.plan/v1"}'])
def test_a_strange_line_is_refused(line: str) -> None:
    """What is no outcome is named with file and line."""
    with pytest.raises(InputError, match="r:1"):
        parse_outcomes(f"{line}\n", "r")
