"""`make chaos`: every trial at every provider; prints the tables, fails when a count is not 0."""

import sys
import time
from collections.abc import Iterable

from tests.chaos.accounts import ACCOUNTS
from tests.chaos.laptop import gone_table
from tests.chaos.programme import everything, some
from tests.chaos.trials import stage
from tests.chaos.truth import BAD, Count

_TITLES = {
    "machines": "left",
    "side_resources": "side",
    "late": "late",
    "foreign": "foreign",
    "cap": "cap",
    "ledger": "ledger",
    "lies": "lies",
    "bugs": "bugs",
    "refused": "refused",
}
_WIDTH = 34


def main(arguments: list[str]) -> int:
    """Run the trials; the exit code is 0 when all were clean."""
    programme = some if "--some" in arguments else everything
    wanted = [kind for kind in ACCOUNTS if kind in arguments] or list(ACCOUNTS)
    total, started = Count(), time.perf_counter()
    for kind in wanted:
        print(f"\n{kind:{_WIDTH}} {_row(('trials', 'killed', *_TITLES.values()))}")
        with stage(kind) as here:
            for name, count in programme(here):
                total.add(count)
                print(f"{name:{_WIDTH}} {_row(_cells(count))}", flush=True)
                for told in count.told:
                    print(f"    {told}", flush=True)
            print()
            for line in gone_table(here):
                print(line, flush=True)
    print(f"\n{'all':{_WIDTH}} {_row(_cells(total))}")
    print(
        f"{total.billed} machines held against the provider's bill; after the deadline with nobody "
        f"there, {total.may_stay} as the preview says; {time.perf_counter() - started:.0f} s"
    )
    return 0 if total.is_clean else 1


def _cells(count: Count) -> list[int]:
    return [count.trials, count.kills, *(getattr(count, name) for name in BAD)]


def _row(cells: Iterable[object]) -> str:
    return " ".join(f"{cell!s:>7}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
