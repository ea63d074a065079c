"""Files that commands read and write, beside telemetry."""
