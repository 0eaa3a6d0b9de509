"""The first quota that a size of the system reaches."""

from __future__ import annotations

import pytest

from webordinary.entrypoints.cli import main
from webordinary.operations.capacity.costs import QUOTAS, SystemSize, growing, quotas_of


@pytest.mark.parametrize(
    ("size", "first"),
    [
        (SystemSize(200, 1_000, 3), "EC2: vCPU"),
        (SystemSize(10_000, 50_000, 96), "EC2: vCPU"),
        (SystemSize(100_000, 500_000, 1), "SES: mails sent in 24 hours"),
    ],
)
def test_the_first_quota_is_named(size: SystemSize, first: str) -> None:
    assert quotas_of(size)[0].quota.name.startswith(first)


def test_a_small_system_fits_into_a_new_account() -> None:
    assert [use.quota.name for use in quotas_of(SystemSize(20, 100, 2)) if use.share > 1] == []


def test_what_stays_within_its_quota_is_below_one() -> None:
    shares = {use.quota.name: use.share for use in quotas_of(SystemSize(10_000, 50_000, 96))}
    assert shares["ECS: tasks of a service"] == pytest.approx(96 / 5_000)
    assert shares["SES: mails sent in 24 hours, as production access usually begins"] == 1.0


def test_every_quota_has_a_figure_a_source_and_something_to_do() -> None:
    for quota in QUOTAS:
        assert quota.limit > 0
        assert quota.source.startswith("https://docs.aws.amazon.com/")
        assert quota.ask


def test_the_quotas_of_each_size_up_to_the_largest_are_said_with_figure_and_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["simulate", "--projects", "100000", "--mails-per-day", "500000", "--workers", "960", "--quotas"]) == 0
    said = capsys.readouterr().out.splitlines()
    sizes = [at for at, line in enumerate(said) if line.endswith("workers:")]
    assert [said[at].split(" ")[0] for at in sizes] == ["100", "1,000", "10,000", "100,000"]
    assert said[sizes[0] + 1] == "  within every default quota"
    assert said[sizes[-1] + 1].startswith("  EC2: vCPU")
    assert "1,920 of 5" in said[sizes[-1] + 1]
    assert "https://docs.aws.amazon.com/" in said[sizes[-1] + 2]


def test_a_simulated_day_names_the_quotas_of_each_size_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--projects", "2000", "--mails-per-day", "300", "--workers", "3"]) == 0
    said = capsys.readouterr().out
    sizes = ("2 projects, 1 mails a day", "20 projects, 3 mails", "200 projects, 30 mails", "2,000 projects, 300 mails")
    at = [said.index(f"  {size}") for size in sizes]
    assert at == sorted(at)
    assert "EC2: vCPU of running On-Demand Standard machines, in a new account: 6 of 5" in said[at[-1] :]


def test_sizes_of_less_than_a_project_are_left_out() -> None:
    assert [one.projects for one in growing(SystemSize(200, 1_000, 3))] == [2, 20, 200]
