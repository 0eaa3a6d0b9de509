"""ECS gives a task its credentials over HTTP at an address of the container's own; an agent in the jail finds none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.attacks.targets import working_jail
from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.sandbox.bubblewrap import python
from webordinary.adapters.sandbox.sandbox import SandboxedPrograms
from webordinary.jobs.sandbox_policy import Network, SandboxPolicy

pytestmark = pytest.mark.needs("bwrap")

CREDENTIALS, METADATA = "169.254.170.2", "169.254.169.254"
TOLD = {
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/0e11a2b4",
    "ECS_CONTAINER_METADATA_URI_V4": f"http://{CREDENTIALS}/v4/0e11a2b4",
    "ECS_AGENT_URI": f"http://{CREDENTIALS}/api/0e11a2b4",
    "AWS_REGION": "eu-west-1",
    "OWNERSHIP_TABLE_NAME": "webordinary-container-ownership",
}
LOOT = """
import glob, json, os, socket, sys
def reach(host, port):
    try:
        socket.create_connection((host, port), 2).close()
        return True
    except OSError:
        return False
def tunnel(host, port):
    with socket.create_connection(("127.0.0.1", 3128), 60) as proxy:
        proxy.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        return proxy.recv(100).split(b"\\r\\n")[0].decode()
def environment(name):
    try:
        return open(name, "rb").read()
    except OSError:  # it ended just now
        return b""
targets = [tuple(target) for target in json.loads(sys.argv[1])]
environments = b"".join(environment(name) for name in glob.glob("/proc/[0-9]*/environ"))
print(json.dumps({
    "own": sorted(os.environ),
    "all": environments.decode(errors="replace"),
    "reached": [f"{host}:{port}" for host, port in targets if reach(host, port)],
    "tunnelled": [tunnel(host, port) for host, port in targets],
}))
"""


class _Agent(BaseHTTPRequestHandler):
    """Stands where the ECS agent hands out credentials."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_error(500)


@pytest.fixture
def agent() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Agent)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_agents_process_cannot_reach_the_tasks_credentials(
    agent: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with a network of its own to the model: the jail's only way out is a proxy that knows no such address."""
    port = agent.server_address[1]
    for name, value in {**TOLD, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{port}/"}.items():
        monkeypatch.setenv(name, value)
    workspace = tmp_path / "tree"
    workspace.mkdir()
    programs = SandboxedPrograms(working_jail(tmp_path / "scratch"))
    targets = json.dumps([(CREDENTIALS, 80), (METADATA, 80), ("127.0.0.1", port)])
    reach = SandboxPolicy(network=Network(hosts=frozenset({"model.example"})))
    code, out, err = programs.run([python(), "-c", LOOT, targets], workspace, b"", {}, 200, FakeCancelToken(), reach)
    assert code == 0, err.decode()
    loot = json.loads(out)
    assert not [name for name in loot["own"] if name.startswith(("AWS_", "ECS_")) or name in TOLD]
    assert not [value for value in TOLD.values() if value in loot["all"]]
    assert loot["reached"] == []
    assert all(answer.startswith("HTTP/1.1 403 ") for answer in loot["tunnelled"])
    assert agent.asked == []  # type: ignore[attr-defined]
