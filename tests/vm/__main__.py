"""Leaves a virtual machine up, set up as a launch would: `python -m tests.vm [HOURS]`.

It has one GPU of a stand-in, and goes off at its deadline or with Ctrl-C.
"""

import sys
import tempfile
from pathlib import Path

from templates.bootstrap_files import render_bootstrap
from tests.vm.image import build_image
from tests.vm.machine import VirtualMachine
from tests.vm.test_boot import BOOT_S, gpus_that, machine_until


def main() -> None:
    """Boot, wait until it is ready, say how to log in, and stay until it is off."""
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    settings = machine_until(int(hours * 3600), end="poweroff")
    with tempfile.TemporaryDirectory() as folder:
        vm = VirtualMachine(
            build_image(),
            Path(folder),
            render_bootstrap(settings),
            vendor_data=gpus_that("echo 50 >/var/lib/gpu-shim/work"),
        )
        try:
            status = vm.wait_for("cat /var/lib/gpucost/status", BOOT_S)
            print(f"{status}: ssh -i {vm.image.key} -p {vm.port} root@127.0.0.1", flush=True)  # noqa: T201
            vm.process.wait()
        except KeyboardInterrupt:
            vm.stop()


if __name__ == "__main__":
    main()
