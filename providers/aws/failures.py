"""What a failed call to AWS means: nothing was made, or nobody knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from pricing.errors import GpucostError, ProviderError
from providers.aws.access import sentence
from providers.errors import NoCapacityError, QuotaError, ThrottledError, UncertainError

_MEANINGS: dict[type[ProviderError], tuple[str, ...]] = {
    NoCapacityError: (
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientCapacity",
        "Unsupported",
        "SpotMaxPriceTooLow",
        "InsufficientReservedInstanceCapacity",
        "InvalidAvailabilityZone",
        "UnfulfillableCapacity",
    ),
    QuotaError: (
        "VcpuLimitExceeded",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VolumeLimitExceeded",
        "SecurityGroupLimitExceeded",
        "ResourceLimitExceeded",
        "ResourceLimitExceededException",
    ),
    ThrottledError: (
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "EC2ThrottledException",
        "TooManyRequestsException",
        "RequestThrottled",
        "SlowDown",
    ),
}
DENIED = "UnauthorizedOperation"
"""The code of an answer to a call that the identity may not make."""

_NOT_FOUND = ("NotFound", "Malformed")
"""Words in the code of an answer about an id that is not shown, or that no resource can have."""


@contextmanager
def launch_errors(doing: str, secrets: tuple[str, ...]) -> Iterator[None]:
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
        raise _meaning(error, sentence(doing, error, secrets)) from None


def code_of(error: BaseException) -> str:
    """Return the code of a service's answer; empty where there was none."""
    answer: Any = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


def is_not_found(error: BaseException) -> bool:
    """Return whether an answer says that it knows no such id; alone that does not prove an end."""
    return any(word in code_of(error) for word in _NOT_FOUND)


def _meaning(error: Exception, text: str) -> ProviderError:
    code = code_of(error)
    for meaning, codes in _MEANINGS.items():
        if code in codes:
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
