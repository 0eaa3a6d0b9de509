"""A git server on loopback that wants a password: git's own http-backend behind basic authentication."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MAX_BODY = 10_000_000


class GitServer(ThreadingHTTPServer):
    """Serves the bare repositories below a folder to those who know user and token."""

    def __init__(self, root: Path, user: str, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _GitHandler)
        self.root = root
        self.expected = "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()
        self.refused = 0
        self.let_in = 0

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _GitHandler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            self._serve(b"".join(self._chunks()))
        else:
            self._serve(self.rfile.read(min(int(self.headers["Content-Length"]), MAX_BODY)))

    def log_message(self, *args: object) -> None:
        """Tests are quiet."""

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()

    def _serve(self, body: bytes) -> None:
        if self.headers.get("Authorization") != self.server.expected:
            self.server.refused += 1
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="sites"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.server.let_in += 1
        path, _, query = self.path.partition("?")
        answer = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True, check=True, timeout=60,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "site",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            },
        ).stdout  # fmt: skip
        head, _, content = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(root: Path, user: str, token: str) -> Iterator[GitServer]:
    """A server for the block."""
    server = GitServer(root, user, token)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
