"""From the options of `provision --kubernetes` to a node pool, and what its preview must say."""

from collections.abc import Iterator, Mapping
from typing import Any

from pricing.errors import InputError
from providers.deployment import NodePool
from providers.interface import LaunchSpec
from providers.registry import CLOUDS, pools_at

_OF_MACHINES = (
    "placement",
    "ssh_key",
    "ssh_from",
    "subnet",
    "security_group",
    "end_role",
    "image",
    "idle",
    "power_cap",
    "mig",
    "run",
    "sync",
    "data",
    "collect",
    "recipe",
    "container",
)
"""Options that say what is done on a machine of its own; a cluster sets its nodes up itself."""


def check_pool(asked: Mapping[str, Any]) -> None:
    """Refuse options that do not fit a node pool, or that only fit one.

    Args:
        asked: options of `gpucost provision` by name.

    Raises:
        InputError: all that is wrong with them, at once.
    """
    low, high, count = asked["min_nodes"], asked["max_nodes"], asked["count"]
    if asked["kubernetes"] is None:
        given = [flag for flag, one in (("--min", low), ("--max", high)) if one is not None]
        if given:
            raise InputError(f"{' and '.join(given)}: of which cluster? Give --kubernetes CLUSTER.")
        return
    problems = []
    if not asked["kubernetes"].strip():
        problems.append("--kubernetes is empty; give the name or the id of a cluster.")
    wrong = [f"--{name.replace('_', '-')}" for name in _OF_MACHINES if asked.get(name)]
    if wrong:
        problems.append(
            f"{', '.join(wrong)}: of machines of their own, and a cluster sets up its nodes "
            "itself; `gpucost export --to kubernetes` writes the job that runs on them."
        )
    if (low is None) != (high is None):
        problems.append("--min and --max go together: the limits of an autoscaler.")
    elif low is not None and low > high:
        problems.append(f"--min {low} is more than --max {high}.")
    elif low is not None and count is not None and not low <= count <= high:
        problems.append(f"--count {count} is not between --min {low} and --max {high}.")
    if problems:
        raise InputError(problems)


def pool_of(provider: str, asked: Mapping[str, Any]) -> NodePool:
    """Return the pool that is asked for, of a provider's machines.

    Raises:
        InputError: gpucost makes no node pools there.
    """
    row = pools_at(provider)
    if row is None:
        known = ", ".join(sorted(one.pools_of for one in CLOUDS.values() if one.pools_of))
        raise InputError(f"--kubernetes: gpucost makes no node pools at {provider}; at {known}.")
    return NodePool(
        provider=row.name,
        cluster=asked["kubernetes"].strip(),
        min_nodes=asked["min_nodes"],
        max_nodes=asked["max_nodes"],
    )


def first_nodes(asked: Mapping[str, Any]) -> int:
    """Return with how many nodes a pool begins: as asked, else the least, and one at least."""
    return asked["count"] or max(1, asked["min_nodes"] or 1)


def pool_told(spec: LaunchSpec, pool: NodePool) -> Iterator[str]:
    """Yield what must be known of a pool before saying yes."""
    title = CLOUDS[pool.provider].title
    yield f"a node pool of the {title} cluster {pool.text}; its control plane is not in the total"
    if spec.most_machines > spec.count:
        yield (
            f"it begins with {spec.count} and may grow to {spec.most_machines}: totals and cap are "
            f"of {spec.most_machines} nodes for the whole time"
        )
    yield (
        "nobody logs in to its nodes: ready means that the provider says they run. What runs on "
        "them ends with the pool"
    )
