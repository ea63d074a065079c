"""A call of an SDK and the answer of a stand-in, without a socket between them."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ProtocolError
from urllib3.response import HTTPResponse
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

Call = tuple[str, str, str, Any, Any]
"""Method, host, path, headers and body."""

Answer = tuple[int, list[tuple[str, str]], bytes] | None


class _Cut:
    """A connection that a stand-in may cut."""

    is_cut = False

    def shutdown(self, _: int) -> None:
        """Cut it."""
        self.is_cut = True


def exchange(app: Any, call: Call) -> Answer:
    """What an application answers; None where it cuts the connection."""
    method, host, url, headers, body = call
    told = {_text(name): _text(value) for name, value in headers.items()}
    environ = EnvironBuilder(
        url, f"https://{host}", method=method, headers=told, data=body or b""
    ).get_environ()
    cut = environ["werkzeug.socket"] = _Cut()
    response = Response.from_app(app, environ)
    if cut.is_cut:
        return None
    return response.status_code, list(response.headers.items()), response.get_data()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@contextmanager
def answered(ask: Callable[[Call], Answer]) -> Iterator[None]:
    """Every call of an SDK of this process is answered by `ask`."""

    def call(
        self: Any, method: str, url: str, body: Any = None, headers: Any = None, **_: Any
    ) -> HTTPResponse:
        data = body.read() if hasattr(body, "read") else body
        answer = ask((method, self.host, url, dict(headers or {}), data))
        if answer is None:
            raise ProtocolError("Connection aborted.", ConnectionResetError(104, "cut off"))
        status, told, content = answer
        return HTTPResponse(
            body=io.BytesIO(content), headers=told, status=status, preload_content=False
        )

    with mock.patch.object(HTTPConnectionPool, "urlopen", call):
        yield


@contextmanager
def served(app: Any) -> Iterator[None]:
    """Every call of an SDK of this process is answered by an application."""

    def ask(call: Call) -> Answer:
        return exchange(app, call)

    with answered(ask):
        yield
