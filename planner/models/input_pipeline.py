"""How fast the host feeds a GPU: loader throughput against the cores that each GPU has.

Throughput ~ cores^g: in proportion up to 3 cores a GPU, then with the power g (fitted,
`planner/models/data/host.toml`), flat beyond 12 cores, the most that was measured.
"""

from planner.models.coefficients import coefficients

_KNEE_CORES = 3.0
_MOST_CORES = 12.0


def loader_rate(cores: float, power: float | None = None) -> float:
    """Return the relative throughput of so many cores a GPU; `power` None = as shipped."""
    above = loader_power() if power is None else power
    cores = min(cores, _MOST_CORES)
    if cores <= _KNEE_CORES:
        return cores
    rate: float = _KNEE_CORES * (cores / _KNEE_CORES) ** above
    return rate


def fed_rate(rate: float, before: float, after: float, roof: float, power: float) -> float:
    """Return the job's rate with other cores: the loader's, up to what the GPU can take."""
    return min(roof, rate * loader_rate(after, power) / loader_rate(before, power))


def loader_power() -> float:
    """Return the fitted power of the cores above the knee."""
    return float(coefficients("host")["loader_power"])


def loader_factor() -> float:
    """Return the factor x/: of the 90 % interval of the loader's rate."""
    return float(coefficients("host")["loader_factor"])
