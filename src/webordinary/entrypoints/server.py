"""The server process of `up`: workers' supervision, background services, SMTP intake and page, on either backend."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from webordinary.compose.container import Container, Runnable, site_url
from webordinary.compose.mailboxes import intake_of, oidc_secret, push_secret
from webordinary.config import Config
from webordinary.entrypoints.dashboard.oidc import BalancerLogin, BalancerSettings, OidcProvider, OidcSettings
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed, Example
from webordinary.entrypoints.dashboard.web import PageServer, create_app
from webordinary.entrypoints.http_intake import PushIntake, PushServer, PushSettings
from webordinary.entrypoints.running import ATTACH_ANOTHER, BUILT_IN, bound, has_model
from webordinary.entrypoints.smtp import SmtpServer, SmtpSettings
from webordinary.entrypoints.supervisor import Supervisor
from webordinary.mail.write import OutgoingFile
from webordinary.model.errors import Permanent
from webordinary.operations import onboarding, sample
from webordinary.operations.console import Console
from webordinary.operations.mails import SenderQuestions
from webordinary.pool.metrics import exposition
from webordinary.services.loop import Loop
from webordinary.services.upkeep import LOOK_SECONDS, HungWorkers, silence_allowed
from webordinary.workflow.start import start


def examples() -> tuple[Example, ...]:
    """Two mails that the built-in agent understands, and one that it does not."""
    photo = OutgoingFile(sample.PHOTO_NAME, "image/jpeg", sample.sample_photo())
    return (
        Example("Change the title", "A new title", "Change the homepage title to Autumn Glazes"),
        Example(
            "Title and photo",
            "Spring sale, photo attached",
            "Change the homepage title to Spring Sale and add the attached photo to the homepage",
            (photo,),
        ),
        Example(
            "Something it cannot do", "A summer evening", "Please make the whole site feel more like a summer evening"
        ),
    )


SEEN_SECONDS = 10.0
MOST_INTERRUPTIONS = 20


def run_server(container: Container, supervisor: Supervisor, stop: threading.Event, ready: Callable[[], None]) -> None:
    """Start the workers and serve until `stop` is set; `ready` is called when mail is taken and the page answers."""
    config, feed = container.config, EventFeed()
    container.prepare()
    supervisor.start()
    with ExitStack() as closing:
        silence = silence_allowed(config.lease_seconds, config.interrupt_grace_seconds)
        hung = HungWorkers(container.workers, supervisor, silence, container.events, supervisor.say)
        _beside(closing, Loop(hung, LOOK_SECONDS, container.clock.now))
        for service in container.background(closing, feed):
            _beside(closing, service)
        closing.callback(feed.close)  # before its loop is stopped: that may wait for an open page
        if container.profile.runs_engine:
            smtp = smtp_server(container)
            smtp.start()
            closing.callback(smtp.stop)
            if config.takes_pushed_mail:
                pushed = push_server(container)
                pushed.start()
                closing.callback(pushed.stop)
        sockets = [bound(config.host, config.port), bound(config.sites_host, config.preview_port)]
        page = PageServer(create_app(dashboard_of(container, feed)), feed, sockets)
        page.start()
        closing.callback(page.stop)
        ready()
        stop.wait()


def _beside(closing: ExitStack, service: Runnable) -> None:
    thread = threading.Thread(target=service.run, name=service.name, daemon=True)
    thread.start()
    closing.callback(thread.join, 10)
    closing.callback(service.stop)


def smtp_server(container: Container) -> SmtpServer:
    """The mail intake of the settings."""
    config = container.config
    settings = SmtpSettings(
        container.mail_deps.mailbox,
        config.smtp_host,
        config.smtp_port,
        config.max_mail_bytes,
        cert_file=config.smtp_cert_file,
        key_file=config.smtp_key_file or config.smtp_cert_file,
        proxies=config.smtp_proxies,
        sender_hourly=config.smtp_sender_hourly,
    )
    begin = partial(start, workflows=container.workflows, raw_mails=container.raw_mails)
    return SmtpServer(settings, container.accept_mail, begin, container.clock.now)


def push_server(container: Container) -> PushServer:
    """The intake of mails that are posted by HTTP."""
    config = container.config
    settings = PushSettings(
        container.mail_deps.mailbox, push_secret(config), config.max_mail_bytes, container.clock.now
    )
    sock = bound(config.push_host, config.push_port)
    return PushServer(PushIntake(settings, intake_of(container)), sock)


def _agent_note(config: Config) -> tuple[str, str] | None:
    """What the page says of the built-in agent, and the command that tries another; None where there is a model."""
    if has_model(config, os.environ):
        return None
    return f"The agent is {BUILT_IN} {ATTACH_ANOTHER}", f"webordinary agent test --data {config.data}"


def dashboard_of(container: Container, feed: EventFeed) -> Dashboard:
    """What the console shows and does, over one backend."""
    config, now = container.config, container.clock.now

    def metrics() -> str:
        return exposition(*container.metrics(), now())

    return Dashboard(
        overview=container.overview,
        feed=feed,
        send_mail=lambda raw, mail_from, recipient: _send_and_see(container, raw, mail_from, recipient),
        mail_of=lambda email_id: _unless_gone(lambda: container.raw_mails.load(email_id).raw),
        diff_of=lambda project_id, commit: onboarding.diff_of(container, project_id, commit),
        current_release=container.current_site,
        build_log_of=container.build_logs.of,
        interruptions_of=partial(container.interruptions.listing, MOST_INTERRUPTIONS),
        blob_of=lambda digest: _unless_gone(lambda: container.blobs.get(digest)),
        port=config.port,
        preview_port=config.preview_port,
        domain=config.domain,
        mailbox=config.mailbox,
        intake=container.intake_description,
        examples=() if container.profile.is_public or config.public_url else examples(),
        agent_note=_agent_note(config),
        metrics=metrics,
        clock=now,
        public_url=config.public_url,
        site_url=partial(site_url, config),
        project_settings=container.directory.projects if container.profile.data_is_local else tuple,
        console=Console(container),
        access=container.access,
        questions=SenderQuestions(container) if config.public_url else None,
        trusted_proxies=frozenset(config.trusted_proxies),
        forward_auth_header=config.forward_auth_header,
        oidc=oidc_provider(config),
        balancer=balancer_login(config),
    )


def balancer_login(config: Config) -> BalancerLogin | None:
    """The load balancer of the settings. Addresses are compared in lower case, ids as they are."""
    if not config.alb_arn:
        return None
    by_address = config.oidc_claim == "email"
    operators, viewers = (
        frozenset(name.lower() if by_address else name for name in names)
        for names in (config.console_operators, config.console_viewers)
    )
    return BalancerLogin(
        BalancerSettings(config.alb_arn, config.alb_issuer, config.alb_client_id, config.oidc_claim, operators, viewers)
    )


def oidc_provider(config: Config) -> OidcProvider | None:
    """The provider of the settings."""
    if not config.oidc_issuer:
        return None
    callback = f"{config.public_url.rstrip('/')}/login/oidc/callback"
    secret, claim = oidc_secret(config), config.oidc_claim
    return OidcProvider(OidcSettings(config.oidc_issuer, config.oidc_client_id, secret, claim, callback))


def _send_and_see(container: Container, raw: bytes, mail_from: str, recipient: str) -> str:
    """Send a mail and wait until the overview shows it, for SEEN_SECONDS at most: the sender opens its page next."""
    email_id = container.send_mail(raw, mail_from, recipient).email_id
    deadline = container.clock.monotonic() + SEEN_SECONDS
    while container.clock.monotonic() < deadline and container.overview.mail(email_id) is None:
        time.sleep(SEEN_SECONDS / 50)
    return email_id


def _unless_gone(read: Callable[[], bytes]) -> bytes | None:
    with suppress(Permanent):
        return read()
    return None
