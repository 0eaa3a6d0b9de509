"""A small agent that speaks the Agent Client Protocol by itself, over its standard input and output.

It is not built on the library that our side uses, so the two check each other. What it does, the wish says.
"""

import json
import os
import sys
import threading
from pathlib import Path


class Agent:
    def __init__(self):
        self.next_id = 0
        self.answers = {}
        self.cancelled = threading.Event()
        self.writing = threading.Lock()
        self.cwd = Path.cwd()

    def send(self, message):
        with self.writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def request(self, method, params):
        """Ask the client, and wait for what it says."""
        self.next_id += 1
        arrived = threading.Event()
        self.answers[self.next_id] = [arrived, None]
        self.send({"id": self.next_id, "method": method, "params": {"sessionId": self.session, **params}})
        arrived.wait()
        return self.answers[self.next_id][1]

    def update(self, kind, **more):
        params = {"sessionId": self.session, "update": {"sessionUpdate": kind, **more}}
        self.send({"method": "session/update", "params": params})

    def say(self, text):
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def tool(self, name, kind, *paths):
        self.update(
            "tool_call",
            toolCallId=f"call-{name}",
            title=name,
            kind=kind,
            status="pending",
            locations=[{"path": str(path)} for path in paths],
        )

    def may(self, name):
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        answer = self.request(
            "session/request_permission", {"toolCall": {"toolCallId": f"call-{name}"}, "options": options}
        )
        return answer["result"]["outcome"].get("optionId") == "yes"

    @property
    def memory(self):
        return Path(os.environ["HOME"], "memory.json")

    def run(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                arrived = self.answers[message["id"]]
                arrived[1] = message
                arrived[0].set()
            elif message["method"] == "session/cancel":
                self.cancelled.set()
            elif message["method"] == "session/prompt":
                threading.Thread(target=self.prompt, args=(message,), daemon=True).start()
            else:
                self.send({"id": message["id"], **self.answer(message["method"], message["params"])})

    def answer(self, method, params):
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

    def prompt(self, message):
        blocks = message["params"]["prompt"]
        wish = blocks[0]["text"].split("The owner wrote:")[1].strip().split("\n")[0]
        known = json.loads(self.memory.read_text())["wishes"] if self.memory.exists() else []
        self.memory.write_text(json.dumps({"session": self.session, "wishes": [*known, wish]}))
        reason = getattr(self, wish.split()[0])(blocks, known) or "end_turn"
        self.send({"id": message["id"], "result": {"stopReason": reason}})

    def edit(self, blocks, known):
        page = self.cwd / "index.html"
        self.say("I look at the page first.")
        self.tool("edit", "edit", page)
        if self.may("edit"):
            text = self.request("fs/read_text_file", {"path": str(page)})["result"]["content"]
            self.request("fs/write_text_file", {"path": str(page), "content": text.replace("Pots", "Sale")})
        self.update("usage_update", used=10, size=100, cost={"amount": 0.25 * (len(known) + 1), "currency": "USD"})
        self.say("CHANGED: The title is ")
        self.say("Sale now.")

    def ask(self, blocks, known):
        (self.cwd / "half.html").write_text("half an edit")
        self.say("**QUESTION:** Which title?")

    def reply(self, blocks, known):
        self.say("ANSWER: You asked before: " + ", ".join(known))

    def see(self, blocks, known):
        pictures = [block["mimeType"] for block in blocks if block["type"] == "image"]
        path = blocks[0]["text"].rsplit(": ", 1)[1]
        (self.cwd / "photo.jpg").write_bytes(Path(path).read_bytes())
        self.say("I saw " + ", ".join(pictures))

    def wait(self, blocks, known):
        (self.cwd / "ready").touch()
        self.cancelled.wait()
        return "cancelled"

    def hang(self, blocks, known):
        (self.cwd / "ready").touch()
        threading.Event().wait()

    def crash(self, blocks, known):
        sys.stderr.write("no kiln today\n")
        sys.stderr.flush()
        os._exit(3)

    def mischief(self, blocks, known):
        """Whatever is not ours to do; says how many of the tries were let through."""
        outside = self.cwd.parent / "outside.txt"
        (self.cwd / "link").symlink_to(outside)
        tries = [
            lambda: "result" in self.request("fs/write_text_file", {"path": str(outside), "content": "x"}),
            lambda: "result" in self.request("fs/write_text_file", {"path": str(self.cwd / "link"), "content": "x"}),
            lambda: (
                "result" in self.request("fs/write_text_file", {"path": f"{self.cwd}/../outside.txt", "content": "x"})
            ),
            lambda: "result" in self.request("fs/write_text_file", {"path": f"{self.cwd}/.git/config", "content": "x"}),
            lambda: "result" in self.request("fs/read_text_file", {"path": "/etc/passwd"}),
            lambda: "result" in self.request("fs/read_text_file", {"path": str(self.cwd / "link")}),
            lambda: (
                "result" in self.request("terminal/create", {"command": "id"}) and "terminalId" in str(self.answers)
            ),
        ]
        for kind, path in (("edit", outside), ("read", "/etc/passwd"), ("fetch", ""), ("other", "")):
            self.tool(kind, kind, *([path] if path else []))
            tries.append(lambda kind=kind: self.may(kind))
        through = [number for number, attempt in enumerate(tries) if attempt()]
        (self.cwd / "link").unlink()
        self.say(f"ANSWER: {through}")

    def flood(self, blocks, known):
        while True:
            self.say("x" * 10_000)

    def shout(self, blocks, known):
        sys.stdout.write("{" + "x" * 200_000_000)
        sys.stdout.flush()

    def spend(self, blocks, known):
        self.update("usage_update", used=10, size=100, cost={"amount": 50.0, "currency": "USD"})
        self.cancelled.wait()
        return "cancelled"

    def toil(self, blocks, known):
        for number in range(1000):
            self.tool(f"step {number}", "think")
            if self.cancelled.wait(0.001):
                return "cancelled"


Agent().run()
