"""Measures a job while it runs: devices, host and the probe's events, into a capture.

`recorder` is the door: it reads GPUs (`nvml`, in a `gpu_thread`), the host (`machine`) and what the
probe writes in the job's processes (`capture.event_tail`) on one clock, and appends to a file of
`capture`, which `telemetry.formats.own.capture` reads. `machine.process_tree` knows the
job's descendants. In another process, `command` runs what is measured and passes signals on to it.
"""
