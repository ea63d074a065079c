"""Node pools of DigitalOcean Kubernetes clusters, through pydo."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from textwrap import indent

from providers.digitalocean import TOKEN
from providers.provider import Provider, SelfEnd


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
        kind="cluster", reach="every cluster of the account", url="https://api.digitalocean.com"
    ),
    page="https://cloud.digitalocean.com/kubernetes",
    pools_of="digitalocean",
    is_used=is_used,
    is_named=False,
    not_in_total="volumes and load balancers of the cluster are not in the total",
)
