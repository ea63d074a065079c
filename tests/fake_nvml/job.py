"""A program that works on GPUs of the fake: it says so in the folder FAKE_NVML_PROCESSES.

Usage: python job.py DEVICE[,DEVICE...] SECONDS [--gib 10] [--sm 50] [--kind compute] [--busy]
       [--children N]

It holds so many GiB of each device, of whose SMs it uses so many percent; `--busy` fills a core of
the processor meanwhile. With `--children`, N processes do that instead, and the program waits.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Be on the devices for so long."""
    parser = argparse.ArgumentParser()
    parser.add_argument("devices")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--gib", type=float, default=10.0)
    parser.add_argument("--sm", type=float, default=50.0)
    parser.add_argument("--kind", default="compute")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--children", type=int, default=0)
    asked = parser.parse_args()
    if asked.children:
        words = [word for word in sys.argv[1:] if word != "--children"]
        words.remove(str(asked.children))
        script = [sys.executable, __file__, *words]
        for child in [subprocess.Popen(script) for _ in range(asked.children)]:
            child.wait()
        return
    folder = Path(os.environ["FAKE_NVML_PROCESSES"])
    held = [
        folder / f"{device},{os.getpid()},{asked.kind}"
        for device in asked.devices.split(",")
        if device
    ]
    for path in held:
        path.write_text(f"{asked.gib} {asked.sm}\n")
    end_s = time.monotonic() + asked.seconds
    while time.monotonic() < end_s:
        if not asked.busy:
            time.sleep(min(0.1, max(0.0, end_s - time.monotonic())))
    for path in held:
        path.unlink()


if __name__ == "__main__":
    main()
