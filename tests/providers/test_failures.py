"""What a failed call means: nothing was made here, nowhere, ask again, or nobody knows."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ParamValidationError

from pricing.errors import ProviderError
from providers.aws.access import sdk_errors as of_aws
from providers.aws.placement import quota_code
from providers.digitalocean.access import DigitalOceanApi
from providers.interface import (
    ForbiddenError,
    NoCapacityError,
    QuotaError,
    ThrottledError,
    UncertainError,
)
from providers.redaction import learn
from providers.token_api import RefusedCallError, TokenAccess

TOKEN = "dop_v1_" + "5ec4e7" * 8
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"  # noqa: S105 - a planted one


class _Pydo:
    """A client of pydo whose every call ends like this."""

    def __init__(self, end: Exception | tuple[int, str, dict[str, str]]) -> None:
        self.end = end

    def send_request(self, _: object) -> SimpleNamespace:
        """One answer, or none."""
        if isinstance(self.end, Exception):
            raise self.end
        status, message, headers = self.end
        told = json.dumps({"id": "x", "message": f"{message} for {TOKEN}"})
        return SimpleNamespace(status_code=status, headers=headers, content=told.encode())


@pytest.mark.parametrize(
    ("end", "meaning"),
    [
        ((422, "creating this will exceed your GPU limit", {}), QuotaError),
        ((422, "creating this/these droplet(s) will exceed your droplet limit", {}), QuotaError),
        ((422, "Region is not available", {}), NoCapacityError),
        ((422, "size is unavailable in this region", {}), NoCapacityError),
        ((422, "name must be valid", {}), RefusedCallError),
        ((401, "Unable to authenticate you", {}), RefusedCallError),
        ((403, "You are not authorized", {}), ForbiddenError),
        ((429, "too many", {"Retry-After": "7"}), ThrottledError),
        ((500, "", {}), UncertainError),
        ((503, "", {}), UncertainError),
        ((302, "", {}), UncertainError),
        (ConnectionResetError(f"reset {TOKEN}"), UncertainError),
        (TimeoutError("read"), UncertainError),
    ],
    ids=str,
)
def test_digitalocean(end: Any, meaning: type[ProviderError]) -> None:
    """Each failure has its meaning, none tells the token, and the lifecycle can say more of it."""
    api = DigitalOceanApi(access=TokenAccess(token=TOKEN))
    api._clients[False] = _Pydo(end)  # noqa: SLF001 - instead of the network
    with pytest.raises(ProviderError) as caught:
        api.change("POST", "/v2/droplets", {}, "making")
    assert type(caught.value) is meaning
    assert TOKEN not in str(caught.value)
    assert type(type(caught.value)("more")) is meaning
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
    learn(SECRET)
    with pytest.raises(ProviderError) as caught, of_aws("making"):
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
