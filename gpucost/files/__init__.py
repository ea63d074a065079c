"""Documents that commands read and write, as files or on standard output, beside telemetry."""
