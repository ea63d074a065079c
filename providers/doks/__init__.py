"""Node pools of DigitalOcean Kubernetes clusters, through pydo."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from textwrap import indent

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

ENDER_SCOPES = (
    ("kubernetes:read", "deadlines of pools"),
    ("kubernetes:update", "their end; reaches every cluster of the account"),
)
"""Custom scopes of the token of what ends pools from inside a cluster."""


def ender_manifest() -> str:
    """Return what ends pools from inside a cluster, for `kubectl apply`; it holds no secret."""
    script, manifest = (
        files("providers.doks").joinpath(name).read_text(encoding="utf-8")
        for name in ("ender.py", "ender.yaml")
    )
    return manifest.replace("@SCRIPT@", indent(script.rstrip(), "    "))


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
        kind="cluster",
        reach="every cluster of the account",
        url="https://api.digitalocean.com",
    ),
    page="https://cloud.digitalocean.com/kubernetes",
    permissions=(
        Permissions(name="digitalocean-kubernetes", reading=_READING, launching=SCOPES),
        Permissions(name="doks-ender", reading=ENDER_SCOPES, launching=ENDER_SCOPES),
    ),
    pools_of="digitalocean",
    is_used=is_used,
    is_named=False,
    not_in_total="volumes and load balancers of the cluster are not in the total",
)
