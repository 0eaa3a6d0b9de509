"""ChromiumPictures: a page before and after, by a headless browser that reaches nothing but the two releases.

The browser's only way anywhere is a proxy of ours, which knows two hosts and answers from the releases' manifests.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from webordinary.adapters.local.processes import WORKER_MARK, run
from webordinary.site.manifests import Manifest, manifest_of
from webordinary.site.media_types import is_foreign, media_type_of
from webordinary.site.pictures import Pictures

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PICTURE_BYTES = 1_500_000
WIDTH, HEIGHT = 1000, 750
_BEFORE, _AFTER = "before.invalid", "after.invalid"
_FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--force-device-scale-factor=1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--proxy-bypass-list=<-loopback>",
    f"--window-size={WIDTH},{HEIGHT}",
)  # fmt: skip


class ChromiumPictures:
    """Both pictures side by side, in bounded time; whatever goes wrong, there is just no picture."""

    def __init__(self, program: str, worker: str) -> None:
        self._program, self._worker = program, worker

    def take(self, before: Path | None, after: Path, page: str, seconds: float) -> Pictures:
        """Pictures of a page in two releases."""
        hosts = {_AFTER: after} | ({_BEFORE: before} if before is not None and (before / page).is_file() else {})
        try:
            with _served(hosts) as port, ThreadPoolExecutor(2) as both:
                shots = {host: both.submit(self._shot, host, page, port, seconds) for host in hosts}
                taken = {host: shot.result() for host, shot in shots.items()}
        except OSError:
            return Pictures(page)
        return Pictures(page, taken.get(_BEFORE, b""), taken[_AFTER])

    def _shot(self, host: str, page: str, port: int, seconds: float) -> bytes:
        with tempfile.TemporaryDirectory(prefix="webordinary-", ignore_cleanup_errors=True) as name:
            shot = Path(name, "shot.png")
            words = [
                self._program, *_FLAGS, *_as_root(), f"--user-data-dir={name}/profile", f"--screenshot={shot}",
                f"--proxy-server=http://127.0.0.1:{port}", f"http://{host}/{quote(page)}",
            ]  # fmt: skip
            env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": name, WORKER_MARK: self._worker}
            run(words, cwd=Path(name), env=env, seconds=seconds, grace=0.1)
            return shot.read_bytes() if shot.is_file() and shot.stat().st_size <= PICTURE_BYTES else b""


def find_browser() -> str | None:
    """The browser of this machine, if it has one."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _as_root() -> tuple[str, ...]:
    """The browser's own sandbox does not work for root; then no script of a site runs either, see _Answer."""
    return ("--no-sandbox",) if os.geteuid() == 0 else ()


@contextmanager
def _served(releases: Mapping[str, Path]) -> Iterator[int]:
    """A proxy that shows these hosts and nothing else."""
    known = {host: (path, manifest_of(path)) for host, path in releases.items()}
    handler = type("Handler", (_Answer,), {"known": known})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="pictures", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # a browser asks for all parts of a page at once; whom no place is left for knocks later


class _Answer(BaseHTTPRequestHandler):
    """One request of the browser."""

    known: Mapping[str, tuple[Path, Manifest]] = {}
    timeout = 10.0

    def do_GET(self) -> None:
        """A file that stands in the release's manifest; so no path leads out of it."""
        url = urlsplit(self.path)
        folder, manifest = self.known.get(url.hostname or "", (Path(), {}))
        wanted = unquote(url.path).strip("/")
        names = (wanted, f"{wanted}/index.html".lstrip("/"), f"{wanted}.html")
        name = next((name for name in names if name in manifest), None)
        if name is None:
            self.send_error(404)
            return
        content = (folder / name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", media_type_of(name, foreign=is_foreign(name, content)))
        self.send_header("Content-Length", str(len(content)))
        if os.geteuid() == 0:
            self.send_header("Content-Security-Policy", "script-src 'none'")
        self.end_headers()
        self.wfile.write(content)

    def do_CONNECT(self) -> None:
        """Nobody is reached."""
        self.send_error(403)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""
