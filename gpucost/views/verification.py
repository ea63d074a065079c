"""A verification as a table: what was measured, predicted and charged, side by side."""

from decimal import Decimal

from gpucost.views.output import Output, Table, print_table
from planner.proof.verify import VerificationDocument
from pricing.money import plain, show

_COLUMNS = ("what", "low", "mid", "high", "how sure")


def print_verification(document: VerificationDocument, output: Output) -> None:
    """Print the verdict and the figures behind it; what a reader must know is said beside."""
    title = f"{document.job}: {document.verdict}: {document.why}"
    rows = (_speed(document), *_predicted(document), *_saves(document, output), *_bill(document))
    table = Table(
        title="" if output.format == "csv" else title,
        columns=_COLUMNS,
        rows=rows,
        right=frozenset(_COLUMNS[1:4]),
    )
    print_table(table, output)
    for one in document.same_job.differs:
        output.say(f"differs: {one.what}: {one.before} before, {one.after} after.")
    output.say(document.losses.why)
    for note in document.notes:
        output.say(f"note: {note}")


def _speed(document: VerificationDocument) -> tuple[str, ...]:
    speed = document.speedup
    if speed is None:
        return ("speed-up measured", "", "unknown", "", "too few steps")
    ends = (f"{x:.3g}x" for x in (speed.low, speed.mid, speed.high))
    return ("speed-up measured", *ends, f"{speed.confidence:.0%} interval")


def _predicted(document: VerificationDocument) -> list[tuple[str, ...]]:
    said = document.predicted
    if said is None:
        return []
    ends = (f"{x:.3g}x" for x in (said.speedup.low, said.speedup.mid, said.speedup.high))
    held = {True: ": held", False: ": did not hold", None: ""}[said.held]
    return [(f"speed-up predicted ({said.option})", *ends, f"90% interval{held}")]


def _saves(document: VerificationDocument, output: Output) -> list[tuple[str, ...]]:
    saves = document.saves
    if saves is None:
        return []
    money = plain if output.format == "csv" else show
    share = "" if saves.fraction is None else f"{saves.fraction:+.0%} of the bill before"
    rows: list[tuple[str, ...]] = [
        (
            f"USD saved a {saves.period}",
            money(saves.low),
            money(saves.usd),
            money(saves.high),
            share,
        ),
        ("USD before", "", money(saves.usd_before), "", f"{saves.hours_before:.4g} h"),
        ("USD after", "", money(saves.usd_after), "", f"{saves.hours_after:.4g} h"),
    ]
    if document.predicted is not None and document.predicted.usd is not None:
        rows.append(("USD after, predicted", "", money(document.predicted.usd), "", ""))
    return rows


def _bill(document: VerificationDocument) -> list[tuple[str, ...]]:
    bill = document.bill
    if bill is None:
        return []
    off = f"{_signed(bill.difference_usd)} against USD {show(bill.measured_usd)} by measurement"
    return [("USD on the invoice", "", show(bill.billed_usd), "", off)]


def _signed(amount: Decimal) -> str:
    return f"{'+' if amount >= 0 else '-'}{show(abs(amount))}"
