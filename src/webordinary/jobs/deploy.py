"""SiteDeployer: merges a thread's work into a branch and shows it, under the project's lease and fences.

Every step may be repeated. After a crash between any two calls the next attempt reaches the same state: it recognises
the commit by its Job-Id and the release by its commit, and the fences refuse the writes of a superseded worker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from webordinary.jobs.history import WaitingChange
from webordinary.jobs.page_checks import NOT_COMPARED, SiteComparison
from webordinary.jobs.ports import MainBranch, ProjectLeases, Releases, Workspaces
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import Change, MergeConflict, Merged, Workspace
from webordinary.model.claims import CancelToken, ProjectLease
from webordinary.model.errors import Backoff, ClaimLost, MustWait, Transient, WebOrdinaryError

LEASE_WAIT_SECONDS = 30.0
"""A job keeps its slot this long while another job deploys the project. A build may take many times longer: the job is
then requeued without a counted attempt, and the slot is free for other keys."""
REQUEUE_SECONDS = 15.0
_LEASE_BACKOFF = Backoff(0.01, factor=1.5, cap=0.5)


@dataclass(frozen=True, slots=True)
class EditDeployment:
    """Main holds the change and the edit site shows it."""

    change: Change
    release: Release
    flipped: bool
    """The edit site showed another release before."""
    before: Path | None = None
    """The release that it showed before."""
    stands: bool = True
    """False: main held the change already, and the site was rolled back or the change undone since."""
    page: str = ""
    """The changed page, as a file of the release; empty if it is unknown."""
    pictures: tuple[str, ...] = ()
    """Digests of screenshots of the changed page: before (if it existed), then after."""
    comparison: SiteComparison = NOT_COMPARED
    """With the release that it showed before."""


@dataclass(frozen=True, slots=True)
class PublicDeployment:
    """Live holds these changes and the public site shows them."""

    release: Release
    flipped: bool
    """The public site showed another release before, or none."""
    brought: tuple[WaitingChange, ...]
    waiting: tuple[WaitingChange, ...]
    """What stays back."""
    unowned: int = 0
    """Commits that stay back and that no conversation made."""
    comparison: SiteComparison = NOT_COMPARED
    """With the release that the public site showed before."""


@dataclass(frozen=True, slots=True)
class SiteDeployer:
    """The steps of a deployment over one worker's ports. Thread-safe."""

    workspaces: Workspaces
    main: MainBranch
    leases: ProjectLeases
    releases: Releases
    now: Callable[[], datetime]
    wait: Callable[[float], None]

    @contextmanager
    def leased(self, project_id: str, token: CancelToken, saving: Workspace | None = None) -> Iterator[ProjectLease]:
        """Hold the project's lease for the block; wait while another job holds it.

        Saves the work of `saving` before it waits. Raises MustWait, with the work saved, when the wait takes long or
        when an operator took the lease.
        """
        lease = self._take(project_id, token, saving)
        try:
            yield lease
        except ClaimLost as lost:
            if lost.key != project_id:
                raise  # the claim of the key is lost, not the project's lease
            token.check()
            self._save(saving)
            raise MustWait("an operator changed what the site shows; this goes on from there", 1.0) from lost
        finally:
            self.leases.release(lease)

    def merge(self, workspace: Workspace, lease: ProjectLease) -> Merged | MergeConflict:
        """Put the thread's work on top of main; nothing is pushed yet."""
        self.main.enter(workspace, lease)
        return self.main.join(workspace)

    @contextmanager
    def staged(self, lease: ProjectLease, token: CancelToken, stage: Stage = Stage.EDIT) -> Iterator[Path]:
        """An empty folder to build a release into. The lease is confirmed after the block, also after an error.

        The result of a build that lost its lease is not valid, whether it succeeded or failed.
        """
        folder = self.releases.stage(lease.project_id, stage, lease.fence)
        try:
            yield folder
        finally:
            self.confirm(lease, token)

    def confirm(self, lease: ProjectLease, token: CancelToken) -> None:
        """Before the first effect: check the job's token, then fix the lease so that no operator overtakes it."""
        token.check()
        self.leases.confirm(lease)

    def push_and_show(
        self, workspace: Workspace, merged: Merged, built: Release | Path, lease: ProjectLease, token: CancelToken
    ) -> EditDeployment | None:
        """Push main, then show its release on the edit site; None if main had moved. `built` is a release or a folder.

        The release is completed after the push: no release exists for a commit that is not on main.
        """
        if not self.main.push(workspace, merged, lease):
            return None
        release, flipped = self.show(Stage.EDIT, merged.head, built, lease, token)
        return EditDeployment(merged.change, release, flipped)

    def show(
        self, stage: Stage, commit: str, built: Release | Path, lease: ProjectLease, token: CancelToken
    ) -> tuple[Release, bool]:
        """Complete the release of a pushed commit and make it current; True if visitors now see another release."""
        if isinstance(built, Path):
            built = self.releases.finish(lease.project_id, stage, built, commit)
        elif built.stage is not stage:
            promoted = self.releases.promote(lease.project_id, built.stage, stage, lease.fence, commit)
            if promoted is None:
                raise Transient(f"release {built.name} of {built.project_id} is gone meanwhile: it is built again")
            built = promoted
        return built, self.releases.activate(built, lease.fence, _while_claimed(token))

    def shown(self, project_id: str, stage: Stage) -> Release | None:
        """The release that a site shows now; None before the first one."""
        kept = self.releases.list(project_id, stage)  # reads the store; `current` may answer from a cache
        path = self.releases.current(project_id, stage)
        return next((release for release in kept if release.path == path), None)

    def _take(self, project_id: str, token: CancelToken, saving: Workspace | None) -> ProjectLease:
        began = self.now()
        rng = random.Random(random.random())  # noqa: S311  jitter; a simulation seeds the global generator
        for attempt in count():
            token.check()
            lease = self.leases.take(project_id, token, self.now())
            if lease is not None:
                return lease
            self._save(saving)
            saving = None
            if (self.now() - began).total_seconds() > LEASE_WAIT_SECONDS:
                break
            self.wait(_LEASE_BACKOFF.delay(attempt, rng))
        raise MustWait("another change of this site is being published", REQUEUE_SECONDS)

    def _save(self, workspace: Workspace | None) -> None:
        if workspace is not None and not workspace.on_main:
            self.workspaces.save(workspace)


def _while_claimed(token: CancelToken) -> Callable[[], None]:
    """A check that raises ClaimLost only: a pushed change is shown even if the job is interrupted meanwhile."""

    def check() -> None:
        try:
            token.check()
        except ClaimLost:
            raise
        except WebOrdinaryError:
            return

    return check
