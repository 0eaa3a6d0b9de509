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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from webordinary.entrypoints.http_server import HttpServer
from webordinary.mail.addresses import MAX_ADDRESS, Mailbox
from webordinary.mail.parsing.headers import with_crlf
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Delivery, TransportKind
from webordinary.services.mail_intake import Intake

MAX_AGE_SECONDS = 300
MAX_CONNECTIONS = 200
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
MAX_IN_FLIGHT = 200 * 1024 * 1024
"""Bytes of all mails that are being received; beyond that the slowest large one has to come again."""
ALWAYS_TAKEN = 512 * 1024
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


class _Refusal(Exception):
    """Ends a request with a refusal."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class _Transfer:
    """A mail that is being received. Not even its signature can be checked before its end."""

    def __init__(self) -> None:
        self.size, self.is_running = 0, True
        self.limit, self._began = asyncio.timeout(BODY_SECONDS), asyncio.get_running_loop().time()

    def bytes_per_second(self) -> float:
        """The mean speed; a second counts at least, as what has just begun has none yet."""
        return self.size / max(1.0, asyncio.get_running_loop().time() - self._began)

    def end(self) -> None:
        """Let its request fail; its bytes go with it."""
        self.is_running = False
        if not self.limit.expired():
            self.limit.reschedule(0.0)


def signature_of(secret: str, timestamp: str, mail_from: str, recipient: str, raw: bytes) -> str:
    """The signature that a request must carry."""
    mac = hmac.new(secret.encode(), f"{timestamp}\n{mail_from}\n{recipient}\n".encode(), hashlib.sha256)
    mac.update(raw)
    return f"sha256={mac.hexdigest()}"


class PushIntake:
    """Answers `POST /mail`."""

    def __init__(self, settings: PushSettings, intake: Intake) -> None:
        self._settings, self._intake = settings, intake
        self._transfers: set[_Transfer] = set()

    def app(self) -> Starlette:
        """The web application; it knows this one address."""
        return Starlette(routes=[Route("/mail", self.post, methods=["POST"])])

    async def post(self, request: Request) -> JSONResponse:
        try:
            self._require_recent(request)
            self._require_signature(request)
            with self._transfer() as transfer:
                async with transfer.limit:
                    raw = await self._body(request, transfer)
                    transfer.is_running = False
                return await run_in_threadpool(self._take, request, raw)
        except (TimeoutError, ClientDisconnect):
            return _refusal(503, "the mail took too long, or too many came at once: send it again")
        except _Refusal as answer:
            return _refusal(answer.status, str(answer))

    def _require_recent(self, request: Request) -> None:
        """Refuse an old request before its body is read; the signature covers the time."""
        given = request.headers.get("x-webordinary-timestamp", "")
        now = self._settings.clock().timestamp()
        if not (given.isascii() and given.isdecimal() and len(given) < 12 and abs(now - int(given)) <= MAX_AGE_SECONDS):
            words = f"X-WebOrdinary-Timestamp must be the time in seconds, at most {MAX_AGE_SECONDS} s off"
            raise _Refusal(401, words)

    @staticmethod
    def _require_signature(request: Request) -> None:
        """Refuse a request without a signature before its body is read."""
        if not _SIGNATURE.fullmatch(request.headers.get("x-webordinary-signature", "")):
            raise _Refusal(401, "X-WebOrdinary-Signature does not fit: it must be sha256= and 64 hex digits")

    async def _body(self, request: Request, transfer: _Transfer) -> bytes:
        most = self._settings.max_bytes
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            transfer.size = len(body)
            if len(body) > most:
                raise _Refusal(413, f"this mail is too big: at most {most} bytes are taken")
            self._make_room(transfer)
        return bytes(body)

    @contextmanager
    def _transfer(self) -> Iterator[_Transfer]:
        transfer = _Transfer()
        self._transfers.add(transfer)
        try:
            yield transfer
        finally:
            self._transfers.discard(transfer)

    def _make_room(self, growing: _Transfer) -> None:
        """End the slowest transfer of a large mail if too many bytes are in flight."""
        if growing.size <= ALWAYS_TAKEN or sum(one.size for one in self._transfers) <= MAX_IN_FLIGHT:
            return
        large = [one for one in self._transfers if one.size > ALWAYS_TAKEN and one.is_running]
        min(large, key=_Transfer.bytes_per_second).end()

    def _take(self, request: Request, raw: bytes) -> JSONResponse:
        delivery = self._verified(request, raw)
        try:
            accepted = self._intake.take(with_crlf(raw), delivery)
        except Transient as problem:
            raise _Refusal(503, f"cannot store mail at the moment: {problem}") from problem
        except Permanent as problem:
            raise _Refusal(422, f"this mail cannot be accepted: {problem}") from problem
        return JSONResponse({"accepted": accepted[0].email_id, "new": accepted[0].is_new})

    def _verified(self, request: Request, raw: bytes) -> Delivery:
        headers, settings = request.headers, self._settings
        mail_from, recipient = headers.get("x-webordinary-from", ""), headers.get("x-webordinary-to", "")
        try:
            expected = signature_of(settings.secret(), headers["x-webordinary-timestamp"], mail_from, recipient, raw)
        except Transient as problem:
            raise _Refusal(503, "this intake has no secret now: its operator must look") from problem
        if not hmac.compare_digest(expected.encode(), headers.get("x-webordinary-signature", "").encode()):
            raise _Refusal(401, "X-WebOrdinary-Signature does not fit: check the secret and what it is made over")
        if not settings.mailbox.accepts(recipient):
            raise _Refusal(404, f"no such mailbox here: write to {settings.mailbox.address}")
        if not raw.strip():
            raise _Refusal(422, "the body is empty: post the raw mail")
        return Delivery(TransportKind.HTTP, "", mail_from.strip("<>")[:MAX_ADDRESS], (recipient,), settings.clock())


def _refusal(status: int, words: str) -> JSONResponse:
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
    return JSONResponse({"error": words}, status, headers)


class PushServer(HttpServer):
    """Serves `PushIntake`."""

    def __init__(self, intake: PushIntake, sock: socket.socket) -> None:
        super().__init__(intake.app(), [sock], connections=MAX_CONNECTIONS, grace_seconds=GRACE_SECONDS, lifespan="off")
