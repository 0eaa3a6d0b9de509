"""From a fresh account without any setting to a public site with a name of its own, as docs/server.md goes.

Real Caddy with TLS and its own CA, Chromium that knows this CA, Dovecot, and a git server that wants a password.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.browser import chromium, visitor
from tests.acceptance.test_proxies import EXAMPLES, ports_of, running
from tests.conftest import Up
from tests.harness.chaos import until
from tests.integration.dovecot import PASSWORD, USER, Dovecot, running_dovecot
from tests.integration.git_over_http import GitServer, serving
from webordinary.entrypoints.running import free_port
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.operations.sample import ensure_sample_origin

pytestmark = pytest.mark.needs("caddy", "dovecot", "openssl", "git")
CONSOLE, SITE, BERTA = "console.pottery.test", "www.kiln-shop.test", "berta@kiln-shop.test"
PROVIDER = "mx.mailbox.test"


class Server:
    """The machine of the operator: an empty home, a data folder, and the ports that this test may use."""

    def __init__(self, folder: Path, start_up: Callable[..., Up], dovecot: Dovecot) -> None:
        self.folder, self._start_up, self._dovecot = folder, start_up, dovecot
        self.home, self.data = folder / "home", folder / "data"
        self.home.mkdir()
        self.https, self.plain = free_port("127.0.0.1"), free_port("127.0.0.1")

    @property
    def _env(self) -> dict[str, str]:
        """All that the account has, and the authority of the mail server."""
        ca = str(self._dovecot.certificate.cert)
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "SSL_CERT_FILE": ca}

    def up(self, *flags: str) -> Up:
        words = [f"{name}={value}" for name, value in self._env.items()]
        return self._start_up(*flags, data=self.data, prefix=("env", "--ignore-environment", *words))

    def command(self, *words: str) -> str:
        command = [sys.executable, "-m", "webordinary", *words, "--data", str(self.data)]
        return subprocess.run(command, env=self._env, check=True, capture_output=True, text=True).stdout

    def write_settings(self) -> None:
        """The file of docs/server.md, with a mailbox."""
        (self.data / "imap-password").write_text(PASSWORD)
        (self.data / "webordinary.toml").write_text(f"""
public_url = "https://{CONSOLE}:{self.https}"
domain = "pottery.test"
mailbox = "{USER}"
operator = "you@elsewhere.test"
trusted_proxies = ["127.0.0.1"]
imap_host = "localhost"
imap_port = {self._dovecot.tls_port}
imap_user = "{USER}"
imap_password_file = "{self.data / "imap-password"}"
trusted_authserv_id = ["{PROVIDER}"]
""")

    @contextmanager
    def caddy(self, up: Up) -> Iterator[Path]:
        """The example's file, with names and ports of this test; yields where its authority is."""
        page, sites = ports_of(up)
        own_ca = (
            f"admin off\n\tlocal_certs\n\tskip_install_trust\n\thttp_port {self.plain}\n\thttps_port {self.https}\n"
        )
        text = (EXAMPLES / "Caddyfile").read_text().replace("console.example.com", CONSOLE)
        text = text.replace("127.0.0.1:8080", page).replace("127.0.0.1:8081", sites)
        file, place = self.folder / "Caddyfile", str(self.folder)
        file.write_text(text.replace("\n{\n", "\n{\n\t" + own_ca, 1))
        env = {"HOME": place, "XDG_DATA_HOME": place, "XDG_CONFIG_HOME": place, "PATH": "/usr/bin"}
        with running("caddy", "run", "--config", str(file), "--adapter", "caddyfile", env=env):
            authority = self.folder / "caddy" / "pki" / "authorities" / "local"
            until((authority / "root.crt").exists, "Caddy's authority")
            yield authority


def browser_that_trusts(authority: Path) -> tuple[str, ...]:
    """Flags of Chromium: every name leads to this machine, and of all authorities that it does not know, this one."""
    pins = []
    for name in ("root.crt", "intermediate.crt"):
        key = subprocess.run(
            ["openssl", "x509", "-in", authority / name, "-noout", "-pubkey"], check=True, capture_output=True
        ).stdout
        der = subprocess.run(
            ["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, check=True, capture_output=True
        )
        pins.append(base64.b64encode(hashlib.sha256(der.stdout).digest()).decode())
    return "--host-resolver-rules=MAP * 127.0.0.1", f"--ignore-certificate-errors-spki-list={','.join(pins)}"


def mail(text: str, answers: str = "") -> bytes:
    """As the provider of the mailbox stores it: with its verdict on top."""
    message_id = f"<{hashlib.sha256(text.encode()).hexdigest()[:8]}@kiln-shop.test>"
    references = [answers] if answers else []
    written = write_mail(
        CustomerMail(BERTA, USER, "Title", text, message_id=message_id, in_reply_to=answers, references=references),
        datetime.now(UTC),
    )
    return f"Authentication-Results: {PROVIDER}; dmarc=pass header.from=kiln-shop.test\r\n".encode() + written


def sign_in(browser: Browser, server: Server, link: str) -> None:
    """The first operator: the one-time link, a password, and out and in again with it."""
    with visitor(browser) as operator:
        page = operator.page
        page.goto(link)
        page.get_by_label("password").first.fill("correct horse battery")
        page.get_by_role("button").first.click()
        expect(page.get_by_role("link", name="Sites")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Name", exact=True).fill("operator")
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name="Sites")).to_be_visible()
        operator.context.storage_state(path=server.folder / "signed-in.json")


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitServer]:
    origin = ensure_sample_origin(tmp_path / "hub" / "kiln.git")
    subprocess.run(["git", "-C", origin, "config", "http.receivepack", "true"], check=True)
    with serving(tmp_path / "hub", "x-access-token", "ghp_secret") as server:
        yield server


def test_a_site_of_a_fresh_account_is_published_under_its_own_name_by_mail(
    start_up: Callable[..., Up], tmp_path: Path, git_server: GitServer
) -> None:
    with running_dovecot() as dovecot:
        server = Server(tmp_path, start_up, dovecot)
        first = server.up("--no-sample")
        assert "/link/" not in "".join(first.lines), "nothing is needed on this machine"
        assert first.stop() == 0
        server.write_settings()
        up = server.up("--no-sample")
        [link] = re.findall(r"https://\S+/link/\S+", "".join(up.lines))
        with server.caddy(up) as authority, chromium(*browser_that_trusts(authority)) as browser:
            sign_in(browser, server, link)
            a_site_is_added(browser, server, git_server)
            assert f"{SITE}.  CNAME" in server.command("project", "domain", "add", "kiln", SITE)
            it_is_changed_and_published_by_mail(browser, server, dovecot)
        assert up.stop() == 0


def a_site_is_added(browser: Browser, server: Server, git_server: GitServer) -> None:
    state = json.loads((server.folder / "signed-in.json").read_text())
    with visitor(browser) as operator:
        page = operator.page
        operator.context.add_cookies(state["cookies"])
        page.goto(f"https://{CONSOLE}:{server.https}/sites")
        page.get_by_text("Add a site", exact=True).click()
        page.get_by_label("Name", exact=True).fill("kiln")
        page.get_by_label("Git repository").fill(f"{git_server.address}/kiln.git")
        page.get_by_label("a short name").fill("berta")
        page.get_by_label("Their mail address").fill(BERTA)
        page.get_by_label("Token or private key").fill("ghp_secret")
        page.get_by_role("button", name="Add it").click()
        expect(page.get_by_text("in order")).to_be_visible()
        page.get_by_role("link", name="kiln").click()
        expect(page.get_by_role("listitem").get_by_text(BERTA, exact=True)).to_be_visible()


def it_is_changed_and_published_by_mail(browser: Browser, server: Server, dovecot: Dovecot) -> None:
    state = json.loads((server.folder / "signed-in.json").read_text())
    wish = mail('Set the title to "Spring Sale"')
    dovecot.put(wish)
    with visitor(browser) as operator, visitor(browser) as customer:
        page = operator.page
        operator.context.add_cookies(state["cookies"])
        page.goto(f"https://{CONSOLE}:{server.https}/")
        expect(
            page.locator(".pill", has_text="on the edit site")
        ).to_be_visible()  # by the live stream, through the proxy
        customer.page.goto(f"https://edit.kiln.pottery.test:{server.https}/")
        expect(customer.page).to_have_title(re.compile("Spring Sale"))
        [asked] = re.findall(rb"Message-ID: (<\S+>)", wish)
        dovecot.put(mail("publish", answers=asked.decode()))
        expect(page.locator(".pill", has_text="on the public site")).to_be_visible()
        customer.page.goto(f"https://{SITE}:{server.https}/")
        expect(customer.page).to_have_title(re.compile("Spring Sale"))
    answers = sorted((server.data / "outbox" / "new").iterdir(), key=lambda path: path.stat().st_mtime)
    assert f"https://{SITE}:{server.https}/" in answers[-1].read_text(), "the reply links the site's own name"
