"""Remarks: what an owner tells about the reason for a wish, and that changes nothing about it.

A sentence is a remark only if it tells of the past and holds no word that could wish, limit or take back. It is
skipped before the first wish alone: after one, `My wife hated the idea.` takes it back.
"""

from __future__ import annotations

import re

from webordinary.adapters.agents.builtin.colours import colour_of
from webordinary.mail.parsing.small_talk import MARK

_SUBJECT = (
    r"(?:i|we|he|she|they|(?:everybody|everyone|nobody|people|customers)"
    r"|(?:my|our|the|a|an|many|some|most|several|his|her|their)(?: [a-z'-]+){1,3}?"
    r"|(?!it|this|that|these|those|which|where|one|all|every|any|some)(?:[a-z-]{2,}s|summer|winter|spring|autumn))"
)
_ADVERB = r"(?: (?:just|finally|recently|already|always|really|all|only just))?"
_PAST = (
    r" (?:[a-z]{2,}ed|broke|went|got|took|came|made|had|met|saw|bought|found|spoke|grew|lost|won|began|fell|burnt|heard"
    r"|wrote|ran|built|held|spent|caught|sent|gave|paid|brought|rose|hurt|sat|felt|knew|understood|blew|froze|slept|drove|taught"
    r"|gone|broken|grown|fallen|come|become|been)\b"
)
_PRESENT = r"(?:'re|'m| (?:is|are|am|was|were|has|have|do|get|go|come|cost|keep|take|start|[a-z]{2,}s))\b"
_TELLS_OF_THE_PAST = re.compile(
    rf"(?:(?:yesterday|last (?:night|week|weekend|month|year|spring|summer|autumn|winter)"
    r"|this (?:morning|week))(?: ,)? )?"
    rf"(?:{_SUBJECT}(?:'ve| have| has)?{_ADVERB}{_PAST}|(?:i|we|there) (?:was|were)\b)(?: [a-z'-]+){{0,10}}",
    re.I,
)
_SAYS_SOMETHING = re.compile(
    rf"{_SUBJECT}(?:{_ADVERB}| never| no longer)(?:{_PAST}|{_PRESENT})(?: [a-z'-]+){{0,10}}", re.I
)
_LIMITS = re.compile(
    rf"\d|{MARK}|\b(?:only(?! just)|except|unless|if|when|whenever|until|till|before|after|from|but|not|no(?! longer)"
    r"|nothing|without|instead|yet|still|however|though|although|while|during|starting|maybe|perhaps|later|soon|tomorrow"
    r"|for(?! (?:me|us|it)\b)|temporar(?:y|ily)|trial|test|sale|lasts?(?! (?:week|month|year|night|summer|winter))"
    r"|in case|minds?|members?|regulars?|discounts?|both|same|others?|else|too(?! [a-z])|also|and|or|then"
    r"|[a-z]+n't|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|should|must|will|shall|would|could|can|might|needs?|wants?|wish|hope|please|supposed|[a-z]+'[dl]l?"
    r"|titles?|head(?:ing|line|er)s?|pages?|homepage|(?:web ?)?sites?|texts?|paragraphs?|sentences?|words?|wording"
    r"|spelling|spelled|spelt|typos?|lists?|items?|links?|buttons?|menu|footer|logo|fonts?|backgrounds?|colou?rs?"
    r"|photos?|pictures?|images?|hours|address|phone|telephone|numbers?|e-?mails?|names?|dates?|times|map|form|video|caption"
    r"|wrong|mistakes?|errors?|missing|nicer|better|bigger|smaller|larger|(?:in )?bold|italics?)\b",
    re.I,
)
"""Whatever limits a wish, sets a time for it, wishes, or speaks of a part of the site."""
_MAY_BE_A_WISH = re.compile(
    r"\b(?:asked(?! (?:me|us)\Z)|changed(?!\Z)|(?:want|need|wish|hop|request|expect|agre|disagre|decid|plann|intend"
    r"|promis|suggest|lik|lov|hat|preferr|refus|reject|fail|avoid|skipp|hesitat|doubt|warn|advis|exclud|except|complain"
    r"|object|stay|remain|ignor|doubl|halv|tripl|updat|remov|delet|replac|add|renam|edit|correct|fix|publish|stopp|clos|open"
    r"|end|cancell?|retir|delay|postpon|paus|finish|dropp|discontinu|introduc|launch|confus|imagin)ed|meant|thought|said|told|forgot|tried|kept|sold|quit"
    r"|gave (?:up|away)|gone|against|doubts?|jok(?:e|ed|ing)|got rid|(?:came|put) up with|found [a-z ]+ too"
    r"|it|ones?|them|everything|about|had to|ideas?|complaints?|(?!morning|wedding|spring|thing)[a-z]{2,}ing"
    r"|out of|off|forward|(?<!came )back|online|stock|available"
    r"|(?:moved|switched|shifted|went|raised|lowered|reduced|increased|grew|extended) (?:[a-z]+ ){0,3}?(?:in)?to)\b",
    re.I,
)
"""News that the site may have to tell, and what the owner has in mind."""
_AND = re.compile(r" (?:, )?and (?=i |we |he |she |they |my |our |the )", re.I)
_OPENINGS = re.compile(
    r"(?:[Tt]his is|I am|I'm) [A-Z][a-z]+(?: [A-Z][a-z]+)?(?: here| again| (?:from|of|at) (?:the|our|my) [a-z]+)?"
    r"|(?i:(?:(?:i|we) )?(?:just |have |'ve )*"
    r"(?:noticed|found|spotted|saw|made) (?:a|another)(?: small| little| silly| stupid)? (?:mistake|typo|error))"
    r"|(?i:(?:(?:i|we) )?(?:hope|trust) (?:you|your|the (?:baby|family|children|kids)|all|everyone|everybody)"
    r"(?: [a-z]+){0,5} (?:is|are|keep) (?:well|fine|ok|okay))"
)
"""Sentences that only begin a mail."""
_REASONS = (
    re.compile(r"(?P<wish>.+?)(?: ,)? because (?P<reason>[^,]+)"),
    re.compile(r"(?P<wish>.+?)(?: ,)? (?:because of|due to) (?P<cause>[^,]+)"),
    re.compile(r"(?P<wish>.+?) , (?:as|since) (?P<clause>[^,]+)"),
    re.compile(r"(?P<wish>.+?) since (?P<clause>(?:I|i|we|he|she|they) [^,]+)"),
    re.compile(r"(?P<wish>.+?) as (?P<clause>(?:nobody|everybody|everyone|people|customers) [^,]+)"),
    re.compile(r"(?:because|since|as|now that) (?P<clause>[^,]+) ,(?: so)? (?P<wish>.+)", re.I),
    re.compile(r"(?:because of|due to) (?P<cause>[^,]+) , (?P<wish>.+)", re.I),
    re.compile(r"(?P<clause>[^,]+?) ,? ?so (?P<wish>(?!that\b).+)", re.I),
    re.compile(r"(?P<told>[^,]+) , (?:and )?(?P<wish>.+)", re.I),
)


def is_remark(said: str) -> bool:
    """Whether a sentence tells of the owner's past and asks for nothing: `We moved last week`."""
    return _OPENINGS.fullmatch(said.strip()) is not None or all(map(_tells_of_the_past, _AND.split(said.strip())))


def _tells_of_the_past(said: str) -> bool:
    return _TELLS_OF_THE_PAST.fullmatch(said) is not None and not _MAY_BE_A_WISH.search(said) and _is_harmless(said)


def without_reason(said: str) -> str:
    """The wish of a sentence that gives a reason for it as well; empty if it gives none."""
    for pattern in _REASONS:
        found = pattern.fullmatch(said.strip())
        if found is not None and _gives_a_reason(found.groupdict()):
            return f" {found['wish']} "
    return ""


def _gives_a_reason(found: dict[str, str]) -> bool:
    if told := found.get("told"):
        return is_remark(told)
    if clause := found.get("clause"):
        return _SAYS_SOMETHING.fullmatch(clause) is not None and _is_harmless(clause)
    return _is_harmless(found.get("reason") or found["cause"])


def _is_harmless(said: str) -> bool:
    words = said.split()
    named = any(word[0].isupper() and word != "I" and not word.startswith("I'") for word in words[1:])
    return len(words) >= 2 and not named and not _LIMITS.search(said) and not any(map(colour_of, words))
