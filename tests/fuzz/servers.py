"""Fuzz targets that listen: the SMTP server and the proxy of the jail, both behind real sockets."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import unquote

from tests.fuzz.mutator import Mutator
from webordinary.adapters.sandbox.proxy import Proxy
from webordinary.entrypoints.smtp import SmtpServer, SmtpSettings
from webordinary.jobs.sandbox_policy import Network, Upstream
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted
from webordinary.model.mail import Delivery

_TIMEOUT_SECONDS = 60.0
"""A server that neither answers nor closes for so long hangs."""


def _exchange(port: int, pieces: Sequence[bytes], *, close: bool) -> bytes:
    """Send in another thread than read: neither side may wait for the other. Returns all that was answered."""
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT_SECONDS) as connection:
        sender = threading.Thread(target=_send, args=(connection, pieces, close))
        sender.start()
        try:
            return b"".join(_received(connection))
        finally:
            connection.settimeout(0)
            sender.join()


def _send(connection: socket.socket, pieces: Sequence[bytes], close: bool) -> None:
    with suppress(OSError):  # it closes a conversation that it does not like
        for piece in pieces:
            connection.sendall(piece)
        if close:
            connection.shutdown(socket.SHUT_WR)


def _received(connection: socket.socket) -> Iterator[bytes]:
    with suppress(ConnectionResetError):  # a server that closes before it has read all: its last answers may be lost
        while chunk := connection.recv(65_536):
            yield chunk


class _Failures(logging.Handler):
    """What the code under test logged as a failure of its own."""

    def __init__(self, logger: str) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []
        logging.getLogger(logger).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Remember it."""
        self.seen.append(logging.Formatter().format(record))


_HELLO = b"EHLO client.example\r\nMAIL FROM:<scott@example.com>\r\nRCPT TO:<edit@localhost>\r\nDATA\r\n"
_CONVERSATIONS = (
    _HELLO + b"Subject: a\r\n\r\nhello\r\n.\r\nQUIT\r\n",
    _HELLO + b"Subject: b\r\n\r\n..dots\r\n...\r\n.\r\nRSET\r\n" + _HELLO[21:] + b"second\r\n.\r\n",
    b"HELO a\r\nMAIL FROM:<> SIZE=9 BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<edit+x@localhost>\r\nDATA\r\n\r\n.\r\nNOOP\r\n",
    _HELLO + b"smuggled\r\n.\nMAIL FROM:<eve@evil.example>\r\nRCPT TO:<edit@localhost>\r\nDATA\r\nx\r\n.\r\nQUIT\r\n",
    b"VRFY a@b\r\nEXPN a\r\nHELP MAIL\r\nSTARTTLS\r\nAUTH PLAIN AGE=\r\nEHLO \xff\r\nMAIL FROM:a@b\r\nBDAT 3 LAST\r\n",
)
_SMTP_WORDS = (
    b"\r\n.\r\n", b"\n.\n", b"\r.\r", b"\n.\r\n", b"\r\n.\n", b"\r\n..\r\n", b".", b"\r\n.\0\r\n", b"\0", b"\r",
    b"\n", b"\r\n",
    b"DATA\r\n", b"QUIT\r\n", b"RSET\r\n", b"MAIL FROM:<eve@evil.example>\r\n", b"RCPT TO:<edit@localhost>\r\n",
    b"EHLO x\r\n",
    b"HELO x\r\n", b"<", b">", b"@", b" SIZE=99999999999", b" BODY=8BITMIME", b" SMTPUTF8", b" XX=", b"\xff\xfe",
    b"RCPT TO:<@a:b@c>\r\n",
    b"AUTH LOGIN\r\n", b"BDAT 10\r\n", b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01", b"x" * 5000,
)  # fmt: skip
_LAST = b"\r\n.\r\nQUIT\r\n"
_ANSWER = re.compile(rb"(?:\d{3}-[ -~]*\r\n)*\d{3} [ -~\x80-\xff]*\r\n")
_ANSWERS = re.compile(rb"(?:\d{3}[ -][ -~\x80-\xff]*\r\n)*\Z")


class SmtpTarget:
    """Each command has one answer, and a mail is stored exactly as it was sent: the end of data has one reading."""

    name = "smtp"
    mutator = Mutator(_CONVERSATIONS, _SMTP_WORDS)

    def __init__(self) -> None:
        self._stored: list[bytes] = []
        self._failures = _Failures("webordinary.entrypoints.smtp")
        settings = SmtpSettings(Mailbox.parse("edit@localhost"), port=0)
        self._server = SmtpServer(settings, self._accept, lambda _: None, lambda: datetime.now(UTC))
        self._server.start()

    def _accept(self, raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        self._stored.append(raw)
        return [Accepted(f"{at:064}", is_new=True) for at, _ in enumerate(delivery.recipients)]

    def check(self, data: bytes) -> None:
        """Raise where a promise is broken."""
        self._stored.clear()
        said = data + _LAST
        cuts = [len(data) * part // 7 for part in range(8)]
        pieces = [said[start:end] for start, end in zip(cuts, [*cuts[1:-1], len(said), len(said)], strict=True)]
        answered = _exchange(self._server.port, pieces, close=False)
        assert not self._failures.seen, self._failures.seen.pop()
        found, complete = _mails_of(said, answered)
        stored = self._stored if complete else self._stored[: len(found)]
        assert found == stored, f"stored {self._stored!r} of {answered!r}"

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()


def _mails_of(said: bytes, answered: bytes) -> tuple[list[bytes], bool]:
    """The mails that a second reader finds in a conversation by its answers, and whether no answer was lost."""
    answers = _ANSWERS.match(answered)
    assert answers, f"no lines of SMTP: {answered!r}"
    mails: list[bytes] = []
    data: bytes | None = None
    for answer in _ANSWER.findall(answers[0])[1:]:  # the first one greets
        if data is not None:
            mails += [data] if answer.startswith(b"250") else []
            data = None
            continue
        _, _, said = said.partition(b"\n")
        if answer.startswith(b"354"):
            content, end, said = (b"\r\n" + said).partition(b"\r\n.\r\n")
            assert end, "an answer to a mail that has no end"
            data = (content + b"\r\n").replace(b"\r\n.", b"\r\n")[2:]
    return mails, answered.endswith(b"221 Bye\r\n")


SECRET = "sk-the-real-key"
_ASK = b"POST /model/v1/messages HTTP/1.1\r\nHost: model\r\nx-api-key: dummy\r\nContent-Length: 2\r\n\r\n{}"
_REQUESTS = (
    _ASK,
    _ASK + _ASK,
    b"POST /model/v1/messages/count?beta=true HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n",
    b"GET /model/v1/files HTTP/1.1\r\nCookie: a=b\r\n\r\n",
    b"POST /model/v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"CONNECT 127.0.0.1:LISTED HTTP/1.1\r\n\r\nhello",
    b"CONNECT 127.0.0.1:UNLISTED HTTP/1.1\r\nHost: 127.0.0.1:LISTED\r\n\r\nhello",
    b"GET http://127.0.0.1:UNLISTED/ HTTP/1.1\r\nHost: 127.0.0.1:UNLISTED\r\n\r\n",
    b"HEAD /model/v1/messages/../../admin HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
)  # fmt: skip
_HTTP_WORDS = (
    b"\r\nContent-Length: 100", b"\r\nContent-Length: 0", b"\r\nContent-Length: +2", b"\r\nContent-Length: 2, 2",
    b"\r\nTransfer-Encoding: chunked", b"\r\nTransfer-Encoding : chunked", b"\r\nTransfer-Encoding:\x0bchunked",
    b"\r\nx-api-key: mine", b"\r\nX-Api-Key : mine", b"\r\nx_api_key: mine", b"\r\nHost: 127.0.0.1:UNLISTED",
    b"\r\nExpect: 100-continue", b"\r\nConnection: close, x-api-key", b"\r\nUpgrade: websocket", b"\r\n folded",
    b"\r\n\t",
    b"\r\n\r\n", b"\r\n", b"\r", b"\n", b"\0", b"%2e%2e/", b"../", b"..%5c", b"//", b"/%2f", b"?", b"#",
    b"@127.0.0.1:UNLISTED", b"\\",
    b"POST /model/v1/files HTTP/1.1\r\n", b"HTTP/0.9", b"HTTP/1.0", b"HTTP/2.0", b" ", b"\xc4\x8d\xc4\x8a", b"\xff",
    b"PUT ", b"DELETE ",
    b"CONNECT ", b"/model/", b"/other/", b"v1/messages/", b"http://127.0.0.1:UNLISTED/", b"2\r\n{}\r\n0\r\n\r\n", _ASK,
)  # fmt: skip


class _Listener:
    """Accepts connections until it is closed and hands each to `serve`, in a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve, self.socket = serve, socket.create_server(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                connection.settimeout(_TIMEOUT_SECONDS)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._serve(connection)


class ProxyTarget:
    """Only allowed requests leave, each with the real key once; nothing else is reached, and no key comes back."""

    name = "proxy"
    mutator = Mutator(_REQUESTS, _HTTP_WORDS)

    def __init__(self) -> None:
        self._wrong: list[str] = []
        self._model = _Listener(self._answer_as_model)
        self._listed = _Listener(lambda connection: connection.sendall(connection.recv(100)))
        self._unlisted = _Listener(lambda _: self._wrong.append("reached a host that is not listed"))
        upstream = Upstream(
            f"http://127.0.0.1:{self._model.port}/base", {"x-api-key": SECRET}, frozenset({"POST"}),
            ("/v1/messages", "/v1/messages/"),
        )  # fmt: skip
        listed = frozenset({f"127.0.0.1:{self._listed.port}"})
        self._proxy = Proxy(Network(upstreams={"model": upstream}, hosts=listed, bytes=10**15))
        listener = socket.create_server(("127.0.0.1", 0))
        self._port = int(listener.getsockname()[1])
        self._proxy.serve(listener)
        threading.excepthook = lambda failed: self._wrong.append(f"{failed.exc_type.__name__}: {failed.exc_value}")

    def check(self, data: bytes) -> None:
        """Raise where a promise is broken."""
        asked = data.replace(b"UNLISTED", b"%d" % self._unlisted.port).replace(b"LISTED", b"%d" % self._listed.port)
        answered = _exchange(self._port, [asked], close=True)
        assert SECRET.encode() not in answered, "the key came back"
        assert not self._wrong, self._wrong.pop()

    def close(self) -> None:
        """Cut every connection."""
        self._proxy.close()
        threading.excepthook = threading.__excepthook__
        for listener in (self._model, self._listed, self._unlisted):
            listener.socket.close()

    def _answer_as_model(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as source:
            while head := _head_of(source.readline):
                problem, length = _judge(head, self._model.port)
                if problem:
                    self._wrong.append(f"{problem}: {head!r}")
                source.read(length)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def _head_of(readline: Callable[[], bytes]) -> bytes:
    lines: list[bytes] = []
    while (line := readline()) not in (b"\r\n", b""):
        lines.append(line)
    return b"".join(lines)


def _judge(head: bytes, port: int) -> tuple[str, int]:
    """What is wrong with a request as a strict server reads it, and the length of its body."""
    request, *lines = head.removesuffix(b"\r\n").split(b"\r\n")
    fields = [line.partition(b":") for line in lines]
    named = [name.lower() for name, _, _ in fields]
    values = {name.lower(): value.strip() for name, _, value in fields}
    method, path, version = (*request.split(b" "), b"", b"")[:3]
    plain = unquote(unquote(path.partition(b"?")[0].decode("latin-1")))
    length = int(values.get(b"content-length", b"0"))
    checks = {
        "not a method that may leave": method == b"POST" and version == b"HTTP/1.1",
        "not a path that may be asked": plain == "/base/v1/messages" or plain.startswith("/base/v1/messages/"),
        "a path that climbs": not {".", ".."} & set(plain.replace("\\", "/").split("/")),
        "characters that end a line for others": not re.search(rb"[\r\n\0]", head.replace(b"\r\n", b"")),
        "a line that is no header field": all(re.fullmatch(rb"[!#-'*+.^-z|~0-9A-Z-]+", name) for name in named),
        "not the key, once": named.count(b"x-api-key") == 1 and values[b"x-api-key"] == SECRET.encode(),
        "not its host, once": named.count(b"host") == 1 and values[b"host"] == b"127.0.0.1:%d" % port,
        "two lengths": named.count(b"content-length") <= 1,
        "fields of the program that must stay": not {b"authorization", b"cookie", b"transfer-encoding"} & set(named),
    }
    return next((problem for problem, holds in checks.items() if not holds), ""), length
