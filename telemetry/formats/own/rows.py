"""The rows of our own files in the table of formats."""

from telemetry.formats.form import Format, json_with
from telemetry.formats.stored_runs import fits_samples

ROWS = (
    Format(
        name="gpucost-capture",
        title="the capture of a `gpucost profile` that was cut off",
        module="own.capture",
        fits=json_with(r'^\s*\{\s*"capture"\s*:\s*"gpucost\.capture/'),
        seen="every version since gpucost.capture/v1",
        tells="all that `gpucost profile` measures",
        lacks="how the program ended",
    ),
    Format(
        name="gpucost-samples",
        title="the samples beside a profile, NAME.samples.parquet",
        module="own.series_table",
        fits=fits_samples,
        binary=True,
        seen="every version that wrote them",
        tells="all readings of the GPUs and the host",
        lacks="the model of the GPU (--gpu) and its memory; what the machine is",
    ),
    Format(
        name="gpucost-steps",
        title="the steps beside a profile, NAME.steps.jsonl",
        module="own.series_steps",
        fits=json_with(r'\A\s*\{"t_s"\s*:\s*[\d.]+\s*,\s*"step"\s*:\s*\d+\s*,\s*"n"\s*:'),
        seen="every version that wrote them",
        tells="step time, the wait for data in it, work done",
        lacks="the GPUs, which the samples beside it have; places of waits",
    ),
)
