"""Turns a capture into profile, series and verdict, in a process beside the sampler.

What it needs for that (pandas, DuckDB) takes seconds to load: it does so while the job runs, at a
low priority, and is ready when the job ends. The sampler stays small and on time meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.profiling.sampling import Outcome, Task
from pricing.errors import GpucostError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from planner.profile.model import Profile

_START = (
    "import sys; sys.path[:] = {path!r}; from gpucost.profiling.profile_writer import main; main()"
)
# Behind the job, but ready in time where every core is busy: it is half a second of work, once.
_NICE = 5


class Writer:
    """The process, as the sampler sees it; a context manager that ends it."""

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-IB", "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._words = "…"
        self._asking: threading.Thread | None = None
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def so_far(self, lines: Sequence[str], hints: Mapping[str, Any]) -> str:
        """Return the last answer known, and ask for the finding of these lines of a capture."""
        if self._asking is None or not self._asking.is_alive():
            question = {"lines": list(lines), "hints": dict(hints)}
            self._asking = threading.Thread(target=self._judge, args=(question,), daemon=True)
            self._asking.start()
        return self._words

    def write(self, capture: str, target: str, task: Task) -> Outcome:
        """Have the profile written, and wait for it."""
        if self._asking is not None:
            self._asking.join()
        question: dict[str, Any] = {"capture": capture, "target": target, "hints": dict(task.hints)}
        question |= {"run_name": task.run_name and dict(task.run_name)}
        answer = self._ask({**question, "trace_steps": task.trace_steps})
        if answer is None:
            problem = "writing the profile failed: its process ended."
            return Outcome(capture=capture, problems=(problem,))
        return Outcome(**answer)

    def _judge(self, question: dict[str, Any]) -> None:
        if answer := self._ask(question):
            self._words = str(answer["words"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        if self._process.stdin is None or self._process.stdout is None:
            return None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            return None
        return answer


def main() -> None:
    """Answer the sampler's questions until it closes them."""
    threading.Thread(target=_load, daemon=True).start()
    for line in sys.stdin:
        question = json.loads(line)
        answer = _judged(question) if "lines" in question else asdict(_written(**question))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)


def _load() -> None:
    """Load what a profile needs; the job goes first, wherever a core is asked for by both."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    import duckdb  # noqa: F401, PLC0415 - it loads beside

    import gpucost.profiling.run_files  # noqa: F401, PLC0415 - the same
    import telemetry.formats.capture  # noqa: PLC0415 - the same
    import telemetry.profiling.jobs  # noqa: F401, PLC0415 - the same


def _written(
    capture: str,
    target: str,
    hints: Mapping[str, Any],
    run_name: Mapping[str, Any] | None,
    trace_steps: int,
) -> Outcome:
    """Write series and profile; what was measured stays in the capture until both are there."""
    try:
        profile, path, part = _write(Path(capture), Path(target), hints, run_name)
    except GpucostError as error:
        return Outcome(capture=capture, problems=tuple(error.problems))
    except Exception as error:  # noqa: BLE001 - said by who asked; the capture is there
        problem = f"writing the profile failed, a bug: {error!r}."
        return Outcome(capture=capture, problems=(problem,))
    Path(capture).unlink(missing_ok=True)
    return Outcome(
        target=str(path),
        notes=profile.provenance.notes,
        changes=(
            *(change.sentence for change in profile.changes),
            *([profile.experiment.sentence] if profile.experiment else ()),
            *(_traced(profile) if trace_steps else ()),
        ),
        verdict=_verdict(profile),
        part=part,
    )


_OTHER_PROFILERS = {
    "jax": "jax.profiler.trace('trace') around some steps, then xprof trace",
    "keras": "keras.callbacks.TensorBoard('logs', profile_batch=(10, 30)), then xprof logs",
    "tensorflow": "tf.profiler.experimental.Profile('logs') around some steps, then xprof logs",
}


def _traced(profile: Profile) -> tuple[str, ...]:
    """Return the table of the traced steps, or why there are none and what to do."""
    if profile.trace is not None:
        return profile.trace.table
    framework = str(profile.job.framework).partition(" ")[0]
    if framework == "pytorch":
        count = (profile.step.count if profile.step else None) or 0
        return (
            f"--trace: nothing was traced: {count} optimizer steps, and it begins at the 10th.",
        )
    way = _OTHER_PROFILERS.get(framework, "nsys profile COMMAND, on a machine with a GPU")
    return (f"--trace: nothing was traced, as no step of PyTorch was seen. Use: {way}.",)


def _write(
    capture_path: Path,
    target: Path,
    known_hints: Mapping[str, Any],
    run_name: Mapping[str, Any] | None,
) -> tuple[Profile, Path, str | None]:
    """Return the profile, where it lies, and which part of a run that is still to come it is."""
    from gpucost.files.writing import write_file  # noqa: PLC0415 - lazy
    from gpucost.profiling import run_files  # noqa: PLC0415 - lazy
    from gpucost.profiling.profile_target import OutputName  # noqa: PLC0415 - lazy
    from gpucost.profiling.run_files import write_series  # noqa: PLC0415 - pandas
    from planner.profile.codec import dump  # noqa: PLC0415 - lazy
    from planner.proof.experiment import of_blocks  # noqa: PLC0415 - lazy
    from telemetry.formats.capture import read_capture  # noqa: PLC0415 - pandas
    from telemetry.profiling import jobs  # noqa: PLC0415 - pandas
    from telemetry.readers.hints import Hints  # noqa: PLC0415 - lazy
    from telemetry.readers.payload import Stream  # noqa: PLC0415 - lazy
    from telemetry.readers.recording_builder import RecordingBuilder  # noqa: PLC0415 - pandas

    hints = Hints(**known_hints)
    with Stream(str(capture_path)) as stream:
        recording = read_capture(RecordingBuilder(stream.load(), "gpucost-capture"), hints)
    (measured,) = jobs.profiles([recording], hints)
    if recording.observed is not None and recording.observed.turns is not None:
        measured = replace(measured, experiment=of_blocks(recording.observed.turns))

    def write(profile: Profile, path: Path) -> Profile:
        written = write_series(profile, recording, path)
        write_file(str(path), dump((written,)))
        return written

    if run_name is None or not run_files.is_part(measured):
        return write(measured, target), target, None
    run = run_files.add_part(measured, OutputName(**run_name), target, write)
    sentence = f"{run.target.name} holds {run.parts} of the {run.world} processes of this run."
    return run.profile, run.target, None if run.whole else sentence


def _judged(question: Mapping[str, Any]) -> dict[str, str]:
    """Return the first finding of the last minutes, through the same door as a finished capture."""
    from telemetry.formats.capture import read_capture  # noqa: PLC0415 - pandas
    from telemetry.profiling import jobs  # noqa: PLC0415 - pandas
    from telemetry.readers.hints import Hints  # noqa: PLC0415 - lazy
    from telemetry.readers.payload import Payload  # noqa: PLC0415 - lazy
    from telemetry.readers.recording_builder import RecordingBuilder  # noqa: PLC0415 - pandas

    hints = Hints(**question["hints"])
    payload = Payload(name="so far", data="\n".join(question["lines"]).encode(), sha256="")
    try:
        recording = read_capture(RecordingBuilder(payload, "gpucost-capture"), hints)
        (profile,) = jobs.profiles([recording], hints)
    except InputError:
        return {"words": "too little measured yet"}
    verdict = _verdict(profile)
    return {"words": f"{verdict['code']}: {verdict['cause']}"}


def _verdict(profile: Profile) -> dict[str, Any]:
    from planner.diagnosis.diagnose import diagnose  # noqa: PLC0415 - lazy

    first = diagnose(profile)[0]
    return {
        "code": first.code,
        "cause": first.cause,
        "confidence": first.confidence,
        "waste_fraction": first.waste_fraction,
    }
