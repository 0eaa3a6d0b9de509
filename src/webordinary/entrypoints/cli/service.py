"""Commands of the installation: `service` (systemd), `doctor`, `config` and `completion`."""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from webordinary.compose.checks import run_doctor
from webordinary.config import NAMES, SECRETS
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import FLAGS, Commands, add_command, add_group, add_settings, load_config
from webordinary.entrypoints.cli.output import CommandFailed, Exit, line_of_check, print_json, say, table
from webordinary.model.checks import CheckRun, Verdict

UNIT_FILE = Path("/etc/systemd/system/webordinary.service")
DATA = Path("/var/lib/webordinary")
USER = "webordinary"

# Not set, as agents and builds run in sandboxes of their own (bubblewrap), which the kernel refuses below these:
# ProtectKernelTunables, ProtectKernelLogs and ProtectProc cover parts of /proc, and a sandbox mounts a fresh one;
# SystemCallFilter and RestrictNamespaces would forbid the mounts and namespaces that a sandbox is made of.
UNIT = """\
[Unit]
Description=WebOrdinary: websites that their owners change by writing an e-mail
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
User={user}
Group={user}
StateDirectory=webordinary
StateDirectoryMode=0700
Environment=WEBORDINARY_DATA={data}
ExecStart={program} up --no-sample
Restart=always
RestartSec=2
KillMode=mixed
TimeoutStopSec=150
LimitNOFILE=8192
UMask=0077
CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome={protect_home}
PrivateTmp=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectClock=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=multi-user.target
"""


def add_to(commands: Commands) -> None:
    parts = add_group(
        commands, "service", "run it as a service of this machine", "A systemd service for `webordinary up`."
    )
    install = add_command(parts, "install", install_service, "make a user, a data folder and the unit, and start it")
    install.add_argument("--print", action="store_true", help="print the unit and change nothing")


def install_service(args: argparse.Namespace) -> int:
    """Install the service; doing it again writes the unit anew and restarts it."""
    unit = unit_of(program())
    if args.print:
        print(unit, end="")
        return Exit.OK
    if os.geteuid() != 0 or shutil.which("systemctl") is None:
        what = "this needs root and systemd"
        raise CommandFailed(what, "run it with sudo on such a machine, or see the unit with --print", Exit.USAGE)
    _make_user()
    UNIT_FILE.write_text(unit)
    UNIT_FILE.chmod(0o644)
    for command in (("daemon-reload",), ("enable", "webordinary"), ("restart", "webordinary")):
        _run("systemctl", *command)
    if args.json:
        print_json({"unit": str(UNIT_FILE), "data": str(DATA), "user": USER})
    else:
        print(f"WebOrdinary runs as the user {USER}; its data and settings are in {DATA}.")
        print("  what it says   journalctl -u webordinary   (also the link for the first operator)")
        print(f"  its settings   {DATA}/webordinary.toml, then systemctl restart webordinary")
        print(f"  its commands   sudo -u {USER} {program()} status --data {DATA}")
    return Exit.OK


def program() -> Path:
    """The program that this command was started as, by its path."""
    found = Path(sys.argv[0]).resolve()
    return found if found.name == "webordinary" else Path(sys.executable).with_name("webordinary")


def unit_of(program: Path) -> str:
    """The unit; a program below /home or /root stays readable."""
    at_home = any(program.is_relative_to(folder) for folder in ("/home", "/root"))
    return UNIT.format(user=USER, data=DATA, program=program, protect_home="read-only" if at_home else "yes")


def _make_user() -> None:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        _run("useradd", "--system", "--home-dir", str(DATA), "--shell", "/usr/sbin/nologin", USER)


def _run(*command: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode:
        error = ran.stderr.strip()[:300]
        raise CommandFailed(f"`{' '.join(command)}` failed: {error}", "correct that and run it again")


SHELLS = ("bash", "zsh", "tcsh")
HIDDEN = "(set)"
PORTS = ("port", "preview_port", "smtp_port")


def add_config(commands: Commands) -> None:
    parts = add_group(commands, "config", "show or check the settings", "The settings in force.")
    for name, run, about in (
        ("show", show, "show every setting as it is in force; secrets are not shown"),
        ("check", check, "say whether the settings are possible, and start nothing"),
    ):
        add_settings(add_command(parts, name, run, about), (flag for flag in FLAGS if flag != "data"))


def show(args: argparse.Namespace) -> int:
    """Flags, variables, file and defaults, put together; ports as the running `up` has them."""
    config = load_config(args)
    values = {name: getattr(config, name) for name in NAMES}
    if ends := running.running(config.data):
        ports = {name: getattr(ends, name) for name in PORTS if getattr(args, name) is None}  # a flag asks about itself
        others = [f"{name} {port} (not {values[name]})" for name, port in ports.items() if port != values[name]]
        if others:
            say(f"`webordinary up` (process {ends.pid}) was started with its own {', '.join(others)}; they are shown")
        values |= ports
    shown = {name: HIDDEN if name in SECRETS and value else value for name, value in values.items()}
    if args.json:
        print_json({name: str(value) if isinstance(value, Path) else value for name, value in shown.items()})
    else:
        rows = [(name, " ".join(value) if isinstance(value, tuple) else value) for name, value in shown.items()]
        print(table(("setting", "value"), rows))
    return Exit.OK


def check(args: argparse.Namespace) -> int:
    """A wrong setting raises ConfigError, which names every one of them."""
    config = load_config(args)
    if args.json:
        print_json({"ok": True, "data": str(config.data)})
    else:
        print("The settings are possible.")
    return Exit.OK


def add_completion(commands: Commands) -> None:
    command = add_command(commands, "completion", complete, "print completion for a shell; see docs/operations.md")
    command.add_argument("shell", choices=SHELLS)


def complete(args: argparse.Namespace) -> int:
    """Print the script for the shell to read."""
    import shtab  # noqa: PLC0415 - nothing else needs it

    from webordinary.entrypoints.cli.main import parser  # noqa: PLC0415 - it loads this module

    print(shtab.complete(parser(), args.shell))
    return Exit.OK


def add_doctor(commands: Commands) -> None:
    parser = add_command(commands, "doctor", examine, "look at everything that must be in order, and say what to mend")
    add_settings(parser, (name for name in FLAGS if name != "data"))


def examine(args: argparse.Namespace) -> int:
    """Print a line per check; exit code 1 if one fails."""
    config = load_config(args)
    up = running.running(config.data) is not None
    looks: list[CheckRun] = []
    for look in run_doctor(running.as_it_runs(config), running=up):
        looks.append(look)
        if not args.json:
            print(line_of_check(look), flush=True)
    counts = Counter(look.finding.verdict for look in looks)
    if args.json:
        print_json([{"check": look.name, **asdict(look.finding)} for look in looks])
    else:
        print(f"\n{counts[Verdict.OK]} in order, {counts[Verdict.WARN]} to know of, {counts[Verdict.FAIL]} to mend")
    return Exit.FAILED if counts[Verdict.FAIL] else Exit.OK
