"""Every call that lambdas and workers really make is allowed to their roles: no emulator looks at that."""

from __future__ import annotations

import pytest

from tests.infra.templates import StackTemplates  # first: it skips where something is missing

# isort: split
from tests.aws.emulator import RunningEmulator
from tests.infra.calls import WORKER, Right, allowed
from tests.infra.rights_harness import KEY, RightsHarness, walk
from webordinary.adapters.aws import names
from webordinary.adapters.aws.functions import FUNCTIONS, Function

pytestmark = pytest.mark.xdist_group("infra")


@pytest.fixture(scope="module")
def used(ministack: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Right]]:
    """What everybody needed, by name."""
    with pytest.MonkeyPatch.context() as patch:
        harness = RightsHarness(ministack.endpoint, tmp_path_factory.mktemp("house"), patch)
        walk(harness)
        return harness.recorder.used


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_a_lambda_may_do_all_that_it_does(
    cloud: StackTemplates, used: dict[str, set[Right]], function: Function
) -> None:
    role = cloud.lambdas.named("AWS::Lambda::Function", "FunctionName")[function.name]["Role"]["Fn::GetAtt"][0]
    granted = cloud.lambdas.rights(role)
    assert used[function.name], "it did nothing, so nothing is known"
    assert sorted(right for right in used[function.name] if not allowed(right, granted)) == []


def test_a_worker_may_do_all_that_it_does_and_a_sites_publisher_the_rest(
    cloud: StackTemplates, used: dict[str, set[Right]]
) -> None:
    own, publishers = _rights(cloud, "webordinary-worker"), _rights(cloud, names.PUBLISHER_ROLE)
    of_project = {
        (action, resource.replace("${aws:PrincipalTag/project}", KEY.project_id)) for action, resource in publishers
    }
    rest = {right for right in used[WORKER] if not allowed(right, own)}
    written = {resource.partition("/")[2] for action, resource in rest if action == "s3:PutObject"}
    assert {f"amelia/{stage}/index.html" for stage in ("edit", "public")} <= written, "nothing was published"
    assert "ssm:GetParameter" in {action for action, _ in rest}, "no credential was asked for"
    assert sorted(right for right in rest if not allowed(right, of_project)) == []


def _rights(cloud: StackTemplates, name: str) -> set[Right]:
    roles = cloud.workers.of_type("AWS::IAM::Role").items()
    return cloud.workers.rights(next(logical for logical, role in roles if role.get("RoleName") == name))
