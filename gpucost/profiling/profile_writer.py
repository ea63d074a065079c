"""Turns a capture into profile, series and verdict, in the sampler's process.

What it needs for that (pandas, DuckDB) takes seconds to load: a thread does so while the job runs,
at a low priority, and it is ready when the job ends.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpucost.profiling.sampling import Outcome, Task
from pricing.errors import GpucostError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

# Behind the job, but ready in time where every core is busy: it is half a second of work, once.
_NICE = 5


def load() -> None:
    """Load what a profile needs; the job goes first, wherever a core is asked for by both."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    import duckdb  # noqa: F401, PLC0415 - it loads beside

    import gpucost.profiling.run_files  # noqa: F401, PLC0415 - the same
    import telemetry.formats.capture  # noqa: PLC0415 - the same
    import telemetry.profiling.jobs  # noqa: F401, PLC0415 - the same


def written(capture: Path, target: Path, task: Task) -> Outcome:
    """Write series and profile; what was measured stays in the capture until both are there."""
    try:
        profile, path, part = _write(capture, target, task)
    except GpucostError as error:
        return Outcome(capture=capture, problems=tuple(error.problems))
    except Exception as error:  # noqa: BLE001 - said by who asked; the capture is there
        problem = f"writing the profile failed, a bug: {error!r}."
        return Outcome(capture=capture, problems=(problem,))
    capture.unlink(missing_ok=True)
    return Outcome(
        target=path,
        notes=profile.provenance.notes,
        changes=(
            *(change.sentence for change in profile.changes),
            *([profile.experiment.sentence] if profile.experiment else ()),
            *(_traced(profile) if task.trace_steps else ()),
        ),
        finding=_verdict(profile),
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


def _write(capture: Path, target: Path, task: Task) -> tuple[Profile, Path, str | None]:
    """Return the profile, where it lies, and which part of a run that is still to come it is."""
    from gpucost.files.writing import write_file  # noqa: PLC0415 - lazy
    from gpucost.profiling import run_files  # noqa: PLC0415 - pandas
    from planner.profile.codec import dump  # noqa: PLC0415 - lazy
    from planner.proof.experiment import of_blocks  # noqa: PLC0415 - lazy
    from telemetry.readers.payload import Stream  # noqa: PLC0415 - lazy

    with Stream(str(capture)) as stream:
        recording, measured = _read(stream.load(), task.hints)
    if recording.observed is not None and recording.observed.turns is not None:
        measured = replace(measured, experiment=of_blocks(recording.observed.turns))

    def write(profile: Profile, path: Path) -> Profile:
        with_series = run_files.write_series(profile, recording, path)
        write_file(str(path), dump((with_series,)))
        return with_series

    if task.run_name is None or not run_files.is_part(measured):
        return write(measured, target), target, None
    run = run_files.add_part(measured, task.run_name, target, write)
    sentence = f"{run.target.name} holds {run.parts} of the {run.world} processes of this run."
    return run.profile, run.target, None if run.complete else sentence


def _read(payload: Payload, hints: Hints) -> tuple[Recording, Profile]:
    from telemetry.formats.capture import read_capture  # noqa: PLC0415 - pandas
    from telemetry.profiling import jobs  # noqa: PLC0415 - pandas
    from telemetry.readers.recording_builder import RecordingBuilder  # noqa: PLC0415 - pandas

    recording = read_capture(RecordingBuilder(payload, "gpucost-capture"), hints)
    (profile,) = jobs.profiles([recording], hints)
    return recording, profile


def finding_so_far(lines: Sequence[str], hints: Hints) -> str:
    """Return the first finding of some lines of a capture, by the way of a finished one."""
    from telemetry.readers.payload import Payload  # noqa: PLC0415 - lazy

    payload = Payload(name="so far", data="\n".join(lines).encode(), sha256="")
    try:
        return _verdict(_read(payload, hints)[1])
    except InputError:
        return "too little measured yet"


def _verdict(profile: Profile) -> str:
    """Return the first finding; with no GPU, step or request only where the time goes."""
    from planner.diagnosis.diagnose import diagnose  # noqa: PLC0415 - lazy

    facts = (profile.hardware.gpu, profile.step, profile.job.serving)
    if all(part is None for part in facts):
        longest = max(profile.waits, key=lambda wait: wait.time_fraction or 0.0, default=None)
        if longest is None or longest.time_fraction is None:
            return "no GPU was measured and no step was seen: there is nothing to diagnose."
        share = f"{longest.time_fraction:.0%} of the time is in {longest.place}"
        return f"no GPU was measured, so there is no verdict on one; {share}."
    first = diagnose(profile)[0]
    wastes = "" if first.waste_fraction is None else f", wastes {first.waste_fraction:.0%}"
    return f"{first.code}: {first.cause} ({first.confidence}{wastes})"
