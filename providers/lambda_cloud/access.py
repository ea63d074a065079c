"""How Lambda is reached: key, endpoint, certificate, time limits, and what an answer means.

The API as documented at docs.lambda.ai/api/cloud: JSON below https://cloud.lambda.ai/api/v1 with
`data` in an answer, `error` with `code` and `message` in a refusal. It has no idempotency token,
and takes about one request a second, and launches more rarely.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pricing.errors import ProviderError
from providers.interface import NoCapacityError, QuotaError, ThrottledError, UncertainError
from providers.lambda_cloud import ENDPOINT, TOKEN
from providers.redaction import learn, redact
from providers.token_access import TokenAccess, TokenVariables

if TYPE_CHECKING:
    from urllib3 import PoolManager, Retry
CA = "GPUCOST_LAMBDA_CA"

RETRIES = 4
BACKOFF_S = 1.0
CONNECT_S, READ_S = 10.0, 60.0
LAUNCH_EVERY_S = 12.0
"""Where a 429 does not say how long: SkyPilot's client has seen one launch in about ten seconds."""

NOT_FOUND = "global/object-does-not-exist"
_PUBLIC = "https://cloud.lambda.ai"
_MOST_TEXT = 200
_CODES: Mapping[str, type[ProviderError]] = {
    "instance-operations/launch/insufficient-capacity": NoCapacityError,
    "global/quota-exceeded": QuotaError,
}
Json = dict[str, Any]


_VARIABLES = TokenVariables(
    token=TOKEN,
    endpoint=ENDPOINT,
    ca=CA,
    missing=(
        "is not set, so Lambda cannot be asked. Set it to an API key of the account "
        "(cloud.lambda.ai, API keys)."
    ),
    word="key",
)


def read_access(environment: Mapping[str, str]) -> TokenAccess:
    """Return the access that the environment names.

    Raises:
        MissingCredentialsError: there is no key.
        InputError: the endpoint is not https, or the certificate file is not there.
    """
    read = _VARIABLES.read(environment)
    return replace(read, endpoint=read.endpoint and read.endpoint.rstrip("/"))


class RefusedCallError(ProviderError):
    """Lambda refused a call; nothing was done.

    Attributes:
        status: of the answer.
        code: of its error, such as "global/object-does-not-exist"; empty: none.
    """

    def __init__(self, problems: str | Iterable[str], status: int = 0, code: str = "") -> None:
        super().__init__(problems)
        self.status, self.code = status, code

    @property
    def is_unknown(self) -> bool:
        """Whether the answer is that there is no such thing."""
        return self.status == HTTPStatus.NOT_FOUND or self.code == NOT_FOUND


@dataclass(kw_only=True)
class LambdaClient:
    """Calls of the API: reads are repeated where that may help, what changes something is not.

    Attributes:
        access: where and as whom.
        on_date: is told the Date header of every answer.
    """

    access: TokenAccess
    on_date: Callable[[str], object] = str
    _pool: "PoolManager | None" = field(default=None, repr=False)

    def get(self, path: str, doing: str) -> Any:  # noqa: ANN401 - any JSON
        """Return the `data` of a GET below /api/v1.

        Raises:
            ProviderError: no answer that can be read.
        """
        return self._call("GET", path, None, doing)

    def change(self, method: str, path: str, body: Mapping[str, Any] | None, doing: str) -> Any:  # noqa: ANN401 - any JSON
        """Send one call that changes something, once, and return its `data`.

        Raises:
            NoCapacityError, QuotaError, ThrottledError, RefusedCallError: nothing was done.
            UncertainError: nobody knows.
        """
        return self._call(method, path, body, doing)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None, doing: str) -> Any:  # noqa: ANN401 - any JSON
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - only where it is called

        learn(self.access.token)
        try:
            answer = self._connected().request(
                method,
                f"{self.access.endpoint or _PUBLIC}/api/v1{path}",
                body=None if body is None else json.dumps(body),
                headers={
                    "Authorization": f"Bearer {self.access.token}",
                    "Content-Type": "application/json",
                },
                retries=self._retries(reads=method == "GET"),
                redirect=False,
            )
            status, content = answer.status, answer.data
        except HTTPError as error:
            raise _uncertain(doing, f"{type(error).__name__}: {error}") from None
        self.on_date(answer.headers.get("Date", ""))
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if status == HTTPStatus.OK and isinstance(document, dict) and "data" in document:
            return document["data"]
        raise _refusal(doing, status, document, answer.headers.get("Retry-After", ""))

    def _connected(self) -> "PoolManager":
        from urllib3 import PoolManager, Timeout  # noqa: PLC0415 - only where it is called

        if self._pool is None:
            self._pool = PoolManager(
                timeout=Timeout(connect=CONNECT_S, read=READ_S),
                ca_certs=None if self.access.ca is None else str(self.access.ca),
            )
        return self._pool

    def _retries(self, *, reads: bool) -> "Retry":
        from urllib3 import Retry  # noqa: PLC0415 - only where it is called

        return Retry(
            total=RETRIES if reads else 0,
            redirect=0,
            status_forcelist=(429, 500, 502, 503, 504) if reads else (),
            backoff_factor=BACKOFF_S,
            respect_retry_after_header=False,  # it may ask for hours
            raise_on_status=False,
        )


def _uncertain(doing: str, text: str) -> UncertainError:
    return UncertainError(f"Lambda: {doing} failed: {_short(text)}")


def _refusal(doing: str, status: int, document: object, retry_after: str) -> ProviderError:
    """Return the error of an answer that is not the wanted one."""
    error = document.get("error") if isinstance(document, dict) else None
    details: Json = error if isinstance(error, dict) else {}
    code, words = str(details.get("code", "")), str(details.get("message", ""))
    sentence = f"Lambda: {doing} failed: HTTP {status}: {_short(f'{code} {words}'.strip())}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        throttled = ThrottledError(sentence)
        throttled.wait_s = float(retry_after) if retry_after.isdigit() else LAUNCH_EVERY_S
        return throttled
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status < HTTPStatus.BAD_REQUEST:
        return UncertainError(sentence)
    if code in _CODES:
        return _CODES[code](sentence)
    return RefusedCallError(sentence, status, code)


def _short(text: str) -> str:
    return redact(" ".join(text.split()))[:_MOST_TEXT]
