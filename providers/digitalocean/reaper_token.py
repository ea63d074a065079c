"""The token with which Droplets end themselves: tried before a machine is made that needs it.

It is tried with two calls that change nothing: the reading, and then the destroying of a Droplet
that the first call said does not exist. A token that may not destroy is refused before it is found
that there is nothing to destroy.
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from pricing.errors import MissingCredentialsError, ProviderError
from providers.digitalocean.access import connect
from providers.digitalocean.calls import PROVIDER
from providers.digitalocean.provider import REAPER_TOKEN as VARIABLE
from providers.provider import check_form
from providers.token_access import TokenAccess

_ABSENT = (2_147_483_647, 2_147_483_629, 2_147_483_587)
"""Numbers that no Droplet of the account is likely to have; the first that is absent is used."""

_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def try_token(access: TokenAccess, token: str) -> None:
    """Prove that the token may read and destroy Droplets.

    Args:
        access: where; its own token is not used.
        token: what a machine would end itself with.

    Raises:
        InputError: it cannot be a token.
        MissingCredentialsError: DigitalOcean refuses it.
        ProviderError: DigitalOcean cannot be asked.
    """
    check_form(VARIABLE, PROVIDER, "all Droplets of the account", token)
    droplets = connect(replace(access, token=token), retries=1).droplets
    absent = next((n for n in _ABSENT if _status(token, droplets.get, n) == _GONE), None)
    if absent is None:
        raise ProviderError(f"{VARIABLE} could not be tried: no number of a Droplet is free.")
    if _status(token, droplets.destroy, absent) != _GONE:
        raise ProviderError(f"{VARIABLE} could not be tried: the answer cannot be read.")


_GONE = HTTPStatus.NOT_FOUND


def _status(token: str, call: Any, number: int) -> int:  # noqa: ANN401 - pydo's
    """Return the status of an answer that has no body of interest.

    Raises:
        MissingCredentialsError: the token may not do that.
        ProviderError: no answer.
    """
    found: list[int] = []
    try:
        call(number, raw_response_hook=lambda told: found.append(told.http_response.status_code))
    except Exception as error:  # noqa: BLE001 - requests, urllib3, azure and json raise their own
        status = getattr(error, "status_code", None) or (found[-1] if found else None)
        if status not in _REFUSED:
            text = " ".join(str(error).split()).replace(token, "[token]")[:200]
            raise ProviderError(f"{VARIABLE} could not be tried: {text}") from None
        found.append(status)
    status = found[-1] if found else 0
    if status in _REFUSED:
        doing = "read" if call.__name__ == "get" else "destroy"
        raise MissingCredentialsError(
            f"DigitalOcean refuses {VARIABLE} (HTTP {int(status)}): it may not {doing} Droplets, "
            "so no machine could end itself with it. `gpucost iam-policy --provider digitalocean` "
            "lists the scopes that it needs; or say --no-self-destroy."
        )
    return int(status)
