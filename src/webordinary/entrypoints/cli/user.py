"""`webordinary user`: the users of the console, their sessions and API tokens, and what they did."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from datetime import timedelta

from webordinary.compose.backends import open_container
from webordinary.compose.container import Container
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import Commands, add_command, add_group, load_folder, whole
from webordinary.entrypoints.cli.output import CommandFailed, Exit, print_json, table
from webordinary.model.console import ConsoleUser, Role
from webordinary.operations.access import Access, checked_name, hash_password

_MOST_ACTIONS = 1000


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "user", "users of the console and their rights", "Users of the console.")
    add_command(parts, "list", list_users, "list the users")
    add = add_command(parts, "add", add_user, "add a user, or change a role; prints a link to set the password")
    add.add_argument("name")
    add.add_argument(
        "--role", choices=[role.value for role in Role], help="viewer looks, operator acts; a new user is a viewer"
    )
    add.add_argument("--password-stdin", action="store_true", help="read the password from standard input instead")
    remove = add_command(parts, "remove", remove_user, "remove a user with all sessions and tokens")
    remove.add_argument("name")
    sessions = add_command(parts, "sessions", list_sessions, "list a user's sessions and tokens, or end them all")
    sessions.add_argument("name")
    sessions.add_argument("--end", action="store_true", help="end all of them")
    token = add_command(parts, "token", issue_token, "make an API token; it is shown once")
    token.add_argument("name")
    token.add_argument("--label", default="", help="what it is for")
    token.add_argument("--days", type=whole(1, 3650), default=365, help="how long it lasts")
    log = add_command(parts, "log", show_log, "show who did what")
    log.add_argument("--limit", type=whole(1, _MOST_ACTIONS), default=50)


def list_users(args: argparse.Namespace) -> int:
    """One line per user."""
    with open_container(load_folder(args)) as services:
        users = _access(services).users.all()
    if args.json:
        print_json([{"name": user.name, "role": user.role.value} for user in users])
    else:
        print(table(("user", "role", "since"), [(u.name, u.role, f"{u.created_at:%Y-%m-%d}") for u in users]))
    return Exit.OK


def add_user(args: argparse.Namespace) -> int:
    """Add a user; doing it again changes the role and makes a new link."""
    config = running.as_it_runs(load_folder(args))
    with open_container(config) as services:
        access, name = _access(services), checked_name(args.name)
        password = hash_password(_password()) if args.password_stdin else None
        known = access.users.get(name)
        role = Role(args.role) if args.role else known.role if known else Role.VIEWER
        created = known.created_at if known else services.clock.now()
        access.users.put(ConsoleUser(name, role, created), password)
        if password:
            access.end_sessions(name)
        link = "" if password else _address(services, access.issue_link(name, role))
        access.record(_me(), f"made {name} {role}", "command line")
    if args.json:
        print_json({"name": name, "role": role.value} | ({"link": link} if link else {}))
    else:
        print(f"{name} is {'an operator' if role is Role.OPERATOR else 'a viewer'}.")
        if link:
            print(f"Open this once, within 24 hours, to set the password:\n  {link}")
    return Exit.OK


def remove_user(args: argparse.Namespace) -> int:
    """Remove a user; open sessions end at once."""
    with open_container(load_folder(args)) as services:
        access = _access(services)
        _known(access, args.name)
        access.users.remove(args.name)
        access.record(_me(), f"removed {args.name}", "command line")
    return _done(args, {"removed": args.name}, f"{args.name} is removed, and every session of {args.name} has ended.")


def list_sessions(args: argparse.Namespace) -> int:
    """List or end the sessions of a user."""
    with open_container(load_folder(args)) as services:
        access = _access(services)
        _known(access, args.name)
        found = access.secrets.of(args.name)
        if args.end:
            ended = sum(access.secrets.remove(secret.digest) for secret in found)
            access.record(_me(), f"ended sessions and tokens of {args.name}: {ended}", "command line")
            return _done(args, {"ended": ended}, f"sessions and tokens of {args.name} that have ended: {ended}")
    if args.json:
        print_json([{"kind": s.kind.value, "label": s.label, "expires_at": s.expires_at.isoformat()} for s in found])
    else:
        rows = [(s.kind, s.label, f"{s.created_at:%Y-%m-%d %H:%M}", f"{s.expires_at:%Y-%m-%d}") for s in found]
        print(table(("kind", "label", "since", "until"), rows))
    return Exit.OK


def issue_token(args: argparse.Namespace) -> int:
    """Print a new API token; only its digest is stored."""
    with open_container(load_folder(args)) as services:
        access = _access(services)
        _known(access, args.name)
        token = access.issue_token(args.name, args.label[:100], timedelta(days=args.days))
        access.record(_me(), f"made an API token of {args.name}", "command line")
    return _done(args, {"token": token}, f"{token}\n\nSend it as `Authorization: Bearer TOKEN`. It is not shown again.")


def show_log(args: argparse.Namespace) -> int:
    """The newest actions first."""
    with open_container(load_folder(args)) as services:
        actions = _access(services).log.latest(args.limit)
    if args.json:
        print_json([{"at": a.at.isoformat(), "user": a.user, "action": a.action, "client": a.client} for a in actions])
    else:
        print(
            table(
                ("at", "user", "action", "from"),
                [(f"{a.at:%Y-%m-%d %H:%M:%S}", a.user, a.action, a.client) for a in actions],
            )
        )
    return Exit.OK


def _access(services: Container) -> Access:
    if services.access is None:
        raise CommandFailed("this backend has no users of its own", "use a data folder", Exit.USAGE)
    return services.access


def _known(access: Access, name: str) -> None:
    if access.users.get(name) is None:
        raise CommandFailed(f"there is no user {name[:80]!r}", "see `webordinary user list`")


def _address(services: Container, secret: str) -> str:
    config = services.config
    return f"{(config.public_url or f'http://127.0.0.1:{config.port}').rstrip('/')}/link/{secret}"


def _password() -> str:
    return sys.stdin.readline().rstrip("\n")


def _me() -> str:
    """The account of this machine that runs the command."""
    try:
        return f"{os.environ.get('SUDO_USER') or getpass.getuser()} of this machine"
    except (OSError, KeyError):
        return "this machine"


def _done(args: argparse.Namespace, plain: dict[str, object], words: str) -> int:
    if args.json:
        print_json(plain)
    else:
        print(words)
    return Exit.OK
