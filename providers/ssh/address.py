"""How a machine of the user's own is named: USER@HOST[:PORT], where USER@ may be left out."""

import ipaddress
import re
import socket
from dataclasses import replace
from urllib.parse import urlsplit
from urllib.request import urlopen

from pricing.errors import InputError, ProviderError
from pricing.message import Message
from providers.interface import ANYWHERE, LaunchSpec

_LAST_PORT = 65535
_IPV6 = (
    " An IPv6 address is not taken, because its colons are taken for a port's: give the machine a "
    "name in /etc/hosts or DNS, and write that."
)
_NAMED = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?"  # neither user nor host begins with a dash: no option
    r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


def check_address(text: str) -> str:
    """Return "user@host[:port]" as it is.

    Raises:
        InputError: it is not of that form; a port is from 1 to 65535.
    """
    match = _NAMED.fullmatch(text)
    if match is None or not 1 <= int(match["port"] or 1) <= _LAST_PORT:
        hint = _IPV6 if "[" in text or text.count(":") > 1 else ""
        raise InputError(
            f"{text!r} names no machine; write USER@HOST or USER@HOST:PORT (1 to {_LAST_PORT}): "
            f"letters, digits, dots and dashes, none of them first a dash.{hint}"
        )
    return text


CALLER = ("the address of this computer",)
"""Stands in a launch for the caller's own address, which is looked up once it is checked."""

_SERVICE = "https://checkip.amazonaws.com"
"""AWS' own answer to "what is my address", docs.aws.amazon.com, EC2 user guide, security groups."""

_ALL = "anywhere"
_WAIT_S = 10
_LONGEST = 64


def networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return what --ssh-from names; nothing named: the caller's own address.

    Raises:
        InputError: one is neither an address nor a network.
    """
    chosen: list[str] = []
    problems: list[str] = []
    for text in texts:
        try:
            chosen += ANYWHERE if text == _ALL else [str(ipaddress.ip_network(text, strict=False))]
        except ValueError:
            problems.append(
                f"--ssh-from {text} is not a network; write an address such as 203.0.113.7, a "
                f"network such as 203.0.113.0/24, or {_ALL}."
            )
    if problems:
        raise InputError(problems)
    return tuple(dict.fromkeys(chosen)) or CALLER


def with_caller(spec: LaunchSpec, endpoint: str | None) -> LaunchSpec:
    """Return the launch with the caller's address in place of its placeholder.

    Args:
        spec: what is launched.
        endpoint: of the provider, where it is another than the public one.

    Raises:
        ProviderError: the address cannot be found out.
    """
    if spec.ssh_from != CALLER:
        return spec
    address = _public() if endpoint is None else _towards(endpoint)
    return replace(spec, ssh_from=(str(ipaddress.ip_network(address)),))


def _towards(endpoint: str) -> str:
    """Return the address that connections from here to a private endpoint have; nothing is sent."""
    parts = urlsplit(endpoint)
    port = parts.port or 443
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            parts.hostname, port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise _address_unknown(error) from None


def _public() -> str:
    """Return the address under which the internet sees this computer."""
    try:
        with urlopen(_SERVICE, timeout=_WAIT_S) as answer:
            return str(ipaddress.ip_address(answer.read(_LONGEST).decode("ascii").strip()))
    except (OSError, ValueError) as error:
        raise _address_unknown(error) from None


def _address_unknown(error: Exception) -> ProviderError:
    why = f"{type(error).__name__}: {error}"
    return ProviderError(Message("access.no-address", error=why))
