"""How DigitalOcean is reached: through pydo, by method and path: some of its calls raise no 404.

The SDK repeats POST, and the API knows no idempotency, so what changes something goes through a
client that repeats nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, TypeAlias

from pricing.errors import MissingCredentialsError, ProviderError
from providers.digitalocean import ENDPOINT, REAPER_TOKEN, TOKEN
from providers.interface import ForbiddenError, NoCapacityError, QuotaError
from providers.provider import check_form
from providers.token_api import (
    JsonDocument,
    RefusedCallError,
    TokenAccess,
    TokenApi,
    TokenVariables,
)

PydoClient: TypeAlias = Any
"""A client of pydo, which has no types of its own."""

CA = "GPUCOST_DIGITALOCEAN_CA"

CONNECT_S = 10
READ_S = 30
RETRIES = 3
BACKOFF_S = 0.5
LONGEST_WAIT_S = 20
"""Most seconds between two tries, also where the provider's Retry-After asks for more."""

_BUDGET_S = 120  # of one call with its retries
_PER_PAGE = 200
_MOST_PAGES = 50

VARIABLES = TokenVariables(
    token=TOKEN,
    endpoint=ENDPOINT,
    ca=CA,
    missing=(
        "is not set, so DigitalOcean cannot be asked. Set it to a token that may read sizes, and "
        "for launches what `gpucost iam-policy` lists (cloud.digitalocean.com, API, Tokens)."
    ),
)


def _connect(access: TokenAccess, retries: int) -> PydoClient:
    """Return a client with stated time limits; its own retries are the only ones."""
    from azure.core.pipeline.policies import RetryPolicy  # noqa: PLC0415 - heavy, only here
    from pydo import Client  # noqa: PLC0415 - the same

    class _Patient(RetryPolicy):  # type: ignore[type-arg] # azure-core's generics are private
        """Waits as the provider asks, but not longer than LONGEST_WAIT_S."""

        def get_retry_after(self, response: PydoClient) -> float | None:
            wait_s: float | None = super().get_retry_after(response)
            return None if wait_s is None else min(wait_s, LONGEST_WAIT_S)

    options: dict[str, Any] = {
        "timeout": _BUDGET_S,
        "connection_timeout": CONNECT_S,
        "read_timeout": READ_S,
        "retry_policy": _Patient(
            retry_total=retries,
            retry_status=retries,
            retry_backoff_factor=BACKOFF_S,
            retry_backoff_max=LONGEST_WAIT_S,
            timeout=_BUDGET_S,
        ),
    }
    if access.endpoint is not None:
        options["endpoint"] = access.endpoint
    if access.ca is not None:
        options["connection_verify"] = str(access.ca)
    return Client(access.token, **options)


_QUOTA = ("will exceed your", "droplet limit", "gpu limit", "limit increase")
_ELSEWHERE = ("not available", "unavailable", "capacity", "region")
_RAISE = "GPU quota of a new account is 0; ask for it at cloud.digitalocean.com, Settings, limits."


@dataclass(kw_only=True)
class DigitalOceanApi(TokenApi):
    """Calls of the API.

    Attributes:
        retries: of a read that the provider failed or throttled; None: RETRIES.
    """

    title = "DigitalOcean"
    retries: int | None = None
    _clients: dict[bool, PydoClient] = field(default_factory=dict, repr=False)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        params: Mapping[str, str | int],
    ) -> tuple[int, Mapping[str, str], bytes]:
        from azure.core.rest import HttpRequest  # noqa: PLC0415 - heavy, only here

        reads = method == "GET"
        if reads not in self._clients:
            retries = RETRIES if self.retries is None else self.retries
            self._clients[reads] = _connect(self.access, retries if reads else 0)
        request = HttpRequest(method, path, params=dict(params), json=body)
        answer = self._clients[reads].send_request(request)
        return answer.status_code, answer.headers, answer.content

    def pages(
        self,
        path: str,
        many: str,
        doing: str,
        filters: Mapping[str, str] = MappingProxyType({}),
        *,
        is_whole: bool = False,
    ) -> Iterator[JsonDocument]:
        """Yield every item that a path lists under a key, page by page.

        Args:
            path: of the list.
            many: its key.
            doing: for people.
            filters: of the list.
            is_whole: whether as many must come as the answer announces.

        Raises:
            ProviderError: a page is not a list, there is no end, or some are missing.
        """
        count = 0
        for page in range(1, _MOST_PAGES + 1):
            answer = self.get(path, doing, per_page=_PER_PAGE, page=page, **filters)
            items = answer.get(many) if isinstance(answer, dict) else None
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise ProviderError(f"DigitalOcean: page {page} of {many} is not a list of {many}.")
            yield from items
            count += len(items)
            if not ((answer.get("links") or {}).get("pages") or {}).get("next"):
                break
        else:
            raise ProviderError(f"DigitalOcean: more than {_MOST_PAGES} pages of {many}.")
        announced = (answer.get("meta") or {}).get("total", count)
        if is_whole and count != announced:
            raise ProviderError(
                f"DigitalOcean: {count} {many} came where {announced} were announced; the answer "
                "is not complete, so nothing was changed."
            )

    @staticmethod
    def _reason(document: object) -> tuple[str, str]:
        return "", str(document.get("message", "")) if isinstance(document, dict) else ""

    @staticmethod
    def _refusal(sentence: str, status: int, reason: tuple[str, str]) -> ProviderError:
        """Return the error of a refused call, recognised by its words."""
        low = reason[1].lower()
        if any(word in low for word in _QUOTA):
            return QuotaError(f"{sentence}. {_RAISE}")
        if status == HTTPStatus.UNPROCESSABLE_ENTITY and any(word in low for word in _ELSEWHERE):
            return NoCapacityError(sentence)
        if status == HTTPStatus.FORBIDDEN:
            return ForbiddenError(sentence)
        return RefusedCallError(sentence, status)


_ABSENT = (2_147_483_647, 2_147_483_629, 2_147_483_587)
"""Numbers that no Droplet of the account is likely to have; the first that is absent is used."""


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
    check_form(REAPER_TOKEN, "digitalocean", "all Droplets of the account", token)
    api = DigitalOceanApi(access=replace(access, token=token), retries=1)
    absent = next((n for n in _ABSENT if _is_absent(api, "GET", n)), None)
    if absent is None:
        raise ProviderError(f"{REAPER_TOKEN} could not be tried: no number of a Droplet is free.")
    if not _is_absent(api, "DELETE", absent):
        raise ProviderError(f"{REAPER_TOKEN} could not be tried: the answer cannot be read.")


def _is_absent(api: DigitalOceanApi, method: str, number: int) -> bool:
    """Return whether a call about a Droplet is allowed, and answered that there is none.

    Raises:
        MissingCredentialsError: the token may not do that.
        ProviderError: no answer.
    """
    doing = f"trying {REAPER_TOKEN}"
    try:
        api.change(method, f"/v2/droplets/{number}", None, doing)
    except (RefusedCallError, ForbiddenError) as error:
        if isinstance(error, RefusedCallError) and error.status == HTTPStatus.NOT_FOUND:
            return True
        status = getattr(error, "status", HTTPStatus.FORBIDDEN)
        if status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise
        raise MissingCredentialsError(
            f"DigitalOcean refuses {REAPER_TOKEN} (HTTP {int(status)}): it may not "
            f"{'read' if method == 'GET' else 'destroy'} "
            "Droplets, so no machine could end itself with it. `gpucost iam-policy --provider "
            "digitalocean` lists the scopes that it needs; or say --no-self-destroy."
        ) from None
    return False
