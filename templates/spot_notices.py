"""Where a spot machine that another tool rents reads that its provider takes it back."""

from collections.abc import Mapping
from types import MappingProxyType

NOTICES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # Compute Engine, "Spot VMs", preemption process: the key says TRUE, and the machine has
        # up to 30 seconds, of which the looks for it take five.
        "gcp": {
            "header": "Metadata-Flavor: Google",
            "taken_url": "http://metadata.google.internal/computeMetadata/v1/instance/preempted",
            "says": "^TRUE$",
            "least_s": "25",
            # "Handle GPU host maintenance events": a machine with GPUs is stopped for maintenance,
            # not moved, and this key says so an hour before.
            "at_risk_url": "http://metadata.google.internal/computeMetadata/v1/instance/"
            "maintenance-event",
            "at_risk_says": "^TERMINATE_ON_HOST_MAINTENANCE$",
        },
        # Azure, "Scheduled Events" for Linux: an event Preempt, 30 seconds or more before its time.
        "azure": {
            "header": "Metadata: true",
            "taken_url": "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",
            "says": '"EventType": *"Preempt"',
            "least_s": "25",
        },
    }
)
"""By provider: header of the call, where to ask, what the answer holds, seconds left at least.

`at_risk_url` and `at_risk_says`: the same of what comes later, or perhaps; it stops nothing yet.
"""
