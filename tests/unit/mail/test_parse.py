from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mail.letters import NOON, PNG, SCOTT, multipart, raw_mail
from webordinary.mail.errors import Unparseable
from webordinary.mail.html_text import html_to_text
from webordinary.mail.parse import outline, parse
from webordinary.mail.write import AttachedFile, Letter, write_mail
from webordinary.model.mail import Command


def test_a_plain_mail_is_read_whole() -> None:
    references = ("<r@x>", "<0@x>")
    letter = Letter(
        SCOTT, "edit@localhost", "Größe 🎉", "Mach es größer.\n", message_id="<1@x>", in_reply_to="<0@x>",
        references=references,
    )  # fmt: skip
    mail = parse(write_mail(letter, NOON))
    assert (mail.sender, mail.subject, mail.text) == (SCOTT, "Größe 🎉", "Mach es größer.")
    assert (mail.message_id, mail.in_reply_to, mail.references) == ("<1@x>", ("<0@x>",), references)
    assert mail.sent_at == NOON
    assert (mail.command, mail.automatic, mail.attachment_count) == (Command.EDIT, False, 0)


@pytest.mark.parametrize("text", ["undo", "Undo.", " UNDO!\n", "undo\n\n-- \nScott"])
def test_a_command_is_its_word_alone(text: str) -> None:
    assert parse(raw_mail(text)).command is Command.UNDO


@pytest.mark.parametrize("text", ["undo the last change please", "don't stop", "status quo"])
def test_a_word_among_others_is_no_command(text: str) -> None:
    assert parse(raw_mail(text)).command is Command.EDIT


def test_an_empty_mail_may_give_its_command_in_the_subject() -> None:
    assert parse(raw_mail("", subject="Re: publish")).command is Command.PUBLISH
    assert parse(raw_mail("new text", subject="publish")).command is Command.EDIT


def test_html_alone_becomes_text_without_its_history() -> None:
    html = (
        "<html><head><style>p{color:red}</style></head><body><p>Change the <b>title</b><br>to Spring</p>"
        '<div class="gmail_quote">On Mon, 3 Jan 2026 at 10:00, Edit &lt;edit@localhost&gt; wrote:'
        "<blockquote>Done.</blockquote></div></body></html>"
    )
    mail = parse(raw_mail(html, content_type="text/html; charset=utf-8"))
    assert mail.text == "Change the title\nto Spring"
    assert "> Done." in mail.elided


def test_plain_text_is_preferred_to_html() -> None:
    mail = parse(
        multipart(
            ("Content-Type: text/plain", b"plain"), ("Content-Type: text/html", b"<p>html</p>"), subtype="alternative"
        )
    )
    assert (mail.text, mail.attachment_count) == ("plain", 0)


def test_a_photo_inside_html_is_an_attachment() -> None:
    photo = "Content-Type: image/png\r\nContent-ID: <p1>\r\nContent-Transfer-Encoding: base64"
    raw = multipart(("Content-Type: text/html", b'<p>see <img src="cid:p1"></p>'), (photo, base64.b64encode(PNG)))
    assert parse(raw).attachment_count == 1


def test_files_beyond_the_bound_are_refused_in_words() -> None:
    files = [AttachedFile(f"{n}.png", "image/png", PNG) for n in range(23)]
    mail = parse(write_mail(Letter(SCOTT, "edit@localhost", "many", "hi", files), NOON))
    assert mail.attachment_count == 20
    assert [file.name for file in mail.refused_attachments] == ["20.png", "21.png", "22.png"]
    assert "second mail" in mail.refused_attachments[0].reason


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("iso-8859-1", b"Gr\xf6\xdfe", "Größe"),
        ("us-ascii", "Größe".encode(), "Größe"),
        ("nonsense-9", "Größe".encode(), "Größe"),
        ("utf-8", b"Gr\xf6\xdfe", "Größe"),
        ("zip", b"plain", "plain"),
        ("windows-1252", b"\x93x\x94", "“x”"),
    ],
)
def test_text_is_read_whatever_its_charset_claims(charset: str, body: bytes, text: str) -> None:
    raw = raw_mail("", content_type=f"text/plain; charset={charset}") + body
    assert parse(raw).text == text


def test_soft_line_breaks_are_joined() -> None:
    raw = raw_mail("change the \r\ntitle\r\nplease\r\n", content_type="text/plain; format=flowed")
    assert parse(raw).text == "change the title\nplease"


@pytest.mark.parametrize(
    "author",
    [
        "",
        "scott@example.com, eve@example.com",
        "=?utf-8?q?scott=40example.com?=",
        "<@evil:scott@example.com>",
        "scott",
        "eve@example.com, <scott@example.com>",
        "<eve@example.com> <scott@example.com>",
        "scott@example.com (",
        "scott@example.com@evil.example",
        "scott@example.com <eve@example.com>, x",
        "a <b> <scott@example.com>",
        "x" + " " * 7000 + "y",
    ],
)
def test_a_mail_without_exactly_one_plain_author_has_no_sender(author: str) -> None:
    assert parse(raw_mail(from_="", **{"from": author})).sender == ""


@pytest.mark.parametrize(
    ("author", "name"),
    [
        (SCOTT, ""), (f"<{SCOTT}>", ""), (f"Scott <{SCOTT}>", "Scott"), (f'"Potter, Scott" <{SCOTT}>', "Potter, Scott"),
        (f"Potter, Scott <{SCOTT}>", "Potter, Scott"), (f"{SCOTT} <{SCOTT}>", SCOTT), (f"{SCOTT} (Scott)", "Scott"),
        (f"=?utf-8?q?Sc=C3=B6tt?= <{SCOTT.upper()}>", "Scött"), (f'"Sc \\"o\\" tt" <{SCOTT}>', 'Sc "o" tt'),
    ],
)  # fmt: skip
def test_an_author_is_read_as_people_write_it(author: str, name: str) -> None:
    mail = parse(raw_mail(**{"from": author}))
    assert (mail.sender, mail.sender_name) == (SCOTT, name)


def test_two_from_lines_name_nobody() -> None:
    assert parse(b"From: eve@example.com\r\n" + raw_mail()).sender == ""


def test_a_name_cannot_pose_as_the_address() -> None:
    mail = parse(raw_mail(**{"from": '"scott@example.com" <eve@example.com>', "reply_to": SCOTT}))
    assert mail.sender == "eve@example.com"


def test_a_mail_without_message_id_gets_the_same_one_each_time() -> None:
    first, again = parse(raw_mail(message_id="")), parse(raw_mail(message_id="", received="by x; later"))
    other = parse(raw_mail("else", message_id=""))
    assert first.message_id == again.message_id != other.message_id


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("auto_submitted", "auto-replied"), ("precedence", "bulk"), ("list_id", "<potters.example.com>"),
        ("x_autoreply", "yes"), ("return_path", "<>"), ("from", "MAILER-DAEMON@example.com"),
        ("content_type", 'multipart/report; boundary="x"'),
    ],
)  # fmt: skip
def test_mail_of_machines_is_known_as_such(field: str, value: str) -> None:
    assert parse(raw_mail(**{field: value})).automatic


@pytest.mark.parametrize(("field", "value"), [("auto_submitted", "no"), ("x_auto_response_suppress", "All")])
def test_mail_of_people_is_not_taken_for_a_machines(field: str, value: str) -> None:
    assert not parse(raw_mail(**{field: value})).automatic


HOSTILE = {
    "encoded words in its header": raw_mail(subject="=?utf-8?q?x?= " * 600),
    "bytes in its header field subject": raw_mail(subject="x" * 9000),
    "bytes of header": raw_mail(x_long="y " * 40_000),
    "recipients": raw_mail(to=", ".join(f"u{n}@example.com" for n in range(20_000))[:60_000]),
    "comments": raw_mail(**{"from": "(" * 3000 + ")" * 3000 + " scott@example.com"}),
    "parts": multipart(*[("Content-Type: text/plain", b"x")] * 5000),
    "nested parts": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(2000)
    ),
    "lines": raw_mail("\n" * 1_000_001),
    "bytes in the header field of a part": multipart(("Content-Type: text/plain; " + 'x="";' * 20_000, b"x")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_mail_that_would_cost_too_much_is_refused_in_words(what: str) -> None:
    with pytest.raises(Unparseable, match=f"{what}.*at most"):
        parse(HOSTILE[what])


def test_what_cannot_be_parsed_still_names_its_sender() -> None:
    mail = outline(raw_mail(content_type="multipart/mixed; boundary=b", x_long="y " * 40_000))
    assert (mail.sender, mail.subject, mail.text) == (SCOTT, "Title", "")


def test_wild_html_loses_its_layout_and_not_its_text() -> None:
    for wild in ("<div>" * 90_000, "<div></b>" * 45_000, "<b><i>" * 40_000, "<" * 500_000):
        assert html_to_text(wild + " text").endswith("text")


ODD = st.sampled_from(
    [b"From: ", b"Content-Type: multipart/mixed; boundary=b\n", b"--b\n", b"--b--\n", b"\n", b"\r", b"=?utf-8?b?",
     b"Content-Type: message/rfc822\n", b"Content-Transfer-Encoding: base64\n", b"charset=", b'"', b"(", b"<a@b>",
     b"Content-Disposition: attachment; filename*0*=utf-8''%ff\n", b"\xff\xfe", b";", b"On 1/1/2020, a@b wrote:\n> "]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(ODD, st.binary(max_size=12)), max_size=40))
def test_no_bytes_make_the_parser_fail_in_any_other_way(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    outline(raw)
    try:
        mail = parse(raw)
    except Unparseable:
        return
    mail.text.encode()
    mail.subject.encode()
