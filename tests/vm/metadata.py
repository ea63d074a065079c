"""What a machine reaches at its metadata address: its id, spot notices, and the call that ends it.

It stands in for two providers. Nothing else of the network is there.
"""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "169.254.169.254"
MACHINE = "4711"


@dataclass
class Metadata:
    """The service, and what was asked of it.

    Attributes:
        requests: method and path, in order.
        taken: the notice that a spot machine gets; empty: none.
        port: where it listens on this computer.
        machine: the id that it tells.
    """

    requests: list[str] = field(default_factory=list)
    taken: str = ""
    port: int = 0
    machine: str = MACHINE

    def start(self) -> None:
        """Serve until the process ends."""
        metadata = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                metadata.requests.append(f"{self.command} {self.path}")
                code, text = metadata.answer(self.command, self.path)
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - the names of http.server

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, method: str, path: str) -> tuple[int, str]:
        """Status and text."""
        if path == "/metadata/v1/id":
            return 200, self.machine
        if path == f"/v2/droplets/{self.machine}":
            return (204, "") if method == "DELETE" else (200, "{}")
        if method == "PUT" and path == "/latest/api/token":
            return 200, "token-1"
        if path.endswith("/spot/instance-action") and self.taken:
            return 200, self.taken
        return 404, ""

    @property
    def ends(self) -> int:
        """How often the end of the machine was asked for."""
        return self.requests.count(f"DELETE /v2/droplets/{self.machine}")
