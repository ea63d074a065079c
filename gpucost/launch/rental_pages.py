"""Where to rent what gpucost cannot launch: each provider's own page or tool.

A provider that it can launch on states its page in its folder.
"""

from collections.abc import Mapping
from types import MappingProxyType

from providers.registry import CLOUDS

PAGES: Mapping[str, str] = MappingProxyType(
    {
        "azure": "https://portal.azure.com, or its tool `az vm create`",
        "coreweave": "https://console.coreweave.com",
        "crusoe": "https://console.crusoecloud.com, or its tool `crusoe`",
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
    known = CLOUDS[provider].page if provider in CLOUDS else PAGES.get(provider, "")
    return known or f"the page of {provider}"
