"""How a machine of the user's own is named: USER@HOST[:PORT], where USER@ may be left out."""

import re

from pricing.errors import InputError

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
    found = _NAMED.fullmatch(text)
    if found is None or not 1 <= int(found["port"] or 1) <= _LAST_PORT:
        hint = _IPV6 if "[" in text or text.count(":") > 1 else ""
        raise InputError(
            f"{text!r} names no machine; write USER@HOST or USER@HOST:PORT (1 to {_LAST_PORT}): "
            f"letters, digits, dots and dashes, none of them first a dash.{hint}"
        )
    return text
