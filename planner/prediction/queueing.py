"""How much longer requests take where their GPU is busier: the time in an M/M/1 queue.

It grows as 1 / (1 - load). Only the part of a latency that was spent on the GPU or in its queue
grows so; with a known rate of requests that part is known, else all of the latency is taken.
"""

_ROUNDING = 1e-9
_OF_99_PERCENT = 4.6  # ln 100: 99 % of requests take less than so many times the mean


def stretch(own: float, busy: float) -> float:
    """Return how much longer a request waits and runs on a GPU that is busier than measured.

    Args:
        own: share of the GPU's time that was taken when latency was measured.
        busy: share that is taken now.
    """
    return max(1.0 - own, _ROUNDING) / max(1.0 - busy, _ROUNDING)


def busiest(own: float, longest: float) -> float:
    """Return the share at which requests take `longest` times as long: `stretch` the other way."""
    return 1.0 - (1.0 - own) / longest


def on_gpu_ms(measured_ms: float, requests_per_s: float | None, share: float, peak: float) -> float:
    """Return the part of a latency that was spent on the GPU or in its queue, at the most.

    Args:
        measured_ms: the latency.
        requests_per_s: None where not measured: then all of it.
        share: of the GPU's time that the requests took, mean.
        peak: the same at its 95th percentile.
    """
    if not requests_per_s:
        return measured_ms
    mean_ms = 1000.0 * share / requests_per_s
    return min(measured_ms, _OF_99_PERCENT * mean_ms / max(1.0 - peak, _ROUNDING))
