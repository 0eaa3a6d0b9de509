from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mail.letters import NOON, PNG, SCOTT, multipart, raw_mail
from webordinary.mail.parsing.html import html_to_lines
from webordinary.mail.parsing.message import MAX_TEXT, body_lines, outline, parse
from webordinary.mail.parsing.parts import take_apart
from webordinary.mail.ports import Unparseable
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail
from webordinary.model.mail import Command


def test_a_plain_mail_is_read_whole() -> None:
    references = ("<r@x>", "<0@x>")
    letter = CustomerMail(
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


def test_a_signature_names_the_sender_by_the_address_where_there_is_no_name() -> None:
    mail = parse(raw_mail("Set the title to Spring\n--\nScott Miller\nQuay 5", **{"from": SCOTT}))
    assert mail.text == "Set the title to Spring"


@pytest.mark.parametrize("text", ["undo the change of last week please", "don't stop", "status quo"])
def test_a_word_among_others_is_no_command(text: str) -> None:
    assert parse(raw_mail(text)).command is Command.EDIT


def test_an_empty_mail_may_give_its_command_in_the_subject() -> None:
    assert parse(raw_mail("", subject="Re: publish")).command is Command.PUBLISH
    assert parse(raw_mail("new text", subject="publish")).command is Command.EDIT


def test_spaces_that_a_server_added_to_a_soft_line_break_do_not_show() -> None:
    raw = raw_mail("Price 5=E2=82=AC and= \r\n more", content_type="text/plain; charset=utf-8\r\n"
                   "Content-Transfer-Encoding: quoted-printable")  # fmt: skip
    assert parse(raw).text == "Price 5€ and more"


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


@pytest.mark.parametrize(
    ("plain", "html", "text"),
    [
        ("Price: 20 18 euros", "<p>Price: <s>20</s> 18 euros</p>", "Price: ~~20~~ 18 euros"),
        (
            "Link it to this page.",
            '<p>Link it to <a href="https://shop.example/x?a=1&amp;b=2">this page</a>.</p>',
            "Link it to this page <https://shop.example/x?a=1&b=2>.",
        ),
        (
            "Link *it* to this page\n<https://shop.example/x>.",
            '<p>Link <b>it</b> to <a href="https://shop.example/x">this page</a>.</p>',
            "Link *it* to this page\n<https://shop.example/x>.",
        ),
        (
            "Link *it* to the shop.",
            '<p>Link <b>it</b> to the shop.</p><div class="x gmail_quote"><a href="https://a.example"><s>Done</s></a></div>',
            "Link *it* to the shop.",
        ),
    ],
)
def test_html_is_preferred_where_plain_text_lacks_struck_words_or_the_target_of_a_link(
    plain: str, html: str, text: str
) -> None:
    parts = ("Content-Type: text/plain", plain.encode()), ("Content-Type: text/html", html.encode())
    assert parse(multipart(*parts, subtype="alternative")).text == text


def test_a_photo_inside_html_is_an_attachment() -> None:
    photo = "Content-Type: image/png\r\nContent-ID: <p1>\r\nContent-Transfer-Encoding: base64"
    raw = multipart(("Content-Type: text/html", b'<p>see <img src="cid:p1"></p>'), (photo, base64.b64encode(PNG)))
    assert parse(raw).attachment_count == 1


def test_files_beyond_the_bound_are_refused_in_words() -> None:
    files = [OutgoingFile(f"{n}.png", "image/png", PNG) for n in range(23)]
    mail = parse(write_mail(CustomerMail(SCOTT, "edit@localhost", "many", "hi", files), NOON))
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
        ("utf-8", "Größe und ".encode() + b"Gr\xf6\xdfe", "Größe und Größe"),
        ("windows-1251", "Заголовок".encode("cp1251"), "Заголовок"),
        ("gb2312", "标题".encode("gb2312") + b"\xff", "标题\ufffd"),
        ("iso-2022-jp", "題名を変更".encode("iso2022_jp"), "題名を変更"),
        ("us-ascii", "a 題名 b".encode("iso2022_jp"), "a 題名 b"),
        ("iso-2022-jp", b'\x1b$B-!-"\x1b(B and \x1b(I1\x1b(B', "①② and ｱ"),
    ],
)
def test_text_is_read_whatever_its_charset_claims(charset: str, body: bytes, text: str) -> None:
    raw = raw_mail("", content_type=f"text/plain; charset={charset}") + body
    assert parse(raw).text == text


@pytest.mark.parametrize(
    ("charset", "subject"), [("windows-1251", "Заголовок"), ("iso-2022-jp", "題名"), ("iso-8859-1", "Größe")]
)
def test_a_header_in_raw_bytes_is_read_by_the_charset_of_the_mail(charset: str, subject: str) -> None:
    raw = raw_mail(subject="SUBJECT", content_type=f"text/plain; charset={charset}")
    assert parse(raw.replace(b"SUBJECT", subject.encode(charset))).subject == subject
    assert parse(raw.replace(b"SUBJECT", subject.encode())).subject == subject


@pytest.mark.parametrize(
    "field",
    [
        'filename="Größe.txt"'.encode(), b"filename*=utf-8''Gr%C3%B6%C3%9Fe.txt", b'filename="Gr\xf6\xdfe.txt"',
        b'filename="=?utf-8?q?Gr=C3=B6=C3=9Fe.txt?="', b"filename*0*=utf-8''Gr%C3%B6; filename*1*=%C3%9Fe.txt",
        b"filename*=iso-8859-1''Gr%F6%DFe.txt",
    ],
)  # fmt: skip
def test_the_name_of_a_file_is_read_however_it_is_written(field: bytes) -> None:
    raw = multipart(("Content-Type: text/plain\r\nContent-Disposition: attachment; NAME", b"x"))
    assert [part.name for part in take_apart(raw.replace(b"NAME", field)).files] == ["Größe.txt"]


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


@pytest.mark.parametrize(
    "author",
    [
        "sc\0ott@example.com", "sc\x01ott@example.com", "scott@exam\x7fple.com", "scott@example.com\x0b",
        "scott@example.com\u2028", "\x85scott@example.com", "scott@example\u200b.com", "sc\u00adott@example.com",
        "\u00a0scott@example.com", "<\u2003scott@example.com>", "\ufeffscott@example.com", "\uff53cott@example.com",
        "scott@e\uff58ample.com", "\u017fcott@example.com", "scott@example\u3002com", "scott\uff20example.com@x.y",
        "scott@stra\u00dfe.example", "scott@" + "\u00e9" * 70 + ".example", "scott@example.com\udcff",
    ],
)  # fmt: skip
def test_characters_that_a_reader_drops_or_replaces_make_no_author(author: str) -> None:
    raw = raw_mail(**{"from": "AUTHOR"}).replace(b"AUTHOR", author.encode("utf-8", "surrogateescape"))
    mail = parse(raw)
    assert (mail.sender, bool(mail.doubt)) == ("", True)


def test_a_kelvin_sign_is_no_k() -> None:
    mail = parse(raw_mail(**{"from": "\u212aate@example.com"}))
    assert (mail.sender, bool(mail.doubt)) == ("", True)


def test_an_address_in_another_alphabet_is_an_author() -> None:
    mail = parse(raw_mail(**{"from": "Ann <ann@b\u00fccher.example>"}))
    assert (mail.sender, mail.doubt) == ("ann@b\u00fccher.example", "")


def test_a_name_in_an_undeclared_charset_leaves_its_address() -> None:
    mail = parse(raw_mail(**{"from": "NAME <scott@example.com>"}).replace(b"NAME", b"Ren\xe9"))
    assert (mail.sender, mail.doubt) == (SCOTT, "")


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"From: eve@example.com", b" ", b"\0", b"X: "]), max_size=12))
def test_only_a_header_with_one_reading_has_a_sender(pieces: list[bytes]) -> None:
    """Whatever stands before it, the sender is the one that every other splitting into lines names too."""
    raw = b"".join(pieces) + raw_mail()
    header = re.split(rb"\r\n\r\n|\n\n|\r\r|\n\r\n", raw)[0]
    authors = re.findall(rb"(?i)(?:^|[\r\n\0])from: *([^\r\n]*)", header)
    sender = outline(raw).sender
    assert not sender or (len(authors) == 1 and sender.encode() in authors[0])


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
        ("x_loop", "yes"), ("x_autogenerated", "Reply"), ("x_mail_autoreply", "yes"),
        ("x_auto_reply_from", "a@b.example"),
        ("from", "no-reply@example.com"), ("from", "DoNotReply@example.com"), ("from", "noreply-42@example.com"),
        ("subject", "Automatic reply: Title"), ("subject", "[Auto-Reply] Title"), ("subject", "Out of Office"),
        ("subject", "Abwesenheitsnotiz: Titel"), ("subject", "Réponse automatique : Titre"),
        ("subject", "Автоматический ответ: Тема"), ("subject", "自動応答: 件名"), ("subject", "Autosvar: Titel"),
    ],
)  # fmt: skip
def test_mail_of_machines_is_known_as_such(field: str, value: str) -> None:
    assert parse(raw_mail(**{field: value})).automatic


@pytest.mark.parametrize(("field", "value"), [
        ("auto_submitted", "no"), ("x_auto_response_suppress", "All"), ("from", "noreen@example.com"),
        ("subject", "Out of office hours on the contact page"), ("subject", "Automatic reply text for the form"),
        ("subject", "Auto: neuer Preis"),
    ],
)  # fmt: skip
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
    "levels of nested parts": raw_mail("", content_type="multipart/mixed; boundary=b0")
    + b"".join(b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1) for n in range(30))
    + b"--b30\r\n\r\nhi",
    "parameters in the header field of a part": multipart(("Content-Type: text/plain" + ";" * 200, b"x")),
    "parameters in its header field content-type": raw_mail(content_type="text/plain" + ";" * 200),
    "bytes in the headers of its parts": multipart(*[("X-A: " + "a" * 5000, b"x")] * 200),
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
        assert html_to_lines(wild + " text")[-1].text.endswith("text")


PART = st.tuples(st.sampled_from(["base64", "quoted-printable", "8bit"]), st.binary(max_size=300))


def built(parts: Sequence[tuple[str, bytes]], depth: int = 0) -> EmailMessage:
    """A mail as the standard library builds it: files, and a mail within the mail's parts for each level."""
    message = EmailMessage()
    message["From"], message["Message-ID"] = SCOTT, "<1@example.com>"
    message.set_content("hello", cte="quoted-printable")
    for encoding, data in parts:
        if encoding == "base64":
            message.add_attachment(data, "application", "octet-stream", filename="a.bin")
        else:
            message.add_attachment(data.decode("latin-1").replace("\r", ""), filename="a.txt", cte=encoding)
    return message


@settings(deadline=None)
@given(st.lists(PART, max_size=8))
def test_the_parts_of_a_mail_are_those_that_the_standard_library_finds(parts: list[tuple[str, bytes]]) -> None:
    message = built(parts)
    found = take_apart(message.as_bytes(policy=SMTP))
    theirs = [bytes(part.get_payload(decode=True)) for part in message.iter_attachments()]
    assert [part.data.strip() for part in found.files] == [data.strip() for data in theirs]
    assert [part.text(1000) for part in found.texts] == ["hello\n"]


def test_an_attached_mail_is_taken_byte_for_byte() -> None:
    attached = b"Subject: a\x0cb: c\r\n\r\n--inner\r\nhello"
    (part,) = take_apart(multipart(("", b"see below"), ("Content-Type: message/rfc822", attached))).files
    assert (part.media_type, part.name, bytes(part.encoded)) == ("message/rfc822", "mail.eml", attached)


def test_text_beyond_the_bound_is_cut_over_all_parts_and_before_it_is_decoded() -> None:
    part = ("Content-Type: text/plain", b"word \r\n" * 40_000)
    assert sum(len(line.text) for line in body_lines(take_apart(multipart(*[part] * 20)))) <= MAX_TEXT
    encoded = ("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64",
               base64.encodebytes("größer ".encode() * 200_000))  # fmt: skip
    assert body_lines(take_apart(multipart(encoded)))[0].text.startswith("größer größer")


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
