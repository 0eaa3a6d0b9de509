"""What each line of a mail body is: a table of patterns, one letter per kind of line.

The letters: t text, e empty, q quote, b the line that begins an embedded mail ("On … wrote:"), h a header
line of an embedded mail, d a delimiter after which all is history, f the head of a forwarded mail, s the
signature of a device, g a mark before a signature, r a ruler.
"""
# ruff: noqa: RUF001  other alphabets are the point of these tables

from __future__ import annotations

import re

MAX_LINE = 400
"""A longer line is a paragraph."""

_WROTE = (
    r"(?:wrote|writes|said|schrieb|a écrit|escribi[oó]|ha scritto|escreveu|schreef|skrev|kirjoitti|yazdı|írta"
    r"|napsal(?:\(a\)|a)?|napisa[łl](?:\(a\)|a)?|pisze|a scris|написа[лв](?:\(а\)|а)?|geschreven|写道|작성)"
)
_DATED = r"(?=.{0,200}(?:\d{4}|\d{1,2}[:.]\d{2}|\d{1,2}[/.-]\d{1,2}[/.-]|@))"
"""Without it, "On the homepage it wrote:" would be taken for history."""
_MAIL = r"<\s?(?:mailto:)?[^<>\s@]{1,80}@[^<>\s@]{1,200}\s?>"

EMPTY = re.compile(r"[\s\u00a0\u200b\u200c\u200d\ufeff]*$")
QUOTE = re.compile(r"\s*(?:>|&gt;|\uff1e)")
SIGNATURE_MARK = re.compile(r"(?:--|—|–|_{2}|_{20,})\s*$")
RULER = re.compile(r"\s*[-=_*]{4,}\s*$")
FORWARD = re.compile(
    r"(?i)^[\s*_-]{0,40}(?:begin )?"
    r"(?:forwarded message|weitergeleitete nachricht|message (?:transf|réexp)\w+)[\s:*_-]*$"
)

DELIMITERS = re.compile(
    r"""(?ix)^[\s*_]{0,4}(?:
      -{2,}[\s*]*[^-]{0,30}(?:original\ (?:message|appointment)|nachricht|ursprüngliche\ e-?mail
        |message\ (?:d'origine|original)|mensaje\ original|mensagem\ original|messaggio\ originale
        |bericht|meddelelse|meddelande|melding|viesti|wiadomość|zpráva|üzenet|сообщение|reply\ message
        |原始邮件|元のメッセージ)[^-]{0,30}-{2,}.*
      |-{3,}\s?[^-]{2,60}\b(?:wrote|schrieb)\s?-{3,}
      |-{3,}\s?on\ .{4,100}\ wrote\s?-{3,}
      |.*\breply\ above\ this\ line.*
      |[-=\#~_\s]{0,40}(?:reply|respond|write|type|enter).{0,30}\ (?:above|between)\ th(?:is|e|ese)\ lines?.*
    )\s*$"""
)

BEGINNINGS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        # English, and the languages that follow its shape: a preposition, a date, a name, a verb
        r"^[\s*]{0,4}on\b" + _DATED + r".{4,300}\b(?:sent|" + _WROTE + r")\s*[:.]?[\s*]{0,8}$",
        r"^[\s*]{0,4}(?:at|in|le|el|il|am|em|op|den|på|dne|dnia|w dniu|pe data de|в)\b"
        + _DATED
        + r".{4,300}\b"
        + _WROTE
        + r"\b.{0,80}:?[\s*]{0,8}$",
        # any language: an address with a verb, or a time with an address, and a colon
        r"^.{0,200}" + _MAIL + r".{0,40}" + _WROTE + r".{0,40}[:：]?\s*$",
        r"^.{0,100}\d{1,2}[:.]\d{2}.{0,160}" + _MAIL + r"[^<>]{0,30}[:：]\s*$",
        r"^.{2,100}\b" + _WROTE + r"\b.{0,80}\d{4}.{0,80}[:：][\s*]{0,8}$",
        r"^[\s*]{0,4}\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.{0,160}" + _MAIL + r".{0,20}:?\s*$",
        r"^[\s*]{0,4}(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .{4,80}" + _MAIL + r".{0,20}:?\s*$",
        r"^\s*\d{4}年\d{1,2}月\d{1,2}日.{0,200}[:：]?\s*$",
        r"^[\s*]{0,4}(?:quoting|zitat von|citando|citing|citat)\b.{2,200}:\s*$",
        r"^[\s*]{0,4}from:?\s.{2,100}\b(?:sent|date)\s?:.{4,200}$",
    )
)
WRAPPED_BEGINNING = re.compile(
    r"^[\s*]{0,4}(?:(?:on|at|am|le|el|il|em|op|den|på|dne|dnia|w dniu|pe data)\b.*\d"
    r"|\w{2,3}[.,]? \d{1,2}\b|\d{1,2}[. ]|\d{4}[-/.]\d|.{0,60}<\S+@)",
    re.I,
)
SHARED_LINE = re.compile(r"(?<=\S)[ -]{0,5}\bOn \w{3,9}, \w{3,9} \d{1,2}, \d{4}.{0,200}\bwrote:\s*$")
"""A reply that shares its line with the "On … wrote:" that follows it."""

HEADER = re.compile(
    r"""(?ix)^[\s*>|]{0,4}(?:
      from|sent|to|cc|date|subject|reply-?to|organization|importance
      |von|gesendet(?:\ am)?|an|datum|betreff|antwort(?:\ an)?|gesendet\ am
      |de|envoyé(?:\ le|\ par)?|à|objet|date\ d'envoi|répondre\ à
      |enviado(?:\ el|\ em)?|para|asunto|assunto|fecha|data
      |da|inviato|a|oggetto|van|verzonden|aan|onderwerp
      |fra|sendt|til|emne|från|skickat|till|ämne|lähettäjä|lähetetty|vastaanottaja|aihe|päivämäärä
      |message\ du|copie\ à|sujet|od|wysłano|wysłane|do|temat|odesláno|komu|předmět
      |kimden|gönderildi|kime|konu|gönderme\ tarihi
      |от|отправлено|кому|тема|дата|发件人|发送时间|收件人|主题|差出人|送信日時|宛先|件名
    )\ ?[\s*]*[:：][\s*]*(?:\S.*)?$"""
)

_REST = r"[^,;!?]{2,70}"
DEVICE = re.compile(
    rf"""(?ix)^[\s*<(]{{0,4}}(?:
      (?:sent|shared|written|typed)\ (?:from|with|via|using|by|on)\ {_REST}
      |from\ my\ (?:iphone|ipad|android){_REST}?
      |get\ \[?outlook\ for\ {_REST}|von\ mein(?:em|er)\ {_REST}|gesendet\ (?:von|mit)\ {_REST}
      |diese\ nachricht\ wurde\ von\ mein{_REST}|envoyé\ (?:de(?:puis)?|à\ partir\ de)\ {_REST}
      |enviado\ (?:desde|do|a\ partir\ do|de)\ {_REST}|inviato\ da\ {_REST}
      |(?:télécharger|obtener)\ outlook\ {_REST}
      |(?:verzonden|verstuurd)\ (?:vanaf|met|vanuit|via)\ {_REST}|skickat\ från\ {_REST}|sendt\ fra\ {_REST}
      |lähetetty\ {_REST}|wysłan[eo]\ z\ {_REST}|отправлено\ (?:с|из)\ {_REST}
      |i(?:phone|pad)(?:'?\w+)?\ gönderildi|i(?:phone|pad)から送信
      |[从從]我的.{{1,30}}[发發傳]送|发自我的.{{1,40}}
    )(?:<http[^<>]{{1,200}}>)?[\s*.>)]{{0,8}}$"""
)

# The first pattern that fits names the line.
_TABLE = (
    ("e", (EMPTY,)),
    ("q", (QUOTE,)),
    ("g", (SIGNATURE_MARK,)),
    ("r", (RULER,)),
    ("f", (FORWARD,)),
    ("d", (DELIMITERS,)),
    ("b", BEGINNINGS),
    ("s", (DEVICE,)),
    ("h", (HEADER,)),
)


def letter_of(line: str) -> str:
    """The kind of one line."""
    line = line.strip()
    if len(line) > MAX_LINE:
        return "q" if QUOTE.match(line) else "t"
    return next((letter for letter, patterns in _TABLE if any(p.match(line) for p in patterns)), "t")


def begins_mail(line: str) -> bool:
    """Is this an "On … wrote:"?"""
    return len(line) <= MAX_LINE and any(pattern.match(line.strip()) for pattern in BEGINNINGS)
