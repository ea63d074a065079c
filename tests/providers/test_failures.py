"""What a failed call means: nothing was made here, nowhere, ask again, or nobody knows."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ParamValidationError

from pricing.errors import ProviderError
from providers.aws.access import sdk_errors as of_aws
from providers.aws.placement import quota_code
from providers.digitalocean.access import sdk_errors as of_digitalocean
from providers.interface import NoCapacityError, QuotaError, ThrottledError, UncertainError
from providers.token_access import TokenAccess

TOKEN = "dop_v1_" + "5ec4e7" * 8
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"  # noqa: S105 - a planted one


class _Answer:
    """An answer of the API."""

    def __init__(self, message: str, headers: dict[str, str]) -> None:
        self.message, self.headers = message, headers

    def json(self) -> dict[str, str]:
        """Its document."""
        return {"id": "x", "message": self.message}


def _http(status: int, message: str = "", **headers: str) -> Exception:
    error: Any = RuntimeError(f"{message} for {TOKEN}")
    error.status_code, error.response = status, _Answer(message, headers)
    return error  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (_http(422, "creating this will exceed your GPU limit"), QuotaError),
        (_http(422, "creating this/these droplet(s) will exceed your droplet limit"), QuotaError),
        (_http(422, "Region is not available"), NoCapacityError),
        (_http(422, "size is unavailable in this region"), NoCapacityError),
        (_http(422, "name must be valid"), ProviderError),
        (_http(401, "Unable to authenticate you"), ProviderError),
        (_http(429, "too many", **{"Retry-After": "7"}), ThrottledError),
        (_http(500), UncertainError),
        (_http(503), UncertainError),
        (_http(202), UncertainError),
        (ConnectionResetError("reset"), UncertainError),
        (TimeoutError("read"), UncertainError),
    ],
    ids=str,
)
def test_digitalocean(error: Exception, meaning: type[ProviderError]) -> None:
    """Each failure of pydo has its meaning, and none tells the token."""
    with (
        pytest.raises(ProviderError) as caught,
        of_digitalocean(TokenAccess(token=TOKEN), "making"),
    ):
        raise error
    assert type(caught.value) is meaning
    assert TOKEN not in str(caught.value)
    if isinstance(caught.value, ThrottledError):
        assert caught.value.wait_s == 7


def _client(code: str, status: int) -> Exception:
    answer: Any = {
        "Error": {"Code": code, "Message": f"not for {SECRET}"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "RunInstances")


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (_client("InsufficientInstanceCapacity", 500), NoCapacityError),
        (_client("Unsupported", 400), NoCapacityError),
        (_client("SpotMaxPriceTooLow", 400), NoCapacityError),
        (_client("VcpuLimitExceeded", 400), QuotaError),
        (_client("MaxSpotInstanceCountExceeded", 400), QuotaError),
        (_client("RequestLimitExceeded", 503), ThrottledError),
        (_client("InternalError", 500), UncertainError),
        (_client("Unavailable", 503), UncertainError),
        (_client("UnauthorizedOperation", 403), ProviderError),
        (_client("InvalidAMIID.NotFound", 400), ProviderError),
        (EndpointConnectionError(endpoint_url="https://x"), UncertainError),
        (ParamValidationError(report="wrong"), ProviderError),
    ],
    ids=str,
)
def test_aws(error: Exception, meaning: type[ProviderError]) -> None:
    """Each failure of boto3 has its meaning, and none tells a key."""
    with pytest.raises(ProviderError) as caught, of_aws("making", (SECRET,)):
        raise error
    assert type(caught.value) is meaning
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("instance_type", "purchase", "code"),
    [
        ("g6.xlarge", "on_demand", "L-DB2E81BA"),
        ("gr6.4xlarge", "on_demand", "L-DB2E81BA"),
        ("p5.48xlarge", "on_demand", "L-417A185B"),
        ("p6-b200.48xlarge", "on_demand", "L-417A185B"),
        ("g5.xlarge", "spot", "L-3819A6DF"),
        ("p4d.24xlarge", "spot", "L-7212CCBC"),
        ("p5en.48xlarge", "spot", "L-C4BD4855"),
        ("p6-b200.48xlarge", "spot", None),
        ("m5.large", "on_demand", None),
    ],
)
def test_the_quota_of_a_type(instance_type: str, purchase: str, code: str | None) -> None:
    """Each family and way of buying counts against its own quota; an unknown one is not guessed."""
    found = quota_code(instance_type, purchase)
    assert (found[0] if found else None) == code
