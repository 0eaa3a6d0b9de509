"""The real Claude Code on Bedrock and Vertex: it is told to ask there, and only the proxy can sign or has the key."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.extras import needs_extra
from tests.fakes.cancel_token import FakeCancelToken
from tests.integration.claude_site import ClaudeSite, ends
from webordinary.adapters.agents.claude_access import AwsCredentials, KeyCommand, ModelAccess, model_access
from webordinary.adapters.agents.scripted_model import ApiError, Received, Script, ScriptedApi, Use
from webordinary.entrypoints.cli import main
from webordinary.jobs.ports import Changed
from webordinary.jobs.sandbox_policy import OutgoingRequest
from webordinary.model.errors import Permanent, Transient

needs_extra("claude_agent_sdk", "claude")
needs_extra("botocore", "aws")
pytestmark = pytest.mark.needs("bwrap")

BEDROCK = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-central-1"}
VERTEX = {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "pots"}
KEY_ID, SECRET, TOKEN = "AKIDEXAMPLEKEYID", "a-secret-for-signing", "a-session-token"
ELSEWHERE = f"find / -path /usr -prune -o -path {Path(sys.base_prefix).resolve()} -prune -o -name settings.json"
LOOK = f"env; cat /proc/[0-9]*/environ; cat ~/.aws/* ; {ELSEWHERE} -exec cat {{}} +"


@pytest.fixture
def world(tmp_path: Path) -> ClaudeSite:
    return ClaudeSite(tmp_path)


@pytest.fixture(autouse=True)
def own_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """botocore reads the process's environment: what the machine has is not for tests."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws-credentials"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


def bedrock(api: ScriptedApi, **env: str) -> ModelAccess:
    return model_access({**BEDROCK, "ANTHROPIC_BEDROCK_BASE_URL": api.url, **env})


def change(world: ClaudeSite, api: ScriptedApi, access: ModelAccess) -> None:
    """A whole job: the answers are understood, the file is edited."""
    result = world.agent_with(lambda: access).run(world.task("Change the title to Sale"), FakeCancelToken())
    assert isinstance(result, Changed), result
    assert world.page.read_text() == "<h1>Sale</h1>\n"
    assert api.strangers == []


def heard(api: ScriptedApi) -> str:
    return "\n".join(json.dumps(block.get("content", "")) for block in api.requests[-1].blocks("tool_result"))


@pytest.mark.usefixtures("keys")
def test_what_it_asks_bedrock_is_signed_by_the_proxy_and_the_secret_never_enters_the_jail(world: ClaudeSite) -> None:
    from tests.integration.aws_signature import expected, signature_of

    with ScriptedApi([Use("Bash", {"command": LOOK}), *world.edit(), ends("changed", "Done.")]) as api:
        access = bedrock(api)
        change(world, api, access)
        assert all(name not in str(access) for name in (KEY_ID, SECRET, TOKEN))
        for request in api.requests + api.side_requests:
            said = signature_of(request)
            assert (said.key, said.region, said.service) == (KEY_ID, "eu-central-1", "bedrock")
            assert {"host", "content-type", "x-amz-date", "x-amz-security-token"} <= {*said.headers}
            assert request.headers["x-amz-security-token"] == TOKEN
            assert said.signature == expected(request, api.url, SECRET, TOKEN)
            assert said.signature != expected(request, api.url, "another secret", TOKEN)
    seen = heard(api)
    assert "CLAUDE_CODE_USE_BEDROCK=1" in seen, "it looked around"
    assert "ANTHROPIC_BEDROCK_BASE_URL" in seen
    for secret in (KEY_ID, SECRET, TOKEN, api.url):
        assert secret not in seen
    assert "AWS_ACCESS_KEY_ID" not in seen


@pytest.mark.usefixtures("keys")
def test_a_models_own_name_is_signed_as_it_is_sent(world: ClaudeSite) -> None:
    from tests.integration.aws_signature import expected, signature_of

    name = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/pots"
    with ScriptedApi([*world.edit(), ends("changed", "Done.")]) as api:
        change(world, api, bedrock(api, ANTHROPIC_MODEL=name))
    asked = api.requests[0]
    assert asked.path.endswith("-profile%2Fpots/invoke-with-response-stream")
    assert signature_of(asked).signature == expected(asked, api.url, SECRET, TOKEN)


def page_in(received: Received) -> str:
    """Where the page of the trial is, as the agent was told."""
    found = re.search(r"working directory: (\S+)", received.text() + received.system)
    assert found
    return f"{found[1]}/index.html"


@pytest.mark.usefixtures("keys")
def test_an_operator_with_credentials_of_aws_gets_claude_without_another_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"old_string": "Before", "new_string": "It works"}
    script: Script = [
        lambda received: Use("Read", {"file_path": page_in(received)}),
        lambda received: Use("Edit", {"file_path": page_in(received), **change}),
        ends("changed", "The heading says “It works” now."),
    ]
    with ScriptedApi(script) as api:
        for name, value in {**BEDROCK, "ANTHROPIC_BEDROCK_BASE_URL": api.url}.items():
            monkeypatch.setenv(name, value)
        assert main(["agent", "test", "--agent", "auto", "--json"]) == 0
    trial = json.loads(capsys.readouterr().out)
    assert (trial["agent"], trial["ok"]) == ("claude", True)
    assert all(request.headers["authorization"].startswith("AWS4-HMAC-SHA256") for request in api.requests)


def test_credentials_that_run_out_are_renewed_while_the_job_runs(
    world: ClaudeSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tests.integration.aws_signature import expected, signature_of

    script = tmp_path / "print_credentials.py"
    script.write_text(
        "import datetime, json, pathlib\n"
        f"runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "runs.touch(); runs.write_text(runs.read_text() + 'x')\n"
        "soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'AKID{len(runs.read_text())}', 'SecretAccessKey': 'renewed',\n"
        "  'SessionToken': 't', 'Expiration': soon.isoformat()}))\n"
    )
    (tmp_path / "aws-config").write_text(f"[profile pots]\ncredential_process = {sys.executable} {script}\n")
    monkeypatch.setenv("AWS_PROFILE", "pots")
    with ScriptedApi([*world.edit(), ends("changed", "Done.")]) as api:
        change(world, api, bedrock(api))
    signatures = [signature_of(request) for request in api.requests]
    assert len({said.key for said in signatures}) == len(signatures), "each found them about to run out"
    assert all(
        said.signature == expected(request, api.url, "renewed", "t")
        for said, request in zip(signatures, api.requests, strict=True)
    )


def test_a_bearer_token_needs_no_signature(world: ClaudeSite) -> None:
    with ScriptedApi([Use("Bash", {"command": LOOK}), *world.edit(), ends("changed", "Done.")]) as api:
        change(world, api, bedrock(api, AWS_BEARER_TOKEN_BEDROCK="bedrock-api-key"))
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer bedrock-api-key"}
    assert all("/invoke-with-response-stream" in request.path for request in api.requests)
    assert "bedrock-api-key" not in heard(api)


def test_a_gateway_of_the_operators_own_is_asked_with_its_own_token(world: ClaudeSite) -> None:
    own = {"CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "ANTHROPIC_AUTH_TOKEN": "gateway-token"}
    with ScriptedApi([*world.edit(), ends("changed", "Done.")]) as api:
        change(world, api, bedrock(api, **own))
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer gateway-token"}


def test_vertex_is_asked_with_a_token_that_a_program_prints(world: ClaudeSite) -> None:
    key = KeyCommand(("echo", "ya29.vertex-token"), {})
    with ScriptedApi([Use("Bash", {"command": LOOK}), *world.edit(), ends("changed", "Done.")]) as api:
        change(world, api, model_access({**VERTEX, "ANTHROPIC_VERTEX_BASE_URL": api.url}, key))
    place = "/projects/pots/locations/europe-west1/publishers/anthropic/models/"
    assert all(request.path.startswith(place) for request in api.requests)
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer ya29.vertex-token"}
    assert "CLAUDE_CODE_USE_VERTEX=1" in heard(api)
    assert "ya29.vertex-token" not in heard(api)


@pytest.mark.usefixtures("keys")
def test_what_bedrock_refuses_is_told_to_the_operator_and_what_it_cannot_do_now_is_tried_later(
    world: ClaudeSite,
) -> None:
    no = ApiError(403, message="User is not authorized to perform: bedrock:InvokeModelWithResponseStream")
    with ScriptedApi([no] * 9) as api, pytest.raises(Permanent, match="InvokeModelWithResponseStream"):
        change(world, api, bedrock(api))
    with ScriptedApi([ApiError(429, message="Too many tokens")] * 9) as api, pytest.raises(Transient, match="reached"):
        change(world, api, bedrock(api))


def test_credentials_that_cannot_be_renewed_in_the_middle_of_a_job_end_it_for_now(
    world: ClaudeSite, caplog: pytest.LogCaptureFixture
) -> None:
    printed = iter(["first"])

    def key() -> str:
        try:
            return next(printed)
        except StopIteration:
            raise Permanent("the vault says: the root password is celadon") from None

    with ScriptedApi([Use("Bash", {"command": "true"})]) as api:
        access = model_access({**VERTEX, "ANTHROPIC_VERTEX_BASE_URL": api.url}, key)
        with pytest.raises(Transient) as told:
            change(world, api, access)
    assert "celadon" not in str(told.value), "what a program that gives out keys says stays outside"
    assert 1 <= caplog.text.count("celadon") <= 10, "the operator reads it, however often the agent asks"
    assert api.requests == []


def test_bedrock_without_credentials_says_what_to_set() -> None:
    with pytest.raises(Permanent, match="AWS_PROFILE"):
        model_access(BEDROCK)


def test_a_profile_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    with pytest.raises(Permanent, match="nowhere"):
        model_access(BEDROCK)


@pytest.mark.parametrize(("status", "kind"), [(403, Permanent), (400, Transient), (503, Transient)])
def test_only_who_is_denied_a_role_is_not_asked_again(
    status: int, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import ClientError
    from botocore.session import Session

    class Assumed:
        def get_frozen_credentials(self) -> None:
            raise ClientError({"Error": {"Code": "No"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "AssumeRole")  # type: ignore[typeddict-item]

    monkeypatch.setattr(Session, "get_credentials", lambda _: Assumed())
    with pytest.raises(kind, match="AssumeRole"):
        model_access(BEDROCK)


def test_keys_that_were_replaced_in_their_file_are_used_by_the_next_job(tmp_path: Path) -> None:
    aws, asked = (
        AwsCredentials(),
        OutgoingRequest("POST", "https://bedrock.example/model/m/invoke", {"Host": "x"}, b"{}"),
    )
    for key in ("AKIDFIRST", "AKIDSECOND"):
        lines = f"[default]\naws_access_key_id = {key}\naws_secret_access_key = s\naws_session_token = t\n"
        (tmp_path / "aws-credentials").write_text(lines)
        sign = model_access(BEDROCK, aws=aws).upstream.sign
        assert sign
        assert f"Credential={key}/" in sign(asked)["Authorization"]
