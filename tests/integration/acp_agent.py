"""A small agent that speaks the Agent Client Protocol by itself, over its standard input and output.

It is not built on the library that our side uses, so the two check each other. What it does, the wish says.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

Blocks = list[dict[str, Any]]


class ScriptedAcpAgent:
    def __init__(self) -> None:
        self.next_id = 0
        self.answers: dict[int, list[Any]] = {}
        self.session = ""
        self.cancelled = threading.Event()
        self.writing = threading.Lock()
        self.cwd = Path.cwd()

    def send(self, message: dict[str, Any]) -> None:
        with self.writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client, and wait for what it says."""
        self.next_id += 1
        arrived = threading.Event()
        self.answers[self.next_id] = [arrived, None]
        self.send({"id": self.next_id, "method": method, "params": {"sessionId": self.session, **params}})
        arrived.wait()
        answer: dict[str, Any] = self.answers[self.next_id][1]
        return answer

    def update(self, sort: str, **more: object) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": sort, **more}}
        self.send({"method": "session/update", "params": params})

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def tool(self, name: str, kind: str, *paths: object) -> None:
        self.update(
            "tool_call",
            toolCallId=f"call-{name}",
            title=name,
            kind=kind,
            status="pending",
            locations=[{"path": str(path)} for path in paths],
        )

    def may(self, name: str) -> bool:
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        call = {"toolCallId": f"call-{name}"}
        answer = self.request("session/request_permission", {"toolCall": call, "options": options})
        return bool(answer["result"]["outcome"].get("optionId") == "yes")

    @property
    def memory(self) -> Path:
        return Path(os.environ["HOME"], "memory.json")

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                arrived = self.answers[message["id"]]
                arrived[1] = message
                arrived[0].set()
            elif message["method"] == "session/cancel":
                self.cancelled.set()
            elif message["method"] == "session/prompt":
                threading.Thread(target=self.try_to, args=(message,), daemon=True).start()
            else:
                self.send({"id": message["id"], **self.answer(message["method"], message["params"])})

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            able = {"loadSession": True, "promptCapabilities": {"image": True}}
            version = 99 if "--future" in sys.argv else params["protocolVersion"]
            return {"result": {"protocolVersion": version, "agentCapabilities": able}}
        if method == "session/new":
            if "--locked" in sys.argv:
                return {"error": {"code": -32000, "message": "Authentication required"}}
            self.session = f"session-{os.urandom(4).hex()}"
            return {"result": {"sessionId": self.session}}
        if method == "session/load":
            self.session = params["sessionId"]
            if not self.memory.exists() or json.loads(self.memory.read_text())["session"] != self.session:
                return {"error": {"code": -32002, "message": "Resource not found"}}
            self.say("QUESTION: this is only the replay of what I said before")
            return {"result": {}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def try_to(self, message: dict[str, Any]) -> None:
        try:
            self.prompt(message)
        except BaseException:
            traceback.print_exc()
            os._exit(4)

    def prompt(self, message: dict[str, Any]) -> None:
        blocks = message["params"]["prompt"]
        said = blocks[0]["text"].split("The owner wrote:")[1].strip()
        wish = said.partition("\n\n")[2 if said.startswith("Subject: ") else 0].split("\n")[0]
        known = json.loads(self.memory.read_text())["wishes"] if self.memory.exists() else []
        self.memory.write_text(json.dumps({"session": self.session, "wishes": [*known, wish]}))
        reason = getattr(self, wish.split()[0])(blocks, known) or "end_turn"
        self.send({"id": message["id"], "result": {"stopReason": reason}})

    def overcharge(self, blocks: Blocks, known: list[str]) -> None:
        for amount in (float("inf"), float("nan"), -1e9, 1e300, 0.25):
            self.update("usage_update", used=10, size=100, cost={"amount": amount, "currency": "USD"})
        self.say("Here is my bill.")

    def edit(self, blocks: Blocks, known: list[str]) -> None:
        page = self.cwd / "index.html"
        self.say("I look at the page first.")
        self.tool("edit", "edit", page)
        if self.may("edit"):
            text = self.request("fs/read_text_file", {"path": str(page)})["result"]["content"]
            self.request("fs/write_text_file", {"path": str(page), "content": text.replace("Pots", "Sale")})
        self.update("usage_update", used=10, size=100, cost={"amount": 0.25 * (len(known) + 1), "currency": "USD"})
        self.say("CHANGED: The title is ")
        self.say("Sale now.")

    def ask(self, blocks: Blocks, known: list[str]) -> None:
        (self.cwd / "half.html").write_text("half an edit")
        self.say("**QUESTION:** Which title?")

    def reply(self, blocks: Blocks, known: list[str]) -> None:
        self.say("ANSWER: You asked before: " + ", ".join(known))

    def see(self, blocks: Blocks, known: list[str]) -> None:
        pictures = [block["mimeType"] for block in blocks if block["type"] == "image"]
        path = blocks[0]["text"].rsplit(": ", 1)[1]
        (self.cwd / "photo.jpg").write_bytes(Path(path).read_bytes())
        self.say("I saw " + ", ".join(pictures))

    def wait(self, blocks: Blocks, known: list[str]) -> str:
        (self.cwd / "ready").touch()
        self.cancelled.wait()
        return "cancelled"

    def hang(self, blocks: Blocks, known: list[str]) -> None:
        (self.cwd / "ready").touch()
        threading.Event().wait()

    def crash(self, blocks: Blocks, known: list[str]) -> None:
        sys.stderr.write("no kiln today\n")
        sys.stderr.flush()
        os._exit(3)

    def spend_and_crash(self, blocks: Blocks, known: list[str]) -> None:
        self.update("usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
        self.crash(blocks, known)

    def mischief(self, blocks: Blocks, known: list[str]) -> None:
        """Whatever is not ours to do; says how many of the tries were let through."""
        outside = self.cwd.parent / "outside.txt"
        (self.cwd / "link").symlink_to(outside)
        link, dots, git = str(self.cwd / "link"), f"{self.cwd}/../outside.txt", f"{self.cwd}/.git/config"
        writes = [
            self.request("fs/write_text_file", {"path": p, "content": "x"}) for p in (str(outside), link, dots, git)
        ]
        reads = [self.request("fs/read_text_file", {"path": path}) for path in ("/etc/passwd", link)]
        terminal = self.request("terminal/create", {"command": "id"})
        through = [answer for answer in (*writes, *reads, terminal) if answer.get("result")]
        for kind, path in (("edit", outside), ("read", "/etc/passwd"), ("fetch", ""), ("other", "")):
            self.tool(kind, kind, *([path] if path else []))
            through += [{"granted": kind}] if self.may(kind) else []
        (self.cwd / "link").unlink()
        self.say(f"ANSWER: {through}")

    def flood(self, blocks: Blocks, known: list[str]) -> None:
        while True:
            self.say("x" * 10_000)

    def shout(self, blocks: Blocks, known: list[str]) -> None:
        sys.stdout.write("{" + "x" * 200_000_000)
        sys.stdout.flush()

    def spend(self, blocks: Blocks, known: list[str]) -> str:
        self.update("usage_update", used=10, size=100, cost={"amount": 50.0, "currency": "USD"})
        self.cancelled.wait()
        return "cancelled"

    def toil(self, blocks: Blocks, known: list[str]) -> str | None:
        for number in range(1000):
            self.tool(f"step {number}", "think")
            if self.cancelled.wait(0.001):
                return "cancelled"
        return None


ScriptedAcpAgent().run()
