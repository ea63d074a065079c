"""Measures a job while it runs: devices, host and the probe's events, into a capture.

`recorder` is the door: it reads GPUs (`nvml`), the machine (`host`) and what the probe writes in
the job's processes (`event_tail`) on one clock, and appends to a `capture_file`, which
`planner.telemetry.capture` reads. `child` runs the measured command, `processes` knows its
descendants.
"""
