"""How Lambda is reached: key, endpoint, certificate, time limits, and what an answer means.

The API as documented at docs.lambda.ai/api/cloud: JSON below https://cloud.lambda.ai/api/v1 with
`data` in an answer, `error` with `code` and `message` in a refusal. It has no idempotency token,
and takes about one request a second, and launches more rarely.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pricing.errors import ProviderError
from providers.interface import NoCapacityError, QuotaError
from providers.lambda_cloud import ENDPOINT, TOKEN
from providers.price_feed import connections
from providers.token_api import RefusedCallError, TokenApi, TokenVariables

if TYPE_CHECKING:
    from urllib3 import PoolManager

CA = "GPUCOST_LAMBDA_CA"

RETRIES = 4
BACKOFF_S = 1.0
CONNECT_S, READ_S = 10.0, 60.0
LAUNCH_EVERY_S = 12.0
"""Where a 429 does not say how long: SkyPilot's client has seen one launch in about ten seconds."""

_NOT_FOUND = "global/object-does-not-exist"
_PUBLIC = "https://cloud.lambda.ai"
_CODES: Mapping[str, type[ProviderError]] = {
    "instance-operations/launch/insufficient-capacity": NoCapacityError,
    "global/quota-exceeded": QuotaError,
}

VARIABLES = TokenVariables(
    token=TOKEN,
    endpoint=ENDPOINT,
    ca=CA,
    missing=(
        "is not set, so Lambda cannot be asked. Set it to an API key of the account "
        "(cloud.lambda.ai, API keys)."
    ),
    word="key",
)


@dataclass(kw_only=True)
class LambdaApi(TokenApi):
    """Calls of the API, below /api/v1; what an answer is about is its `data`."""

    title = "Lambda"
    pause_s = LAUNCH_EVERY_S
    _pool: "PoolManager | None" = field(default=None, repr=False)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        params: Mapping[str, str | int],
    ) -> tuple[int, Mapping[str, str], bytes]:
        _ = params  # its lists have no pages
        from urllib3 import Retry, Timeout  # noqa: PLC0415 - only where it is called

        url = f"{self.access.endpoint or _PUBLIC}/api/v1{path}"
        if self._pool is None:
            limits = Timeout(connect=CONNECT_S, read=READ_S)
            ca = None if self.access.ca is None else str(self.access.ca)
            self._pool = connections(url, limits, ca)
        reads = method == "GET"
        answer = self._pool.request(
            method,
            url,
            json=body,
            headers={"Authorization": f"Bearer {self.access.token}"},
            retries=Retry(
                total=RETRIES if reads else 0,
                redirect=0,
                status_forcelist=(429, 500, 502, 503, 504) if reads else (),
                backoff_factor=BACKOFF_S,
                respect_retry_after_header=False,  # it may ask for hours
                raise_on_status=False,
            ),
            redirect=False,
        )
        return answer.status, answer.headers, answer.data

    @staticmethod
    def _data(document: Any) -> Any:  # noqa: ANN401 - any JSON
        return document["data"]

    @staticmethod
    def _reason(document: object) -> tuple[str, str]:
        error = document.get("error") if isinstance(document, dict) else None
        details = error if isinstance(error, dict) else {}
        return str(details.get("code", "")), str(details.get("message", ""))

    @staticmethod
    def is_unknown(error: RefusedCallError) -> bool:
        """Return whether the answer is that there is no such thing."""
        return error.status == HTTPStatus.NOT_FOUND or error.code == _NOT_FOUND

    @staticmethod
    def _refusal(sentence: str, status: int, reason: tuple[str, str]) -> ProviderError:
        if reason[0] in _CODES:
            return _CODES[reason[0]](sentence)
        return RefusedCallError(sentence, status, reason[0])
