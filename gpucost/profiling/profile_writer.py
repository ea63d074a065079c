"""Turns a capture into profile, series and verdict, in the sampler's process.

What it needs for that (pandas, DuckDB) takes seconds to load: the sampler has a thread import this
module while the job runs, and it is ready when the job ends.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb  # noqa: F401 - for `run_files`, which writes with it
from msgspec.structs import replace

from gpucost.files.writing import write_file
from gpucost.profiling import run_files
from gpucost.profiling.sampling import Outcome, Task
from planner.diagnosis.diagnose import diagnose
from planner.profile.codec import dump
from planner.profile.model import Profile
from planner.proof.experiment import of_blocks
from pricing.errors import GpucostError, InputError
from telemetry.formats.capture import read_capture
from telemetry.profiling import jobs
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload, Stream
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.recording import Recording


def written(capture: Path, target: Path, task: Task) -> Outcome:
    """Write series and profile; what was measured stays in the capture until both are there."""
    try:
        profile, path, part = _write(capture, target, task)
    except GpucostError as error:
        return Outcome(capture=capture, problems=tuple(error.problems))
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
    recording = read_capture(RecordingBuilder(payload, "gpucost-capture"), hints)
    (profile,) = jobs.profiles([recording], hints)
    return recording, profile


def finding_so_far(lines: Sequence[str], hints: Hints) -> str:
    """Return the first finding of some lines of a capture, by the way of a finished one."""
    payload = Payload(name="so far", data="\n".join(lines).encode(), sha256="")
    try:
        return _verdict(_read(payload, hints)[1])
    except InputError:
        return "too little measured yet"


def _verdict(profile: Profile) -> str:
    """Return the first finding; with no GPU, step or request only where the time goes."""
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
