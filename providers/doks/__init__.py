"""Node pools of DigitalOcean Kubernetes clusters, through pydo."""

from collections.abc import Mapping
from pathlib import Path

from providers.digitalocean import TOKEN
from providers.provider import Permissions, Provider, SelfEnd

_READING = (
    ("kubernetes:read", "clusters, their node pools, sizes that pools take"),
    ("account:read", "limit of Droplets, before a launch; whether a run is in this account"),
    ("sizes:read", "prices and regions"),
    ("droplet:read", "the nodes, which are Droplets, until they are gone"),
)
SCOPES = (
    *_READING,
    ("kubernetes:update", "adding a pool, its deadline, its end"),
    ("droplet:delete", "the end of a node that its pool has left behind"),
)
"""Custom scopes of the token, and what each is for; by the OpenAPI document, read 2026-11-22."""


def is_used(environment: Mapping[str, str], _: Path) -> bool:
    """Return whether there is a token, which reaches the account's clusters, too."""
    return bool(environment.get(TOKEN, "").strip())


PROVIDER = Provider(
    name="doks",
    address="https://api.digitalocean.com",
    endpoint="GPUCOST_DIGITALOCEAN_ENDPOINT",
    title="DigitalOcean Kubernetes",
    cloud="providers.doks.cloud",
    offered=False,
    end=SelfEnd(
        kind="none",
        lacks=(
            "a node that goes is replaced by its pool, and a token that may end the pool may "
            "change every cluster of the account, which is not left on a node"
        ),
    ),
    page="https://cloud.digitalocean.com/kubernetes",
    permissions=(Permissions(name="digitalocean-kubernetes", reading=_READING, launching=SCOPES),),
    pools_of="digitalocean",
    is_used=is_used,
    is_named=False,
    not_in_total="volumes and load balancers of the cluster are not in the total",
)
