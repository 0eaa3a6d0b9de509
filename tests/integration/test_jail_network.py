"""The only way out of a jail: what goes through its proxy, and what the program never sees."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.attacks.targets import SECRET, Attack, house, working_jail
from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.sandbox.bubblewrap import python
from webordinary.adapters.sandbox.sandbox import PROXY_PORT, SandboxedPrograms, UnconfinedSandbox
from webordinary.jobs.sandbox_policy import Network, OutgoingRequest, SandboxPolicy, Upstream

pytestmark = pytest.mark.needs("bwrap")
INSIDE = f"http://127.0.0.1:{PROXY_PORT}"
ASK = """
import json, sys, urllib.error, urllib.request
method, url, headers = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
asked = urllib.request.Request(url, b"{}" if method == "POST" else None, headers, method=method)
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=30) as answer:
        print(answer.status, answer.read().decode()[:2000])
except urllib.error.HTTPError as refusal:
    print(refusal.code, refusal.reason)
"""
STREAM = """
import http.client
def ask(path):
    connection = http.client.HTTPConnection("127.0.0.1", 3128, timeout=30)
    connection.request("POST", path, b"{}")
    return connection.getresponse()
stream = ask("/model/v1/messages/stream")
print(stream.read1(100))
ask("/model/v1/messages/heard").read()
print(stream.read(100))
"""
TUNNEL = """
import socket, sys
proxy = socket.create_connection(("127.0.0.1", 3128), 30)
proxy.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode())
print(proxy.recv(1000).split(b"\\r\\n")[0].decode())
proxy.sendall(b"hello")
print(proxy.recv(1000).decode())
"""
RAW = """
import socket
proxy = socket.create_connection(("127.0.0.1", 3128), 30)
proxy.sendall(b"POST /model/v1/messages HTTP/1.1\\r\\nLINE\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
print(proxy.makefile("rb").readline().decode())
"""
LATE_READER = """
import socket
proxy = socket.create_connection(("127.0.0.1", 3128), 30)
proxy.sendall(b"POST /other/ HTTP/1.1\\r\\nContent-Length: 3000000\\r\\n\\r\\n" + bytes(3_000_000))
print(proxy.makefile("rb").readline().decode())
"""


class Scripted(ThreadingHTTPServer):
    """A model on loopback that remembers what it was asked, and can stream."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.heard = threading.Event()
        super().__init__(("127.0.0.1", 0), _ScriptedHandler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/base"


class _ScriptedHandler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers))
        self.rfile.read(int(headers.get("content-length", 0)))
        if self.path.endswith("/heard"):
            self.server.heard.set()
        self.send_response(200)
        self.send_header("Set-Cookie", "session=1")
        if self.path.endswith("/stream"):
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"data: first\n")
            self.server.heard.wait(30)  # a proxy that collects would never let the program hear the first
            self.wfile.write(b"data: second\n")
            self.close_connection = True
            return
        body = b"x" * 300_000 if self.path.endswith("/large") else json.dumps(headers).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[Scripted]:
    server = Scripted()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.heard.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def programs(tmp_path: Path) -> SandboxedPrograms:
    (tmp_path / "tree").mkdir()
    return SandboxedPrograms(working_jail(tmp_path / "scratch"))


def reach_of(model: Scripted, **network: object) -> SandboxPolicy:
    upstream = Upstream(model.url, {"x-api-key": SECRET}, frozenset({"POST"}), ("/v1/messages", "/v1/messages/"))
    return SandboxPolicy(network=Network(upstreams={"model": upstream}, **network))  # type: ignore[arg-type]


def say(programs: SandboxedPrograms, tmp_path: Path, reach: SandboxPolicy, *words: str) -> str:
    code, out, err = programs.run([python(), "-c", *words], tmp_path / "tree", b"", {}, 120, FakeCancelToken(), reach)
    assert code == 0, err.decode()
    return out.decode()


def ask(programs: SandboxedPrograms, tmp_path: Path, reach: SandboxPolicy, path: str, method: str = "POST") -> str:
    return say(programs, tmp_path, reach, ASK, method, f"{INSIDE}{path}", '{"x-api-key": "dummy", "x-note": "hi"}')


def test_the_model_hears_the_real_key_and_the_program_never_does(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    answer = ask(programs, tmp_path, reach_of(model), "/model/v1/messages?beta=true")
    assert answer.startswith("200 ")
    [(method, path, headers)] = model.asked
    assert (method, path) == ("POST", "/base/v1/messages?beta=true")
    assert headers["x-api-key"] == SECRET
    assert headers["x-note"] == "hi"
    assert headers["host"] == f"127.0.0.1:{model.server_port}"


def test_what_is_signed_is_what_leaves_and_the_program_cannot_sign_for_itself(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    signed: list[OutgoingRequest] = []

    def sign(asked: OutgoingRequest) -> dict[str, str]:
        signed.append(asked)
        return {"Authorization": f"signed {SECRET}"}

    upstream = Upstream(model.url, methods=frozenset({"POST"}), paths=("/v1/messages/",), sign=sign)
    said = {"Authorization": "mine", "X-Amz-Security-Token": "mine", "X-Amz-Date": "mine", "Content-Type": "text/x"}
    reach = SandboxPolicy(network=Network(upstreams={"model": upstream}))
    path = "/v1/messages/a%2Fb?c=d"
    assert say(programs, tmp_path, reach, ASK, "POST", f"{INSIDE}/model{path}", json.dumps(said)).startswith("200 ")
    host = f"127.0.0.1:{model.server_port}"
    headers = {"Host": host, "Content-Type": "text/x"}
    assert signed == [OutgoingRequest("POST", f"http://{host}/base{path}", headers, b"{}")]
    [(_, asked, heard)] = model.asked
    assert asked == f"/base{path}"
    assert heard["authorization"] == f"signed {SECRET}"
    assert "mine" not in str(heard)


def test_a_program_that_asks_for_too_much_to_sign_is_refused(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    upstream = Upstream(model.url, paths=("/",), sign=lambda _: {})
    reach = SandboxPolicy(network=Network(upstreams={"model": upstream}))
    said = json.dumps({"Content-Length": "40000000"})
    assert say(programs, tmp_path, reach, ASK, "POST", f"{INSIDE}/model/", said).startswith("413 ")
    assert model.asked == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/model/v1/organizations"),
        ("POST", "/model/v1/messages/../files"),
        ("POST", "/model/v1/messages/%2e%2e/files"),
        ("POST", "/model/v1/messagesabc"),
        ("GET", "/model/v1/messages"),
        ("POST", "/other/v1/messages"),
        ("POST", "/v1/messages"),
    ],
)
def test_anything_but_what_the_driver_named_is_refused(
    method: str, path: str, model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    assert ask(programs, tmp_path, reach_of(model), path, method).startswith("403 ")
    assert model.asked == []


def test_a_refusal_reaches_a_program_that_says_all_before_it_listens(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    assert say(programs, tmp_path, reach_of(model), LATE_READER).startswith("HTTP/1.1 403 ")


def test_a_streamed_answer_arrives_as_it_is_spoken(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    heard = say(programs, tmp_path, reach_of(model), STREAM)
    assert heard == "b'data: first\\n'\nb'data: second\\n'\n"


def test_a_program_that_moves_more_than_it_may_is_cut_off(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    code, _, err = programs.run(
        [python(), "-c", ASK, "POST", f"{INSIDE}/model/v1/messages/large", "{}"], tmp_path / "tree", b"", {}, 60,
        FakeCancelToken(), reach_of(model, bytes=100_000),
    )  # fmt: skip
    assert code != 0
    assert b"IncompleteRead" in err


def test_a_tunnel_leads_to_listed_hosts_and_nowhere_else(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as echo:
        port = echo.getsockname()[1]
        thread = threading.Thread(target=_echo_once, args=(echo,))
        thread.start()
        reach = SandboxPolicy(network=Network(hosts=frozenset({f"127.0.0.1:{port}"})))
        heard = say(programs, tmp_path, reach, TUNNEL, f"127.0.0.1:{port}")
        thread.join()
    assert heard == "HTTP/1.1 200 Connection established\nhello\n"
    for target in (f"127.0.0.1:{model.server_port}", f"localhost:{port}", "169.254.169.254:80"):
        heard = say(programs, tmp_path, reach, TUNNEL, target)
        assert heard.startswith("HTTP/1.1 403 ")
    assert model.asked == []


def own_address() -> str:
    """The address by which this machine sends packets; without a network its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("198.51.100.1", 9))
        return str(int(ip_address(probe.getsockname()[0])))
    return "127.2"


@pytest.mark.parametrize("name", ["2130706433", "127.1", "0", own_address()])
def test_a_listed_name_that_means_this_machine_is_refused(
    name: str, model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    """The owner of a listed name may point it anywhere; numbers stand for such names here."""
    target = f"{name}:{model.server_port}"
    reach = SandboxPolicy(network=Network(hosts=frozenset({target})))
    assert say(programs, tmp_path, reach, TUNNEL, target).startswith("HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "line",
    [
        "X-A: one\\r\\n two",
        "X-A: one\\r\\n ",
        "X-A: a\\0b",
        " X-A: first",
        "X-A: a\\x0bb",
        "no colon",
        "X-A : b",
        "X/A: b",
        "X(A: b",
    ],
    ids=[
        "folded",
        "blank",
        "NUL",
        "folded from the start",
        "control",
        "no colon",
        "space before the colon",
        "slash in the name",
        "bracket in the name",
    ],
)
def test_a_header_that_reads_in_two_ways_is_refused(
    line: str, model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    assert say(programs, tmp_path, reach_of(model), RAW.replace("LINE", line)).startswith("HTTP/1.1 400 ")
    assert model.asked == []
    assert say(programs, tmp_path, reach_of(model), RAW.replace("LINE", "X-A: plain\\twords")).startswith(
        "HTTP/1.1 200 "
    )


def test_a_key_with_another_spelling_of_its_name_is_not_passed_on(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    """Servers that hand headers to CGI or WSGI read X_Api_Key as X-Api-Key."""
    assert say(programs, tmp_path, reach_of(model), RAW.replace("LINE", "X_Api_Key: mine")).startswith("HTTP/1.1 200 ")
    assert "mine" not in str(model.asked)


def _echo_once(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(connection.recv(100))


def test_the_key_cannot_be_found_in_the_jail_nor_the_network_be_reached_around_the_proxy(
    model: Scripted, programs: SandboxedPrograms, tmp_path: Path
) -> None:
    workspace = tmp_path / "tree"
    with house() as defended:
        defended.upstreams = {"model": f"{INSIDE}/model/v1/other"}
        defended.arm(workspace)
        for attack in (Attack("credentials"), Attack("network")):
            reach = reach_of(model, hosts=frozenset({"registry.example"}))
            code, _, err = programs.run(defended.argv(attack), workspace, b"", {}, 150, FakeCancelToken(), reach)
            assert code == 0, err.decode()
            defended.check(attack, workspace)


def test_without_a_jail_the_key_stays_out_of_the_program_too(model: Scripted, tmp_path: Path) -> None:
    jail = UnconfinedSandbox("w-1")
    with jail.open(tmp_path, {}, reach_of(model)) as sandboxed:
        assert SECRET not in str(sandboxed.env)
        import urllib.request

        asked = urllib.request.Request(f"{sandboxed.url('model')}/v1/messages", b"{}", method="POST")
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200
    assert model.asked[0][2]["x-api-key"] == SECRET
