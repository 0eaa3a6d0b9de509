"""The lambdas' zip: the product and what it needs, made without Docker and the same bytes each time.

What is installed comes from a lock file with hashes; where from is pip's own configuration.
"""

from __future__ import annotations

import base64
import compileall
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.aws.functions import PYTHON
from webordinary.model.errors import Permanent, Transient

if TYPE_CHECKING:
    from types_boto3_ecr import ECRClient
    from types_boto3_ecs import ECSClient


_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest day that a zip can name
_UNIX = 3  # or the permissions are not read
_NATIVE = ".so"


def write_zip(folder: Path, made: Path, comment: str, programs: Collection[str] = ()) -> None:
    """Pack a folder: in the order of names, without dates, with the permissions that a function needs."""
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        packed.comment = comment.encode()
        for path, name in files_of(folder):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.create_system = _UNIX
            runs = name in programs or path.suffix == _NATIVE
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())


def comment_of(package: Path) -> str:
    """The comment of a zip; empty if there is no such zip."""
    try:
        with zipfile.ZipFile(package) as packed:
            return packed.comment.decode()
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError):
        return ""


def files_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below, with its name from there, in the order of names."""
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    named = sorted((path.relative_to(folder).as_posix(), path) for path in found)
    yield from ((path, name) for name, path in named)


MAX_ZIP_BYTES = 50_000_000  # what Lambda takes in one call
INSTALL_SECONDS = 600
PRODUCT = "webordinary"
TASK_ROOT = "/var/task"
BOOTSTRAP = "bootstrap"
# Of what is installed, a function never reads these.
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "bin", "tests"})
_LEFT_OUT_FILES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
_LEFT_OUT_KINDS = (".c", ".pxd", ".pyi", ".pyx")
# boto3 describes some 400 services; a function calls these.
SERVICES = frozenset({"dynamodb", "s3", "sesv2", "sqs", "stepfunctions", "sts"})


@dataclass(frozen=True, slots=True)
class Target:
    """The platform of the functions, for which the zip is made."""

    name: str
    lock: str
    python: tuple[int, int]
    platforms: tuple[str, ...] = ()
    """Empty: this very machine's."""
    own_runtime: bool = False
    """With a `bootstrap` that speaks Lambda's runtime API, for a machine that has no Lambda Python."""


AWS = Target("aws", "lambda.lock", PYTHON, ("manylinux_2_28_aarch64", "manylinux2014_aarch64"))
EMULATOR = Target("emulator", "lambda-emulator.lock", sys.version_info[:2], own_runtime=True)


def build(root: Path, target: Target, folder: Path | None = None) -> Path:
    """Make the zip for a target from a checkout at `root`; returns where it lies.

    What did not change since the last time is not made again. Raises Transient where pip cannot reach its index,
    and Permanent where the zip is larger than Lambda takes.
    """
    folder = folder or root / "build" / "lambda"
    folder.mkdir(parents=True, exist_ok=True)
    final, inputs = folder / f"{target.name}.zip", _inputs(root, target)
    if comment_of(final) == inputs:
        return final
    needs = _needs(root, target, folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix="packing-") as scratch:
        stage, made = Path(scratch) / "stage", Path(scratch) / "made.zip"
        shutil.copytree(needs, stage)
        _unpack_product(root, Path(scratch), stage)
        if target.own_runtime:
            _write_bootstrap(stage / BOOTSTRAP)
        _compile(stage / PRODUCT, target)
        unchanged = _inputs(root, target) == inputs  # else it is packed, but not taken for the same the next time
        write_zip(stage, made, inputs if unchanged else "", {BOOTSTRAP})
        _check_size(made)
        made.replace(final)
    return final


def _inputs(root: Path, target: Target) -> str:
    """The name of all that a zip is made from."""
    digest = hashlib.sha256(f"{target}".encode())
    if _compiles_for(target):
        digest.update(sys.version.encode())
    if target.own_runtime:
        digest.update(sys.executable.encode())
    for path in (_lock(root, target), root / "pyproject.toml"):
        digest.update(path.read_bytes())
    for path, name in files_of(root / "src" / PRODUCT):
        if "__pycache__" not in name:
            digest.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _lock(root: Path, target: Target) -> Path:
    lock = root / "requirements" / target.lock
    if not lock.is_file():
        raise Permanent(f"{lock} is missing: package from a checkout, and make it with `make lock`")
    return lock


def digest_of(package: Path) -> str:
    """The name of these bytes; equal inputs give equal names."""
    return hashlib.sha256(package.read_bytes()).hexdigest()


def _needs(root: Path, target: Target, folder: Path) -> Path:
    """What the lock file names, installed, without what a function never reads."""
    lock = _lock(root, target)
    kept = folder / f"{target.name}-{hashlib.sha256(f'{target}'.encode() + lock.read_bytes()).hexdigest()[:16]}"
    if kept.is_dir():
        return kept
    with tempfile.TemporaryDirectory(dir=folder, prefix="installing-") as scratch:
        installed, made = Path(scratch) / "installed", Path(scratch) / "made"
        _pip("install", *_for(target), "--no-compile", "--require-hashes", "-r", str(lock), "--target", str(installed))
        shutil.copytree(installed, made, ignore=_left_out)
        _compile(made, target)
        try:
            made.rename(kept)
        except OSError:
            if not kept.is_dir():  # else another process wrote the same before
                raise
    return kept


def _for(target: Target) -> Sequence[str]:
    if not target.platforms:
        return ("--only-binary=:all:",)
    major, minor = target.python
    python = ("--python-version", f"{major}.{minor}", "--implementation", "cp")
    return ("--only-binary=:all:", *python, *(part for name in target.platforms for part in ("--platform", name)))


def _unpack_product(root: Path, scratch: Path, stage: Path) -> None:
    wheels = scratch / "wheels"
    _pip("wheel", "--no-index", "--no-build-isolation", "--wheel-dir", str(wheels), str(root))
    [wheel] = wheels.glob("webordinary-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(stage, [name for name in packed.namelist() if Path(name).name not in _LEFT_OUT_FILES])


def _pip(command: str, *arguments: str) -> None:
    program = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", command, "--no-deps"]
    try:
        done = subprocess.run(
            [*program, *arguments], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as problem:
        raise Transient(f"pip {command} took more than {INSTALL_SECONDS} s: is its index in reach?") from problem
    if done.returncode:
        raise Transient(f"pip {command} failed: {done.stderr.strip()[-2000:]}")


def _left_out(folder: str, names: list[str]) -> set[str]:
    unread = _LEFT_OUT_FOLDERS | _LEFT_OUT_FILES
    left_out = {name for name in names if name in unread or name.endswith(_LEFT_OUT_KINDS)}
    if Path(folder).parts[-2:] == ("botocore", "data"):
        left_out |= {name for name in names if (Path(folder) / name).is_dir() and name not in SERVICES}
    return left_out


def _write_bootstrap(path: Path) -> None:
    # -E and -S: nothing but the standard library and the zip, so that what is missing in the zip shows.
    lines = (f"#!{sys.executable} -ES", "from webordinary.entrypoints.lambdas.runtime import main", "main()", "")
    path.write_text("\n".join(lines))


def _compile(folder: Path, target: Target) -> None:
    """Lambda cannot keep what it compiles, so every cold start would compile it all again.

    Only its own version of Python can do it: package with that one, and functions start sooner.
    """
    if not _compiles_for(target):
        return
    # Unchecked hash-based pycs: they hold no dates, so that the zip is reproducible.
    compileall.compile_dir(
        folder,
        quiet=2,
        stripdir=str(folder.parent if folder.name == PRODUCT else folder),
        prependdir=TASK_ROOT,
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )


def _compiles_for(target: Target) -> bool:
    return target.python == sys.version_info[:2]


def _check_size(made: Path) -> None:
    size = made.stat().st_size
    if size > MAX_ZIP_BYTES:
        words = "take something out of requirements/lambda.in"
        raise Permanent(f"the lambdas' zip has {size / 1e6:.0f} MB, Lambda takes {MAX_ZIP_BYTES / 1e6:.0f} MB: {words}")


ARCHITECTURE = "arm64"
"""Of the workers' machines (infra/capacity.py); the tag of an image ends in its architecture."""


@dataclass(frozen=True, slots=True)
class ImageRegistry:
    """Where images are kept; the password lasts some hours."""

    host: str
    user: str
    password: str = field(repr=False)

    def image(self, tag: str) -> str:
        """The worker's image of this tag."""
        return f"{self.host}/{names.REPOSITORY}:{tag}"


def registry_of(ecr: ECRClient) -> ImageRegistry:
    """The account's own registry, and a way in. Raises Permanent where no repository is deployed."""
    with translated(f"looking for the repository {names.REPOSITORY}"):
        found = ecr.describe_repositories(repositoryNames=[names.REPOSITORY])["repositories"][0]
        token = ecr.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    user, _, password = base64.b64decode(token).decode().partition(":")
    return ImageRegistry(found["repositoryUri"].partition("/")[0], user, password)


def newest_tag(ecr: ECRClient) -> str:
    """The tag of the image that was pushed last; empty if there is none yet."""
    with translated(f"looking for images in {names.REPOSITORY}"):
        try:
            pages = list(ecr.get_paginator("describe_images").paginate(repositoryName=names.REPOSITORY))
        except ClientError as problem:
            if code_of(problem) == "RepositoryNotFoundException":
                return ""
            raise
    tagged = [image for page in pages for image in page["imageDetails"] if image.get("imageTags")]
    return max(tagged, key=lambda image: image["imagePushedAt"])["imageTags"][0] if tagged else ""


def renew_service(ecs: ECSClient, image: str) -> None:
    """Let the service run `image`. Idle workers are replaced; busy ones finish first."""
    with translated(f"renewing the service {names.SERVICE}"):
        [service] = ecs.describe_services(cluster=names.CLUSTER, services=[names.SERVICE])["services"]
        task: dict[str, Any] = dict(
            ecs.describe_task_definition(taskDefinition=service["taskDefinition"])["taskDefinition"]
        )
        for container in task["containerDefinitions"]:
            container["image"] = image
        made = ecs.register_task_definition(**{key: task[key] for key in _TASK_FIELDS if task.get(key)})
        arn = made["taskDefinition"]["taskDefinitionArn"]
        ecs.update_service(cluster=names.CLUSTER, service=names.SERVICE, taskDefinition=arn, forceNewDeployment=True)


_TASK_FIELDS = (
    "family", "taskRoleArn", "executionRoleArn", "networkMode", "containerDefinitions", "volumes",
    "placementConstraints", "requiresCompatibilities", "cpu", "memory", "ephemeralStorage", "runtimePlatform",
)  # fmt: skip
