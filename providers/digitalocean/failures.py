"""What a failed call to DigitalOcean means: nothing was made, or nobody knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from pricing.errors import GpucostError, ProviderError
from providers.errors import (
    ForbiddenError,
    NoCapacityError,
    QuotaError,
    ThrottledError,
    UncertainError,
)
from providers.redaction import learn, redact
from providers.token_access import TokenAccess

_MOST_TEXT = 200
_QUOTA = ("will exceed your", "droplet limit", "gpu limit", "limit increase")
_ELSEWHERE = ("not available", "unavailable", "capacity", "region")
_RAISE = "GPU quota of a new account is 0; ask for it at cloud.digitalocean.com, Settings, limits."


@contextmanager
def launch_errors(access: TokenAccess, doing: str) -> Iterator[None]:
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
    told = f"DigitalOcean: {doing} failed: {f'HTTP {status}' if status else type(error).__name__}"
    sentence = f"{told}: {text}"
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


def _message(error: Exception) -> str:
    """Return the provider's own sentence in the answer."""
    response = getattr(error, "response", None)
    try:
        told: Any = response.json() if response is not None else {}
    except Exception:  # noqa: BLE001 - the body of a failure may be anything
        return ""
    return str(told.get("message", "")) if isinstance(told, dict) else ""


def _retry_after_s(error: Exception) -> float:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return ThrottledError.wait_s
