"""The rows of our own files in the table of formats."""

from planner.telemetry.formats.form import Format, json_with

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
)
