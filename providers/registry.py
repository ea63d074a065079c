"""Which providers machines can be launched on: one row each."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from providers.aws import PROVIDER as AWS
from providers.digitalocean import PROVIDER as DIGITALOCEAN
from providers.doks import PROVIDER as DOKS
from providers.eks import PROVIDER as EKS
from providers.lambda_cloud import PROVIDER as LAMBDA
from providers.provider import Fetch, Provider, Request

if TYPE_CHECKING:  # `gpucost plan` only asks which providers there are
    from providers.account_scan import ScanDraft
    from providers.interface import Cloud, Connection

SSH = Provider(name="ssh", title="your own machine", cloud="providers.ssh.cloud", offered=False)

ROWS = {row.name: row for row in (AWS, DIGITALOCEAN, DOKS, EKS, LAMBDA, SSH)}
CLOUDS: Mapping[str, Provider] = MappingProxyType(ROWS)
"""Provider -> what it is."""


def launchable() -> frozenset[str]:
    """Return the providers that options of a plan can be launched on."""
    return frozenset(name for name, provider in CLOUDS.items() if provider.offered)


def pools_at(provider: str) -> Provider | None:
    """Return the row that makes node pools of a provider's machines; None: there is none."""
    return next((row for row in CLOUDS.values() if row.pools_of == provider), None)


def priced() -> tuple[str, ...]:
    """Return the providers whose live prices can be read, by name."""
    return tuple(sorted(name for name, provider in CLOUDS.items() if provider.prices))


def scanned() -> tuple[str, ...]:
    """Return the providers whose accounts can be scanned, by name."""
    return tuple(sorted(name for name, provider in CLOUDS.items() if provider.scan))


def connect(provider: str, connection: "Connection") -> "Cloud":
    """Return the provider, opened.

    Raises:
        MissingCredentialsError: names the variable to set.
    """
    return cast("Cloud", import_module(CLOUDS[provider].cloud).connect(connection))


def cloud_class(provider: str) -> "type[Cloud]":
    """Return the class of a provider: what is pure of it needs no credentials."""
    return cast("type[Cloud]", import_module(CLOUDS[provider].cloud).CLOUD)


def scanner(provider: str) -> "Callable[[Request], ScanDraft]":
    """Return what reads an account of a provider in `scanned()`."""
    return cast("Callable[[Request], ScanDraft]", import_module(CLOUDS[provider].scan).scan)


def fetcher(provider: str) -> Fetch:
    """Return the fetcher of a provider in `priced()`; its library is imported when it fetches."""
    return cast("Fetch", import_module(CLOUDS[provider].prices).fetch)
