"""What `webordinary doctor` looks at, put together from the settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from webordinary.adapters.agents.claude_access import why_no_access
from webordinary.adapters.files import checks as local
from webordinary.adapters.files.backup import DATABASE
from webordinary.adapters.files.screenshots import PROGRAMS, find_browser
from webordinary.adapters.files.system import SystemClock
from webordinary.adapters.mailboxes import ImapMailbox
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.recovery import HighWaterMark, mails_without_row
from webordinary.compose.backends import require_boto3
from webordinary.compose.backup import unknown_sites
from webordinary.compose.container import AWS, Container
from webordinary.compose.embedded import EmbeddedContainer, open_embedded
from webordinary.compose.mailboxes import imap_settings, relay_password
from webordinary.compose.sandbox import why_no_sandbox
from webordinary.config import Config
from webordinary.mail.addresses import ascii_address
from webordinary.mail.dmarc import Dns, DnsFailed, dmarc_record, is_strict, organisation
from webordinary.model.checks import Check, CheckResult, CheckRun, Verdict, broken, doubtful, good, run_checks
from webordinary.model.errors import Transient, WebOrdinaryError
from webordinary.model.projects import Project
from webordinary.operations import onboarding, sample
from webordinary.operations.onboarding import origins_of
from webordinary.operations.site_settings import lacks_publisher

MOST_PROJECTS = 50
MOST_LOOKED_UP = 20
"""Of more sites only these are looked at one by one."""
MOST_SECONDS_AHEAD = 120
REMOVE_TRUST = "remove trusted_peers from the settings unless this is a trial on your own machine; see docs/security.md"


def checks_of(config: Config) -> Iterator[Check]:
    """Everything that can be looked at before a service is opened."""
    if config.backend != AWS or config.data.exists():
        yield Check("data folder", partial(local.look_at_folder, config.data))
    yield Check("git", local.look_at_git)
    yield Check("jail", partial(_sandbox, config))
    yield Check("pictures", partial(_pictures, config))
    yield Check("agent", partial(_agent, config))
    if config.backend == AWS and not config.aws_endpoint:
        yield Check("settings", partial(_settings, config))
    if config.backend != AWS:
        yield Check("database", partial(_database, config.data / "webordinary.db"))
        yield Check("replies", partial(_replies, config))
        if config.imap_host:
            yield Check("mailbox", partial(_imap, config))


def ports_checks(config: Config, *, running: bool) -> Iterator[Check]:
    """Where `up` answers, or could."""
    if config.backend == AWS and not (running or config.aws_endpoint):
        return  # the page of a system on AWS runs on any machine
    look = local.look_at_listener if running else local.look_at_port
    for name in ("port", "preview_port", *(("smtp_port",) if config.backend != AWS else ())):
        if getattr(config, name):
            host = config.smtp_reachable if name == "smtp_port" else config.host_of(name)
            yield Check(name, partial(look, host, getattr(config, name), name))


def projects_checks(services: Container) -> Iterator[Check]:
    """Can each site's repository be read and written? The clock must not go backwards either."""
    projects = services.directory.projects()
    for project in projects[:MOST_PROJECTS]:
        yield Check(f"repository of {project.project_id}", partial(_repository, services, project))
        if lacks_publisher(services, project.project_id):
            yield Check(f"people of {project.project_id}", partial(_without_publisher, project.project_id))
    if len(projects) > MOST_PROJECTS:
        words = f"only {MOST_PROJECTS} of {len(projects)} sites are looked at"
        yield Check("other sites", lambda: doubtful(words, "`webordinary project show NAME` shows each"))
    if services.config.backend != AWS:
        yield Check("mail files", partial(_mail_files, services))
        yield Check("senders", partial(_senders, services))
        yield Check("clock", partial(_clock, services))


def _without_publisher(project_id: str) -> CheckResult:
    words = f"no person may publish {project_id}: its changes stay on the edit site"
    return doubtful(words, f"`webordinary project role {project_id} MAIL both` lets one publish")


def _database(file: Path) -> CheckResult:
    """Is the database whole, and does it hold all that was ever committed?"""
    found = local.look_at_database(file)
    if found.verdict is not Verdict.OK:
        return found
    try:
        with closing(Database(file)) as database:
            HighWaterMark(file).check(database)
    except WebOrdinaryError as problem:
        return broken(str(problem), "docs/operations.md, section Damage, tells how")
    return found


def _mail_files(services: Container) -> CheckResult:
    """Do the tables know all mails and sites whose files are here?"""
    data = services.config.data
    with closing(Database(data / DATABASE)) as database:
        mails = sum(1 for _ in mails_without_row(database, data))
    if sites := unknown_sites(services.directory.projects(), data):
        return doubtful(f"releases without settings: {', '.join(sites)}", "`webordinary project add` adds a site again")
    if mails:
        words = f"{mails} mails were stored and are in no table"
        return doubtful(words, "their senders send them again; or stop `up`, and `webordinary recover` takes them up")
    return good("every mail file has its row")


def _settings(config: Config) -> CheckResult:
    if "localhost" in (config.domain, config.mailbox.rpartition("@")[2]):
        words = f"mailbox {config.mailbox} and domain {config.domain} are those of one machine"
        return broken(words, "set WEBORDINARY_MAILBOX and WEBORDINARY_DOMAIN as you deployed them")
    return good(f"customers write to {config.mailbox}, sites end in {config.domain}")


def _sandbox(config: Config) -> CheckResult:
    reason = why_no_sandbox()
    if not reason:
        return good("outside agents and builds run in a sandbox")
    if config.allow_unjailed_agents:
        return doubtful(f"outside agents and builds run without a sandbox: {reason}", "see docs/security.md")
    return doubtful(f"only the built-in agent and plain sites work here: {reason}", "see docs/security.md")


def _pictures(config: Config) -> CheckResult:
    if config.pictures == "off":
        return good("no pictures of changed pages are taken, as the settings say")
    if find_browser() is None:
        words = "replies show no pictures: there is no browser"
        return doubtful(words, f"install one of {', '.join(PROGRAMS)}, or set pictures = off")
    if reason := why_no_sandbox():
        words = f"replies show no pictures: the browser runs in a sandbox only, and none works here: {reason}"
        return doubtful(words, "see docs/security.md, or set pictures = off")
    return good("changed pages are shown in pictures, taken in a sandbox")


def _agent(config: Config) -> CheckResult:
    if config.agent in ("builtin", "acp", "command"):
        return good(f"new sites are edited by the agent {config.agent}")
    missing = "" if find_spec("claude_agent_sdk") else "pip install 'webordinary[claude]'"
    missing = missing or ("" if config.agent_key_command else why_no_access(os.environ))
    if not missing:
        return good("new sites are edited by the agent claude")
    words = "the agent claude is not ready"
    if config.agent == "claude":
        return broken(words, missing)
    return doubtful(f"{words}: sites are edited by the built-in one", missing)


def _replies(config: Config) -> CheckResult:
    if not config.relay_host:
        return doubtful(f"replies stay in {config.data / 'outbox'}", "name a mail server in relay_host to send them")
    login = (config.relay_user, relay_password(config))
    return local.look_at_relay(config.relay_host, config.relay_port, *login, starttls=config.relay_starttls)


def _imap(config: Config) -> CheckResult:
    with closing(ImapMailbox(imap_settings(config))) as mailbox:
        try:
            waiting = mailbox.count_waiting(SystemClock().now())
        except Transient as problem:
            return broken(str(problem), "correct the settings imap_…; see docs/mail.md")
    return good(f"the mailbox at {config.imap_host} can be read; {waiting} mails wait in it")


def _repository(services: Container, project: Project) -> CheckResult:
    origins_of(services).check(project)
    return good(f"{project.repo} can be read and written")


def why_trust_is_unsafe(services: Container) -> str:
    """A warning where `trusted_peers` stands beside a site that is not the sample; empty if all is well."""
    others = [p.project_id for p in services.directory.projects() if p.project_id != sample.PROJECT_ID]
    if not (services.config.trusted_peers and others):
        return ""
    named = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return f"trusted_peers lets every program that reaches the mail port write as any customer of {named}"


def _senders(services: Container) -> CheckResult:
    if warning := why_trust_is_unsafe(services):
        return doubtful(warning, REMOVE_TRUST)
    if services.config.trusted_peers:
        return good("every sender at trusted_peers is believed, and can change the sample only")
    if ids := services.config.trusted_authserv_id:
        return good(f"senders are proven by {', '.join(ids)}, else by a DKIM signature that is checked here")
    return good("senders are proven by a DKIM signature that is checked here")


def shown_checks(services: EmbeddedContainer) -> Iterator[Check]:
    """Does each edit site show something, and the newest main?"""
    for project in services.directory.projects():
        yield Check(f"edit site of {project.project_id}", partial(_is_shown, services, project))


def _is_shown(services: EmbeddedContainer, project: Project) -> CheckResult:
    site, health = project.project_id, onboarding.health_of(services, project)
    if health.tone == "good":
        return good(f"the edit site of {site} shows its newest build")
    words = f"edit site of {site}: {health.words}"
    if not health.log:
        return doubtful(words, f"`webordinary {'resume' if project.paused else 'release rebuild'} {site}`")
    words = f"{words}. {health.log.splitlines()[0][:200]}"
    advice = f"`webordinary project show {site}` has its log; mend it, then run `webordinary release rebuild {site}`"
    return broken(words, advice) if health.tone == "bad" else doubtful(words, advice)


def sender_checks(services: EmbeddedContainer) -> Iterator[Check]:
    """Can the mail of each entitled sender prove itself? One look for each domain."""
    if services.config.trusted_peers:  # a trial on localhost: every sender is believed
        return
    domains = sorted({ascii_address(sender.address).rpartition("@")[2] for sender in services.directory.senders()})
    for domain in domains[:MOST_LOOKED_UP]:
        yield Check(f"senders at {domain}", partial(_can_prove, domain, services.dns))
    if len(domains) > MOST_LOOKED_UP:
        words = f"only {MOST_LOOKED_UP} of {len(domains)} domains of senders are looked at"
        yield Check("other senders", lambda: doubtful(words, "mail of the others is checked as it comes"))


def _can_prove(domain: str, dns: Dns) -> CheckResult:
    """What the DNS tells; the selectors of DKIM keys cannot be listed, so the first mail shows whether it signs."""
    try:
        record = dmarc_record(domain, dns)
    except DnsFailed as problem:
        return doubtful(f"not known: the DNS did not answer ({problem})", "look at the network, or set dns_servers")
    if record is None:
        words = f"no DMARC record: a mail proves itself only if {domain} itself signed it; else its sender is asked"
        return doubtful(words, f"let the owner of {domain} publish a DMARC record and sign with DKIM")
    signer = f"{domain} itself" if is_strict(record) else f"{organisation(domain) or domain} or a domain below it"
    return good(f"DMARC with p={record.get('p', 'none')}: a mail proves itself if {signer} signed it with DKIM")


def _clock(services: Container) -> CheckResult:
    newest = services.overview.recent_mails(None, 1)
    ahead = (newest[0].received_at - services.clock.now()).total_seconds() if newest else 0.0
    if ahead > MOST_SECONDS_AHEAD:
        return broken(f"the newest mail came {ahead:.0f} s in the future", "set this machine's clock by a time server")
    return good("the clock has not gone backwards")


def run_doctor(config: Config, *, running: bool) -> Iterator[CheckRun]:
    """Run every check that fits the settings."""
    yield from run_checks([*checks_of(config), *ports_checks(config, running=running)])
    if config.backend == AWS:
        require_boto3()
        from webordinary.compose.aws_checks import examine_account  # noqa: PLC0415 - an extra, and slow to import

        yield from examine_account(config)
    elif (config.data / "webordinary.db").is_file():
        yield from _examine_sites(config)


def _examine_sites(config: Config) -> Iterator[CheckRun]:
    try:
        with open_embedded(config) as services:
            yield from run_checks([*projects_checks(services), *shown_checks(services), *sender_checks(services)])
    except WebOrdinaryError as problem:
        yield CheckRun("sites", broken(f"the sites cannot be listed: {problem}", "mend what is above first"))
