"""Config: one frozen object, validated as it is made; only `Config.load` reads file and environment."""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints
from urllib.parse import urlsplit

from webordinary.jobs.sandbox_policy import private_part
from webordinary.model.errors import Permanent
from webordinary.model.projects import AGENTS
from webordinary.setting_rules import (
    MAX_TEXT,
    SettingRule,
    absolute_path,
    address,
    choice,
    colour,
    correspondent,
    file_path,
    flag,
    folder,
    host_name,
    listen_address,
    number,
    server_address,
    text,
    web_address,
    words,
)

PREFIX = "WEBORDINARY_"
FILE_NAME = "webordinary.toml"
MAX_FILE_BYTES = 1_000_000
MIN_PUSH_SECRET = 32
PLATFORM_VARIABLES = {
    "AWS_REGION": "aws_region",
    "AWS_ACCOUNT_ID": "aws_account",
    "AWS_ENDPOINT_URL": "aws_endpoint",
    "ACTIVE_JOBS_TABLE": "aws_jobs_table",
    "OWNERSHIP_TABLE_NAME": "aws_ownership_table",
    "UNCLAIMED_QUEUE_URL": "aws_unclaimed_url",
    "WORKSPACE_PATH": "data",
}
"""Read too, under the names that a container finds; our own variables win over them."""
NOT_SETTINGS = frozenset({"worker"})  # marks the programs that a worker started


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong setting: which, where it was said, and what would be right."""

    field: str
    source: str
    message: str

    def __str__(self) -> str:
        return f"{self.field} ({self.source}): {self.message}"


class ConfigError(Permanent):
    """The settings cannot be used; carries every problem, so that one look is enough."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join(["wrong settings", *map(str, self.problems)]))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field may be and what it is for."""

    rule: SettingRule
    about: str


_PORT = number(0, 65535)
_SECONDS = number(0.01, 604_800, whole=False)
_PATHS = words(100, absolute_path, "absolute paths")
_TRUST_IS_LOCAL = (
    "is for the sample and for trying things out on localhost: every mail from these hosts counts as written by the "
    "person in its From, forged or not. Remove trusted_peers; a mail then needs a DKIM signature of its sender's "
    "domain, or the word of the provider in trusted_authserv_id"
)
_LOAD_BALANCER = re.compile(r"arn:aws[a-z-]*:elasticloadbalancing:[a-z0-9-]+:\d{12}:loadbalancer/app/[\w-]+/[0-9a-f]+")
_AGENTS = choice(*AGENTS)
_PEERS = words(100, ip_address, "IP addresses")
_HOSTS = words(20, host_name().read, "host names")
_SERVERS = words(5, server_address, "IP addresses, such as 127.0.0.1 or 127.0.0.1:5353")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting there is; docs/configuration.md has a row for each."""

    data: Annotated[Path, Setting(folder(), "folder that holds all that must survive")] = Path("data")
    host: Annotated[str, Setting(listen_address(), "address that the page listens on")] = "127.0.0.1"
    sites_host: Annotated[str, Setting(listen_address(), "address that the sites' port listens on")] = "127.0.0.1"
    public_url: Annotated[
        str, Setting(web_address(), "address of the page on the net; its scheme and port hold for the sites too")
    ] = ""
    trusted_proxies: Annotated[
        tuple[str, ...], Setting(_PEERS, "web proxies in front of us, whose X-Forwarded-For is believed")
    ] = ()
    forward_auth_header: Annotated[
        str, Setting(text(), "header in which a trusted proxy names the user it has signed in; empty: none")
    ] = ""
    oidc_issuer: Annotated[
        str, Setting(web_address(), "provider of OpenID Connect at which users of the console may sign in; empty: none")
    ] = ""
    oidc_client_id: Annotated[str, Setting(text(), "id of this console at that provider")] = ""
    oidc_client_secret: Annotated[str, Setting(text(), "secret of this console at that provider")] = field(
        default="", repr=False
    )
    oidc_client_secret_file: Annotated[
        str, Setting(file_path(), "file that holds this secret, read at each sign-in")
    ] = ""
    oidc_claim: Annotated[
        str, Setting(choice("email", "sub"), "claim of the provider's token that is the name of the user here")
    ] = "email"
    alb_arn: Annotated[
        str, Setting(text(), "on AWS: ARN of the load balancer that signs the console's users in; empty: none")
    ] = ""
    alb_issuer: Annotated[str, Setting(web_address(), "provider at which that load balancer signs them in")] = ""
    alb_client_id: Annotated[str, Setting(text(), "id of that load balancer at this provider")] = ""
    console_operators: Annotated[
        tuple[str, ...], Setting(words(100), "users behind that load balancer who may act, by oidc_claim")
    ] = ()
    console_viewers: Annotated[tuple[str, ...], Setting(words(100), "users behind it who only look")] = ()
    port: Annotated[int, Setting(_PORT, "port of the page; 0 takes a free one")] = 8080
    preview_port: Annotated[int, Setting(_PORT, "port of the sites, for browsers that do not know *.localhost")] = 8081
    smtp_port: Annotated[int, Setting(_PORT, "port of the mail intake; 0 takes a free one")] = 2525
    smtp_host: Annotated[str, Setting(listen_address(), "address that the mail intake listens on")] = "127.0.0.1"
    smtp_cert_file: Annotated[
        str, Setting(file_path(), "certificate chain for STARTTLS, read again when it changes; empty: no STARTTLS")
    ] = ""
    smtp_key_file: Annotated[str, Setting(file_path(), "key of that certificate; empty: it is in the same file")] = ""
    smtp_proxies: Annotated[
        tuple[str, ...], Setting(_PEERS, "hosts that hand connections on to the mail intake with the PROXY protocol")
    ] = ()
    smtp_sender_hourly: Annotated[
        int, Setting(number(0, 1_000_000), "mails of one sender that one host may hand in within an hour; 0: no limit")
    ] = 1000
    mailbox: Annotated[str, Setting(address(), "address that customers write to")] = "edit@localhost"
    operator: Annotated[str, Setting(correspondent(), "address that gets the alarms by mail; empty: none are sent")] = (
        ""
    )
    domain: Annotated[str, Setting(host_name(), "domain that the sites' host names end in")] = "localhost"
    trusted_peers: Annotated[
        tuple[str, ...], Setting(_PEERS, "hosts whose mail counts as authenticated; on localhost only")
    ] = ()
    trusted_authserv_id: Annotated[
        tuple[str, ...], Setting(_HOSTS, "names in Authentication-Results of the mail provider that fills the mailbox")
    ] = ()
    authserv_peers: Annotated[
        tuple[str, ...], Setting(_PEERS, "hosts of that provider that hand mail over by SMTP")
    ] = ()
    dns_servers: Annotated[
        tuple[str, ...], Setting(_SERVERS, "name servers, with a port or not; none: those of this machine")
    ] = ()
    workers: Annotated[int, Setting(number(0, 64), "worker processes that `up` starts")] = 2
    slots: Annotated[int, Setting(number(1, 64), "jobs that one worker runs side by side")] = 4
    lease_seconds: Annotated[float, Setting(_SECONDS, "a claim that is not renewed ends after this")] = 60.0
    renew_seconds: Annotated[float, Setting(_SECONDS, "how often a worker renews its claims")] = 20.0
    idle_release_seconds: Annotated[float, Setting(_SECONDS, "a claim without work is given back after this")] = 1800.0
    job_limit_seconds: Annotated[float, Setting(_SECONDS, "a job that runs longer is ended")] = 3600.0
    interrupt_grace_seconds: Annotated[float, Setting(_SECONDS, "time to save work before a job is killed")] = 10.0
    retry_seconds: Annotated[float, Setting(_SECONDS, "a failed job is tried again after this, then 30 x this")] = 10.0
    retention_days: Annotated[
        int, Setting(number(1, 3650), "finished mails, replies, jobs and events are kept this long")
    ] = 30
    max_mail_bytes: Annotated[int, Setting(number(10_000, 150_000_000), "a larger mail is refused")] = 40_000_000
    unadmitted_mail_mb: Annotated[
        int, Setting(number(1, 1_000_000), "mails of strangers and unproven senders that are kept, for 3 days")
    ] = 500
    releases_kept: Annotated[int, Setting(number(2, 1000), "releases of a site that are kept to go back to")] = 20
    relay_host: Annotated[str, Setting(host_name(empty=True), "server that sends replies; empty: Maildir outbox")] = ""
    relay_port: Annotated[int, Setting(number(1, 65535), "port of that server")] = 587
    relay_user: Annotated[str, Setting(text(), "user name at that server; empty: no login")] = ""
    relay_password: Annotated[str, Setting(text(), "password at that server")] = field(default="", repr=False)
    relay_password_file: Annotated[str, Setting(file_path(), "file that holds this password, read at each login")] = ""
    relay_starttls: Annotated[bool, Setting(flag(), "insist on TLS with that server")] = True
    dkim_key_file: Annotated[
        str, Setting(file_path(), "private key (PEM) that replies are signed with (DKIM); empty: the relay signs")
    ] = ""
    dkim_selector: Annotated[str, Setting(host_name(), "name of that key in the DNS, before ._domainkey")] = (
        "webordinary"
    )
    acknowledge_seconds: Annotated[
        float, Setting(number(0, 604_800, whole=False), "a mail that waits longer is acknowledged once; 0: never")
    ] = 90.0
    imap_host: Annotated[
        str, Setting(host_name(empty=True), "IMAP server of the mailbox that is read; empty: none")
    ] = ""
    imap_port: Annotated[int, Setting(number(1, 65535), "port of that server")] = 993
    imap_security: Annotated[
        str, Setting(choice("tls", "starttls", "none"), "encryption of that connection; none: only on this machine")
    ] = "tls"
    imap_user: Annotated[str, Setting(text(), "user name at the IMAP server; empty: the mailbox address")] = ""
    imap_password: Annotated[str, Setting(text(), "password at the IMAP server")] = field(default="", repr=False)
    imap_password_file: Annotated[str, Setting(file_path(), "file that holds this password, read at each login")] = ""
    imap_token_command: Annotated[
        tuple[str, ...], Setting(words(100), "program that prints an OAuth2 access token for the IMAP server")
    ] = ()
    imap_folder: Annotated[str, Setting(text(), "folder of the mailbox that is read")] = "INBOX"
    imap_taken_folder: Annotated[
        str, Setting(text(), "folder that taken mails are moved to; empty: they get the keyword WebOrdinary")
    ] = ""
    imap_poll_seconds: Annotated[
        float, Setting(number(1, 1500, whole=False), "how often the mailbox is looked at where IDLE tells nothing")
    ] = 60.0
    push_secret: Annotated[str, Setting(text(), "secret that signs mails posted by HTTP; empty: no such intake")] = (
        field(default="", repr=False)
    )
    push_secret_file: Annotated[str, Setting(file_path(), "file that holds this secret, read for each mail")] = ""
    push_host: Annotated[str, Setting(listen_address(), "address that mails are posted to")] = "127.0.0.1"
    push_port: Annotated[int, Setting(_PORT, "port that mails are posted to; 0 takes a free one")] = 2580
    drop_folder: Annotated[
        str, Setting(file_path(), "Maildir, or folder of .eml files, that mails are taken from; empty: none")
    ] = ""
    agent: Annotated[
        str, Setting(_AGENTS, "who edits new sites; auto: claude once it has a key and a sandbox, until then builtin")
    ] = "auto"
    agent_command: Annotated[
        tuple[str, ...], Setting(words(100), "program and arguments of the agents `command` and `acp`")
    ] = ()
    agent_environment: Annotated[
        tuple[str, ...], Setting(words(100), "variables that the agents `command` and `acp` get to see")
    ] = ()
    agent_hosts: Annotated[
        tuple[str, ...], Setting(words(100), "hosts (or host:port) that the agents `command` and `acp` may call")
    ] = ()
    agent_key_command: Annotated[
        tuple[str, ...], Setting(words(100), "program that prints the key of the agent `claude`, anew as it ages")
    ] = ()
    agent_model: Annotated[str, Setting(text(), "model of the agent `claude`; empty: its own choice")] = ""
    agent_seconds: Annotated[float, Setting(_SECONDS, "an agent that runs longer is ended")] = 1800.0
    agent_turns: Annotated[int, Setting(number(1, 10_000), "steps that an agent may take for one mail")] = 60
    agent_cost_usd: Annotated[
        float, Setting(number(0.01, 10_000, whole=False), "what an agent may spend on one mail")
    ] = 5.0
    daily_cap_usd: Annotated[
        float, Setting(number(0, 100_000, whole=False), "what agents may cost a site on one day; 0: no cap")
    ] = 20.0
    hourly_mails: Annotated[
        int, Setting(number(0, 100_000), "mails of one person that are done within one hour; 0: no limit")
    ] = 30
    hourly_project_mails: Annotated[
        int, Setting(number(0, 100_000), "mails to one site that are done within one hour; 0: no limit")
    ] = 0
    hourly_domain_mails: Annotated[
        int, Setting(number(0, 100_000), "mails of one domain of senders that are done within one hour; 0: no limit")
    ] = 0
    allow_unjailed_agents: Annotated[
        bool, Setting(flag(), "where no sandbox works, let outside agents and builds do all that this user can")
    ] = False
    jail_readable: Annotated[
        tuple[str, ...], Setting(_PATHS, "what agents and builds may read beside /usr, such as their own programs")
    ] = ()
    jail_memory_mb: Annotated[
        int, Setting(number(64, 1_000_000), "memory of one agent or build, all its processes together")
    ] = 4000
    jail_processes: Annotated[int, Setting(number(16, 30_000), "processes of one agent or build")] = 512
    workspace_cache_mb: Annotated[
        int, Setting(number(0, 10_000_000), "workspaces that one worker keeps warm, together; 0: no bound")
    ] = 5000
    jail_disk_mb: Annotated[
        int, Setting(number(10, 10_000_000), "what the workspace may grow to while an agent or build runs")
    ] = 5000

    build_command: Annotated[
        tuple[str, ...], Setting(words(100), "program and arguments of the builder `command`")
    ] = ()
    build_seconds: Annotated[float, Setting(_SECONDS, "a build, or the install before it, is ended after this")] = 600.0
    install_scripts: Annotated[
        bool, Setting(flag(), "let packages run their own scripts while they are installed, sandboxed")
    ] = False

    reply_name: Annotated[str, Setting(text(), "name that replies come from and are signed with")] = "WebOrdinary"
    reply_colour: Annotated[str, Setting(colour(), "colour of the buttons in replies")] = "#9a4a2f"
    reply_logo: Annotated[str, Setting(file_path(), "PNG or JPEG on top of each reply, at most 100 kB")] = ""
    reply_footer: Annotated[str, Setting(text(), "last line of each reply, such as a name and a phone number")] = ""
    show_cost: Annotated[bool, Setting(flag(), "replies tell what the agent cost")] = False
    translations: Annotated[
        str, Setting(file_path(), "folder with gettext catalogues (`pl.po`) that add a language or replace one of ours")
    ] = ""

    pictures: Annotated[
        str,
        Setting(
            choice("auto", "on", "off"),
            "pictures of the changed page; with auto, a quick change waits for them until 2.2 seconds from its start",
        ),
    ] = "auto"
    picture_seconds: Annotated[
        float, Setting(number(0.1, 60, whole=False), "how long a reply waits for its pictures at most")
    ] = 8.0

    otlp_endpoint: Annotated[
        str, Setting(web_address(), "collector of OpenTelemetry that gets a trace of each answered mail; empty: none")
    ] = ""
    log_format: Annotated[
        str, Setting(choice("text", "json"), "form of the lines on stderr; json: one object a line, for log collectors")
    ] = "text"

    backend: Annotated[
        str, Setting(choice("embedded", "aws"), "where everything is kept: in the data folder, or on AWS")
    ] = "embedded"
    aws_region: Annotated[str, Setting(text(), "region of AWS")] = "us-east-1"
    aws_account: Annotated[str, Setting(text(), "account of AWS; empty: asked of AWS itself")] = ""
    aws_endpoint: Annotated[str, Setting(web_address(), "address of an emulator; empty: AWS itself")] = ""
    aws_jobs_table: Annotated[str, Setting(text(), "table of jobs; empty: its usual name")] = ""
    aws_ownership_table: Annotated[str, Setting(text(), "table of claims; empty: its usual name")] = ""
    aws_unclaimed_url: Annotated[str, Setting(text(), "address of the unclaimed queue; empty: looked up")] = ""
    aws_poll_seconds: Annotated[
        int, Setting(number(1, 20), "how long one look into a queue waits; an empty look is billed")
    ] = 20
    aws_broker: Annotated[
        str, Setting(text(), "lambda that gives a worker the rights to the project it serves; empty: its own rights")
    ] = ""

    def __post_init__(self) -> None:
        problems = []
        for name in NAMES:
            try:
                object.__setattr__(self, name, setting_of(name).rule.read(getattr(self, name)))
            except ValueError:
                problems.append(_wrong(name, "Config", getattr(self, name)))
        if problems := problems or list(_contradictions(self)):
            raise ConfigError(problems)

    @classmethod
    def load(
        cls,
        file: Path | None = None,
        env: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> Self:
        """Flags win over variables, these over the file, this over the defaults.

        Without `file`, DATA/webordinary.toml is read if it is there.
        """
        problems: list[Problem] = []
        variables = env or {}
        given = [*_from_platform(variables), *_from_credentials(variables, problems), *_from_env(variables, problems)]
        given += _from_flags(overrides or {})
        file = file or _file_beside_data(given)
        values: dict[str, object] = {}
        for name, raw, source in [*_from_file(file, problems), *given]:
            try:
                values[name] = setting_of(name).rule.read(raw)
            except ValueError:
                problems.append(_wrong(name, source, raw))
        if problems:
            raise ConfigError(problems)
        return cls(**values)  # type: ignore[arg-type]  # each value was read by its field's rule

    @property
    def needs_login(self) -> bool:
        """Whether other machines can reach the page."""
        return bool(self.public_url) or not ip_address(self.host).is_loopback

    @property
    def takes_pushed_mail(self) -> bool:
        """Whether mails can be posted by HTTP."""
        return bool(self.push_secret or self.push_secret_file)

    def host_of(self, port_name: str) -> str:
        """The address that goes with one of the ports."""
        own = {"smtp_port": self.smtp_host, "push_port": self.push_host, "preview_port": self.sites_host}
        return own.get(port_name, self.host)

    @property
    def smtp_reachable(self) -> str:
        """An address at which programs on this machine reach the mail intake."""
        every = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
        return every.get(self.smtp_host, self.smtp_host)

    @property
    def is_local(self) -> bool:
        """Whether mailbox and sites have names of this machine only."""
        names = (self.domain, self.mailbox.rpartition("@")[2])
        return all(name == "localhost" or name.endswith(".localhost") for name in names)

    def without_secrets(self) -> Self:
        """For workers, below which agents run: no password, and no setting that needs one."""
        files = (f"{name}_file" for name in SECRETS)
        blank: dict[str, Any] = dict.fromkeys((*SECRETS, *files, *_NEED_SECRETS), "")
        return replace(self, **blank)

    def environment(self) -> dict[str, str]:
        """The same settings as variables, for a child process."""
        return {variable_of(name): _as_variable(getattr(self, name)) for name in NAMES}


GivenValue = tuple[str, object, str]  # field, raw value, where it was said
NAMES = tuple(f.name for f in fields(Config))
SECRETS = frozenset(f.name for f in fields(Config) if not f.repr)
_NEED_SECRETS = ("oidc_issuer", "relay_user", "imap_host", "dkim_key_file")
_HINTS = get_type_hints(Config, include_extras=True)


def setting_of(name: str) -> Setting:
    """The rule and the purpose of a field."""
    setting: Setting = _HINTS[name].__metadata__[0]
    return setting


def _wrong(name: str, source: str, raw: object) -> Problem:
    shown = "the value" if name in SECRETS else repr(raw)[:80]
    return Problem(name, source, f"{shown} is not possible; it must be {setting_of(name).rule.allowed}")


def _from_file(file: Path | None, problems: list[Problem]) -> Iterator[GivenValue]:
    if file is None:
        return
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"larger than {MAX_FILE_BYTES:,} bytes")
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        problems.append(Problem("config file", str(file), f"{reason}; correct it or name another with --config"))
        return
    for name, raw in table.items():
        if name in NAMES:
            yield name, raw, str(file)
        else:
            problems.append(Problem(name[:80], str(file), f"there is no such setting{_meant(name)}"))


def _from_platform(env: Mapping[str, str]) -> Iterator[GivenValue]:
    """Settings by the variables that AWS and its containers use."""
    for variable, name in PLATFORM_VARIABLES.items():
        if env.get(variable):
            yield name, env[variable], variable


def _from_credentials(env: Mapping[str, str], problems: list[Problem]) -> Iterator[GivenValue]:
    """A secret that systemd passes as a credential. A variable, and the file of a secret, win."""
    for name in sorted(SECRETS):
        file = Path(env.get("CREDENTIALS_DIRECTORY") or "/nonexistent", f"webordinary.{name}")
        if not file.is_file() or variable_of(name) in env or variable_of(f"{name}_file") in env:
            continue
        try:
            with file.open(encoding="utf-8") as opened:
                yield name, opened.read(MAX_TEXT + 2).rstrip("\r\n"), str(file)
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not text in UTF-8"
            problems.append(Problem(name, str(file), f"the file of this secret cannot be read: {reason}"))


def _from_env(env: Mapping[str, str], problems: list[Problem]) -> Iterator[GivenValue]:
    for variable in sorted(v for v in env if v.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        if name in NAMES:
            yield name, env[variable], variable
        elif name not in NOT_SETTINGS and (meant := _meant(name)):  # a stranger may share our prefix
            problems.append(Problem(name[:80], variable, f"there is no such setting{meant}"))


def _from_flags(overrides: Mapping[str, object]) -> Iterator[GivenValue]:
    for name, raw in overrides.items():
        if name not in NAMES:
            raise TypeError(f"{name} is not a field of Config")
        if raw is not None:
            yield name, raw, flag_of(name)


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def flag_of(name: str) -> str:
    """The command-line flag of a setting."""
    return "--" + name.replace("_", "-")


def _file_beside_data(given: Iterable[GivenValue]) -> Path | None:
    data = {name: raw for name, raw, _ in given if name == "data"}.get("data", "data")
    file = Path(str(data)).expanduser() / FILE_NAME
    return file if file.is_file() else None


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def _as_variable(value: object) -> str:
    return shlex.join(value) if isinstance(value, tuple) else str(value)


def _contradictions(config: Config) -> Iterator[Problem]:
    """What each field allows by itself but not together with another."""
    if config.renew_seconds > config.lease_seconds / 2:
        yield Problem("renew_seconds", "with lease_seconds", "must be at most half of it")
    push_port = config.push_port if config.takes_pushed_mail else 0
    ports = [p for p in (config.port, config.preview_port, config.smtp_port, push_port) if p]
    if len(set(ports)) != len(ports):
        yield Problem("port", "with preview_port, smtp_port and push_port", "must be different ports")
    yield from _contradictions_of_the_net(config)
    if 0 < len(config.push_secret) < MIN_PUSH_SECRET:
        words = f"must have at least {MIN_PUSH_SECRET} characters; `openssl rand -hex 32` prints one"
        yield Problem("push_secret", "Config", words)
    yield from _contradictions_of_secrets(config)
    yield from _contradictions_of_imap(config)
    if config.operator.lower() == config.mailbox:
        yield Problem("operator", "with mailbox", "must be another address: this one is read by WebOrdinary itself")
    for readable in map(Path, config.jail_readable):
        inside = config.data if readable.resolve().is_relative_to(config.data.resolve()) else None
        if private := inside or private_part(readable, (config.data,)):
            words = f"must not name {readable}: agents and builds could read {private}. Name only the folders they need"
            yield Problem("jail_readable", "with data and your home", words)
    if config.trusted_peers and config.backend == "embedded" and not config.is_local:
        yield Problem("trusted_peers", "with mailbox and domain", _TRUST_IS_LOCAL)
    if config.authserv_peers and not config.trusted_authserv_id:
        yield Problem("authserv_peers", "with trusted_authserv_id", "needs it: name the provider's authserv-id")
    if config.agent in ("acp", "command") and not config.agent_command:
        yield Problem("agent", "with agent_command", f"is {config.agent}; name its program in agent_command")


def _contradictions_of_secrets(config: Config) -> Iterator[Problem]:
    for name in ("relay_password", "oidc_client_secret"):
        if getattr(config, name) and getattr(config, f"{name}_file"):
            yield Problem(f"{name}_file", f"with {name}", "must be the only one of both")
    if config.relay_user and not (config.relay_host and (config.relay_password or config.relay_password_file)):
        words = "needs relay_host, and relay_password or relay_password_file"
        yield Problem("relay_user", "with relay_host and its password", words)


def _contradictions_of_the_net(config: Config) -> Iterator[Problem]:
    if config.public_url and urlsplit(config.public_url).path not in ("", "/"):
        yield Problem("public_url", "as it is", "must end after the host name: the page needs an address of its own")
    if config.needs_login and config.backend == "aws" and not config.alb_arn:
        words = "must be empty: the page has no login there but the one of a load balancer (alb_arn); or use a tunnel"
        yield Problem("public_url", "with backend aws", words)
    if config.alb_arn:
        yield from _contradictions_of_the_balancer(config)
    if config.forward_auth_header and not config.trusted_proxies:
        yield Problem("forward_auth_header", "with trusted_proxies", "needs the proxy's address there")
    oidc_secret = config.oidc_client_secret or config.oidc_client_secret_file
    if config.oidc_issuer and not (config.oidc_client_id and oidc_secret and config.public_url):
        words = "needs oidc_client_id, oidc_client_secret or oidc_client_secret_file, and public_url"
        yield Problem("oidc_issuer", "as it is", words)
    issuer = urlsplit(config.oidc_issuer)
    if issuer.scheme == "http" and issuer.hostname not in ("127.0.0.1", "localhost"):
        yield Problem("oidc_issuer", "as it is", "must begin with https: what proves a user would travel in clear")
    if not ip_address(config.host).is_loopback and not config.public_url:
        yield Problem("host", "with public_url", "is reached by other machines: say in public_url under which name")


def _contradictions_of_the_balancer(config: Config) -> Iterator[Problem]:
    if not _LOAD_BALANCER.fullmatch(config.alb_arn):
        yield Problem("alb_arn", "as it is", "must be the ARN of an application load balancer")
    if config.backend != "aws":
        yield Problem("alb_arn", "with backend", "is for backend aws: name a proxy's header in forward_auth_header")
    if not (config.alb_issuer and config.alb_client_id and config.public_url.startswith("https://")):
        yield Problem("alb_arn", "as it is", "needs alb_issuer, alb_client_id, and public_url with https")
    if not (config.console_operators or config.console_viewers):
        yield Problem("alb_arn", "as it is", "has no user: name people in console_operators or console_viewers")


def _contradictions_of_imap(config: Config) -> Iterator[Problem]:
    if not config.imap_host:
        return
    given = [name for name in ("imap_password", "imap_password_file", "imap_token_command") if getattr(config, name)]
    if len(given) != 1:
        words = "needs exactly one of imap_password, imap_password_file and imap_token_command"
        yield Problem("imap_host", "with its password", words)
    if config.imap_security == "none" and config.imap_host not in ("localhost", "127.0.0.1"):
        yield Problem("imap_security", "with imap_host", "must be tls or starttls: the password would travel in clear")
