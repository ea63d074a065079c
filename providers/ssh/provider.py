"""Machines that the user already has, as the rest of gpucost needs to know them."""

from providers.provider import Provider

PROVIDER = Provider(
    name="ssh", title="your own machine", cloud="providers.ssh.cloud", offered=False
)
