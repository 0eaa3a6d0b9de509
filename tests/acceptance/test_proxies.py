"""The console and the sites behind real web proxies with TLS, set up by the files in examples/server."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.conftest import Up
from tests.harness.chaos import until
from tests.processes import own_port

EXAMPLES = Path(__file__).parents[2] / "examples" / "server"
CONSOLE = "console.pottery.test"
PASSWORD = "correct horse battery"


class Browser:
    """Speaks https to the proxy on this machine, under any host name, and checks its certificate."""

    def __init__(self, port: int, authority: Path) -> None:
        self._port, self._authority, self.cookie = port, authority, ""

    def ask(self, host: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str, str]:
        """Status, location and text of a page."""
        context = ssl.create_default_context(cafile=str(self._authority))
        headers = {"Host": f"{host}:{self._port}", "Accept": "text/html", "Cookie": self.cookie}
        if form is not None:
            headers |= {"Origin": f"https://{host}:{self._port}", "Content-Type": "application/x-www-form-urlencoded"}
        with (
            socket.create_connection(("127.0.0.1", self._port), 30) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            web = http.client.HTTPConnection(host)
            web.sock = connection
            web.request("GET" if form is None else "POST", path, urlencode(form) if form else None, headers)
            answer = web.getresponse()
            self.cookie = answer.headers.get("Set-Cookie", self.cookie).split(";")[0]
            return answer.status, answer.headers.get("Location", ""), answer.read().decode()

    def gets(self, host: str) -> bool:
        """Whether the proxy has a certificate for this name."""
        try:
            return bool(self.ask(host, "/"))
        except (OSError, http.client.HTTPException):
            return False


def on_the_net(start_up: Callable[..., Up], port: int) -> Up:
    flags = ("--public-url", f"https://{CONSOLE}:{port}", "--domain", "pottery.test", "--mailbox", "edit@pottery.test")
    return start_up(*flags, "--trusted-proxies", "127.0.0.1", "--workers", "1")


def ports_of(up: Up) -> tuple[str, str]:
    page, sites = urlsplit(up.page).port, urlsplit(up.preview).port
    return f"127.0.0.1:{page}", f"127.0.0.1:{sites}"


def signs_in_and_sees_the_sites(up: Up, browser: Browser) -> None:
    """The whole way of a first operator through the proxy."""
    status, location, _ = browser.ask(CONSOLE, "/")
    assert (status, location) == (303, "/login?next=/")
    [link] = re.findall(r"https://\S+(/link/\S+)", "".join(up.lines))
    assert "Welcome, operator" in browser.ask(CONSOLE, link)[2]
    assert browser.ask(CONSOLE, link, {"password": PASSWORD})[0] == 303
    status, _, page = browser.ask(CONSOLE, "/")
    assert status == 200
    assert 'href="https://edit.amelia.pottery.test:' in page
    until(lambda: "Amelia" in browser.ask("edit.amelia.pottery.test", "/")[2], "the sample site")
    assert browser.ask("edit.amelia.pottery.test", "/api/status")[0] == 404, "a site has no route of the page"


@contextmanager
def running(*command: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.fixture
def https() -> Iterator[int]:
    with own_port() as port:
        yield port


@pytest.fixture
def plain() -> Iterator[int]:
    with own_port() as port:
        yield port


@pytest.mark.needs("caddy")
def test_behind_caddy_the_operator_signs_in_and_only_our_names_get_certificates(
    start_up: Callable[..., Up], tmp_path: Path, https: int, plain: int
) -> None:
    up = on_the_net(start_up, https)
    page, sites = ports_of(up)
    own_ca = f"admin off\n\tlocal_certs\n\tskip_install_trust\n\thttp_port {plain}\n\thttps_port {https}\n"
    text = (EXAMPLES / "Caddyfile").read_text().replace("console.example.com", CONSOLE)
    text = text.replace("127.0.0.1:8080", page).replace("127.0.0.1:8081", sites)
    (tmp_path / "Caddyfile").write_text(text.replace("\n{\n", "\n{\n\t" + own_ca, 1))
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PATH": "/usr/bin"}
    with running("caddy", "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile", env=home):
        authority = tmp_path / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        browser = Browser(https, authority)
        until(lambda: authority.exists() and browser.gets(CONSOLE), "Caddy")
        signs_in_and_sees_the_sites(up, browser)
        with pytest.raises(ssl.SSLError):
            browser.ask("evil.test", "/")


@pytest.mark.needs("nginx", "openssl")
def test_behind_nginx_the_operator_signs_in_and_foreign_names_learn_nothing(
    start_up: Callable[..., Up], tmp_path: Path, https: int
) -> None:
    up = on_the_net(start_up, https)
    page, sites = ports_of(up)
    names = f"subjectAltName=DNS:{CONSOLE},DNS:edit.amelia.pottery.test,DNS:evil.test"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test"]
    made += ["-addext", names, "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run(made, check=True, capture_output=True)
    text = (EXAMPLES / "nginx.conf").read_text().replace("console.example.com", CONSOLE)
    text = re.sub(r"/etc/ssl/webordinary/\w+\.pem", str(tmp_path / "cert"), text)
    text = re.sub(r"/etc/ssl/webordinary/\w+\.key", str(tmp_path / "key"), text)
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{https} ssl")
    text = text.replace("127.0.0.1:8080", page).replace("127.0.0.1:8081", sites)
    folders = "".join(
        f"{kind}_temp_path {tmp_path / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"daemon off; pid {tmp_path / 'pid'}; error_log stderr; user root;\nevents {{}}\nhttp {{\n"
    whole += f"access_log {tmp_path / 'log'};\n"
    (tmp_path / "nginx.conf").write_text(f"{whole}{folders}{text}\n}}\n")
    with running("nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")):
        browser = Browser(https, tmp_path / "cert")
        until(lambda: browser.gets(CONSOLE), "nginx")
        signs_in_and_sees_the_sites(up, browser)
        status, _, text = browser.ask("evil.test", "/")
        assert (status, text) == (421, "This address is not served here.")
    logged = (tmp_path / "log").read_text()
    assert "/api/status" in logged
    assert "/link/" not in logged, "the address of a one-time link is a secret"
