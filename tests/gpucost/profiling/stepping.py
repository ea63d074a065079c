"""A job that tells its steps as the probe does; real PyTorch is in tests/torch.

usage: stepping.py STEPS SECONDS_A_STEP [EXIT_CODE]
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

WAIT_SHARE = 0.75


def main() -> int:
    """Step, and say so."""
    folder, pid = Path(os.environ["GPUCOST_PROBE_DIR"]), os.getpid()
    with (folder / "reached").open("a", encoding="ascii") as stream:
        stream.write(f"{pid}\n")
    steps, step_s = int(sys.argv[1]), float(sys.argv[2])
    with (folder / f"{pid}-1.jsonl").open("a", encoding="utf-8", buffering=1) as stream:

        def say(event: str, **more: Any) -> None:
            stream.write(
                json.dumps({"event": event, "t_s": time.time(), "pid": pid, **more}) + "\n"
            )

        say("hello", ppid=os.getppid(), framework="pytorch")
        say("loader", loader=1, batch_size=16)
        for i in range(steps):
            time.sleep(step_s)
            parts = {"step_s": step_s, "data_wait_s": WAIT_SHARE * step_s, "h2d_s": None}
            rest = {"optimizer_s": 0.0, "checkpoint_s": 0.0, "evaluation_s": 0.0}
            say("step", step=i + 1, n=1, items=16, loader=1, **parts, **rest)
    return int(sys.argv[3]) if len(sys.argv) > 3 else 0


if __name__ == "__main__":
    sys.exit(main())
