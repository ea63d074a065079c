"""Which providers machines can be launched on: one row each."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # `gpucost plan` only asks which providers there are
    from providers.interface import Cloud, Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A provider.

    Attributes:
        module: has `connect(connection) -> Cloud` and its class as `CLOUD`; the SDK is imported
            when it connects.
        offered: whether options of a plan can be launched there.
        ends_itself: whether a machine ends itself at its deadline without a token of the account.
    """

    module: str
    offered: bool
    ends_itself: bool


CLOUDS: Mapping[str, Row] = MappingProxyType(
    {
        "aws": Row(module="providers.aws.cloud", offered=True, ends_itself=True),
        "digitalocean": Row(module="providers.digitalocean.cloud", offered=True, ends_itself=False),
        "memory": Row(module="providers.in_memory", offered=False, ends_itself=True),
        "ssh": Row(module="providers.ssh.cloud", offered=False, ends_itself=True),
    }
)
"""Provider -> its row."""


def connect(provider: str, connection: "Connection") -> "Cloud":
    """The provider, opened.

    Raises:
        MissingCredentialsError: names the variable to set.
    """
    return cast("Cloud", import_module(CLOUDS[provider].module).connect(connection))
