"""Runs a WSGI application on this machine, over https with a certificate of its own or http."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import trustme
from werkzeug.serving import WSGIRequestHandler, make_server


class _Handler(WSGIRequestHandler):
    """Keeps a connection open, as the APIs do and werkzeug does not, and logs nothing.

    A handshake for every call was half the time of these tests; a head and a body that are sent one
    after the other, with Nagle's algorithm, were 40 ms of waiting a call.
    """

    disable_nagle_algorithm = True

    def run_wsgi(self) -> None:
        """Answer one request; its whole body is read, or the rest would be the next request."""
        environ = self.make_environ()
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = BytesIO(self.rfile.read(length))
        head: list[Any] = []
        body = b"".join(self.server.app(environ, lambda *words: head.extend(words)))
        status, headers = head
        code, _, reason = status.partition(" ")
        self.send_response_only(int(code), reason)  # the application says what time it is
        for name, value in {**dict(headers), "Content-Length": len(body)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's name
        """Drop the line."""


@contextmanager
def serving(app: Any, authority: Path | None = None) -> Iterator[str]:
    """Serve an application and yield its address; it has ended when the block ends.

    Args:
        app: the WSGI application.
        authority: file to write the certificate authority to; None serves plain http.
    """

    def answering(environ: dict[str, Any], start: Any) -> Any:
        """Answer who only asks whether anybody does; it is no call of the API."""
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"]) != ("HEAD", "/"):
            return app(environ, start)
        start("404 NOT FOUND", [("Content-Length", "0")])
        return []

    context = None
    if authority is not None:
        own = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.issue_cert("127.0.0.1").configure_cert(context)
        own.cert_pem.write_to_path(authority)
    server = make_server(
        "127.0.0.1", 0, answering, threaded=True, request_handler=_Handler, ssl_context=context
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if authority else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
