"""HTML mails as mail programs write them: history and signatures set aside, links and pictures and lists kept."""

from __future__ import annotations

# ruff: noqa: E501  markup of mail programs
import base64

import pytest

from tests.unit.mail.letters import PNG, multipart, raw_mail
from webordinary.mail.parsing.html import html_to_lines
from webordinary.mail.parsing.message import parse
from webordinary.mail.parsing.reply_text import reply_text

REPLY = "Change the title."
HISTORY = {
    "gmail, in a language of no table": '<div dir="ltr">{}</div><br><div class="gmail_quote"><div class="gmail_attr">Uko ejo '
    'Ann yanditse:<br></div><blockquote class="gmail_quote" style="margin:0 0 0 .8ex">Done.</blockquote></div>',
    "gmail, without a quote": '<div>{}</div><div class="gmail_quote gmail_quote_container">Ann yanditse:<br>Done.</div>',
    "k-9": '{}<br><div class="gmail_quote">Uko ejo, Ann:<blockquote class="gmail_quote">Done.</blockquote></div>',
    "outlook on the web": '<div>{}</div><div id="appendonsend"></div><hr tabindex="-1"><div id="divRplyFwdMsg"><b>Kuva:</b> Ann'
    "<br><b>Kuri:</b> me</div><div>Done.</div>",
    "outlook on a phone": '<div>{}</div><div id="ms-outlook-mobile-signature">Get <a href="https://aka.ms/o0ukef">Outlook for '
    'iOS</a></div><hr><div id="divRplyFwdMsg">From: Ann</div><p>Done.</p>',
    "outlook on the desktop": '<p class="MsoNormal">{}</p><div><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt'
    ' 0cm 0cm 0cm"><p><b>Kuva:</b> Ann</p></div></div><p>Done.</p>',
    "outlook on a mac": '<div>{}</div><span id="OLK_SRC_BODY_SECTION"><div>Kuva: Ann</div><div>Done.</div></span>',
    "apple": '<div>{}</div><br><blockquote type="cite"><div>On 5 Jan 2023, at 10:20, Ann wrote:</div>Done.</blockquote>',
    "thunderbird": '<p>{}</p><div class="moz-cite-prefix">Uko ejo, Ann yanditse:</div><blockquote type="cite" cite="mid:1@x">'
    "Done.</blockquote>",
    "yahoo": '<div>{}</div><div id="ydp1" class="yahoo_quoted"><div>Uko ejo, Ann yanditse:</div><div>Done.</div></div>',
    "proton": '<div>{}</div><div class="protonmail_signature_block"><div>Sent with Proton Mail</div></div><div class='
    '"protonmail_quote">Uko ejo, Ann yanditse:<br><blockquote class="protonmail_quote" type="cite">Done.</blockquote></div>',
    "gmx": '<div>{}</div><div name="quote" style="border-left:2px solid #C3D9E5"><b>Gesendet:</b> gestern<br>Done.</div>',
    "zimbra": '<div>{}</div><hr id="zwchr" data-marker="__DIVIDER__"><div data-marker="__HEADERS__"><b>Kuva: </b>Ann</div>Done.',
    "roundcube": '<p>{}</p><p id="reply-intro">Uko ejo, Ann yanditse:</p><blockquote>Done.</blockquote>',
    "gmail's signature": '<div>{}</div><div><br></div>-- <br><div class="gmail_signature">Scott<br>Pottery</div>',
    "outlook's signature": '<div>{}</div><div id="Signature"><p>Scott</p><p>Pottery</p></div>',
    "thunderbird's signature": '<p>{}</p><div class="moz-signature">-- <br>Scott</div>',
    "signature, then history": '<div>{}</div><div class="gmail_signature">Scott</div><div class="gmail_quote"><div class='
    '"gmail_attr">Ann yanditse:</div><blockquote class="gmail_quote">Done.</blockquote></div>',
}


@pytest.mark.parametrize("program", HISTORY)
def test_the_markup_of_a_mail_program_tells_history_and_signatures(program: str) -> None:
    mail = parse(raw_mail(HISTORY[program].format(REPLY), content_type="text/html; charset=utf-8"))
    assert mail.text == REPLY
    assert mail.elided


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<div>Use this text:</div><blockquote style='margin:0 0 0 40px;border:none;padding:0'>Open daily</blockquote>",
            "Use this text:\n\nOpen daily",
        ),
        (
            '<div>See</div><blockquote class="gmail_quote" style="border-left:1px solid">Our own quote</blockquote>',
            "See\n\nOur own quote",
        ),
        (
            '<div class="gmail_signature">Scott</div><div>PS: the footer too.</div>',
            "Scott\nPS: the footer too.",
        ),
        (
            '<div>Hi</div><div class="gmail_quote"><div class="gmail_attr">Ann yanditse:</div><blockquote class="gmail_quote">'
            'Which?</blockquote><div>Red.</div><blockquote class="gmail_quote">Size?</blockquote><div>Large.</div></div>',
            "Hi\n\n> Which?\n\nRed.\n\n> Size?\n\nLarge.",
        ),
        ("<p>Red title</p><hr><p>no news</p>", f"Red title\n{'_' * 32}\nno news"),
        ("<div>Red title</div><hr><div>No news</div>", f"Red title\n{'_' * 32}\nNo news"),
        ('<div id="divRplyFwdMsg">From: Ann</div><div>All there is.</div>', "From: Ann\nAll there is."),
    ],
)
def test_text_that_the_customer_indented_or_wrote_around_a_quote_is_kept(html: str, text: str) -> None:
    mail = parse(raw_mail(html, content_type="text/html; charset=utf-8"))
    assert mail.text.replace(">", "").split() == text.replace(">", "").split()


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('link the <a href="https://x.example/shop">button</a> there', "link the button <https://x.example/shop> there"),
        ('<a href="https://www.x.example/">x.example</a>', "x.example"),
        ('write to <a href="mailto:ann@x.example">Ann</a>', "write to Ann <ann@x.example>"),
        ('<a href="mailto:ann@x.example">ann@x.example</a>', "ann@x.example"),
        ('<a href="javascript:x()">no</a> <a href="#top">up</a>', "no up"),
        (
            '<a href="https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fx.example%2Fa&amp;data=1">here</a>',
            "here <https://x.example/a>",
        ),
        ('<a href="https://x.example/a"><img src="https://x.example/p.png" alt="logo"></a>',
         "[picture: logo <https://x.example/p.png>] <https://x.example/a>"),
        ("now <s>10</s> 12", "now ~~10~~ 12"),
        ("now <del>10</del> <strike>11</strike> 12", "now ~~10~~ ~~11~~ 12"),
        ('<span style="color:red; text-decoration: line-through">old</span> new', "~~old~~ new"),
        ('<span style="display:none">preheader</span>shown', "shown"),
        ("<ol><li>one</li><li>two<ul><li>a</li></ul></li><li>three</li></ol>", "1. one\n2. two\n\n  - a\n\n3. three"),
        ('<ol start="4"><li>four</li><li value="9">nine</li><li>ten</li></ol>', "4. four\n9. nine\n10. ten"),
        ('<ol type="a"><li>one</li><li>two</li></ol><ol type="A" start="26"><li>z</li><li>on</li></ol>',
         "a. one\nb. two\n\nZ. z\n27. on"),
        ('<img width="1" height="1" src="https://x.example/t.gif">text', "text"),
    ],
)  # fmt: skip
def test_links_pictures_lists_and_struck_text_reach_the_reader(html: str, text: str) -> None:
    assert "\n".join(line.text for line in html_to_lines(f"<body>{html}</body>")).strip() == text


def test_a_picture_stands_where_the_customer_put_it_by_the_name_of_its_file() -> None:
    html = b'<p>Put this one</p><p><img src="cid:ii_1" alt="x"></p><p>above this one</p><img src="cid:ii_2">'
    head = 'Content-Type: image/png; name="{}"\r\nContent-ID: <{}>\r\nContent-Transfer-Encoding: base64'
    photo = base64.b64encode(PNG)
    raw = multipart(
        ("Content-Type: text/html", html),
        (head.format("Kiln 1.png", "ii_1"), photo),
        (head.format("Bowl.png", "ii_2"), photo),
        subtype="related",
    )
    assert parse(raw).text.split("\n\n") == ["Put this one", "[picture: kiln-1]", "above this one", "[picture: bowl]"]


def test_what_is_written_inside_the_element_of_a_signature_is_a_wish() -> None:
    wish = '<div class="gmail_signature">Change the title to Spring<br>Ann</div>'
    assert reply_text(html_to_lines(wish)).text == "Change the title to Spring\nAnn"
    assert reply_text(html_to_lines('<div class="gmail_signature">Ann Potter<br>+44 20 1234 567</div>')).text == ""


@pytest.mark.parametrize("replied", [False, True])
@pytest.mark.parametrize(
    "page",
    [
        '<p>Testimonial</p><div class="quote">Lovely pots, says Ann.</div>',
        "<p>The slogan should be</p><blockquote>Clay. Fire. Patience.</blockquote>",
        "<p>First text</p><hr><p>Second text</p>",
        "<blockquote>Title red please</blockquote>",
    ],
)
def test_markup_that_web_pages_have_too_is_no_history(page: str, replied: bool) -> None:
    shown = [line.text for line in html_to_lines(page)]
    assert reply_text(html_to_lines(page), replied=replied).text.split() == " ".join(shown).split()
