"""Takes a job through its steps, and follows its command to the end; it may be cut anywhere.

What has been done is what the machines say. The journal has each step's intent before and its end
after, and a step that was cut off is asked for again: the machine starts it once.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from gpucost.jobs.request import JobFolder, JobRequest
from gpucost.jobs.steps import JOB, STEPS, JobMachine, JobStep, StepFailedError, TaskState
from gpucost.views.output import Output
from pricing.errors import PartialError
from providers.lifecycle.session import Session, Stopwatch
from providers.ssh.shell import LostConnectionError

PERSEVERES_S = 300.0
"""For how long a machine that cannot be reached is tried again."""

_LOOK_S = 5
_OTHERS_S = 60.0  # after the first process failed, the others have so long to notice
_LAST_LINES = 15
_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class RunningJob:
    """A job on its machines.

    Attributes:
        run: id of the run.
        request: what was asked for.
        machines: in the order of their ranks.
        folder: what is kept of it here.
        session: the journal, the time.
        output: how to print.
    """

    run: str
    request: JobRequest
    machines: tuple[JobMachine, ...]
    folder: JobFolder
    session: Session
    output: Output
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def take_steps(self) -> None:
        """Do every step that is not done, up to the started command.

        Raises:
            StepFailedError: one went wrong; the last lines of its log are in it.
            PartialError: a machine cannot be reached any more.
        """
        for machine in self.machines:
            self.persevere(machine.prepare)
        for step in (job_step for job_step in STEPS if job_step.needed(self.request)):
            begun = [self._start(step, machine) for machine in self.machines]
            if step.name == JOB:
                return
            for machine in self.machines:
                self._await(step, machine)
            if any(begun):
                self.note(f"job: {step.name}: done")

    def _start(self, step: JobStep, machine: JobMachine) -> bool:
        """Start a step where it is to be started; return whether it was."""
        state, _ = self.persevere(lambda: machine.read(step.name))
        if state.is_done or state.word == "running" or (step.once and state.word != "absent"):
            return False
        self.note(f"job: about to {step.title} on {machine.name}")
        self.output.say(f"{machine.name}: {step.title} ...")
        self.persevere(lambda: step.send(self.request, machine))
        script = step.script(self.request, machine, self.run)
        self.persevere(lambda: machine.start(step.name, script, once=step.once))
        return True

    def _await(self, step: JobStep, machine: JobMachine) -> None:
        log = b""
        while True:
            state, more = self._read(step.name, machine, len(log), _LOOK_S)
            log += more
            if state.word != "running" and not more:
                break
        if not state.is_done:
            raise StepFailedError(_why(step.name, machine.name, state, log))
        self.output.say(f"{machine.name}: {_last_lines(log, 1)}")

    def _read(
        self, step: str, machine: JobMachine, offset: int, wait_s: int
    ) -> tuple[TaskState, bytes]:
        """Return how far a step is and what is new in its log, which is kept here, too."""
        state, more = self.persevere(lambda: machine.read(step, offset, wait_s))
        self.folder.write_log(step, machine.rank, offset, more)
        return state, more

    def follow(self, show: Callable[[str], None]) -> int:
        """Pass the command's output on until it has ended everywhere; return its exit status.

        That is of the first that failed; what we end has no say. What is left of a job whose first
        process failed is ended a minute later.

        Raises:
            StepFailedError: its end is not known: the machine was restarted, or it was killed.
            PartialError: a machine cannot be reached any more.
        """
        first, ends, watch = self.machines[0], dict[int, TaskState](), None
        failed: int | None = None
        offsets = [0] * len(self.machines)
        wait_s = _LOOK_S if len(self.machines) == 1 else 1
        while True:
            for machine in self.machines:
                at = offsets[machine.rank]
                state, more = self._read(JOB, machine, at, wait_s)
                offsets[machine.rank] = at + len(more)
                if machine is first:
                    show(self._decoder.decode(more))
                if state.word != "running" and not more:
                    ends[machine.rank] = state
            if len(ends) == len(self.machines):
                break
            if watch is None and any(not state.is_done for state in ends.values()):
                watch = Stopwatch(self.session.clock)
                failed = next((state.code for state in ends.values() if state.code), None)
            elif watch is not None and watch.elapsed_s > _OTHERS_S:
                for machine in self.machines:
                    machine.stop()
        return failed or self._exit_status(ends)

    def _exit_status(self, ends: dict[int, TaskState]) -> int:
        codes = [ends[machine.rank].code for machine in self.machines]
        failed_codes = [code for code in codes if code]
        if not failed_codes and None in codes:
            machine = self.machines[codes.index(None)]
            raise StepFailedError(_why(JOB, machine.name, ends[machine.rank], b""))
        return failed_codes[0] if failed_codes else 0

    def persevere(self, action: Callable[[], _T]) -> _T:
        """Do what may be done twice, and again where the connection broke meanwhile.

        Raises:
            PartialError: it could not be had for `PERSEVERES_S` seconds.
        """
        watch = Stopwatch(self.session.clock)
        reported = False
        while True:
            try:
                return action()
            except LostConnectionError as error:
                if watch.elapsed_s >= PERSEVERES_S:
                    raise PartialError(self._given_up(error)) from error
                if not reported:
                    self.output.say(f"{error.problems[0]} Trying again ...")
                    reported = True
                watch.pause(self.session.patience.pause_s)

    def _given_up(self, error: LostConnectionError) -> tuple[str, str]:
        goes_on = f"The job goes on if its machine does: `gpucost logs {self.run} -f` picks it up, "
        return (
            f"{error.problems[0]} It was tried for {PERSEVERES_S:g} s.",
            f"{goes_on}`gpucost show {self.run}` asks the provider.",
        )

    def note(self, event: str) -> None:
        """Write down what happens; without a journal the job goes on."""
        self.session.try_writing(
            lambda: self.session.journal.note(self.run, self.session.now(), event)
        )


def _why(step: str, machine: str, state: TaskState, log: bytes) -> list[str]:
    how = f"ended with {state.code}" if state.word == "ended" else "was killed, or its machine was"
    reasons = [f"step {step} failed on {machine}: it {how}."]
    lines = _last_lines(log, _LAST_LINES)
    return [*reasons, f"its last lines:\n{lines}"] if lines else reasons


def _last_lines(log: bytes, count: int) -> str:
    lines = log.decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-count:])
