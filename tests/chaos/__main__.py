"""`make chaos`: every trial at every provider; prints the counts, fails when anything is left."""

import sys
import time

from tests.chaos.programme import everything, some
from tests.chaos.trials import Count, stage
from tests.chaos.worlds import WORLDS


def main(arguments: list[str]) -> int:
    """Run the trials; the exit code is 0 when all were clean."""
    programme = some if "--some" in arguments else everything
    wanted = [kind for kind in WORLDS if kind in arguments] or list(WORLDS)
    total, started = Count(), time.monotonic()
    for kind in wanted:
        with stage(kind) as here:
            for name, count in programme(here):
                total.add(count)
                print(f"{kind}: {_line(name, count)}", flush=True)
                for told in count.told:
                    print(f"    {told}", flush=True)
    print(_line("all", total))
    print(f"in {time.monotonic() - started:.0f} s")
    return 0 if total.is_clean else 1


def _line(name: str, count: Count) -> str:
    return (
        f"{name}: {count.trials} trials, {count.kills} killed; left: {count.machines} machines, "
        f"{count.side_resources} side resources; foreign touched: {count.foreign}; "
        f"ledger: {count.ledger} of {count.billed} wrong; clean-up refused: {count.refused}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
