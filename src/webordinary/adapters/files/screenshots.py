"""ChromiumPictures: a page before and after, by a headless browser in a sandbox that holds nothing but one release.

The browser's only way anywhere is the listener of its sandbox, which answers from the release's manifest. The sandbox
bounds its memory and replaces the browser's own, which needs user namespaces: a sandbox does not give these.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from webordinary.adapters.processes import run
from webordinary.adapters.sandbox.bubblewrap import HOME
from webordinary.adapters.sandbox.sandbox import PROXY_PORT
from webordinary.jobs.ports import Sandbox, ScreenshotPair
from webordinary.jobs.sandbox_policy import Network, SandboxPolicy
from webordinary.jobs.site_files import Manifest, is_foreign, manifest_of, media_type_of
from webordinary.model.errors import WebOrdinaryError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PICTURE_BYTES = 1_500_000
WIDTH, HEIGHT = 1000, 750
CONNECTIONS = 64
FILE_BYTES, FILES_AT_ONCE = 20_000_000, 2
"""Of one release, in the worker's memory: a page may ask for a large file many times. A larger one is not shown."""
BROWSER_BYTES = 1 << 44
"""What a browser may map, not use: JavaScript's heap is reserved as a whole."""
_HOST = "site.invalid"
_SHOT = "shot.png"
_PNG = b"\x89PNG\r\n\x1a\n"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SHARED = (Path("/etc/chromium.d"), Path("/var/cache/fontconfig"))
"""Debian's chromium does not start without its settings, and looks through all fonts where they are not listed."""
_FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps",
    "--disable-dev-shm-usage", "--disable-breakpad", "--hide-scrollbars", "--mute-audio", "--no-sandbox",
    "--force-device-scale-factor=1", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--proxy-bypass-list=<-loopback>", f"--proxy-server=http://127.0.0.1:{PROXY_PORT}",
    f"--user-data-dir={HOME}/profile", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={_SHOT}",
)  # fmt: skip


ReadFile = Callable[[Path, str], bytes]


def read_local(release: Path, name: str) -> bytes:
    """A file of a release that lies on this machine."""
    return (release / name).read_bytes()


class ChromiumScreenshotter:
    """Both pictures side by side, in bounded time; whatever goes wrong, there is just no picture.

    `read` gives a file of a release: of one that another worker built, there may be the manifest alone. `scratch` is
    this process's alone: what a killed one left in it is removed.
    """

    def __init__(self, program: str, sandbox: Sandbox, scratch: Path, read: ReadFile = read_local) -> None:
        self._program, self._sandbox, self._scratch, self._read = program, sandbox, scratch, read
        shutil.rmtree(scratch, ignore_errors=True)

    def take(self, before: Path | None, after: Path, page: str, seconds: float) -> ScreenshotPair:
        """Pictures of a page in two releases."""
        earlier = before if page in manifest_of(before) else None
        with ThreadPoolExecutor(2) as both:
            shots = [both.submit(self._shot, release, page, seconds) for release in (earlier, after)]
            return ScreenshotPair(page, shots[0].result(), shots[1].result())

    def _shot(self, release: Path | None, page: str, seconds: float) -> bytes:
        if release is None:
            return b""
        try:
            self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._scratch, ignore_cleanup_errors=True) as name:
                whole = self._browse(Path(name), release, page, seconds)
                return _picture(Path(name, _SHOT)) if whole else b""
        except (OSError, WebOrdinaryError):
            return b""

    def _browse(self, folder: Path, release: Path, page: str, seconds: float) -> bool:
        """Whether all that the page wanted of its site could be read."""
        with _Answers(release, self._read) as answers:
            reach = SandboxPolicy(_parts_of(self._program), network=Network(serve=answers.serve))
            with self._sandbox.open(folder, {}, reach) as sandboxed:
                words = sandboxed.argv([self._program, *_FLAGS, f"http://{_HOST}/{quote(page)}"])
                run(words, cwd=folder, env=sandboxed.env, seconds=seconds, grace=0.1, interrupt=sandboxed.interrupt)
            return not answers.unread


def find_browser() -> str | None:
    """The browser of this machine, if it has one."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _parts_of(program: str) -> tuple[Path, ...]:
    """The folder of a browser outside of /usr, such as /opt/google/chrome, and what browsers read elsewhere."""
    folder = Path(program).resolve().parent
    own = () if folder.is_relative_to("/usr") else (folder,)
    return (*own, *(path for path in _SHARED if path.is_dir()))


def _picture(shot: Path) -> bytes:
    """What the browser left, if it is a picture: a page that took the browser over may have left a link."""
    with open(os.open(shot, _READ), "rb") as file:  # noqa: PTH123  of a descriptor
        plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        content = file.read(PICTURE_BYTES + 1) if plain else b""
    return content if content.startswith(_PNG) and len(content) <= PICTURE_BYTES else b""


class _Answers:
    """Serves one release on the listener that comes out of the browser's sandbox."""

    def __init__(self, release: Path, read: ReadFile) -> None:
        self.unread: list[str] = []
        manifest = manifest_of(release)
        attributes = {"read": staticmethod(partial(read, release)), "manifest": manifest, "unread": self.unread}
        places = threading.BoundedSemaphore(FILES_AT_ONCE)
        self._handler = type("Handler", (_PageHandler,), {**attributes, "places": places})
        self._server: _ReleaseServer | None = None

    def __enter__(self) -> _Answers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def serve(self, listener: socket) -> None:
        """Answer in a thread of its own."""
        self._server = server = _ReleaseServer(listener, self._handler)
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="pictures", daemon=True
        ).start()


class _ReleaseServer(ThreadingHTTPServer):
    """At most CONNECTIONS at once: its threads are the worker's, and a page may have taken the browser over."""

    daemon_threads = True

    def __init__(self, listener: socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", PROXY_PORT), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._free = threading.BoundedSemaphore(CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's types
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """A browser that hangs up writes nothing into the worker's log."""


class _PageHandler(BaseHTTPRequestHandler):
    """One request of the browser."""

    read: Callable[[str], bytes]
    manifest: ClassVar[Manifest] = {}
    unread: ClassVar[list[str]] = []
    places: ClassVar[threading.BoundedSemaphore]
    timeout = 10.0

    def do_GET(self) -> None:
        """A file that stands in the release's manifest; so no path leads out of it."""
        url = urlsplit(self.path)
        manifest = self.manifest if url.hostname == _HOST else {}
        page = unquote(url.path).strip("/")
        names = (page, f"{page}/index.html".lstrip("/"), f"{page}.html")
        name = next((name for name in names if name in manifest), None)
        if name is None or manifest[name].size > FILE_BYTES:
            self.send_error(404)
            return
        with self.places:
            self._send(name)

    def _send(self, name: str) -> None:
        try:
            content = self.read(name)
        except (OSError, WebOrdinaryError):
            self.unread[:] = [name]
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", media_type_of(name, foreign=is_foreign(name, content)))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_CONNECT(self) -> None:
        """Refuses every tunnel."""
        self.send_error(403)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""
