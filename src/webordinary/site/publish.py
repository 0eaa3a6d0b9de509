"""Publishing: the thread's work joins main, is built, pushed and shown; all of it or nothing.

Killed between any two calls, running it again ends in the same place: the commit is recognised by its Job-Id,
the release by its commit, and both fences refuse whoever slept too long.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, MustWait, Transient, WebOrdinaryError
from webordinary.model.hold import Hold
from webordinary.site.ports import MainLine, ProjectLeases, Releases, Workspaces
from webordinary.site.releases import Release, Stage
from webordinary.site.sources import BuildFailed, Built, Change, Conflicted, Joined, SourceTree, Workspace

PATIENCE_SECONDS = 30.0
"""So long a job keeps its slot while somebody else publishes the project. A build may take many times that: then the
job goes back to its queue, which costs it nothing, and others have the slot."""
LOOK_AGAIN_SECONDS = 15.0
MAIN_MOVED_TRIES = 5

Build = Callable[[SourceTree, Path, Path | None], Built | BuildFailed]


@dataclass(frozen=True, slots=True)
class Published:
    """Main holds the change and visitors of the edit site see it."""

    change: Change
    release: Release
    flipped: bool
    before: Path | None = None
    """What they saw until then."""
    stands: bool = True
    """Otherwise main held the change already, and the site was taken back to an earlier state since."""
    page: str = ""
    """The changed page, as a file of the release; empty where that is not known."""
    pictures: tuple[str, ...] = ()
    """Digests of pictures of the changed page: before, if there was one, and after."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one project's work at a time; every worker has one."""

    workspaces: Workspaces
    main: MainLine
    leases: ProjectLeases
    releases: Releases
    now: Callable[[], datetime]
    wait: Callable[[float], None]

    def publish(self, workspace: Workspace, build: Build, hold: Hold) -> Published | Conflicted | BuildFailed:
        """Bring the workspace's change to main and to the edit site."""
        project_id = workspace.work.project.project_id
        for _ in range(MAIN_MOVED_TRIES):
            with self.leased(project_id, hold, saving=workspace) as lease:
                self.main.enter(workspace, lease)
                joined = self.main.join(workspace)
                if isinstance(joined, Conflicted):
                    return joined
                done = self._bring(workspace, joined, lease, build, hold)
            if done is not None:
                return done
        raise Transient(f"{project_id}: main moved {MAIN_MOVED_TRIES} times while publishing")

    def promote(self, project_id: str, hold: Hold) -> Release | None:
        """Show on the public site what the edit site shows; None when there is nothing yet."""
        with self.leased(project_id, hold) as lease:
            release = self.releases.promote(project_id, Stage.EDIT, Stage.PUBLIC, lease.fence)
            if release is not None:
                self._confirm(lease, hold)
                self.releases.point(release, lease.fence, _while_claimed(hold))
            return release

    def promoted(self, project_id: str, hold: Hold) -> Release | None:
        """The release that both sites show; None when they differ. Holders of older leases are too late from now on."""
        with self.leased(project_id, hold) as lease:
            self._confirm(lease, hold)
            self.releases.shut_out(project_id, Stage.PUBLIC, lease.fence)
            public = self.shown(project_id, Stage.PUBLIC)
            if public is None:
                return None
            self.releases.point(public, lease.fence, _while_claimed(hold))
            edit = self.shown(project_id, Stage.EDIT)
            return public if edit is not None and edit.name == public.name else None

    def shown(self, project_id: str, stage: Stage) -> Release | None:
        """What visitors see now; None before the first release."""
        kept = self.releases.list(project_id, stage)  # a fresh look, where `current` may remember
        path = self.releases.current(project_id, stage)
        return next((release for release in kept if release.path == path), None)

    @contextmanager
    def leased(self, project_id: str, hold: Hold, saving: Workspace | None = None) -> Iterator[ProjectLease]:
        """Hold the project's lease for the block; while another worker has it, wait, with the work saved first.

        Raises MustWait, with the work saved, when that takes long, or when an operator overtook.
        """
        lease = self._take(project_id, hold, saving)
        try:
            yield lease
        except ClaimLost as lost:
            if lost.key != project_id:
                raise  # not the lease but the claim
            hold.check()
            self._save(saving)
            raise MustWait("an operator changed what the site shows; this goes on from there", 1.0) from lost
        finally:
            self.leases.release(lease)

    def _take(self, project_id: str, hold: Hold, saving: Workspace | None) -> ProjectLease:
        began = self.now()
        pause = 0.01
        while True:
            hold.check()
            lease = self.leases.take(project_id, hold, self.now())
            if lease is not None:
                return lease
            self._save(saving)
            saving = None
            if (self.now() - began).total_seconds() > PATIENCE_SECONDS:
                raise MustWait("somebody else's change of this site is being published", LOOK_AGAIN_SECONDS)
            self.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 1.5, 0.5)

    def _bring(
        self, workspace: Workspace, joined: Joined, lease: ProjectLease, build: Build, hold: Hold
    ) -> Published | BuildFailed | None:
        project_id = lease.project_id
        release = self.releases.find(project_id, Stage.EDIT, joined.head)
        staged, before = None, self.releases.current(project_id, Stage.EDIT)
        if release is None:
            staged = self.releases.stage(project_id, Stage.EDIT, lease.fence)
            try:
                built = build(joined.tree, staged, before)
            finally:
                self._confirm(lease, hold)  # what was seen without the lease counts for nothing, whatever it was
            if isinstance(built, BuildFailed):
                return built
        else:
            self._confirm(lease, hold)
        if not self.main.push(workspace, joined, lease):
            return None
        if staged is not None:
            # Only now: a release never exists for a commit that did not reach main.
            release = self.releases.finish(project_id, Stage.EDIT, staged, joined.head)
        assert release is not None
        flipped = self.releases.point(release, lease.fence, _while_claimed(hold))
        return Published(joined.change, release, flipped, before)

    def _save(self, workspace: Workspace | None) -> None:
        if workspace is not None and not workspace.on_main:
            self.workspaces.save(workspace)

    def _confirm(self, lease: ProjectLease, hold: Hold) -> None:
        hold.check()
        self.leases.confirm(lease)


def _while_claimed(hold: Hold) -> Callable[[], None]:
    """What main has is shown, whoever wants the job to end meanwhile; but not under a lost claim."""

    def check() -> None:
        try:
            hold.check()
        except ClaimLost:
            raise
        except WebOrdinaryError:
            return

    return check
