"""Measures a job while it runs: GPUs, host and the events of the probe, into a capture.

`recorder` is the door. On one clock it reads the GPUs (`nvml_reader`, in a thread of its own), the
machine (`host`) and what the probe writes in the processes of the job (`capture_events`), and
appends to a `capture_file`, which `telemetry.formats.capture` reads. `processes` knows the
descendants of the job, `job_devices` its GPUs. In another process, `command` runs what is measured
and passes signals on to it.
"""
