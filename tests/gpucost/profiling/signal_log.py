"""A job that writes down each signal it gets, one a line: number, and who sent it.

usage: signal_log.py FILE      ends with 0 at SIGRTMIN
"""

import os
import signal
import sys
from pathlib import Path

ALL = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def main() -> int:
    """Take signals as they come."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    with Path(sys.argv[1]).open("a", encoding="ascii", buffering=1) as stream:
        stream.write(f"pid {os.getpid()}\n")
        while (got := signal.sigwaitinfo(ALL)).si_signo != signal.SIGRTMIN:
            stream.write(f"{got.si_signo} {got.si_pid}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
