"""The steps of the workflow over a container: the embedded engine and the lambdas call these functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from webordinary.compose.container import Container
from webordinary.config import Config
from webordinary.mail.bounces import take_returned
from webordinary.mail.outbox import PromptOutbox
from webordinary.mail.ports import Outbox, ParserBusy
from webordinary.mail.replies.languages import catalogues
from webordinary.mail.replies.rendering import Brand
from webordinary.model.errors import Permanent
from webordinary.workflow.answering import Answering
from webordinary.workflow.definition import Step, steps
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import HourlyLimits, Reading
from webordinary.workflow.start import start_released


def answering_of(
    container: Container,
    wake_outbox: Callable[[], None] = lambda: None,
    uptime: Callable[[], timedelta] = lambda: timedelta.max,
) -> Answering:
    """The steps that end a mail; `wake_outbox` wakes the sender of replies."""
    outbox: Outbox = container.outbox
    now, profile = container.clock.now, container.profile
    if profile.replies_leave_at_once:
        prompt = PromptOutbox(outbox, container.transport, container.events, now)
        outbox, wake_outbox = prompt, prompt.deliver_written
    return Answering(
        mail_deps=container.mail_deps,
        outbox=outbox,
        pool=container.pool,
        dead_letters=container.dead_letters,
        interruptions=container.interruptions,
        events=container.events,
        now=now,
        wake_outbox=wake_outbox,
        renamed=profile.replies_leave_at_once,
        longest_awaited=profile.longest_awaited,
        uptime=uptime,
        brand=brand_of(container.config),
        public_url=container.config.public_url,
    )


MAX_LOGO_BYTES = 100_000


def brand_of(config: Config) -> Brand:
    """How replies look and which languages they know, as the settings say."""
    logo = b""
    if config.reply_logo:
        try:
            with Path(config.reply_logo).open("rb") as file:
                logo = file.read(MAX_LOGO_BYTES + 1)
        except OSError as problem:
            todo = "name another file in reply_logo, or leave it empty"
            raise Permanent(f"{config.reply_logo} cannot be read ({problem.strerror}); {todo}") from problem
        if len(logo) > MAX_LOGO_BYTES or not logo.startswith((b"\x89PNG", b"\xff\xd8\xff")):
            raise Permanent(f"{config.reply_logo} is no PNG or JPEG of at most {MAX_LOGO_BYTES:,} bytes (reply_logo)")
    known = catalogues(Path(config.translations) if config.translations else None)
    return Brand(config.reply_name, config.reply_colour, logo, config.reply_footer, config.show_cost, known)


def steps_of(container: Container, answering: Answering) -> Mapping[str, Step]:
    """The steps of the workflow by name."""
    events, now, config = container.events, container.clock.now, container.config

    def released(email_id: str) -> None:
        if container.profile.runs_engine:  # on AWS only intake and reconciler may start executions
            start_released(email_id, container.workflows, container.raw_mails)

    def came_back(email_id: str) -> None:
        if container.profile.runs_engine:
            with suppress(Permanent, ParserBusy):  # a report that cannot be read changes nothing
                returned = container.mail_deps.parser.returned(container.raw_mails.head(email_id).raw)
                if returned:
                    take_returned(returned, container.outbox, container.threads, events)

    return steps(
        Reading(
            container.mail_deps,
            container.pool.jobs,
            events,
            now,
            config.hourly_mails,
            HourlyLimits(config.hourly_project_mails, config.hourly_domain_mails),
            came_back,
            released,
            None if container.profile.runs_engine else container.raw_mails.mark_started,
        ),
        Queueing(container.pool, container.interruptions, events, now, answering.tell_held),
        answering,
    )
