"""How DigitalOcean is reached: token, endpoint, certificate, time limits."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pricing.errors import GpucostError, ProviderError
from providers.redaction import learn, redact
from providers.token_access import TokenAccess, TokenVariables

TOKEN = "DIGITALOCEAN_TOKEN"  # noqa: S105 - the name of the variable
ENDPOINT = "GPUCOST_DIGITALOCEAN_ENDPOINT"
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
) -> Any:  # noqa: ANN401 - pydo's client has no types of its own
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

        def get_retry_after(self, response: Any) -> float | None:  # noqa: ANN401 - azure's type
            asked: float | None = super().get_retry_after(response)
            return None if asked is None else min(asked, LONGEST_WAIT_S)

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


@contextmanager
def sdk_errors(access: TokenAccess, doing: str) -> Iterator[None]:
    """Turn whatever the library raises into one sentence without the token.

    Raises:
        ProviderError: with status and reason where there are any.
    """
    try:
        yield
    except GpucostError:
        raise
    except Exception as error:  # noqa: BLE001 - requests, urllib3, azure and json raise their own
        status = getattr(error, "status_code", None)
        learn(access.token)
        text = redact(" ".join(str(error).split()))[:_MOST_TEXT]
        kind = f"HTTP {status}" if status else type(error).__name__
        raise ProviderError(f"DigitalOcean: {doing} failed: {kind}: {text}") from None
