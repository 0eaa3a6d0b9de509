"""Sentences that replace a text or set a title, in quotation marks, with their parts in any order.

Each word must have a role, else the sentence is not understood. Words that only describe are dropped; the rest must be
one of ORDERS, which tell the old text from the new one.
"""

from __future__ import annotations

import re

from webordinary.mail.parsing.small_talk import MARK

TITLE = "(?:(?:main|page|(?:web ?)?site(?:'s)?) )?title"
HEADING = "(?:main |big |sub ?)?(?:heading|headline)"
ROLES = {
    "q": MARK,
    "I": "instead of|in place of|rather than|where it (?:now )?says",
    "X": "(?:is |are )?(?:wrong|(?:not|no longer) (?:true|right|correct|valid)|out of date|outdated)",
    "t": f"(?:(?:text|wording|words) (?:of|in) the )?{TITLE}",
    "h": f"(?:(?:text|wording|words) (?:of|in) the )?{HEADING}",
    "C": "swap out|change|update|rename|replace|swap|switch|correct|fix|edit|amend|modify|exchange|reword|rewrite"
    "|revise|rephrase",
    "L": "set|adjust|alter|raise|lower|increase|reduce|turn|convert",
    "G": "make|give|use|like|want",
    "K": "let|have",
    "U": "put|write",
    "A": "add|insert",
    "M": "should|must|needs? to|ha(?:s|ve) to|ought to",
    "Z": "becomes?|(?:be )?(?:changed|replaced|corrected|updated|renamed|called)",
    "B": "be|is|are|(?:it|that)'s|says?|reads?|stands?|costs?",
    "T": "to|into|->|=>|→|:|=",
    "W": "with|by|for|as",
    "F": "from",
    "N": "(?:(?:of|on|in|at) )?(?:(?:the|our|my|its|this|that) )?(?:old |current |new )?(?:paragraph|text|sentence|line"
    "|note|notice|word|phrase|(?:list )?(?:item|entry|point)|bullet(?: point)?|list(?: entry)?|section|menu(?: item)?"
    "|table|name|price|address|date|year|time|hour|(?:(?:phone|telephone|mobile|emergency|fax) )?number"
    "|e-?mail(?: address)?|opening (?:hours|times)|caption|slogan|spelling|button(?: text)?|link|wording|part|passage"
    "|bit|quote|label|message|description|greeting|detail|fee|cost|amount|figure|age|size|street|town|city|postcode"
    "|day|version)s?",
    "E": f"of(?= (?:the|{MARK}))|the|an?(?! (?:new )?head)|our|my|your|its?|this|that|there|just|then|now|actually"
    "|simply|also|too|,|instead|(?:so|but|and)(?= (?:it|that|this|now|should|must|says|becomes)\\b)|currently|existing"
    "|following|at the moment",
}
"""One letter for each role of a word. What the text is (N) and other small words (E) change nothing."""
_WORD = re.compile("|".join(f"(?P<{role}>(?:{words}) )" for role, words in ROLES.items()), re.I)
ORDERS = (
    ("[CL]F?oTn", "change the price from “A” to “B”"),
    ("CF?oWn", "replace “A” with “B”"),
    ("F?oTn", "“A” → “B”"),
    ("[CL]TnFo", "change the price to “B” from “A”"),
    ("[CB]?oX?[CLUGK]?MB*Z?T?n", "it says “A”, but it should say “B”"),
    ("oB?Z[TW]?n", "“A” becomes “B”"),
    ("BoX?[CUGK]B?T?n", "it says “A”, write “B”"),
    ("oX[CUGK]?B?T?n", "“A” is wrong, it's “B”"),
    ("oCTn", "in the text “A” change it to “B”"),
    ("[CLUGK]o[BZ]+n", "make “A” say “B”"),
    ("[GK]oB?Z[TW]n", "have “A” changed to “B”"),
    ("Gon", "make “A” “B”"),
    # "It says “B” instead of “A”" complains of “B”.
    ("X?(?:[CL]T|A|[UGKM][UGKMB]*|)nIo", "it should be “B” instead of “A”"),
    ("[BM]*Io[UGKMB]*n", "instead of “A” write “B”"),
    ("[CL]HTn", "set the title to “B”"),
    ("MHn", "on that page shall the title “B” stand"),
    ("HMB*Z?T?n", "the title should be “B”"),
    ("[CLGK]HM?[BZ]+n", "make the title say “B”"),
    ("H[ZT]+n", "title: “B”"),
    ("GHn", "give the page the title “B”"),
    ("[CLGU]n[TW]H", "use “B” as the title"),
    ("GnH", "make “B” the title"),
)
"""o and n are the old and the new text, H a title or a heading that is named beside no other quotation."""


def read_replacement(said: str) -> tuple[str, dict[str, str]] | None:
    """What is replaced (`title`, `heading` or `text`) and the marks of its texts; None for all other sentences."""
    roles, marks, at = "", list[str](), 0
    while at < len(said):
        word = _WORD.match(said, at)
        if word is None or word.lastgroup is None:
            return None
        roles += word.lastgroup
        marks += [word[0].strip()] if word.lastgroup == "q" else []
        at = word.end()
    heads = {"t", "h"} & set(roles)
    if len(heads) > 1 or (heads and "N" in roles) or "NN" in roles or not 0 < len(marks) < 3:
        return None
    kind = {"t": "title", "h": "heading"}[heads.pop()] if heads else "text"
    roles = re.sub("[th]", "H" if len(marks) == 1 else "", re.sub("[NE]", "", roles))
    for order, _ in ORDERS:
        if re.fullmatch(re.sub("[on]", "q", order), roles):
            texts = [role for role in order if role in "on"]
            return kind, {"old" if text == "o" else "new": mark for text, mark in zip(texts, marks, strict=True)}
    return None
