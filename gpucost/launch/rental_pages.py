"""Where to rent what gpucost cannot launch: each provider's own page or tool."""

from collections.abc import Mapping
from types import MappingProxyType

PAGES: Mapping[str, str] = MappingProxyType(
    {
        "aws": "https://console.aws.amazon.com/ec2",
        "azure": "https://portal.azure.com, or its tool `az vm create`",
        "coreweave": "https://console.coreweave.com",
        "crusoe": "https://console.crusoecloud.com, or its tool `crusoe`",
        "digitalocean": "https://cloud.digitalocean.com/gpus",
        "gcp": "https://console.cloud.google.com/compute, or `gcloud compute instances create`",
        "hotaisle": "https://hotaisle.xyz",
        "hyperstack": "https://console.hyperstack.cloud",
        "jarvis-labs": "https://jarvislabs.ai",
        "lambda": "https://cloud.lambda.ai",
        "nebius": "https://console.nebius.com, or its tool `nebius`",
        "oci": "https://cloud.oracle.com, or its tool `oci`",
        "runpod": "https://console.runpod.io, or its tool `runpodctl`",
        "scaleway": "https://console.scaleway.com, or its tool `scw`",
        "thunder-compute": "https://console.thundercompute.com",
        "together": "https://api.together.ai",
        "vast": "https://cloud.vast.ai, or its tool `vastai`",
        "verda": "https://console.verda.com",
        "vultr": "https://my.vultr.com",
    }
)
"""Provider -> page or tool."""


def page_of(provider: str) -> str:
    """Return where to rent there."""
    return PAGES.get(provider, f"the page of {provider}")
