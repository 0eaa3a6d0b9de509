"""The sample site in a data folder, with a worker's jobs done for real, one at a time, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.cancel_token import FakeCancelToken
from tests.harness.embedded import AMELIA_SCOTT, WORKER, EmbeddedHarness, open_harness
from webordinary.compose import worker
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.site_files import Stage
from webordinary.mail.write import OutgoingFile
from webordinary.model.claims import StartedJob
from webordinary.model.jobs import Job, Settlement
from webordinary.operations import onboarding
from webordinary.pool.reconciler import deliver_callback


class SiteHarness:
    """An embedded system whose mails change a site."""

    def __init__(self, harness: EmbeddedHarness, data: Path) -> None:
        self.harness, self.services, self.data = harness, harness.services, data
        self.deps = worker.site_kit(harness.services, WORKER, data / "workspaces" / "w0")

    def mail(self, text: str, message_id: str = "", answers: str = "", files: Sequence[OutgoingFile] = ()) -> Job:
        """A mail arrives and is done; `answers` is the Message-ID that it goes on from."""
        started = self.begin(text, message_id, answers, files)
        return self.end(started, self.work().perform(started, self.token(started)))

    def begin(
        self, text: str, message_id: str = "", answers: str = "", files: Sequence[OutgoingFile] = ()
    ) -> StartedJob:
        """A mail arrives, and its job is started."""
        self.harness.receive(text, message_id, answers=answers, files=files)
        started = self.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, self.services.clock.now())
        assert isinstance(started, StartedJob)
        return started

    def token(self, started: StartedJob) -> FakeCancelToken:
        return FakeCancelToken(WORKER, started.claim.fence, started.job.job_id)

    def work(self) -> SiteJobs:
        services = self.services
        return SiteJobs(self.deps, worker.instructions_of(services).of, services.events, services.clock.now)

    def end(self, started: StartedJob, settled: Settlement) -> Job:
        """The job is settled, and its mail answered."""
        pool, services = self.services.pool, self.services
        pool.claims.end_and_take_next(started, settled, services.clock.now(), more=False)
        assert pool.claims.begin_release(started.claim)
        pool.claims.end_release(started.claim)
        job = services.jobs.get(started.job.job_id)
        assert job
        deliver_callback(job, pool)
        self.harness.engine.run_ready()
        return job

    def answer_to(self, job: Job) -> str:
        """The Message-ID of our answer to a job's mail."""
        return self.harness.replies(job.email_id)[-1].reply.message_id

    def page(self, stage: Stage = Stage.EDIT, name: str = "index.html") -> str:
        current = self.services.releases.current("amelia", stage)
        assert current
        return (current / name).read_text()

    def shown(self) -> str:
        current = self.services.releases.current("amelia", Stage.EDIT)
        assert current
        return current.name


@contextmanager
def open_site_harness(data: Path, **settings: object) -> Iterator[SiteHarness]:
    """With the sample's origin, its owner and its first release."""
    with open_harness(data, **settings) as harness:
        with harness.services.db.write() as conn:
            conn.execute("DELETE FROM senders")
            conn.execute("DELETE FROM projects")
        onboarding.ensure_sample(harness.services)
        yield SiteHarness(harness, data)
