"""`webordinary project`, `pause` and `resume`: sites and the people who may change them.

`project remove` removes all that onboarding made, and the repository stays. With `--sender`, one person leaves the
site, and only their right to change it goes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from webordinary.compose import container
from webordinary.compose.backends import open_container
from webordinary.compose.container import profile_of
from webordinary.config import Config, setting_of
from webordinary.entrypoints import running
from webordinary.entrypoints.cli import send
from webordinary.entrypoints.cli.options import (
    Commands,
    add_command,
    add_group,
    add_settings,
    find_site,
    given,
    load_config,
    load_existing,
    mail_address,
)
from webordinary.entrypoints.cli.output import CommandFailed, Exit, confirm, print_json, progress, table
from webordinary.entrypoints.cli.up import require_programs, require_writable
from webordinary.jobs.site_files import Stage
from webordinary.model.names import ProjectUser
from webordinary.model.projects import AGENTS, Project, Sender, SenderRole
from webordinary.operations import onboarding, site_settings
from webordinary.operations.mails import renamed
from webordinary.operations.onboarding import (
    ProjectRemoval,
    SenderRemoval,
    plan_project_removal,
    plan_sender_removal,
    remove,
    remove_person,
)
from webordinary.operations.site_settings import WISH_LIMITS, SiteChanges, are_few
from webordinary.setting_rules import SettingRule, host_name, text


def add_show(parts: Commands) -> None:
    add_command(parts, "list", list_projects, "list the sites")
    show = add_command(parts, "show", show_project, "show one site and who may change it")
    show.add_argument("name")


def list_projects(args: argparse.Namespace) -> int:
    """One line per site."""
    with open_container(load_existing(args)) as services:
        projects, senders = services.directory.projects(), services.directory.senders()
    people = {p.project_id: [s for s in senders if s.key.project_id == p.project_id] for p in projects}
    if args.json:
        print_json([_plain_project(p) | {"senders": _plain(people[p.project_id])} for p in projects])
        return Exit.OK
    rows = [(p.project_id, p.repo, ", ".join(s.address for s in people[p.project_id])) for p in projects]
    print(table(("site", "repository", "may change it"), rows))
    return Exit.OK


def show_project(args: argparse.Namespace) -> int:
    """Everything about one site."""
    config = running.as_it_runs(load_existing(args))
    with open_container(config) as services:
        project = find_site(services, args.name)
        people = [
            {
                "address": s.address,
                "user": s.key.user_id,
                "role": s.role.value,
                "mailbox": onboarding.mailbox_of(services, s.address, args.name),
            }
            for s in services.directory.senders()
            if s.key.project_id == args.name
        ]
        mailbox, credential = services.config.mailbox, services.credentials.kind(args.name).value
    if args.json:
        print_json(_plain_project(project) | {"credential": credential, "senders": people, "mailbox": mailbox})
        return Exit.OK
    print(table(("setting", "value"), _settings(project, credential, config)))
    print("\nMay change it:")
    print(table(("address", "user", "role", "by mail to"), [tuple(person.values()) for person in people]))
    if project.build_problem:
        print(f"\nIts last build, mended? `webordinary release rebuild {args.name}`:\n{project.build_problem}")
    return Exit.OK


def _settings(project: Project, credential: str, config: Config) -> list[tuple[str, object]]:
    """In the words of docs/sites.md; `--json` has the names of the records."""
    cap = project.daily_cap_usd or config.daily_cap_usd
    return [
        ("site", project.project_id),
        ("edit site", container.site_url(config, project.project_id, Stage.EDIT)),
        ("public site", container.site_url(config, project.project_id, Stage.PUBLIC, project.domains)),
        ("repository", project.repo),
        ("folder in it", project.folder or "-"),
        ("credential for it", credential),
        ("built by", project.builder or "what fits its files"),
        ("edited by", f"the agent {project.agent}"),
        ("a mail without words asks for", project.default_instruction or "-"),
        ("agents may cost", f"${cap:g} a day" if cap else "without limit"),
        ("paused", "yes; `webordinary resume` ends it" if project.paused else "no"),
        ("results for programs", "on; `webordinary outputs` shows them" if project.output else "off"),
        ("hosts that pages may load from", ", ".join(project.allowed_hosts) or "those that they use already"),
        ("who publishes for editors", project.approver or "-"),
        ("dates in mails are of", project.time_zone or "UTC"),
        ("standing wishes", "; ".join(project.wishes) or "-"),
        ("own domains", ", ".join(project.domains) or "-"),
        ("webhook", "yes" if project.hook_secret else "no; `webordinary project hook` makes one"),
        ("last build", project.build_problem.splitlines()[0] if project.build_problem else "in order"),
        ("password of the edit site", "yes" if project.edit_password else "no"),
    ]


def _plain_project(project: Project) -> dict[str, Any]:
    secret = {"edit_password": bool(project.edit_password), "hook_secret": bool(project.hook_secret)}
    return asdict(project) | secret


def _plain(senders: Iterable[Sender]) -> list[dict[str, str]]:
    return [{"address": s.address, "user": s.key.user_id, "role": s.role.value} for s in senders]


_CAP = "what its agents may cost on one day; 0: what the setting daily_cap_usd says"
_INSTRUCTION = "what a mail without words asks for; empty: nothing, its sender is asked"
_DRAFTS_CLOSED = "read a password for the edit site from standard input; an empty line removes it"
_OUTPUT = "keep the result of each mail for programs, see `webordinary outputs`; on AWS in queues, made now"
_ALLOW_HOST = (
    "a host that changed pages may load scripts, pictures and fonts from; * allows all, scripts in pages, and pages "
    "too large to check"
)
_WISHES = "a standing wish that every agent gets, such as 'British spelling'; repeat it for more; empty: none"
_APPROVER = (
    "a person of the site who is shown each change of an editor and publishes it with a yes; empty: no such person"
)
_TIME_ZONE = "the time zone of dates in its mails, such as Europe/Berlin; empty: UTC"
_SHOWN = 80


def add_set(parts: Commands) -> None:
    about = (
        "change who edits a site, what it may cost and load, what a mail without words asks for, who hears of results"
    )
    command = add_command(parts, "set", set_project, about)
    command.add_argument("name")
    # Not `agent`: that is the setting, which an argument of this name would replace.
    command.add_argument("--agent", dest="new_agent", choices=AGENTS, help="who edits it from now on")
    command.add_argument("--daily-cap", metavar="USD", type=_as(setting_of("daily_cap_usd").rule), help=_CAP)
    command.add_argument("--default-instruction", metavar="TEXT", type=_as(text()), help=_INSTRUCTION)
    command.add_argument("--output", choices=("on", "off"), help=_OUTPUT)
    command.add_argument("--allow-host", metavar="HOST", action="append", type=_as(text()), help=_ALLOW_HOST)
    command.add_argument("--refuse-host", metavar="HOST", action="append", help="take an allowed host back")
    command.add_argument("--approver", metavar="MAIL", type=_as(text()), help=_APPROVER)
    command.add_argument("--time-zone", metavar="ZONE", type=_as(text()), help=_TIME_ZONE)
    command.add_argument("--wishes", metavar="TEXT", action="append", type=_as(text()), help=_WISHES)
    command.add_argument("--edit-password-stdin", action="store_true", help=_DRAFTS_CLOSED)


def set_project(args: argparse.Namespace) -> int:
    """Change the given settings; held mails are tried again at once."""
    new = SiteChanges(
        agent=args.new_agent,
        daily_cap_usd=args.daily_cap,
        default_instruction=args.default_instruction,
        approver=args.approver and args.approver.lower(),
        wishes=None if args.wishes is None else tuple(filter(None, args.wishes)),
        output=args.output and args.output == "on",
        time_zone=args.time_zone,
        edit_password=sys.stdin.readline().rstrip("\n") if args.edit_password_stdin else None,
        allow_hosts=tuple(args.allow_host or ()),
        refuse_hosts=tuple(args.refuse_host or ()),
    )
    if new == SiteChanges():
        raise CommandFailed("nothing to set", "see `webordinary project set --help`", Exit.USAGE)
    if not are_few(new.wishes or ()):
        raise CommandFailed(WISH_LIMITS, "give fewer or shorter ones", Exit.USAGE)
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        project = site_settings.change_site(services, args.name, new)
    if args.json:
        print_json(_plain_project(project))
    else:
        print(f"{project.project_id} is changed: see `webordinary project show {project.project_id}`")
    return Exit.OK


def add_hook(parts: Commands) -> None:
    about = "give a site a webhook that builds it after a push; prints a new secret"
    command = add_command(parts, "hook", make_hook, about)
    command.add_argument("name", help="the site")
    command.add_argument("--remove", action="store_true", help="take the webhook away")


def make_hook(args: argparse.Namespace) -> int:
    """The secret is printed once; the former one is no longer valid."""
    with open_container(load_existing(args)) as services:
        project = find_site(services, args.name)
        if args.remove:
            site_settings.remove_hook(services, args.name)
            return _report(args, {"removed": args.name}, [f"{args.name} has no webhook any more."])
        config = running.as_it_runs(services.config)
        secret, doubts = site_settings.new_hook(services, args.name), site_settings.hook_doubts(config, project)
    url = site_settings.hook_address(config.public_url, config.port, args.name)
    lines = [f"Payload URL   {url}", f"Secret        {secret}", "Content type  application/json, event: push"]
    notes = [*(["The former secret is no longer valid."] if project.hook_secret else []), *doubts]
    return _report(args, {"url": url, "secret": secret, "notes": notes}, [*lines, *notes])


def add_role(parts: Commands) -> None:
    about = "say whether a person may ask for changes of a site, publish them, or both"
    command = add_command(parts, "role", set_role, about)
    command.add_argument("name", help="the site")
    command.add_argument("address", metavar="MAIL", type=_as(text()), help="the person's mail address")
    command.add_argument("role", choices=[role.value for role in SenderRole], help="what the person may do")


def set_role(args: argparse.Namespace) -> int:
    """It holds for mails that come from now on, and for publications of changes under way."""
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        site_settings.set_role(services, args.name, args.address, SenderRole(args.role))
        lacking = site_settings.lacks_publisher(services, args.name)
    plain = {"project": args.name, "address": args.address.lower(), "role": args.role, "lacks_publisher": lacking}
    warning = f"  no person may publish {args.name} now: its changes stay on the edit site until one is a publisher"
    return _report(args, plain, [f"{args.address} is {args.role} on {args.name} now.", *([warning] if lacking else [])])


def add_domain(parts: Commands) -> None:
    actions = add_group(parts, "domain", "domains of a site's own", "Domains of a site's own.")
    for action, about in (
        ("add", "show a site under a domain of its own, and say what to put into DNS"),
        ("remove", "show nothing under this domain any more"),
        ("check", "say whether DNS leads a domain here"),
    ):
        command = add_command(actions, action, change_domains, about)
        command.set_defaults(action=action)
        command.add_argument("name", help="the site")
        # Not `domain`: that is the setting, which an argument of this name would replace.
        command.add_argument("own_domain", metavar="DOMAIN", type=_as(host_name()), help="www.example.com")


def change_domains(args: argparse.Namespace) -> int:
    """Add, remove or check a domain; `add` says what to put into DNS."""
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        if args.action == "remove":
            left = site_settings.remove_domain(services, args.name, args.own_domain)
            gone = f"{args.own_domain} shows nothing of {args.name} any more."
            return _report(args, {"removed": args.own_domain}, [gone, *([f"{left}."] if left else [])])
        do = site_settings.add_domain if args.action == "add" else site_settings.look_at_domain
        found = do(services, args.name, args.own_domain)
    plain = {"domain": args.own_domain, "points_here": found.points_here, "dns": [*found.records]}
    missing = [] if found.points_here else found.records
    return _report(args, plain, [f"{found.words}.", *(["In its DNS:", *missing] if missing else [])])


def _report(args: argparse.Namespace, plain: object, lines: Iterable[str]) -> int:
    if args.json:
        print_json(plain)
    else:
        print("\n".join(lines))
    return Exit.OK


def _as(rule: SettingRule) -> Callable[[str], Any]:
    """Read an argument by the rule of a setting."""

    def read(text: str) -> object:
        try:
            return rule.read(text.strip())
        except ValueError as problem:
            raise argparse.ArgumentTypeError(f"{text[:_SHOWN]!r} is not {rule.allowed}") from problem

    return read


QUESTIONS = {
    "name": "Name of the site (a-z, 0-9 and -)",
    "repo": "Its git repository (address or folder)",
    "user": "Name of the person who may change it (a-z and 0-9)",
    "sender": "That person's mail address",
}
CREDENTIAL = "file with the token (https) or private key (ssh) for its repository; -: standard input"
MAX_CREDENTIAL_BYTES = 100_000
MAX_NAMES = 10
_SHOWN_CHARACTERS = 200


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "project", "add, list, show, set or remove sites", "Sites and their people.")
    add = add_command(parts, "add", add_project, "add a site, or one more person to a site; asks for what is missing")
    add.add_argument("name", nargs="?", help=QUESTIONS["name"])
    add.add_argument("--repo", metavar="URL|DIR", help=QUESTIONS["repo"])
    add.add_argument("--user", help=QUESTIONS["user"])
    add.add_argument("--sender", metavar="MAIL", help=QUESTIONS["sender"])
    add_settings(add, ("agent",))
    add.add_argument(
        "--builder", choices=(onboarding.DETECTED, *onboarding.BUILDER_NAMES), help="what builds it; auto finds out"
    )
    add.add_argument("--folder", metavar="PATH", help="where the site lies in its repository, such as apps/web")
    add.add_argument("--credential", metavar="FILE", type=Path, help=CREDENTIAL)
    send.add_sample_mail_flag(add)
    credential = add_command(parts, "credential", keep_credential, "give a site's repository another token or ssh key")
    credential.add_argument("name")
    what = credential.add_mutually_exclusive_group(required=True)
    what.add_argument("file", nargs="?", metavar="FILE", type=Path, help=CREDENTIAL)
    what.add_argument("--remove", action="store_true", help="forget it; the machine's own ways in are used again")
    add_show(parts)
    add_set(parts)
    add_role(parts)
    add_domain(parts)
    add_hook(parts)
    add_remove(parts)


def add_project(args: argparse.Namespace) -> int:
    """Onboard; doing it again changes nothing but what differs."""
    require_programs()
    config = running.as_it_runs(load_config(args))
    answers = _answers(args, config)
    key = ProjectUser(answers["name"], answers["user"])
    sender = mail_address(answers["sender"])
    _refuse_nowhere(answers["repo"])
    send.require_intake(config, requested=args.sample_mail)
    require_writable(config.data)
    _refuse_own_folder(config, answers["repo"])
    with open_container(config) as services, progress(f"adding {key.project_id}") as report:
        secret = _secret(args.credential) if args.credential else None
        chosen = (args.agent or "", secret, args.builder or "", "operator", args.folder)
        new = services.directory.project(key.project_id) is None
        left = onboarding.repository_left_by(services, key.project_id)
        former = renamed(services, sender, key)
        entitled_anew = key.project_id not in {one.key.project_id for one in services.directory.entries(sender)}
        done = onboarding.onboard(services, key.project_id, answers["repo"], key.user_id, sender, report, *chosen)
        mailbox = onboarding.mailbox_of(services, sender, key.project_id)
        moved = onboarding.moved_mailboxes(services, sender, key.project_id) if entitled_anew else {}
        origin = onboarding.project_of(services, key.project_id).repo
        first = send.send_first_mail(services, sender, mailbox, requested=args.sample_mail, new=new)
    again = left is not None and origin == str(left) and Path(answers["repo"]).expanduser().resolve() != left
    if args.json:
        added = {"project": key.project_id, "user": key.user_id, "sender": sender, "mailbox": mailbox}
        more = {"sample_mail": first, "repository_of_before": again, "not_shown": list(done.unshown[:MAX_NAMES])}
        more |= {"problem": done.problem, "renamed_from": former}
        more |= {"moved_mailboxes": [f"{other}: {address}" for other, address in moved.items()]}
        print_json(added | {name: value for name, value in more.items() if value})
        return Exit.OK
    ready = "is added" if done.problem else "is ready"
    print(f"{key} {ready}: mail from {sender} to {mailbox} changes it.")
    if former:
        print(f"  {sender} was {former} there: it is {key.user_id} from now on; earlier conversations stay apart")
    for other, address in moved.items():
        print(f"  as {sender} has two sites now, {other} is changed by mail to {address} from now on: say so")
    while_up = "" if profile_of(config).is_public else " while `up` runs"
    print(f"  it is kept in {origin} and shown at {container.site_url(config, key.project_id, Stage.EDIT)}{while_up}")
    if again:
        print(f"  its repository of before is used again, {answers['repo']} is not; to begin anew, move {left} away")
    if done.problem:
        print(f"  nothing is shown there yet: {done.problem} `webordinary project show {key.project_id}` has its log;")
        print(f"  mend it in its repository, then run `webordinary release rebuild {key.project_id}`")
    if done.unshown:
        print(f"  not shown, as no address leads to a name that is not UTF-8: {', '.join(done.unshown[:MAX_NAMES])}")
    for line in send.next_steps(config, key.project_id, sender, mailbox, first, new=new):
        print(f"  {line}")
    return Exit.OK


def _answers(args: argparse.Namespace, config: Config) -> dict[str, str]:
    """The arguments, with prompts for the missing ones."""
    name = args.name or _ask("name")
    repo = args.repo or _repo_of(config, name) or _ask("repo")
    return {"name": name, "repo": repo, "user": args.user or _ask("user"), "sender": args.sender or _ask("sender")}


def _repo_of(config: Config, name: str) -> str:
    """The repository of a site that is there already; its next person need not name it."""
    if profile_of(config).data_is_local and not (config.data / "webordinary.db").is_file():
        return ""
    with open_container(config) as services:
        project = services.directory.project(name)
    return project.repo if project else ""


def _refuse_own_folder(config: Config, repo: str) -> None:
    if profile_of(config).is_public and Path(repo).expanduser().exists():
        raise CommandFailed(
            f"{repo} is a folder of this machine, and workers on AWS cannot reach it",
            "push it to a git server and name its address",
            Exit.USAGE,
        )


def keep_credential(args: argparse.Namespace) -> int:
    """Change what lets us into a repository; tried before it is kept."""
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        if args.remove:
            words = "forgotten" if onboarding.forget_credential(services, args.name) else "there was none"
        else:
            with progress(f"trying the credential of {args.name}"):
                onboarding.keep_credential(services, args.name, _secret(args.file))
            words = "kept; the repository takes it"
        kind = services.credentials.kind(args.name)
    if args.json:
        print_json({"project": args.name, "credential": kind.value})
    else:
        print(f"{args.name}: {words}.")
    return Exit.OK


def _refuse_nowhere(repo: str) -> None:
    """A path that leads to no folder; an address has a colon."""
    try:
        there = ":" in repo or Path(repo).expanduser().is_dir()
    except (OSError, RuntimeError):  # a name too long, an unknown home
        there = False
    if not there:
        what = f"there is no folder {repo[:_SHOWN_CHARACTERS]}"
        raise CommandFailed(what, "name one that is there, or the address of a git repository", Exit.USAGE)


def _secret(file: Path) -> bytes:
    if file == Path("-"):
        return sys.stdin.buffer.read(MAX_CREDENTIAL_BYTES)
    try:
        with file.expanduser().open("rb") as content:
            return content.read(MAX_CREDENTIAL_BYTES)
    except OSError as problem:
        hint = "name a file that holds only the token or the key"
        raise CommandFailed(f"{file} cannot be read ({problem.strerror})", hint, Exit.USAGE) from problem


def _ask(name: str) -> str:
    flag = "NAME" if name == "name" else f"--{name}"
    if not sys.stdin.isatty():
        raise CommandFailed(f"{flag} is missing", f"name it: {QUESTIONS[name]}", Exit.USAGE)
    while not (answer := input(f"{QUESTIONS[name]}: ").strip()):
        print("Please write something, or stop with Ctrl-C.")
    return answer


def add_pause(commands: Commands) -> None:
    pausing = add_command(commands, "pause", pause, "do nothing on a site for now; its mails are kept")
    resuming = add_command(commands, "resume", resume, "go on with a site that was paused")
    for parser in (pausing, resuming):
        parser.add_argument("project", nargs="?", type=given, help="the site (all of them if not given)")


def pause(args: argparse.Namespace) -> int:
    """Customers are told that their mail waits; a job that runs is finished."""
    return _each(args, paused=True)


def resume(args: argparse.Namespace) -> int:
    """What waited is done now, in its order."""
    return _each(args, paused=False)


def _each(args: argparse.Namespace, *, paused: bool) -> int:
    with open_container(load_existing(args)) as services:
        names = (
            [find_site(services, args.project).project_id]
            if args.project
            else [project.project_id for project in services.directory.projects()]
        )
        freed = {name: onboarding.pause(services, name, paused=paused) for name in names}
    if args.json:
        print_json([{"project": name, "paused": paused, "keys_set_free": count} for name, count in freed.items()])
        return Exit.OK
    if not freed:
        print("there is no site yet; add one with `webordinary project add`")
    for name in freed:
        print(f"{name} is paused: its mails wait" if paused else f"{name} goes on")
    return Exit.OK


def add_remove(parts: Commands) -> None:
    about = "remove a site and what was made for it, or one person from a site; its git repository stays"
    parser = add_command(parts, "remove", run_remove, about)
    parser.add_argument("name")
    parser.add_argument("--sender", metavar="MAIL", help="remove only this person, by their mail address")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--force", action="store_true", help="also while jobs are open: they are given up")


_KEPT = "nothing was removed", "answer y if you mean it"


def run_remove(args: argparse.Namespace) -> int:
    """Show what goes, ask, remove. Idempotent."""
    return _remove_site(args) if args.sender is None else _remove_person(args)


def _remove_site(args: argparse.Namespace) -> int:
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        leaving = plan_project_removal(services, args.name)
        if not args.yes:
            confirm(f"Remove {args.name}?", *_KEPT, _about_site(leaving))
        with progress(f"removing {args.name}") as report:
            remove(services, leaving, report, force=args.force)
        left = onboarding.repository_left_by(services, args.name)
    if args.json:
        senders = [sender.address for sender in leaving.senders]
        print_json({"removed": args.name, "senders": senders, "repository": leaving.project.repo})
        return Exit.OK
    print(f"{args.name} is removed; its repository {leaving.project.repo} stays as it is.")
    if left:
        print(f"  a new site called {args.name} goes on with it; to begin anew, move it away")
    return Exit.OK


def _remove_person(args: argparse.Namespace) -> int:
    address = mail_address(args.sender)
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        leaving = plan_sender_removal(services, args.name, address)
        asked = leaving.entry or leaving.jobs
        if asked and not args.yes:
            confirm(f"Remove {address} from {args.name}?", *_KEPT, _about_person(leaving))
        stopped = len(remove_person(services, leaving, force=args.force)) if asked else 0
    if args.json:
        others = [sender.address for sender in leaving.others]
        removed = [address] if leaving.entry else []
        print_json({"project": args.name, "removed": removed, "stopped": stopped, "may_change_it": others})
        return Exit.OK
    if leaving.entry:
        print(f"{address} is removed from {args.name}: mail from there changes nothing of it any more.")
    else:
        print(f"{address} may not change {args.name}; nothing was removed.")
    if stopped:
        print(f"  what was under way for it is stopped, and answered so: {stopped}")
    print(f"  {_who_is_left(leaving)}")
    return Exit.OK


def _about_site(leaving: ProjectRemoval) -> str:
    people = ", ".join(sender.address for sender in leaving.senders) or "no person"
    name = leaving.project.project_id
    return f"{name}: its sites with all releases, its queues, and the right of {people} to change it will be gone."


def _about_person(leaving: SenderRemoval) -> str:
    gone = f"{leaving.project_id}: mail from {leaving.address} will be treated as a stranger's."
    return f"{gone} What it changed so far stays. Then, {_who_is_left(leaving)}"


def _who_is_left(leaving: SenderRemoval) -> str:
    name = leaving.project_id
    if leaving.others:
        people = (f"{sender.address} ({sender.key.user_id})" for sender in leaving.others)
        return f"{', '.join(people)} may change {name}."
    return (
        f"No person may change {name} now. It is still shown, with its releases and repository: "
        f"`webordinary project add {name}` adds a person again, `webordinary project remove {name}` removes the site."
    )
