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
"""By provider: header of the call, where to ask, what the answer holds, seconds left at least."""
