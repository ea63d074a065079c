"""Which public feeds `gpucost prices update` reads: one row each.

Where each form was learnt is said in its reader.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pricing.refresh.reading import Feed, Read

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
    Feed(
        name="azure",
        title="the Azure Retail Prices API",
        url="https://prices.azure.com/api/retail/prices",
        module="azure_retail",
        providers=frozenset(("azure",)),
        takes="a page of its answer as JSON, or a folder of all pages",
        most_s=300,
    ),
    Feed(
        name="aws-spot",
        title="AWS' table of spot prices",
        url="https://spot-price.s3.amazonaws.com/spot.js",
        module="aws_spot",
        providers=frozenset(("aws",)),
        takes="spot.js",
    ),
    Feed(
        name="aws-offers",
        title="the bulk offer files of Amazon EC2",
        url="https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current",
        module="aws_offer_file",
        providers=frozenset(("aws",)),
        takes="index.csv of a region, or a folder of such files",
        most_mib=1024,
        most_s=900,
        asked_only=True,
    ),
    Feed(
        name="oci",
        title="Oracle's cost estimator",
        url="https://www.oracle.com/a/ocom/docs/cloudestimator2/data",
        module="oci_estimator",
        providers=frozenset(("oci",)),
        takes="a folder with shapes.json and products.json",
    ),
    Feed(
        name="runpod",
        title="RunPod's public API",
        url="https://api.runpod.io/graphql",
        module="runpod_api",
        providers=frozenset(("runpod",)),
        takes="a folder of its answers",
    ),
    Feed(
        name="vast",
        title="Vast.ai's list of machines",
        url="https://console.vast.ai/api/v0/bundles/",
        module="vast_bundles",
        providers=frozenset(("vast",)),
        takes="its answer as JSON",
    ),
    Feed(
        name="vultr",
        title="Vultr's plans",
        url="https://api.vultr.com/v2",
        module="vultr_plans",
        providers=frozenset(("vultr",)),
        takes="plans.json, or a folder with it and plans-metal.json",
    ),
)

FEEDS: Mapping[str, Feed] = MappingProxyType({feed.name: feed for feed in _ROWS})
"""Name -> feed."""


def reader(feed: Feed) -> Read:
    """Return the reader of a feed; it is imported when it reads."""
    return cast("Read", import_module(f"pricing.feeds.{feed.module}").read)
