"""The measured command as a process: everything that it inherits is the caller's.

It is started with fork and exec, so that what Python changed at its own start is put back in
between: the signals that it ignores, the mask, a timer that the caller left running.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING, NoReturn

from pricing.errors import GpucostError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_SHELL = "/bin/sh"
# Python ignores these at its own start; a program finds them as the system has them.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_ERROR_BYTES = 4


class CommandError(GpucostError):
    """The command could not be started; the exit code is the shell's for that."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class Child:
    """The command, running.

    Args:
        command: the program and its arguments.
        environment: the whole of it.
        mask: the signals that the caller had blocked.

    Attributes:
        pid: its process.
        stopped_by: the signal that stopped it, None while it runs.
        code: once it has ended its exit code, -N where signal N ended it; None before.
        dumped_core: whether it left a core file.

    Raises:
        CommandError: there is no such program, or it may not be run.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mask: Collection[int] = (),
    ) -> None:
        self.stopped_by: int | None = None
        self.code: int | None = None
        self.dumped_core = False
        self.pid = _started(command, environment, mask)

    def look(self) -> bool:
        """Take note of what became of it, without waiting; return whether it has ended."""
        if self.code is not None:
            return True
        looked = os.WEXITED | os.WSTOPPED | os.WNOHANG
        while (found := os.waitid(os.P_PID, self.pid, looked)) is not None:
            if found.si_code == os.CLD_STOPPED:
                self.stopped_by = found.si_status
                continue
            by_signal = found.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
            self.code = -found.si_status if by_signal else found.si_status
            self.dumped_core = found.si_code == os.CLD_DUMPED
            return True
        return False

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.code is None:
            os.kill(self.pid, number)


def leave_as(code: int) -> NoReturn:
    """End this process as a child ended: with its exit code, or by the same signal.

    A shell that waits for us then does what it does after the command: a loop ends at Ctrl-C. The
    core file was the child's; we leave none.
    """
    if code < 0:
        if -code in _DUMPING:
            _leave_no_core()
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
        os._exit(_by_signal(-code))  # the first process of a container is not ended by signals
    os._exit(code)


_DUMPING = frozenset(
    (
        signal.SIGQUIT,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGSEGV,
        signal.SIGXCPU,
        signal.SIGXFSZ,
        signal.SIGSYS,
    )
)
_PR_SET_DUMPABLE = 4


def _by_signal(number: int) -> int:
    return 128 + number


def _leave_no_core() -> None:
    import ctypes  # noqa: PLC0415 - only where a job crashed

    try:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return


def _started(command: Sequence[str], environment: Mapping[str, str], mask: Collection[int]) -> int:
    """Fork and exec; return the process, or raise what exec said."""
    told, tell = os.pipe()
    timer = signal.getitimer(signal.ITIMER_REAL)
    children = signal.getsignal(signal.SIGCHLD)
    # Where the caller ignores the end of children, the system would not tell us of ours.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        try:
            for number in _IGNORED_BY_PYTHON:
                signal.signal(number, signal.SIG_DFL)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            if children is signal.SIG_IGN:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _exec(command, environment)
        except OSError as error:
            os.write(tell, (error.errno or errno.EIO).to_bytes(_ERROR_BYTES, "little"))
        finally:
            os._exit(_NOT_FOUND)
    os.close(tell)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    problem = os.read(told, _ERROR_BYTES)
    os.close(told)
    if problem:
        os.waitpid(pid, 0)
        signal.setitimer(signal.ITIMER_REAL, *timer)
        raise _refused(command[0], int.from_bytes(problem, "little"))
    return pid


def _exec(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become the command; a script without its first line is the shell's, as everywhere."""
    try:
        os.execvpe(command[0], [*command], dict(environment))  # noqa: S606 - the user's command
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        os.execve(_SHELL, [_SHELL, _path(command[0], environment), *command[1:]], dict(environment))  # noqa: S606 - the same


def _path(name: str, environment: Mapping[str, str]) -> str:
    if "/" in name:
        return name
    folders = os.get_exec_path(dict(environment))
    found = (os.path.join(folder, name) for folder in folders)  # noqa: PTH118 - between fork and exec
    return next((path for path in found if os.access(path, os.X_OK)), name)


def _refused(name: str, number: int) -> CommandError:
    if number in (errno.ENOENT, errno.ENOTDIR):
        return CommandError(f"{name}: no such program.", _NOT_FOUND)
    return CommandError(f"{name}: cannot be run: {os.strerror(number)}.", _NOT_RUNNABLE)
