"""Measures a job while it runs: devices, host and the probe's events, into a capture.

`recorder` is the door: it reads GPUs (`nvml`, in a `gpu_thread`), the machine (`host`) and what the
probe writes in the job's processes (`event_tail`) on one clock, and appends to a `capture_file`,
which `planner.telemetry.formats.capture` reads. `processes` knows the job's descendants. In another
process, `child` runs the measured command, and `relay` passes signals on to it, with a `witness`
that tells which ones the command has got already.
"""
