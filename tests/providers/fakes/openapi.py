"""An OpenAPI document that the exchanges of a fake are held against."""

from dataclasses import dataclass, field
from typing import Any

from openapi_core import Config, OpenAPI
from openapi_core.contrib.werkzeug import WerkzeugOpenAPIRequest, WerkzeugOpenAPIResponse
from openapi_core.exceptions import OpenAPIError
from werkzeug.wrappers import Request, Response

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The document, for a fake wherever it is served.

    Attributes:
        document: as it is published. What no exchange meets of it may be wrong.
        host: of the provider, with its scheme.
        kept: exchanges that have kept the contract: the same one keeps it again.
    """

    document: Document
    host: str
    kept: set[tuple[object, ...]] = field(default_factory=set)
    _held: OpenAPI = field(init=False)

    def __post_init__(self) -> None:
        unchecked = Config(spec_validator_cls=None)
        held = OpenAPI.from_dict({**self.document, "servers": [{"url": self.host}]}, unchecked)
        object.__setattr__(self, "_held", held)

    def has(self, path: str) -> bool:
        """Whether a path, as the document writes it, is in it."""
        return path in self.document["paths"]

    def violation(self, request: Request, response: Response) -> str:
        """Return what in an exchange does not keep the document; empty: nothing."""
        asked = (request.method, request.full_path, request.data)
        exchange = (*asked, response.status_code, response.data)
        if exchange in self.kept:
            return ""
        of_provider = _Asked(request)
        of_provider.host = self.host
        try:
            self._held.validate_request(of_provider)
            self._held.validate_response(of_provider, WerkzeugOpenAPIResponse(response))
        except OpenAPIError as error:
            return (
                f"{request.method} {request.full_path.rstrip('?')}: {error!r}: {error.__cause__!r}"
            )
        self.kept.add(exchange)
        return ""


class _Asked(WerkzeugOpenAPIRequest):
    """A request as if it had been made of the provider's own host."""

    host = ""

    @property
    def host_url(self) -> str:
        """The provider's own."""
        return self.host
