"""`webordinary project`: add a site and who may change it; list, show, set and remove them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from webordinary.app import sites
from webordinary.app.backends import AWS, open_services
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli import first_mail, project_remove, project_set, project_show
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.known import known_site, mail_address
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, load_config, load_existing
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.preflight import require_programs, require_writable
from webordinary.entrypoints.cli.progress import progress
from webordinary.model.names import ProjectUser
from webordinary.site.releases import Stage

QUESTIONS = {
    "name": "Name of the site (a-z, 0-9 and -)",
    "repo": "Its git repository (address or folder)",
    "user": "Name of the person who may change it (a-z and 0-9)",
    "sender": "That person's mail address",
}
CREDENTIAL = "file with the token (https) or private key (ssh) for its repository"
MAX_CREDENTIAL_BYTES = 100_000
MAX_NAMES = 10
_SHOWN_CHARACTERS = 200


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    parser = commands.add_parser(
        "project", help="add, list, show, set or remove sites", description="Sites and their people."
    )
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = add_command(parts, "add", add_project, "add a site, or one more person to a site; asks for what is missing")
    add.add_argument("name", nargs="?", help=QUESTIONS["name"])
    add.add_argument("--repo", metavar="URL|DIR", help=QUESTIONS["repo"])
    add.add_argument("--user", help=QUESTIONS["user"])
    add.add_argument("--sender", metavar="MAIL", help=QUESTIONS["sender"])
    add_settings(add, ("agent",))
    add.add_argument("--builder", choices=(sites.DETECTED, *sites.BUILDER_NAMES), help="what builds it; auto finds out")
    add.add_argument("--credential", metavar="FILE", type=Path, help=CREDENTIAL)
    first_mail.add_flag(add)
    credential = add_command(parts, "credential", keep_credential, "give a site's repository another token or ssh key")
    credential.add_argument("name")
    what = credential.add_mutually_exclusive_group(required=True)
    what.add_argument("file", nargs="?", metavar="FILE", type=Path, help=CREDENTIAL)
    what.add_argument("--remove", action="store_true", help="forget it; the machine's own ways in are used again")
    project_show.add_to(parts)
    project_set.add_to(parts)
    project_remove.add_to(parts)


def add_project(args: argparse.Namespace) -> int:
    """Onboard; doing it again changes nothing but what differs."""
    require_programs()
    config = running.as_it_runs(load_config(args))
    answers = _answers(args, config)
    key = ProjectUser(answers["name"], answers["user"])
    sender = mail_address(answers["sender"])
    _refuse_nowhere(answers["repo"])
    require_writable(config.data)
    _refuse_own_folder(config, answers["repo"])
    with open_services(config) as services, progress(f"adding {key.project_id}") as report:
        secret = _secret(args.credential) if args.credential else None
        chosen = (args.agent or "", secret, args.builder or "")
        new = services.directory.project(key.project_id) is None
        left = sites.repository_left_by(services, key.project_id)
        done = sites.onboard(services, key.project_id, answers["repo"], key.user_id, sender, report, *chosen)
        mailbox = sites.mailbox_of(services, sender, key.project_id)
        origin = sites.project_of(services, key.project_id).repo
        first = first_mail.send(services, sender, mailbox, wanted=args.sample_mail, new=new)
    again = left is not None and origin == str(left) and Path(answers["repo"]).expanduser().resolve() != left
    if args.json:
        added = {"project": key.project_id, "user": key.user_id, "sender": sender, "mailbox": mailbox}
        more = {"sample_mail": first, "repository_of_before": again, "not_shown": list(done.unshown[:MAX_NAMES])}
        more |= {"problem": done.problem}
        print_json(added | {name: value for name, value in more.items() if value})
        return Exit.OK
    print(f"{key} is ready: mail from {sender} to {mailbox} changes it.")
    while_up = "" if _on_aws(config) else " while `up` runs"
    print(f"  it is kept in {origin} and shown at {sites.site_url(config, key.project_id, Stage.EDIT)}{while_up}")
    if again:
        print(f"  its repository of before is used again, {answers['repo']} is not; to begin anew, move {left} away")
    if done.problem:
        print(f"  nothing is shown there yet: {done.problem}")
    if done.unshown:
        print(f"  not shown, as no address leads to a name that is not UTF-8: {', '.join(done.unshown[:MAX_NAMES])}")
    for line in first_mail.words(config, key.project_id, sender, mailbox, first, new=new):
        print(f"  {line}")
    return Exit.OK


def _answers(args: argparse.Namespace, config: Config) -> dict[str, str]:
    """What was said, and what else must be known."""
    name = args.name or _ask("name")
    repo = args.repo or _repo_of(config, name) or _ask("repo")
    return {"name": name, "repo": repo, "user": args.user or _ask("user"), "sender": args.sender or _ask("sender")}


def _repo_of(config: Config, name: str) -> str:
    """The repository of a site that is there already; its next person need not name it."""
    if config.backend != AWS and not (config.data / "webordinary.db").is_file():
        return ""
    with open_services(config) as services:
        project = services.directory.project(name)
    return project.repo if project else ""


def _on_aws(config: Config) -> bool:
    return config.backend == AWS and not config.aws_endpoint


def _refuse_own_folder(config: Config, repo: str) -> None:
    if _on_aws(config) and Path(repo).expanduser().exists():
        raise CommandFailed(
            f"{repo} is a folder of this machine, and workers on AWS cannot reach it",
            "push it to a git server and name its address",
            Exit.USAGE,
        )


def keep_credential(args: argparse.Namespace) -> int:
    """Change what lets us into a repository; tried before it is kept."""
    with open_services(load_existing(args)) as services:
        known_site(services, args.name)
        if args.remove:
            words = "forgotten" if services.credentials.forget(args.name) else "there was none"
        else:
            with progress(f"trying the credential of {args.name}"):
                sites.keep_credential(services, args.name, _secret(args.file))
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
    except (OSError, RuntimeError):  # a name too long, a home of nobody
        there = False
    if not there:
        what = f"there is no folder {repo[:_SHOWN_CHARACTERS]}"
        raise CommandFailed(what, "name one that is there, or the address of a git repository", Exit.USAGE)


def _secret(file: Path) -> bytes:
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
