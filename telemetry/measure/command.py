"""The measured command: started as the caller would, its signals served, its exit code returned.

Everything that it inherits is the caller's. It is started with fork and exec, so that what Python
changed at its own start is put back in between: ignored signals, the signal mask, a timer.

While it runs, every signal to this process is blocked and taken one by one, and reaches the command
once: what only we got is passed on; what the command got itself, as one of our group, is not. A
terminal, `timeout`, a shell's `kill %1` and a service manager signal a whole process group;
`kill PID` signals one process. Both look the same to the receiver. So a witness stands beside us: a
process of our group that does nothing and blocks every signal, so that `/proc` shows which reached
it. What the witness has, the command has got itself.
"""

import contextlib
import errno
import os
import shutil
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from pricing.errors import GpucostError

ALL = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
_COMM_BYTES = 15
_NOBODY = -1
_ARGUMENTS = slice(45, 47)  # begin and end in memory: of /proc/PID/stat, counted after the name
_PENDING = (b"SigPnd:", b"ShdPnd:")


class _Witness:
    """A process beside us that keeps the signals it got.

    It ends when we do, however we end. It bears the command's name, so that `pkill NAME` reaches it
    just when it reaches the command.

    Args:
        command: the program and its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._end, self._hold = os.pipe()
        self.pid = self._forked()

    def received(self) -> frozenset[int]:
        """Return the signals that reached it since it was renewed; none where it is gone."""
        try:
            with open(f"/proc/{self.pid}/status", "rb") as stream:  # noqa: PTH123 - quick
                lines = stream.read().splitlines()
        except OSError:
            return frozenset()
        masks = [int(line.split()[1], 16) for line in lines if line.startswith(_PENDING)]
        return frozenset(n for n in ALL if any(mask >> (n - 1) & 1 for mask in masks))

    def renew(self) -> None:
        """Start again, with nothing seen."""
        before, self.pid = self.pid, self._forked()
        _end(before)

    def close(self) -> None:
        """End it."""
        _end(self.pid)

    def _forked(self) -> int:
        try:
            pid = os.fork()
        except OSError:
            return _NOBODY  # no process may be added: every signal is passed on then
        if pid:
            return pid
        try:
            os.close(self._hold)
            let_go(errors=True)
            _take_name(self._command)
            os.read(self._end, 1)  # until we are gone
        finally:
            os._exit(0)


def _end(pid: int) -> None:
    if pid != _NOBODY:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def let_go(*, errors: bool = False) -> None:
    """Let go of what the caller handed to the command: who waits for its end, waits for it alone.

    Args:
        errors: let go of standard error, too.
    """
    devnull = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2) if errors else (0, 1):
        with contextlib.suppress(OSError):
            os.fstat(number)  # what was closed stays closed
            os.dup2(devnull, number)
    os.close(devnull)
    for number in inherited():
        os.close(number)


def inherited() -> list[int]:
    """Return the open descriptors above 2 that a program started now would get."""
    descriptors = []
    for word in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, no paths
        with contextlib.suppress(OSError):  # the listing's own
            if int(word) > 2 and os.get_inheritable(int(word)):  # noqa: PLR2004 - standard error
                descriptors.append(int(word))
    return descriptors


def _take_name(command: tuple[str, ...]) -> None:
    """Look like the command in lists of processes; where that cannot be, we look like ourselves."""
    argv = [os.fsencode(word) for word in command]
    with contextlib.suppress(OSError, ValueError, IndexError):
        Path("/proc/self/comm").write_bytes(os.path.basename(argv[0])[:_COMM_BYTES])  # noqa: PTH119 - bytes
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = (int(field) for field in fields[_ARGUMENTS])
        text = b"\0".join(argv)[: end - start - 1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:  # noqa: PTH123 - no path to speak of
            memory.seek(start)
            memory.write(text.ljust(end - start, b"\0"))


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


    Raises:
        CommandError: there is no such program, or it may not be run.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], mask: Collection[int] = ()
    ) -> None:
        self.stopped_by: int | None = None
        self.code: int | None = None

        self.pid = _started(command, environment, mask)

    def look(self) -> bool:
        """Take note of what became of it, without waiting; return whether it has ended."""
        if self.code is not None:
            return True
        looked = os.WEXITED | os.WSTOPPED | os.WNOHANG
        while (state := os.waitid(os.P_PID, self.pid, looked)) is not None:
            if state.si_code == os.CLD_STOPPED:
                self.stopped_by = state.si_status
                continue
            by_signal = state.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
            self.code = -state.si_status if by_signal else state.si_status

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
        os._exit(128 - code)  # as a shell says it; a container's first process outlives signals
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


def _leave_no_core() -> None:
    import ctypes  # noqa: PLC0415 - only where a job crashed

    try:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return


def _started(command: Sequence[str], environment: Mapping[str, str], mask: Collection[int]) -> int:
    """Fork and exec; return the process, or raise what exec said."""
    receiver, sender = os.pipe()
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
            os.write(sender, (error.errno or errno.EIO).to_bytes(_ERROR_BYTES, "little"))
        finally:
            os._exit(_NOT_FOUND)
    os.close(sender)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    problem = os.read(receiver, _ERROR_BYTES)
    os.close(receiver)
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
        script = shutil.which(command[0], path=environment.get("PATH", os.defpath)) or command[0]
        os.execve(_SHELL, [_SHELL, script, *command[1:]], dict(environment))  # noqa: S606 - the same


def _refused(name: str, number: int) -> CommandError:
    if number in (errno.ENOENT, errno.ENOTDIR):
        return CommandError(f"{name}: no such program.", _NOT_FOUND)
    return CommandError(f"{name}: cannot be run: {os.strerror(number)}.", _NOT_RUNNABLE)


# A sender that signals a process and then its group, or all of a control group one by one, is done
# within this time; what only we have got by then was meant for us alone.
_TOGETHER_S = 0.05
_LOOK_S = 0.002
# The kernel's own, by which it tells us of our children and of what the sampler says.
MESSAGE = signal.SIGIO
_OURS = frozenset((signal.SIGCHLD, MESSAGE))
_BY_TERMINAL = frozenset((signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU))


@dataclass(slots=True)
class _Shared:
    """Signals of a moment ago that the whole group got: a second copy is the same act."""

    numbers: frozenset[int] = frozenset()
    until_s: float = float("-inf")

    def now(self) -> frozenset[int]:
        return self.numbers if time.monotonic() < self.until_s else frozenset()


@dataclass(slots=True)
class Relay:
    """The signals of this process, from before the command starts to after its end.

    Args:
        command: the program and its arguments.

    Attributes:
        mask: what was blocked before, for the command.
    """

    command: Sequence[str]
    mask: Collection[int] = field(init=False)
    _witness: _Witness = field(init=False)
    _shared: _Shared = field(default_factory=_Shared)

    def __post_init__(self) -> None:
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
        self._witness = _Witness(self.command)

    def begun(self, to: Child) -> None:
        """Pass on what came while the command was being started: it was not there to get it."""
        for number in sorted(signal.sigpending() & self._witness.received() - _OURS):
            to.send(number)

    def cancel(self) -> None:
        """Take signals as before: no command was started."""
        self._witness.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def close(self) -> None:
        """End the witness; signals stay blocked, for there is only the end to come."""
        self._witness.close()

    def serve(self, to: Child) -> None:
        """Wait for signals, and pass on those that only we have got."""
        got = take_signals(ALL, None)
        until_s = time.monotonic() + _TOGETHER_S
        while got:
            witnessed = self._witness.received()
            unshared = got - witnessed - self._shared.now()
            left_s = until_s - time.monotonic()
            if not unshared or left_s <= 0:
                self._forget(got & witnessed)
                break
            got |= take_signals(ALL, min(_LOOK_S, left_s))
        if not to.look():
            for number in sorted(unshared if got else ()):
                to.send(number)

    def after(self, timeout_s: float) -> frozenset[int]:
        """Wait for signals after the command's end; return those that are not of its last act."""
        return take_signals(ALL, timeout_s) - self._shared.now()

    def _forget(self, shared: frozenset[int]) -> None:
        """Start again after signals that the whole group got."""
        if not shared:
            return
        waiting = self._witness.received() & signal.sigpending()  # seen, and still to come to us
        self._witness.renew()
        self._shared = _Shared(shared | waiting, time.monotonic() + _TOGETHER_S)


def stop(number: int) -> None:
    """Stop as the command did, where a terminal stopped it, until the shell goes on with us."""
    if number not in _BY_TERMINAL:
        return  # a debugger's: it goes on with the command, and knows nothing of us
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def take_signals(numbers: Collection[int], timeout_s: float | None) -> frozenset[int]:
    """Wait for a signal; return it, unless it is the kernel's word of our child or the sampler.

    Args:
        numbers: to wait for; they are blocked.
        timeout_s: the longest time, None for as long as it takes.
    """
    got = (
        signal.sigwaitinfo(numbers)
        if timeout_s is None
        else signal.sigtimedwait(numbers, max(0.0, timeout_s))
    )
    if got is None or (got.si_signo in _OURS and got.si_code > 0):
        return frozenset()
    return frozenset((got.si_signo,))
