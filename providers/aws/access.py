"""How AWS is reached: the SDK's own chain of credentials, time limits, errors as sentences."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar

from pricing.errors import GpucostError, MissingCredentialsError, ProviderError
from providers.interface import NoCapacityError, QuotaError, ThrottledError, UncertainError
from providers.redaction import learn, redact

AwsClient: TypeAlias = Any
"""A session or client of boto3, which makes its classes at run time."""

CONNECT_S = 10
READ_S = 60
ATTEMPTS = 4
HOME = "us-east-1"
"""Asked where no region is named."""

_MOST_TEXT = 200
_Answer = TypeVar("_Answer")


def open_session() -> AwsClient:
    """Return a session with credentials from the SDK's chain: environment, profile, machine role.

    Raises:
        MissingCredentialsError: the chain finds none.
    """
    from boto3.session import Session  # noqa: PLC0415 - heavy, only here

    session = Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise MissingCredentialsError(
            "AWS has no credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE, or run where a role is attached. Reading prices needs "
            "pricing:GetProducts, ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings and "
            "ec2:DescribeSpotPriceHistory."
        )
    keys = credentials.get_frozen_credentials()
    learn(keys.access_key, keys.secret_key, keys.token)
    return session


def client(session: AwsClient, service: str, region: str, *, attempts: int = ATTEMPTS) -> AwsClient:
    """Return a client with stated time limits; the SDK's own retries are the only ones.

    Args:
        session: with credentials.
        service: such as "ec2".
        region: where.
        attempts: of each call; 1 for calls that make something, because the SDK also repeats what
            EC2 refuses for want of capacity.
    """
    from botocore.config import Config  # noqa: PLC0415 - heavy, only here

    limits = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"mode": "standard", "total_max_attempts": attempts},
    )
    return session.client(service, region_name=region, config=limits)


class AwsClients:
    """Clients of an account: one for each service and region, and one that repeats nothing.

    Args:
        session: with credentials.
        on_date: is told the Date header of every answer.
    """

    def __init__(self, session: AwsClient, on_date: Callable[[str], None]) -> None:
        self._session, self._on_date = session, on_date
        self._clients: dict[tuple[str, str, bool], AwsClient] = {}
        self._making = threading.Lock()

    def get(self, service: str, region: str, *, repeats: bool = True) -> AwsClient:
        """Return a client of a region, the home region where none is named."""
        key = (service, region or HOME, repeats)
        with self._making:  # regions are asked at once, and a session makes one client at a time
            if key not in self._clients:
                attempts = ATTEMPTS if repeats else 1
                new_client = client(self._session, service, key[1], attempts=attempts)
                new_client.meta.events.register(f"after-call.{service}", self._on_answer)
                self._clients[key] = new_client
        return self._clients[key]

    def _on_answer(self, http_response: AwsClient, **_: object) -> None:
        self._on_date(http_response.headers.get("Date", ""))


def sentence(doing: str, error: Exception) -> str:
    """Return what failed, in one sentence without credentials."""
    text = redact(" ".join(str(error).split()))[:_MOST_TEXT]
    return f"AWS: {doing} failed: {type(error).__name__}: {text}"


_MEANINGS: dict[type[ProviderError], str] = {
    NoCapacityError: "InsufficientInstanceCapacity InsufficientHostCapacity InsufficientCapacity "
    "Unsupported SpotMaxPriceTooLow InsufficientReservedInstanceCapacity InvalidAvailabilityZone "
    "UnfulfillableCapacity",
    QuotaError: "VcpuLimitExceeded InstanceLimitExceeded MaxSpotInstanceCountExceeded "
    "VolumeLimitExceeded SecurityGroupLimitExceeded ResourceLimitExceeded "
    "ResourceLimitExceededException",
    ThrottledError: "RequestLimitExceeded Throttling ThrottlingException EC2ThrottledException "
    "TooManyRequestsException RequestThrottled SlowDown",
}
DENIED = "UnauthorizedOperation"
"""The code of an answer to a call that the identity may not make."""

_NOT_FOUND = ("NotFound", "Malformed")
"""Words in the code of an answer about an id that is not shown, or that no resource can have."""


@contextmanager
def sdk_errors(doing: str) -> Iterator[None]:
    """Turn whatever the SDK raises into the error that says what it means.

    Raises:
        NoCapacityError, QuotaError, ThrottledError, UncertainError, ProviderError: no credentials
            are in the text.
    """
    try:
        yield
    except GpucostError:
        raise
    except Exception as error:  # noqa: BLE001 - botocore makes its errors at run time
        raise _meaning(error, sentence(doing, error)) from None


def code_of(error: BaseException) -> str:
    """Return the code of a service's answer; empty where there was none."""
    answer: Any = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


def if_known(call: Callable[[], _Answer]) -> _Answer | None:
    """Return what a call answers; None where AWS knows no such thing."""
    try:
        return call()
    except Exception as error:
        if is_not_found(error):
            return None
        raise


def is_not_found(error: BaseException) -> bool:
    """Return whether an answer says that it knows no such id; alone that does not prove an end."""
    return any(word in code_of(error) for word in _NOT_FOUND)


def _meaning(error: Exception, text: str) -> ProviderError:
    code = code_of(error)
    for meaning, codes in _MEANINGS.items():
        if code in codes.split():
            return meaning(text)
    answer: Any = getattr(error, "response", None) or {}
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if status is None and not code:
        return UncertainError(text) if _was_sent(error) else ProviderError(text)
    if status is not None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UncertainError(text)
    return ProviderError(text)


def _was_sent(error: Exception) -> bool:
    """Return whether the call may have left this machine.

    Wrong parameters and credentials never do.
    """
    never = ("ParamValidationError", "NoCredentialsError", "NoRegionError", "ProfileNotFound")
    return type(error).__name__ not in (*never, "PartialCredentialsError", "ValidationError")
