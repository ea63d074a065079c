"""Which public feeds `gpucost prices update` reads: one row each.

Where each form was learnt is said in its reader.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pricing.refresh.feed import Feed, Read

_ROWS = (
    Feed(
        name="gpuhunt",
        title="the catalog of gpuhunt",
        url="https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3",
        module="gpuhunt",
        providers=frozenset(
            ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "verda", "cloudrift")
        ),
        takes="catalog.zip, PROVIDER.csv, or a folder of them",
        most_mib=256,
    ),
    Feed(
        name="skypilot",
        title="the catalog of SkyPilot",
        url="https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8",
        module="skypilot",
        providers=frozenset(
            (
                "aws",
                "azure",
                "cudo",
                "digitalocean",
                "gcp",
                "hyperbolic",
                "hyperstack",
                "jarvis-labs",
                "lambda",
                "nebius",
                "oci",
                "paperspace",
                "runpod",
                "verda",
            )
        ),
        takes="a folder with CLOUD/vms.csv, such as ~/.sky/catalogs/v8",
        most_mib=128,
    ),
)

FEEDS: Mapping[str, Feed] = MappingProxyType({feed.name: feed for feed in _ROWS})
"""Name -> feed."""


def reader(feed: Feed) -> Read:
    """The reader of a feed; it is imported when it reads."""
    return cast("Read", import_module(f"pricing.refresh.{feed.module}").read)
