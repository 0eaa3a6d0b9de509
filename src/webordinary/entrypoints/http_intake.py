"""Mail by HTTP: a provider, or a small program of the operator, posts the raw mail and signs it.

`POST /mail` with the mail as its body and four fields:

    X-WebOrdinary-Timestamp   seconds since 1970
    X-WebOrdinary-From        envelope sender, empty for a bounce
    X-WebOrdinary-To          envelope recipient
    X-WebOrdinary-Signature   sha256=HEX, the HMAC-SHA256 of "timestamp\\nsender\\nrecipient\\n" and the body

The answer 200 says that the mail is durable here; the same mail again is answered alike and done once. 5xx means: try
again. Other answers will not change.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from webordinary.mail.addresses import MAX_ADDRESS, Mailbox
from webordinary.mail.parsing.headers import with_crlf
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Delivery, TransportKind
from webordinary.services.mail_intake import Intake

MAX_AGE_SECONDS = 300
MAX_CONNECTIONS = 200
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
MAX_BODIES = 8  # each may hold one mail in memory
BODY_SECONDS = 30.0
GRACE_SECONDS = 5
RETRY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class PushSettings:
    """How much is taken and from which sender of requests."""

    mailbox: Mailbox
    secret: Callable[[], str]
    """Called for each request, so that a new secret needs no restart."""
    max_bytes: int
    clock: Callable[[], datetime]


class _Answer(Exception):
    """Ends a request with a refusal."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def signature_of(secret: str, timestamp: str, mail_from: str, recipient: str, raw: bytes) -> str:
    """The signature that a request must carry."""
    mac = hmac.new(secret.encode(), f"{timestamp}\n{mail_from}\n{recipient}\n".encode(), hashlib.sha256)
    mac.update(raw)
    return f"sha256={mac.hexdigest()}"


class PushIntake:
    """Answers `POST /mail`."""

    def __init__(self, settings: PushSettings, intake: Intake) -> None:
        self._settings, self._intake = settings, intake
        self._bodies = asyncio.Semaphore(MAX_BODIES)

    def app(self) -> Starlette:
        """The web application; it knows this one address."""
        return Starlette(routes=[Route("/mail", self.post, methods=["POST"])])

    async def post(self, request: Request) -> JSONResponse:
        try:
            self._require_recent(request)
            self._require_signature(request)
            async with self._bodies:
                raw = await asyncio.wait_for(self._body(request), BODY_SECONDS)
            return await run_in_threadpool(self._take, request, raw)
        except (TimeoutError, ClientDisconnect):
            return _refusal(408, "the mail took too long: send it again")
        except _Answer as answer:
            return _refusal(answer.status, str(answer))

    def _require_recent(self, request: Request) -> None:
        """Refuse what is stale before its body is read; the signature covers the time."""
        given = request.headers.get("x-webordinary-timestamp", "")
        now = self._settings.clock().timestamp()
        if not (given.isascii() and given.isdecimal() and len(given) < 12 and abs(now - int(given)) <= MAX_AGE_SECONDS):
            words = f"X-WebOrdinary-Timestamp must be the time in seconds, at most {MAX_AGE_SECONDS} s off"
            raise _Answer(401, words)

    @staticmethod
    def _require_signature(request: Request) -> None:
        """Refuse what is not signed at all before its body is read."""
        if not _SIGNATURE.fullmatch(request.headers.get("x-webordinary-signature", "")):
            raise _Answer(401, "X-WebOrdinary-Signature does not fit: it must be sha256= and 64 hex digits")

    async def _body(self, request: Request) -> bytes:
        most = self._settings.max_bytes
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise _Answer(413, f"this mail is too big: at most {most} bytes are taken")
        return bytes(body)

    def _take(self, request: Request, raw: bytes) -> JSONResponse:
        delivery = self._verified(request, raw)
        try:
            accepted = self._intake.take(with_crlf(raw), delivery)
        except Transient as problem:
            raise _Answer(503, f"cannot store mail at the moment: {problem}") from problem
        except Permanent as problem:
            raise _Answer(422, f"this mail cannot be accepted: {problem}") from problem
        return JSONResponse({"accepted": accepted[0].email_id, "new": accepted[0].is_new})

    def _verified(self, request: Request, raw: bytes) -> Delivery:
        headers, settings = request.headers, self._settings
        mail_from, recipient = headers.get("x-webordinary-from", ""), headers.get("x-webordinary-to", "")
        try:
            expected = signature_of(settings.secret(), headers["x-webordinary-timestamp"], mail_from, recipient, raw)
        except Transient as problem:
            raise _Answer(503, "this intake has no secret now: its operator must look") from problem
        if not hmac.compare_digest(expected.encode(), headers.get("x-webordinary-signature", "").encode()):
            raise _Answer(401, "X-WebOrdinary-Signature does not fit: check the secret and what it is made over")
        if not settings.mailbox.accepts(recipient):
            raise _Answer(404, f"no such mailbox here: write to {settings.mailbox.address}")
        if not raw.strip():
            raise _Answer(422, "the body is empty: post the raw mail")
        return Delivery(TransportKind.HTTP, "", mail_from.strip("<>")[:MAX_ADDRESS], (recipient,), settings.clock())


def _refusal(status: int, words: str) -> JSONResponse:
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
    return JSONResponse({"error": words}, status, headers)


class PushServer:
    """Serves `PushIntake` in a thread, on a socket that is bound already."""

    def __init__(self, intake: PushIntake, sock: socket.socket) -> None:
        self._socket = sock
        self._server = uvicorn.Server(
            uvicorn.Config(
                intake.app(),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._thread = threading.Thread(target=self._run, name="push-intake", daemon=True)

    def start(self) -> None:
        """Listen and serve."""
        self._socket.listen(64)
        self._thread.start()

    def stop(self) -> None:
        """Take no more mail and wait for the ones being stored."""
        self._server.should_exit = True
        self._thread.join(GRACE_SECONDS + 3)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))
