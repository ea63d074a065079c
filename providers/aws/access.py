"""How AWS is reached: the SDK's own chain of credentials, time limits, errors as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pricing.errors import GpucostError, MissingCredentialsError, ProviderError
from providers.redaction import learn, redact

CONNECT_S = 10
READ_S = 60
ATTEMPTS = 4

_MOST_TEXT = 200


def open_session() -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
    """Return a session with credentials from the SDK's chain: environment, profile, machine role.

    Raises:
        MissingCredentialsError: the chain finds none.
    """
    from boto3.session import Session  # noqa: PLC0415 - heavy, only here

    session = Session()
    found = session.get_credentials()
    if found is None:
        raise MissingCredentialsError(
            "AWS has no credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE, or run where a role is attached. Reading prices needs "
            "pricing:GetProducts, ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings and "
            "ec2:DescribeSpotPriceHistory."
        )
    keys = found.get_frozen_credentials()
    learn(keys.access_key, keys.secret_key, keys.token)
    return session


def client(session: Any, service: str, region: str, *, attempts: int = ATTEMPTS) -> Any:  # noqa: ANN401 - made at run time
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


@contextmanager
def sdk_errors(doing: str, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn whatever the SDK raises into one sentence without credentials.

    Raises:
        ProviderError: with the code of the service where there is one.
    """
    try:
        yield
    except GpucostError:
        raise
    except Exception as error:  # noqa: BLE001 - botocore makes its errors at run time
        raise ProviderError(sentence(doing, error, secrets)) from None


def sentence(doing: str, error: Exception, secrets: tuple[str, ...]) -> str:
    """Return what failed, in one sentence without credentials."""
    learn(*secrets)
    text = redact(" ".join(str(error).split()))[:_MOST_TEXT]
    return f"AWS: {doing} failed: {type(error).__name__}: {text}"
