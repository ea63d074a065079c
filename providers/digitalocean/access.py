"""How DigitalOcean is reached: token, endpoint, certificate, time limits."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypeAlias

from pricing.errors import GpucostError, MissingCredentialsError, ProviderError
from providers.digitalocean import ENDPOINT, REAPER_TOKEN, TOKEN
from providers.digitalocean.calls import PROVIDER
from providers.interface import (
    ForbiddenError,
    NoCapacityError,
    QuotaError,
    ThrottledError,
    UncertainError,
)
from providers.provider import check_form
from providers.redaction import learn, redact
from providers.token_access import TokenAccess, TokenVariables

PydoClient: TypeAlias = Any
"""A client of pydo, or a call of it; they have no types of their own."""

CA = "GPUCOST_DIGITALOCEAN_CA"

CONNECT_S = 10
READ_S = 30
RETRIES = 3
BACKOFF_S = 0.5
LONGEST_WAIT_S = 20
"""Most seconds between two tries, also where the provider's Retry-After asks for more."""

_BUDGET_S = 120  # of one call with its retries
_MOST_TEXT = 200


_VARIABLES = TokenVariables(
    token=TOKEN,
    endpoint=ENDPOINT,
    ca=CA,
    missing=(
        "is not set, so DigitalOcean cannot be asked. Set it to a token that may read sizes, and "
        "for launches what `gpucost iam-policy` lists (cloud.digitalocean.com, API, Tokens)."
    ),
)


def read_access(environment: Mapping[str, str]) -> TokenAccess:
    """Return the access that the environment names.

    Raises:
        MissingCredentialsError: there is no token.
        InputError: the endpoint is not https, or the certificate file is not there.
    """
    return _VARIABLES.read(environment)


def connect(
    access: TokenAccess, *, retries: int | None = None, on_date: Callable[[str], None] | None = None
) -> PydoClient:
    """Return a client with stated time limits; its own retries are the only ones.

    Args:
        access: where and as whom.
        retries: of a call that the provider failed or throttled; None: RETRIES. 0 for calls that
            make something: the SDK repeats POST, and the API knows no idempotency.
        on_date: is told the Date header of every answer.
    """
    from azure.core.pipeline.policies import RetryPolicy  # noqa: PLC0415 - heavy, only here
    from pydo import Client  # noqa: PLC0415 - the same

    class Patient(RetryPolicy):  # type: ignore[type-arg] # azure-core's generics are private
        """Waits as the provider asks, but not longer than LONGEST_WAIT_S."""

        def get_retry_after(self, response: PydoClient) -> float | None:
            wait_s: float | None = super().get_retry_after(response)
            return None if wait_s is None else min(wait_s, LONGEST_WAIT_S)

    retries = RETRIES if retries is None else retries
    options: dict[str, Any] = {
        "timeout": _BUDGET_S,
        "connection_timeout": CONNECT_S,
        "read_timeout": READ_S,
        "retry_policy": Patient(
            retry_total=retries,
            retry_status=retries,
            retry_backoff_factor=BACKOFF_S,
            retry_backoff_max=LONGEST_WAIT_S,
            timeout=_BUDGET_S,
        ),
    }
    if on_date is not None:
        options["raw_response_hook"] = lambda answer: on_date(
            answer.http_response.headers.get("Date", "")
        )
    if access.endpoint is not None:
        options["endpoint"] = access.endpoint
    if access.ca is not None:
        options["connection_verify"] = str(access.ca)
    return Client(access.token, **options)


_QUOTA = ("will exceed your", "droplet limit", "gpu limit", "limit increase")
_ELSEWHERE = ("not available", "unavailable", "capacity", "region")
_RAISE = "GPU quota of a new account is 0; ask for it at cloud.digitalocean.com, Settings, limits."


@contextmanager
def sdk_errors(access: TokenAccess, doing: str) -> Iterator[None]:
    """Turn whatever the library raises into the error that says what it means.

    Raises:
        NoCapacityError, QuotaError, ThrottledError, UncertainError, ProviderError: without token.
    """
    try:
        yield
    except GpucostError:
        raise
    except Exception as error:  # noqa: BLE001 - requests, urllib3, azure and json raise their own
        raise _meaning(access, doing, error) from None


def _meaning(access: TokenAccess, doing: str, error: Exception) -> ProviderError:
    status = getattr(error, "status_code", None)
    text = " ".join(str(_message(error) or error).split())
    learn(access.token)
    text = redact(text)[:_MOST_TEXT]
    failure = (
        f"DigitalOcean: {doing} failed: {f'HTTP {status}' if status else type(error).__name__}"
    )
    sentence = f"{failure}: {text}"
    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UncertainError(sentence)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        throttled = ThrottledError(sentence)
        throttled.wait_s = _retry_after_s(error)
        return throttled
    if status < HTTPStatus.BAD_REQUEST:
        return UncertainError(f"{sentence} (an answer that cannot be read)")
    return refusal(status, text, sentence)


def refusal(status: int | None, text: str, sentence: str) -> ProviderError:
    """Return the error of a refused call, recognised by its words."""
    low = text.lower()
    if any(word in low for word in _QUOTA):
        return QuotaError(f"{sentence}. {_RAISE}")
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and any(word in low for word in _ELSEWHERE):
        return NoCapacityError(sentence)
    if status == HTTPStatus.FORBIDDEN:
        return ForbiddenError(sentence)
    return ProviderError(sentence)


def what_was_made(answer: object, key: str, doing: str) -> dict[str, Any] | None:
    """Return what a create call's answer holds under a key; None where it does not say.

    Raises:
        NoCapacityError, QuotaError, ForbiddenError, ProviderError: some refusals do not raise.
    """
    if not isinstance(answer, Mapping):
        return None
    if "message" in answer and key not in answer:
        text = str(answer["message"])
        raise refusal(None, text, f"DigitalOcean: {doing} failed: {text[:200]}")
    made: dict[str, Any] | None = answer.get(key)
    return made


def _message(error: Exception) -> str:
    """Return the provider's own sentence in the answer."""
    response = getattr(error, "response", None)
    try:
        body: Any = response.json() if response is not None else {}
    except Exception:  # noqa: BLE001 - the body of a failure may be anything
        return ""
    return str(body.get("message", "")) if isinstance(body, dict) else ""


def _retry_after_s(error: Exception) -> float:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return ThrottledError.wait_s


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
    check_form(REAPER_TOKEN, PROVIDER, "all Droplets of the account", token)
    droplets = connect(replace(access, token=token), retries=1).droplets
    absent = next((n for n in _ABSENT if _status(token, droplets.get, n) == _GONE), None)
    if absent is None:
        raise ProviderError(f"{REAPER_TOKEN} could not be tried: no number of a Droplet is free.")
    if _status(token, droplets.destroy, absent) != _GONE:
        raise ProviderError(f"{REAPER_TOKEN} could not be tried: the answer cannot be read.")


_GONE = HTTPStatus.NOT_FOUND


def _status(token: str, call: PydoClient, number: int) -> int:
    """Return the status of an answer that has no body of interest.

    Raises:
        MissingCredentialsError: the token may not do that.
        ProviderError: no answer.
    """
    statuses: list[int] = []
    try:
        call(
            number,
            raw_response_hook=lambda answer: statuses.append(answer.http_response.status_code),
        )
    except Exception as error:  # noqa: BLE001 - requests, urllib3, azure and json raise their own
        status = getattr(error, "status_code", None) or (statuses[-1] if statuses else None)
        if status not in _REFUSED:
            text = " ".join(str(error).split()).replace(token, "[token]")[:200]
            raise ProviderError(f"{REAPER_TOKEN} could not be tried: {text}") from None
        statuses.append(status)
    status = statuses[-1] if statuses else 0
    if status in _REFUSED:
        doing = "read" if call.__name__ == "get" else "destroy"
        raise MissingCredentialsError(
            f"DigitalOcean refuses {REAPER_TOKEN} (HTTP {int(status)}): it may not {doing} "
            "Droplets, so no machine could end itself with it. `gpucost iam-policy --provider "
            "digitalocean` lists the scopes that it needs; or say --no-self-destroy."
        )
    return int(status)
