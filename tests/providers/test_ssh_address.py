"""Names of the user's own machines: what may follow `--type ssh/`."""

import pytest

from gpucost.launch.choice import choose_type
from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
from providers.ssh.connection import check_address

GOOD = ("host", "root@10.0.0.5", "ada@gpu-1.example.com:2222", "a_b@h:1", "root@h:65535")
BAD = (
    "root@host:x",
    "[::1]:22",
    "root@[::1]",
    "::1",
    "fe80::1:22",
    "-oProxyCommand=id",
    "root@-h",
    "-root@h",
    "root@h:0",
    "root@h:65536",
    "root@h:",
    "root@",
    "@h",
    "a b",
    "h;id",
    "h\nx",
    "$(id)",
    "h-",
    "",
    "root@a@b",
    "h:22:22",
    "h/../x",
)


@pytest.mark.parametrize("text", GOOD)
def test_a_name_is_taken(text: str) -> None:
    """User and port may be left out."""
    assert check_address(text) == text


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_name_is_bad_input(text: str) -> None:
    """A port that is not a number, IPv6 in brackets, an option for a host: exit 2, not a bug."""
    with pytest.raises(InputError, match="USER@HOST"):
        choose_type(f"ssh/{text}", None, None, 1, load_catalog())


@pytest.mark.parametrize(
    "text", ["root@[2001:db8::1]:22", "root@[2001:db8::1]", "2001:db8:0:1:2:3:4:5", "[::1]:22"]
)
def test_an_ipv6_address_is_refused_with_its_reason(text: str) -> None:
    """In brackets or without, the sentence says why and what to write instead."""
    with pytest.raises(InputError, match=r"IPv6 address is not taken, because.*name in /etc/hosts"):
        check_address(text)
