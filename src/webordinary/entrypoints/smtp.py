"""The SMTP server: one thread with its own event loop; connections, bytes, lines and time are bounded."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, AnyStr

from aiosmtpd.proxy_protocol import ProxyData
from aiosmtpd.smtp import SMTP, syntax
from aiosmtpd.smtp import Envelope as SmtpEnvelope
from aiosmtpd.smtp import Session as SmtpSession

from webordinary.entrypoints.smtp_data import MAX_LINE_BYTES, DataPool, MailData
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import HERE_ALREADY, Accepted, RefusalLog
from webordinary.mail.parsing.parts import MAX_MAIL_BYTES
from webordinary.model.errors import DatabaseDamaged, Permanent, Transient
from webordinary.model.mail import Delivery, TransportKind

Accept = Callable[[bytes, Delivery], Sequence[Accepted]]
log = logging.getLogger(__name__)


# No slots: aiosmtpd lists the members of its handler, which fails for such classes on Python 3.11.2, that of Debian 12.
@dataclass(frozen=True)
class IntakeHandler:
    """Called by aiosmtpd; its method names are aiosmtpd's."""

    mailbox: Mailbox
    accept: Accept
    on_accepted: Callable[[str], None]
    clock: Callable[[], datetime]
    threads: Executor
    max_recipients: int
    rates: SenderRates
    refusals: RefusalLog = field(default_factory=lambda: RefusalLog(log, "SMTP"), compare=False)

    async def handle_PROXY(  # noqa: N802
        self, server: _Session, session: SmtpSession, envelope: SmtpEnvelope, proxy: ProxyData
    ) -> bool:
        """Take the client's address from a proxy that the settings name; False ends the connection."""
        return proxy.src_addr is None or server.came_from(str(proxy.src_addr), proxy.src_port or 0)

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: SmtpSession, envelope: SmtpEnvelope, address: str, options: list[str]
    ) -> str:
        """Limit the mails of one sender through one host: another host cannot use up what a customer may send."""
        if not self.rates.allows(_peer(session), address):
            return "450 4.7.1 too many mails of this sender within an hour: try again later"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: SmtpSession, envelope: SmtpEnvelope, address: str, options: list[str]
    ) -> str:
        """Take mail for our own mailbox only: we are no relay."""
        if not self.mailbox.accepts(address):
            return f"550 5.1.1 no such mailbox here: write to {self.mailbox.address}"
        if len(envelope.rcpt_tos) >= self.max_recipients:
            return f"452 4.5.3 at most {self.max_recipients} recipients at once: send the mail again to the others"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: SmtpSession, envelope: SmtpEnvelope) -> str:  # noqa: N802
        """Answer when the mail is durable; the waiting for the disk happens in a thread of its own."""
        raw = envelope.original_content or b""
        peer = _peer(session)
        self.rates.count(peer, envelope.mail_from or "")
        mail_from = (envelope.mail_from or "").strip("<>")  # a bounce comes from <>
        delivery = Delivery(TransportKind.SMTP, peer, mail_from, tuple(envelope.rcpt_tos), self.clock())
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, self._take, raw, delivery)

    async def handle_exception(self, error: Exception) -> str:
        """Anything unforeseen: the sender keeps the mail and comes again."""
        log.error("SMTP session failed", exc_info=error)
        return "451 4.3.0 something went wrong here: try again later"

    def _take(self, raw: bytes, delivery: Delivery) -> str:
        try:
            accepted = self.accept(raw, delivery)
        except DatabaseDamaged as problem:
            log.error("mail not accepted until the database is mended: %s", problem)
            return "451 4.3.0 mail cannot be stored until the operator has looked: try again later"
        except Transient as problem:
            self.refusals.refused(problem)
            return "452 4.3.1 cannot store mail at the moment: try again later"
        except Permanent as problem:
            log.warning("mail not accepted: %s", problem)
            return "554 5.6.0 this mail cannot be accepted"
        except Exception:
            log.exception("mail not accepted")
            return "451 4.3.0 something went wrong here: try again later"
        self.refusals.taken()
        for mail in accepted:
            if mail.is_new:
                self._announce(mail.email_id)
        others = f" and {len(accepted) - 1} more" if len(accepted) > 1 else ""
        before = "" if any(mail.is_new for mail in accepted) else f", {HERE_ALREADY}"
        return f"250 2.0.0 accepted as {accepted[0].email_id}{others}{before}"

    def _announce(self, email_id: str) -> None:
        """Called once the mail is stored. A lost call does no harm: the sweep starts mails without a workflow."""
        try:
            self.on_accepted(email_id)
        except Exception:
            log.exception("%s: accepted, but its workflow could not be started yet", email_id)


def _peer(session: SmtpSession) -> str:
    return str(session.peer[0]) if session.peer else ""


class SenderRates:
    """Counts the mails of each sender through each host within the current hour, for a bounded number of senders."""

    def __init__(self, per_hour: int, clock: Callable[[], float] = time.monotonic, most: int = 10_000) -> None:
        self._per_hour, self._clock, self._most = per_hour, clock, most
        self._counts: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    def allows(self, peer: str, sender: str) -> bool:
        """Whether one more mail is taken; 0 = no limit."""
        return not self._per_hour or self._count((peer, sender.lower())) < self._per_hour

    def count(self, peer: str, sender: str) -> None:
        """Count one mail. Beyond the most senders, the one that has been silent longest is forgotten."""
        key = (peer, sender.lower())
        self._counts[key] = (self._hour(), self._count(key) + 1)
        self._counts.move_to_end(key)
        if len(self._counts) > self._most:
            self._counts.popitem(last=False)

    def _count(self, key: tuple[str, str]) -> int:
        hour, count = self._counts.get(key, (0, 0))
        return count if hour == self._hour() else 0

    def _hour(self) -> int:
        return int(self._clock() // 3600)


class ServerCertificate:
    """The certificate for STARTTLS, read again when its file changes: renewals need no restart."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self._files = (cert_file, key_file)
        self._context: ssl.SSLContext | None = None
        self._version: tuple[tuple[int, int], ...] = ()

    def context(self) -> ssl.SSLContext | None:
        """None where no certificate is set. While a new one cannot be used, the old one stays in use."""
        if not self._files[0]:
            return None
        try:
            version = tuple((stat.st_mtime_ns, stat.st_ino) for stat in map(os.stat, self._files))
            if version != self._version:
                self._context = self.load()
                self._version = version
        except (OSError, Permanent) as problem:
            log.warning("STARTTLS goes on with the certificate that it has: %s", problem)
        return self._context

    def load(self) -> ssl.SSLContext:
        """Read both files; raises Permanent with what to do."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(*self._files)
        except OSError as problem:  # ssl.SSLError is one
            names = " and ".join(dict.fromkeys(self._files))
            raise Permanent(f"{names} cannot be used for STARTTLS ({problem}): correct smtp_cert_file") from problem
        return context


_BUSY = b"421 4.3.2 too many connections: try again later\r\n"
_TOO_SLOW = b"421 4.4.2 this conversation takes too long: connect again\r\n"
_PROXY_SECONDS = 10.0
_READ_BYTES = 1024 * 1024  # more than a StreamReader ever holds: one read empties it


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Where to listen and how much to take."""

    mailbox: Mailbox
    host: str = "127.0.0.1"
    port: int = 2525
    max_bytes: int = MAX_MAIL_BYTES
    max_recipients: int = 50
    max_connections: int = 100
    max_connections_per_peer: int = 50
    max_bytes_in_flight: int = 200_000_000
    idle_seconds: float = 300.0
    conversation_seconds: float = 900.0
    displaced_after_seconds: float = 10.0
    storing_threads: int = 16
    cert_file: str = ""
    """Certificate chain for STARTTLS; empty: none is offered."""
    key_file: str = ""
    proxies: tuple[str, ...] = ()
    """Hosts that begin each connection with the PROXY protocol."""
    sender_hourly: int = 0
    """Mails of one sender through one host within an hour; 0 = no limit."""


class SmtpServer:
    """`start` returns when the port is open (see `port`); `stop` when the last mail in work is stored."""

    def __init__(
        self,
        settings: SmtpSettings,
        accept: Accept,
        on_accepted: Callable[[str], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.storing_threads, thread_name_prefix="smtp-store")
        rates = SenderRates(settings.sender_hourly)
        self._handler = IntakeHandler(
            settings.mailbox, accept, on_accepted, clock, self._threads, settings.max_recipients, rates
        )
        self._certificate = ServerCertificate(settings.cert_file, settings.key_file)
        self._sessions = _Sessions(settings)
        self._pool = DataPool(max(settings.max_bytes_in_flight, 2 * settings.max_bytes))
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smtp", daemon=True)

    @property
    def port(self) -> int:
        """The port in use; it differs from the configured one where that was 0."""
        assert self._socket is not None, "the server was not started"
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Open the port, or say clearly why it cannot be opened or why its certificate is of no use."""
        host, port = self._settings.host, self._settings.port
        if self._settings.cert_file:
            self._certificate.load()
        try:
            self._socket = socket.create_server(
                (host, port),
                family=socket.AF_INET6 if ":" in host else socket.AF_INET,
                backlog=128,
                dualstack_ipv6=host == "::",
            )
        except OSError as problem:
            raise Permanent(
                f"cannot take mail on {host}:{port} ({problem.strerror or problem}): "
                "stop what uses that port, or choose another one with SMTP_PORT"
            ) from problem
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Accept no more mail and wait for mails that are being stored. Idempotent."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        self._threads.shutdown(wait=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        assert self._socket is not None
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(self._protocol, sock=self._socket)
        self._ready.set()
        await self._stopping.wait()
        server.close()
        self._sessions.hang_up()
        await asyncio.sleep(0)  # lets the transports close before the loop does

    def _protocol(self) -> asyncio.Protocol:
        return _ConnectionGate(self._sessions, self._session)

    def _session(self, peer: str) -> _Session:
        proxied = _PROXY_SECONDS if peer in self._settings.proxies else None
        return _Session(
            self._handler,
            self._sessions,
            self._pool,
            data_size_limit=self._settings.max_bytes,
            enable_SMTPUTF8=True,
            hostname=self._settings.mailbox.domains[0],
            ident="WebOrdinary",
            timeout=self._settings.idle_seconds,
            tls_context=self._certificate.context(),
            proxy_protocol_timeout=proxied,
            loop=self._loop,
        )


class _Session(SMTP):
    """One connection. It has a deadline as a whole: aiosmtpd's own begins anew with each command."""

    line_length_limit = MAX_LINE_BYTES

    def __init__(self, handler: IntakeHandler, sessions: _Sessions, pool: DataPool, **options: Any) -> None:  # noqa: ANN401
        super().__init__(handler, **options)
        self._sessions, self._pool = sessions, pool
        self._deadline: asyncio.TimerHandle | None = None
        self._storing: asyncio.Task[str] | None = None
        self._proxied_peer: tuple[str, int] | None = None
        self.progress_at = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet; called a second time after STARTTLS, with a new aiosmtpd session."""
        super().connection_made(transport)
        self._name_peer()
        if self._deadline is None:
            seconds = self._sessions.settings.conversation_seconds
            self._deadline = self.loop.call_later(seconds, self.hang_up, _TOO_SLOW)

    def came_from(self, peer: str, port: int) -> bool:
        """A proxy says which client this is; False where that client has too many connections."""
        if not self._sessions.has_room(peer, but=self):
            self.hang_up(_BUSY)
            return False
        self._proxied_peer = (peer, port)
        self._sessions.add(self, peer)
        self._name_peer()
        return True

    def _name_peer(self) -> None:
        if self._proxied_peer and self.session:
            self.session.peer = self._proxied_peer  # type: ignore[assignment]  # aiosmtpd keeps a pair there

    def connection_lost(self, error: Exception | None) -> None:
        """Release the slot of the connection."""
        self._sessions.remove(self)
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(error)

    @property
    def is_storing(self) -> bool:
        """Whether a whole mail is being stored."""
        return self._storing is not None and not self._storing.done()

    def hang_up(self, answer: bytes = b"") -> None:
        """End the connection, with a last answer."""
        if isinstance(self.transport, asyncio.WriteTransport) and not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    async def push(self, status: AnyStr) -> None:
        """Answer without control characters: aiosmtpd repeats commands that it does not know."""
        text = status if isinstance(status, str) else status.decode("utf-8", "replace")
        if not text.isprintable():
            text = "".join(char if char.isprintable() else "?" for char in text)
        await super().push(text)

    def _getaddr(self, arg: str) -> tuple[str | None, str | None]:
        """Read an address; None for a malformed one. The standard library's parser, which aiosmtpd calls, may fail."""
        try:
            found: tuple[str | None, str | None] = super()._getaddr(arg)
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
            return None, None
        return found

    @syntax("DATA")
    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        """Take a mail in one buffer; aiosmtpd's own method keeps an object for each line, 80 bytes for an empty one."""
        if await self.check_helo_needed():
            return
        if not self.envelope or not self.envelope.rcpt_tos:
            await self.push("503 5.5.1 name a recipient first")
        elif arg:
            await self.push("501 5.5.4 DATA takes no argument")
        else:
            await self.push("354 End data with <CR><LF>.<CR><LF>")
            await self._take_mail()

    async def _take_mail(self) -> None:
        data = MailData(self._sessions.settings.max_bytes)
        self._pool.add(data)
        try:
            await self._receive(data)
        except BaseException:
            self._pool.remove(data)
            raise
        # In a task of its own: the bytes stay counted until it ends, even if the client hangs up before.
        self._storing = self.loop.create_task(self._stored(data))
        answer = await asyncio.shield(self._storing)
        self.envelope = self._create_envelope()
        self.progress_at = time.monotonic()
        await self.push(answer)
        if not data.ended:
            self.hang_up()

    async def _receive(self, data: MailData) -> None:
        """Read to the end of the data. A refused mail is read on, but not for ever."""
        while not data.ended and data.discarded <= data.max_bytes:
            chunk = await self._reader.read(_READ_BYTES)
            if not chunk:
                raise ConnectionResetError
            rest = data.feed(chunk)
            self._pool.provision()
            if rest:
                self._reader.feed_data(rest)

    async def _stored(self, data: MailData) -> str:
        envelope, session, handler = self.envelope, self.session, self.event_handler
        assert envelope is not None
        assert session is not None
        try:
            if data.refusal:
                return data.refusal
            envelope.original_content = envelope.content = data.content()
            answer: str = await handler.handle_DATA(self, session, envelope)
            return answer
        finally:
            envelope.original_content = envelope.content = None
            self._pool.remove(data)


class _Sessions:
    """The open connections: bounded as a whole and for each peer.

    Beyond a bound, the connection that has gone longest without handing over a mail is closed. So a client that keeps
    connections open and sends a byte now and then cannot keep others out.
    """

    def __init__(self, settings: SmtpSettings) -> None:
        self.settings = settings
        self._peers: dict[_Session, str] = {}

    def has_room(self, peer: str, but: _Session | None = None) -> bool:
        """Whether one more connection may be taken; displaces an old one for it where that is possible.

        A proxy is no client: its connections are bounded by the clients that it names.
        """
        others = [session for session in self._peers if session is not but]
        of_peer = [] if peer in self.settings.proxies else [one for one in others if self._peers[one] == peer]
        return self._make_room(of_peer, self.settings.max_connections_per_peer) and self._make_room(
            others, self.settings.max_connections
        )

    def add(self, session: _Session, peer: str) -> None:
        """Count a connection."""
        self._peers[session] = peer

    def remove(self, session: _Session) -> None:
        """Stop counting a connection."""
        self._peers.pop(session, None)

    def hang_up(self) -> None:
        """End all connections."""
        for session in list(self._peers):
            session.hang_up()

    def _make_room(self, sessions: list[_Session], limit: int) -> bool:
        if len(sessions) < limit:
            return True
        latest = time.monotonic() - self.settings.displaced_after_seconds
        waiting = [one for one in sessions if one.progress_at <= latest and not one.is_storing]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda one: one.progress_at)
        self.remove(oldest)
        oldest.hang_up(_BUSY)
        return True


class _ConnectionGate(asyncio.Protocol):
    """Hands a new connection to a session, or tells it to come again."""

    def __init__(self, sessions: _Sessions, session: Callable[[str], _Session]) -> None:
        self._sessions, self._session = sessions, session

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Decide by the peer's address."""
        assert isinstance(transport, asyncio.WriteTransport)
        peer = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._sessions.has_room(peer):
            transport.write(_BUSY)
            transport.close()
            return
        session = self._session(peer)
        self._sessions.add(session, peer)
        transport.set_protocol(session)
        session.connection_made(transport)
