"""Raw mails in the bucket, as S3 tells of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.lambdas.harness import BUCKET, FIRST_MAIL, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.entrypoints.lambdas.handlers import intake
from webordinary.model.errors import Permanent, Transient

SECOND_MAIL = "raw/6k2m0lv1f9aj3hs7ghr0second0mail0in0one0event"
QUOTED_KEY = "raw/spring sale (2026)/grüße+more"


def test_an_event_that_comes_twice_starts_one_workflow(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    assert len(cloud.names()) == 1


def test_the_test_event_that_s3_sends_first_is_no_mail(cloud: LambdaHarness) -> None:
    assert cloud.invoke(names.INTAKE, recorded("s3_test_event")) == {"taken": 0}


def test_a_quoted_key_is_read_as_it_was_before_s3_quoted_it() -> None:
    taken: list[tuple[str, datetime]] = []
    intake(recorded("s3_put_quoted_key"), BUCKET, lambda key, at: taken.append((key, at)))
    assert taken == [(QUOTED_KEY, datetime(2026, 4, 1, 12, 0, 3, 412000, tzinfo=UTC))]


def test_a_mail_that_fails_does_not_hold_up_the_other_and_the_event_fails_as_a_whole(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[SECOND_MAIL] = raw_mail(SECOND_MAIL)
    with pytest.raises(Permanent, match="no file"):
        cloud.invoke(names.INTAKE, recorded("s3_put_two_records"))
    assert len(cloud.names()) == 1


def test_a_foreign_bucket_is_refused_with_words(cloud: LambdaHarness) -> None:
    with pytest.raises(Permanent, match=r"somebody-elses-bucket.*webordinary-mail-123456789012"):
        cloud.invoke(names.INTAKE, recorded("s3_put_other_bucket"))


def test_a_mail_larger_than_ses_takes_is_refused_before_it_is_read(cloud: LambdaHarness) -> None:
    with pytest.raises(Permanent, match="has 49 MB and a mail has at most 41"):
        cloud.invoke(names.INTAKE, recorded("s3_put_oversized"))


def test_a_mail_whose_workflow_could_not_start_is_noted_and_fails_for_lambda_to_retry(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.workflows.out_of_reach = True
    with pytest.raises(Transient, match="throttles"):
        cloud.invoke(names.INTAKE, recorded("s3_put"))
    assert len(cloud.inbox.without_workflow(10)) == 1


def test_a_mail_to_nobody_here_is_noted_and_starts_nothing(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail().replace(b"edit@example.net", b"info@example.net")
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    assert cloud.names() == []
    assert cloud.inbox.noted == {FIRST_MAIL}
