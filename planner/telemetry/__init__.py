"""What GPUs reported, read from the files people already have.

`sources` is the door: it opens a source (`payload`), recognises it by content (`sniff`), has one
module per format read it into a `Recording`, lets `merge` and `jobs` say which rows belong to which
job, and hands them to `planner.telemetry.profiling.build`. Adding a format: one new module with
`read(payload, hints) -> Recording`, one row in `sniff.FORMATS`.

Importing `sources` and reading a `profile.json` needs neither pandas nor numpy.
"""
