"""What we say to a customer: one Answer per outcome, in our own words, before it is laid out as a mail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from webordinary.mail.parsing.commands import own_words
from webordinary.mail.parsing.wishes import plain
from webordinary.model.jobs import NO_PHOTO, NOT_UNDERSTOOD, ChangeLine, JobOutcome, JobResult
from webordinary.model.mail import Command, ParsedMail, RefusedAttachment
from webordinary.model.projects import MOST_WISHES, SenderRole

MAX_LISTED = 20
MAX_EXCERPT = 1500
SHOWN_COST_USD = 0.005


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A labelled link."""

    label: str
    url: str

    @property
    def is_web(self) -> bool:
        """Whether a click may follow it."""
        return self.url.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Listing:
    """A short list under a heading."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quotation."""

    title: str
    text: str


Block = Paragraph | Link | Listing | Excerpt


@dataclass(frozen=True, slots=True)
class Answer:
    """A headline and what follows it."""

    headline: str
    blocks: tuple[Block, ...]
    pictures: tuple[bytes, ...] = ()
    """PNG pictures of the changed page, the newest last."""
    closing: str = "write back to this mail to go on"
    actions: tuple[Command, ...] = ()
    """Commands that the reply has a button for."""


def answer_job(
    mail: ParsedMail, outcome: JobOutcome, result: JobResult, refused: Sequence[RefusedAttachment] = (), *,
    shows_cost: bool = False, role: SenderRole = SenderRole.BOTH, reader: str = "",
) -> Answer:  # fmt: skip
    """The answer to a mail whose job has settled; it offers what the role allows of its reader, a user of the site."""
    notes = (*_unused(result.unused), *_refused(refused), *_understood(mail))
    if result.question == NO_PHOTO and refused:
        return Answer("I need a word from you", (Paragraph(_PHOTO_REFUSED), *notes))
    if result.question:
        words = dict.fromkeys((result.summary, result.question))  # often one and the same
        return Answer("I need a word from you", (*map(Paragraph, words), *notes))
    match outcome:
        case JobOutcome.SUCCEEDED:
            return _succeeded(mail, result, notes, role, reader, shows_cost=shows_cost)
        case JobOutcome.CANCELLED:
            return Answer("Stopped", (Paragraph(result.summary or "Nothing was changed."), *notes))
        case JobOutcome.TIMED_OUT:
            return Answer("This took too long", (Paragraph(result.summary), *notes))
        case JobOutcome.DEAD:
            return gave_up(mail, refused)
        case JobOutcome.FAILED:
            said = Paragraph(result.summary or "It did not work, and your site is as it was before.")
            person = (_A_PERSON_LOOKS,) if result.error == NOT_UNDERSTOOD else ()
            return Answer("Nothing was changed", (said, *person, *notes))


def _succeeded(
    mail: ParsedMail, result: JobResult, notes: tuple[Block, ...], role: SenderRole, reader: str, *, shows_cost: bool
) -> Answer:
    blocks: list[Block] = [Paragraph(result.summary)]
    if result.url:
        is_public = mail.command is Command.PUBLISH or (mail.command is Command.EDIT and result.is_public)
        site = "public" if is_public else "edit"
        blocks.append(Link(f"See it on your {site} site", result.url))
    if result.preview:
        blocks.append(Link("See your public site with this conversation's changes alone", result.preview))
    pages = dict.fromkeys(title or file for file, title in result.changed_pages)
    if changed := tuple(pages) or result.changed_files:  # files only where a change has no page
        blocks.append(Listing("What changed", _bounded(changed)))
    blocks += _not_touched(result)
    if result.published:
        blocks.append(Listing("On your public site now", _bounded(_lines(result.published, reader))))
    if result.waiting and mail.command is not Command.UNDO:
        blocks.append(Listing("Not public yet", _bounded(_lines(result.waiting, reader))))
        if role.may(Command.PUBLISH):
            blocks.append(Paragraph("Reply “publish all” to publish these, too."))
    if shows_cost and result.cost_usd >= SHOWN_COST_USD:
        what = "change" if result.commit else "answer"
        blocks.append(Paragraph(f"This {what} cost ${result.cost_usd:.2f}."))
    actions = role.allowed(_actions(mail.command, result))
    blocks += (Paragraph(words) for command, words in _AFTER_A_CHANGE.items() if command in actions)
    if mail.command is Command.EDIT and not (result.commit or result.is_public):
        blocks.append(Paragraph("Nothing was changed on your site."))
    return Answer(_headline(mail.command, result), (*blocks, *notes), actions=actions)


def line_of(change: ChangeLine, reader: str) -> str:
    """A change with the person who asked for it, for this user of the site."""
    if change.asked_by is None:
        return change.words
    who = "you" if change.asked_by == reader else change.asked_by or "another person"
    return f"{change.words} (asked by {who})"


def _lines(changes: Sequence[ChangeLine], reader: str) -> tuple[str, ...]:
    return tuple(line_of(one, reader) for one in changes)


def rolled_back(
    gone: Sequence[ChangeLine],
    back: Sequence[ChangeLine],
    waiting: Sequence[ChangeLine],
    reader: str,
    role: SenderRole,
    *,
    is_edit: bool,
) -> Answer:
    """The mail to a site's people after an operator put the edit site or the public site back."""
    site = "edit" if is_edit else "public"
    said = Paragraph(f"The person who looks after your site has put your {site} site back to an earlier state.")
    left = () if set(waiting) == set(gone) else waiting
    titles = (("Not shown there any more", gone), ("Shown there again", back), ("Not public yet", left))
    blocks = [Listing(title, _bounded(_lines(some, reader))) for title, some in titles if some]
    more = (Paragraph("Reply “publish all” to publish these, too."),) if waiting and role.may(Command.PUBLISH) else ()
    return Answer("An earlier state of your site is shown again", (said, *blocks, *more))


def tell_approver(answer: Answer, approver: str) -> Answer:
    """The answer to an editor's change that another person is shown as well."""
    told = Paragraph(f"{approver} is shown this change, too, and makes it public with a yes.")
    return replace(answer, blocks=(*answer.blocks[:1], told, *answer.blocks[1:]))


NOT_PUBLIC_YET = "It is not public yet: you may ask for changes, and another person publishes them."


def ask_approval(answer: Answer, mail: ParsedMail) -> Answer:
    """The answer to an editor's change, for the person who may publish it; what is said to the editor is left out."""
    who = Paragraph(f"{mail.sender_name or mail.sender} asked for this change, and your word makes it public.")
    what, *more = (replace(one, title="What was asked") if isinstance(one, Excerpt) else one for one in answer.blocks)
    if isinstance(what, Paragraph):
        what = Paragraph(what.text.removesuffix(NOT_PUBLIC_YET).rstrip())
    return replace(answer, headline="A change waits for your yes", blocks=(what, who, *more))


def _actions(command: Command, result: JobResult) -> tuple[Command, ...]:
    if command is not Command.EDIT or not result.commit:
        return ()
    return (Command.UNDO,) if result.is_public else (Command.PUBLISH, Command.UNDO)


_FLAWS = {
    "link": "On “{}” the link to {} leads nowhere.",
    "picture": "On “{}” the picture {} is missing.",
    "alt": "On “{}” the picture {} has no words for people who cannot see it.",
    "title": "{} has lost its title “{}”.",
    "size": "“{}” has become very large: {}.",
}


def _not_touched(result: JobResult) -> tuple[Block, ...]:
    """What the comparison with the release before has shown."""
    if not result.pages_total or not (result.pages_changed or result.checks or result.is_restyled):
        return ()
    pages = "1 page" if result.pages_total == 1 else f"{result.pages_total} pages"
    counted = f"{result.pages_changed} of {pages} changed."
    restyled = (Paragraph(_RESTYLED),) if result.is_restyled else ()
    if not result.checks and restyled:
        return (Paragraph(counted), *restyled)
    if not result.checks:
        checked = " Links and pictures checked: all there." if result.is_checked else ""
        return (Paragraph(f"{counted}{checked} Nothing else was touched."),)
    flaws = tuple(_FLAWS[kind].format(page, detail) for kind, page, detail in result.checks if kind in _FLAWS)
    return (Paragraph(counted), *restyled, Listing("Please look at this", _bounded(flaws)))


_RESTYLED = "A style sheet or script that pages share changed, so other pages may look different, too."


_AFTER_A_CHANGE = {
    Command.UNDO: "Not what you meant? Reply with the one word “undo” and it is taken back.",
    Command.PUBLISH: (
        "This is on your edit site. All as it should be? Reply “publish”, and your public site shows it, too."
    ),
}


_NOTHING_PUBLISHED = {False: "Your public site is up to date", True: "Nothing was published"}


def _headline(command: Command, result: JobResult) -> str:
    """What a customer believes who reads nothing else: so it says which site is meant."""
    match command:
        case Command.PUBLISH:
            return "Published" if result.is_public else _NOTHING_PUBLISHED[bool(result.waiting)]
        case Command.UNDO if result.is_public:
            return "Taken back on your edit site and your public site"
        case Command.UNDO:
            return "Taken back on your edit site" if result.commit else "Nothing to undo"
        case _ if result.is_public:
            return "Done and published" if result.commit else "Published"
        case _:
            return "Done on your edit site" if result.commit else "Here is my answer"


_A_PERSON_LOOKS = Paragraph(
    "Write it again in other words, or wait: the person who looks after your site sees this mail and answers you here."
)


def by_operator(text: str) -> Answer:
    """What an operator writes to the customer in the conversation of a mail."""
    return Answer("About your mail", tuple(Paragraph(part) for part in text.split("\n\n") if part.strip()))


def gave_up(mail: ParsedMail, refused: Sequence[RefusedAttachment] = ()) -> Answer:
    """The honest answer when we could not do it, tried what there was to try, and a person must look."""
    said = Paragraph(
        "Your mail arrived, but something went wrong on our side while working on it. "
        "We have kept your mail and a person will look at it; you need not send it again."
    )
    return Answer("We could not do this", (said, *_refused(refused), *_understood(mail)))


def held(mail: ParsedMail, *, paused: bool) -> Answer:
    """The notice that a mail is kept and done later: the project is paused, or its day's budget is used up."""
    why = (
        "Work on your site is paused for the moment."
        if paused
        else "Today's budget for changes to your site is used up."
    )
    said = Paragraph(f"{why} Your mail is kept and will be done as soon as that is over; you need not send it again.")
    return Answer("Your mail has to wait", (said, *_understood(mail)))


def dated(at: datetime, zone: tzinfo) -> str:
    """A point in time as a customer reads it."""
    local = at.astimezone(zone)
    return f"{local:%A}, {local.day} {local:%B} {local.year}, at {local:%H:%M} ({zone})"


def later(mail: ParsedMail, result: JobResult, when: str) -> Answer:
    """The notice that a mail is kept and done on the date that it names."""
    notes = (Paragraph(f"I will do this on {when}."), Paragraph("Nothing was changed on your site."))
    drop = Paragraph("Not any more? Reply with the one word “stop”.")
    return Answer("I will do this later", (*notes, *_words(result), drop, *_understood(mail)))


def until(answer: Answer, when: str) -> Answer:
    """The answer to a change that is taken back by itself."""
    note = (
        Paragraph(f"This stays until {when}. Then I take it back by myself, and tell you."),
        Paragraph("Shall it stay for good? Reply with the one word “stop”."),
    )
    return replace(answer, blocks=(*answer.blocks[:1], *note, *answer.blocks[1:]))


def _words(result: JobResult) -> tuple[Block, ...]:
    return (Paragraph(result.summary),) if result.summary else ()


_PLACES = ("next", "second", "third")


def waiting(mail: ParsedMail, place: int) -> Answer:
    """The acknowledgement of a mail that waits; `place` counts the customer's own mails, from 1."""
    where = _PLACES[place - 1] if place <= len(_PLACES) else f"number {place}"
    said = Paragraph("Thank you, your mail has arrived. The answer follows by itself; you need not send it again.")
    return Answer(f"Your mail is {where} in line", (said, *_understood(mail)))


def too_many(mail: ParsedMail) -> Answer:
    """The notice that a person has sent more mails within an hour than are done; it is sent once in that hour."""
    said = (
        "Thank you for your mails. We do only so many for one person within an hour, and this one came after that: it "
        "was not done, and mails that you send before the next full hour will not be done either. Please send them "
        "again then. Your earlier mails are done as usual. If you did not write that many, somebody may be using your "
        "address: please tell the people who look after your site."
    )
    return Answer("That was a lot of mail at once", (Paragraph(said), *_understood(mail)))


def not_done(subjects: Sequence[str]) -> Answer:
    """The mail at the end of an hour in which its receiver sent more mails than are done."""
    said = Paragraph("The hour is over. Please send again what you still want of these:")
    return Answer("These mails of yours were not done", (said, Listing("Not done", _bounded(subjects))))


def ask_sender(subject: str, shown: ParsedMail | None, page: str = "") -> Answer:
    """The question to the registered address about a mail that nothing proves to be theirs.

    `page` is where it can be answered too; empty for nowhere.

    `shown` is None where the mail cannot be shown whole: then it cannot be confirmed. A forger may have written all of
    it: so every word of it is quoted, and nothing in it can be clicked.
    """
    about = "A mail that names you as its sender reached us. Nothing proves that you wrote it, so nothing was done."
    if shown is None:
        told = (
            "It is too long to be shown here, so it cannot be confirmed by an answer. If you wrote it: send it "
            "again in shorter mails, or ask the people who look after your site. If you did not: nothing is done."
        )
        quoted = Excerpt("Its subject begins with", _harmless(subject[:60]) or "(none)")
        return Answer("Did you write this?", (Paragraph(about), quoted, Paragraph(told)), closing="nothing was done")
    files = {0: "", 1: " It brings 1 file."}.get(shown.attachment_count, f" It brings {shown.attachment_count} files.")
    told = (
        "If you wrote it: answer this mail with the word yes, and it will be done. You have two days.\n"
        "If you did not: answer with the word no, or do nothing. Then nothing is done."
    )
    quoted = Excerpt("This is that mail, its subject first", _harmless(f"{shown.subject or '(none)'}\n{shown.text}"))
    warning = Paragraph("We never ask you to call a number or to sign in: if these words do, they are a forger's.")
    link = (Link("Or answer on this page", page),) if page else ()
    blocks = (Paragraph(about + files), quoted, warning, Paragraph(told), *link)
    return Answer("Did you write this?", blocks, closing="answer yes or no")


_LINKED = re.compile(
    r"(?<=\S)(?<!\d)[.\u3002\uff0e\uff61\u2024](?=\S)|(?<=\d)[.\u3002\uff0e\uff61\u2024](?=[^\s\d])|(?<=:)/|@|\uff20"
)
_GAP = re.compile(r"\s*\n\s*\n\s*")


def _harmless(text: str) -> str:
    """Text in which mail programs find no address to make a link of, also none without `http://`, and no gaps that
    push what we say out of sight."""
    return _GAP.sub("\n\n", _LINKED.sub(lambda found: f" {found[0]} ", text)).strip()


def not_readable(reason: str) -> Answer:
    """The answer to a mail that cannot be parsed."""
    return Answer("We could not read your mail", (Paragraph(f"Nothing was changed: {reason}."),))


def choose_project(project_ids: Sequence[str], addresses: Sequence[str], named: str = "") -> Answer:
    """The answer to somebody who has several sites and did not say which one, or `named` one that is not theirs."""
    if named:
        why = f"Your address belongs to no site “{named}”"
    elif len(project_ids) > 1:
        why = "Your address belongs to more than one site"
    else:
        why = "Your address does not belong to the site you wrote to"
    said = Paragraph(f"{why}. Nothing was changed. Write to the address of the one you mean:")
    items = tuple(f"{project}: {address}" for project, address in zip(project_ids, addresses, strict=True))
    closing = "please send your wish again to one of these addresses; an answer to this mail cannot tell us which"
    return Answer("Which site do you mean?", (said, Listing("Your sites", _bounded(items))), closing=closing)


ANOTHER_PUBLISHES = (
    "You may ask for changes of this site; another person publishes them. Please ask that person to publish."
)


def not_theirs(mail: ParsedMail, approver: str = "") -> Answer:
    """The answer to a mail that asks for what its sender's role does not allow.

    `approver` was sent the change that a `publish` is about.
    """
    if approver:
        asked = Paragraph(f"{approver} has your change already, and makes it public with a yes. You need not do more.")
        return Answer("Nothing was published", (asked, *_understood(mail)))
    said = (
        ANOTHER_PUBLISHES
        if mail.command is Command.PUBLISH
        else "You may publish the changes of this site; other people ask for them. Please write to one of them."
    )
    return Answer("Nothing was changed", (Paragraph(said), *_understood(mail)))


@dataclass(frozen=True, slots=True)
class PersonStatus:
    """What `status` knows of a person's mails."""

    lines: Sequence[str] = ()
    """The work under way."""
    wishes: Sequence[str] = ()
    asked: Sequence[str] = ()
    """Mails with a question that waits for its answer."""
    waiting: Sequence[str] = ()
    not_done: Sequence[str] = ()
    """Mails beyond the hourly limit."""
    with_person: Sequence[str] = ()
    """Mails that a person looks at, as no program could do them."""


def report_status(status: PersonStatus) -> Answer:
    """The answer to `status`: the work under way, what waits for an answer or a `publish`, and the standing wishes."""
    no_work = "Nothing is in work." if status.not_done or status.with_person else _NO_WORK
    work: Block = Listing("In work", _bounded(status.lines)) if status.lines else Paragraph(no_work)
    listed = (
        (_NOT_DONE, status.not_done), (_WITH_PERSON, status.with_person),
        (_ASKED, status.asked), (_WAITING, status.waiting),
        ("I keep in mind, for every change", status.wishes),
    )  # fmt: skip
    return Answer("Status", (work, *(Listing(title, _bounded(items)) for title, items in listed if items)))


_NO_WORK = "Nothing is in work; all your mails are answered."
_NOT_DONE = "Not done, because too many mails came within an hour: please send again what you still want"
_WITH_PERSON = "These mails wait for the person who looks after your site"
_ASKED = "I have asked you about these mails, and wait for your answer"
_WAITING = "On your edit site, and not published by you yet"


def told_wish(command: Command, wish: str, wishes: Sequence[str], *, exact_only: bool) -> Answer:
    """The answer to `remember` and `forget`; `wishes` are those that stand now."""
    said = plain(wish)
    held = [one for one in wishes if said in one.casefold()]
    kept = (
        Listing("I keep in mind, for every change", _bounded(wishes)) if wishes else Paragraph("No wish is kept now.")
    )
    if not said or (command is Command.FORGET and held):
        which = Paragraph("Reply “forget: …” with words that only one of them has.")
        return Answer("Which wish do you mean?", (kept, which) if wishes else (kept,))
    if command is Command.REMEMBER and not held:
        full = Paragraph(f"This is not kept: a site has at most {MOST_WISHES} wishes. Reply “forget: …” to drop one.")
        return Answer("Too many wishes", (full, kept))
    if command is Command.REMEMBER:
        note = (
            (Paragraph(_EXACT_ONLY),) if exact_only else (Paragraph("Reply “forget: …” with its words to drop one."),)
        )
        return Answer("I will remember that", (kept, *note))
    return Answer("Not kept any more", (kept,))


_EXACT_ONLY = (
    "Where the built-in agent edits your site, it makes exact edits only and chooses no words of its own: the wish is "
    "for agents that do. Reply “forget: …” with its words to drop it."
)


_PHOTO_REFUSED = "I cannot use what was attached to your mail. Please send your wish again with another photo."


def _unused(names: Sequence[str]) -> tuple[Block, ...]:
    """What an agent that uses photos alone has left aside."""
    if not names:
        return ()
    which = "it" if len(names) == 1 else "them"
    return (Paragraph(f"I got {', '.join(names)}, and did not use {which}: of attached files I use photos only."),)


def _refused(refused: Sequence[RefusedAttachment]) -> tuple[Block, ...]:
    if not refused:
        return ()
    items = [f"{file.name}: {file.reason}" for file in refused]
    return (Listing("Files I could not use", _bounded(items)),)


def _understood(mail: ParsedMail) -> tuple[Block, ...]:
    words = mail.text.strip() or own_words(mail.subject)
    if not words:
        return ()
    cut = words if len(words) <= MAX_EXCERPT else words[:MAX_EXCERPT] + " …"
    blocks: tuple[Block, ...] = (Excerpt("How I read your mail", cut),)
    if mail.elided:
        count = len(mail.elided.splitlines())
        lines = "1 line" if count == 1 else f"{count} lines"
        blocks = (*blocks, Paragraph(f"I left aside {lines} of quoted mail or signature."))
    return blocks


def _bounded(items: Sequence[str]) -> tuple[str, ...]:
    if len(items) <= MAX_LISTED:
        return tuple(items)
    return (*items[:MAX_LISTED], f"and {len(items) - MAX_LISTED} more")


def stopped(count: int) -> Answer:
    """The answer to `stop`."""
    if not count:
        return Answer("Nothing to stop", (Paragraph("Nothing of this conversation is in work."),))
    return Answer("Stopped", (Paragraph("What was in work for this conversation has been ended."),))
